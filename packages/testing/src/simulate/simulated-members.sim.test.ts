/** `sim.leave` next to what `cluster.leave` does. */
import { expect, test } from '@jest/globals'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { simulate } from './simulate.js'

const serve = async (ms: number): Promise<string> => {
  const { clock } = currentWorker()
  await new Promise<void>((resolve) => {
    clock.setTimer(ms, resolve)
  })
  return 'served'
}
const ask = (ms: number): Promise<string> =>
  call('worker1', serve, [ms]).then(
    (value) => value,
    (error) => error.code,
  )
expose({ serve, ask })

test('TK-86 several sim.leave of one worker all resolve when it has ended', async () => {
  for (let seed = 0; seed < 10; seed++) {
    const { result } = await simulate({ workers: 3, seed }, async (sim) => {
      const leaves = [0, 1, 2].map((i) => sim.leave('worker1', { timeoutMs: i * 100 }).then(() => sim.on('worker1').runtime.isClosed))
      return [...(await Promise.all(leaves)), await sim.leave('worker1').then(() => 'again')]
    })
    expect(result).toEqual([true, true, true, 'again'])
  }
})

test('TK-86 timeoutMs 0 cuts off at once what is under way; more, and Infinity, let it end', async () => {
  for (const [timeoutMs, answer, maxMs] of [
    [0, 'WORKER_DIED', 150],
    [5000, 'served', 5000],
    [Number.POSITIVE_INFINITY, 'served', 5000],
    [300, 'WORKER_DIED', 450],
    [undefined, 'served', 5000],
  ] as const) {
    const { result, timeMs } = await simulate({ workers: 2, ...(timeoutMs === undefined ? { rpcTimeoutMs: 0 } : {}) }, async (sim) => {
      const asked = sim.on('worker0').run(ask, 1500)
      await sim.on('worker0').run(serve, 100)
      await sim.leave('worker1', timeoutMs === undefined ? {} : { timeoutMs })
      return asked
    })
    expect([timeoutMs, result]).toEqual([timeoutMs, answer])
    expect(timeMs).toBeLessThan(maxMs)
  }
})

test('TK-86 a timeoutMs that is no time is refused', async () => {
  await simulate({ workers: 2 }, async (sim) => {
    await expect(sim.leave('worker1', { timeoutMs: Number.NaN })).rejects.toMatchObject({ code: 'TIMEOUT_INVALID' })
    await expect(sim.leave('worker1', { timeoutMs: -1 })).rejects.toMatchObject({ code: 'TIMEOUT_INVALID' })
    await sim.leave('worker1')
  })
})
