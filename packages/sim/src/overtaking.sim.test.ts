/** Frames that overtake: only past those with which they share no order, each once, and their receiver knows how many are still to come. */
import { setImmediate as immediate } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import type { Frame } from '@postgrad/transport'
import { EVERY_ORDER, frameOrder, NO_ORDER, staysBehind } from '@postgrad/transport/internal'
import { SimWorld, type SimWorldOptions } from './world.js'

const ORDERS = [...[1, 2, 4, 3].map((bits) => frameOrder(bits)), frameOrder(1, 2), NO_ORDER, EVERY_ORDER]
const FRAMES = 40

/** The number of each frame that arrived, and how many were still to come. */
async function run(seed: number, options: SimWorldOptions): Promise<{ orders: number[]; got: { n: number; overtook: number }[] }> {
  const world = new SimWorld(seed, options)
  const [a, b] = world.link('a', 'b')
  const got: { n: number; overtook: number }[] = []
  b.open({
    onFrame: ({ header, overtook = 0 }: Frame) => got.push({ n: header[0] as number, overtook }),
    onTurnEnd() {},
    onClose() {},
  })
  const orders = Array.from({ length: FRAMES }, () => ORDERS[world.random.below(ORDERS.length)] as number)
  for (const [n, order] of orders.entries()) {
    a.send({ header: Uint8Array.of(n), segments: [] }, order)
    if (world.random.below(3) === 0) {
      world.step()
      await immediate()
    }
  }
  while (world.framesInFlight > 0) {
    world.step()
    await immediate()
  }
  return { orders, got }
}

test('TK-80, ORD-1 frames that share an order arrive as they were sent; others overtake, and say of how many', async () => {
  let overtaken = 0
  for (let seed = 1; seed <= 60; seed++) {
    const { orders, got } = await run(seed, { overtaking: true })
    expect(got.map(({ n }) => n).sort((x, y) => x - y)).toEqual(orders.map((_, n) => n))
    const come = new Set<number>()
    for (const { n, overtook } of got) {
      const before = orders.map((_, m) => m).filter((m) => m < n && !come.has(m))
      expect({ seed, n, overtook }).toEqual({ seed, n, overtook: before.length })
      expect({ seed, n, shared: before.filter((m) => staysBehind(orders[n]!, orders[m]!)) }).toEqual({ seed, n, shared: [] })
      // A frame of no order is large.
      if (orders[n] === NO_ORDER) expect({ seed, n, overtook }).toEqual({ seed, n, overtook: 0 })
      if (overtook > 0) overtaken++
      come.add(n)
    }
  }
  expect(overtaken).toBeGreaterThan(100)
})

test('TK-80, ORD-1 a world without that option keeps every order', async () => {
  for (const options of [{}, { overtaking: true, faults: { rules: [] } }] satisfies SimWorldOptions[]) {
    const { orders, got } = await run(7, options)
    expect(got).toEqual(orders.map((_, n) => ({ n, overtook: 0 })))
  }
})
