/** Sums over passes, without engines: gradients come and go in drawn orders. */
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor } from '@postgrad/tensor'
import { isPending, raw, recording, withChainsFrom } from '@postgrad/tensor/internal'
import { GradientSums, type PassGradients } from './gradient-sums.js'

const leaf = tensor([0])
const gave = (value: number): PassGradients => new Map([[leaf, tensor([value])]])
const read = (sums: GradientSums, running: readonly PassGradients[] = []) => sums.over(running).get(leaf)?.toArray()

/** float32: 1e8 + 1 is 1e8, so nearly every order has another sum. */
const VALUES = [1e8, -1e8, 1, 3]

function orders<T>(items: readonly T[]): T[][] {
  return items.length === 0 ? [[]] : items.flatMap((item, i) => orders(items.filter((_, j) => j !== i)).map((rest) => [item, ...rest]))
}

describe('DA-48 the sum over passes', () => {
  const inOrder = (values: readonly number[], first: readonly number[] = []) =>
    [...first, ...[...values].sort((a, b) => a - b)].reduce((sum, value) => Math.fround(sum + value))

  test('is one in every order of their ends, and of what is read meanwhile', () => {
    for (const order of orders(VALUES)) {
      for (let ended = 0; ended <= order.length; ended++) {
        for (const reads of [false, true]) {
          const sums = new GradientSums()
          for (const value of order.slice(0, ended)) {
            sums.add(gave(value))
            if (reads) read(sums)
          }
          const running = order.slice(ended).map(gave)
          if (reads) for (let n = 0; n < running.length; n++) read(sums, running.slice(0, n))
          expect({ order, ended, reads, sum: read(sums, running) }).toEqual({ order, ended, reads, sum: [inOrder(VALUES)] })
        }
      }
    }
  })

  test('stays one tensor while nothing is added, also where a pass that is in it ends', () => {
    const sums = new GradientSums()
    const [a, b] = [gave(1), gave(2)]
    const sum = sums.over([a, b]).get(leaf)!
    expect(sums.over([b, a]).get(leaf)).toBe(sum)
    sums.add(a)
    expect(sums.over([b]).get(leaf)).toBe(sum)
    sums.add(b)
    expect(sums.over([]).get(leaf)).toBe(sum)
    expect(sum.toArray()).toEqual([3])
  })

  test('begins with what was written to it in place, whoever holds an older sum keeps what it saw', () => {
    const write = (sums: GradientSums, running: readonly PassGradients[], factor: number): Tensor => {
      const sum = sums.over(running).get(leaf)!
      raw.mul_(sum, tensor([factor]))
      return sum
    }
    for (const later of orders([1e8, -1e8, 1])) {
      const sums = new GradientSums()
      sums.add(gave(5))
      const first = write(sums, [], 3)
      for (const value of later) sums.add(gave(value))
      expect(read(sums)).toEqual([inOrder(later, [15])])
      const second = write(sums, [], 0.5)
      sums.add(gave(7))
      expect(read(sums)).toEqual([inOrder([7], [inOrder(later, [15]) * 0.5])])
      expect([first.toArray(), second.toArray()]).toEqual([[15], [inOrder(later, [15]) * 0.5]])
    }
  })

  test('forgets a write to a sum in which an aborted pass was, and keeps the others', () => {
    const sums = new GradientSums()
    sums.add(gave(1))
    const aborted = gave(2)
    raw.mul_(sums.over([aborted]).get(leaf)!, tensor([100]))
    expect(read(sums, [aborted])).toEqual([300])
    expect(read(sums)).toEqual([1])
    const other = gave(4)
    raw.mul_(sums.over([other]).get(leaf)!, tensor([10]))
    // That one ends well: the write is for good.
    sums.add(other)
    sums.add(gave(6))
    expect(read(sums)).toEqual([56])
    expect(read(new GradientSums(), [])).toBeUndefined()
  })

  test('has no leaf that only an aborted pass had reached, and the next pass gives its own', () => {
    const sums = new GradientSums()
    expect(read(sums, [gave(2)])).toEqual([2])
    expect([...sums.over([]).keys()]).toEqual([])
    expect(read(sums, [gave(3)])).toEqual([3])
  })

  test('keeps no gradient of a pass that has ended behind a write', () => {
    const sums = new GradientSums()
    const kept = () => [...(sums as unknown as { leaves: Map<Tensor, { ended: Tensor[] }> }).leaves.values()].flatMap(({ ended }) => ended)
    for (let n = 1; n <= 50; n++) {
      sums.add(gave(n))
      raw.mul_(sums.over([]).get(leaf)!, tensor([1]))
    }
    expect(read(sums)).toEqual([(50 * 51) / 2])
    expect(kept()).toHaveLength(0)
  })
})

test('CHAIN-6 a gradient that is pending when its pass ends is computed then', () => {
  const grad = withChainsFrom(1, () => recording(() => tensor([1, 2]).mul(3)))
  expect(isPending(grad)).toBe(true)
  new GradientSums().add(new Map([[leaf, grad]]))
  expect([isPending(grad), grad.toArray()]).toEqual([false, [3, 6]])
})
