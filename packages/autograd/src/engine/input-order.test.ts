/** Causal order: contributions by depth, then by the bits of each element; and how many wait for it. */
import { describe, expect, test } from '@jest/globals'
import { withScope } from '@postgrad/base/internal'
import { SparseTensor, type Tensor, tensor, toDense } from '@postgrad/tensor'
import { type Edge, Node } from '../graph/node.js'
import { backward } from '../index.js'
import { InputBuffer } from './input-buffer.js'
import { HeldBack, InputOrder } from './input-order.js'

class Source extends Node {
  constructor(depth: number) {
    super([] as Edge[], [])
    this.depth = depth
  }
  get name(): string {
    return 'Source'
  }
  apply(): [] {
    return []
  }
}

/** The sum of these contributions, arriving in that order, and the most that waited. */
function sumOf(all: readonly { readonly depth: number; readonly grad: Tensor | null }[], arrival: readonly number[]): [number, number] {
  const heldBack = new HeldBack()
  const order = new InputOrder(
    all.map(({ depth }) => depth),
    heldBack,
  )
  const buffer = new InputBuffer(1)
  for (const i of arrival) order.admit(buffer, new Source(all[i]!.depth), 0, all[i]!.grad, false)
  expect(heldBack.now).toBe(0)
  return [buffer.take()[0]!.itemSync(), heldBack.peak]
}

function* permutations(n: number, taken: readonly number[] = []): Generator<readonly number[]> {
  if (taken.length === n) yield taken
  else for (let i = 0; i < n; i++) if (!taken.includes(i)) yield* permutations(n, [...taken, i])
}

const at = (depth: number, value: number | null) => ({ depth, grad: value === null ? null : tensor(value) })

describe('DA-46 the sum does not depend on the order of arrival', () => {
  test.each([
    ['depths fall: ((-1e8 + 1e8) + 1) + 0', [at(4, -1e8), at(3, 1e8), at(2, 1), at(1, 0)], 1],
    ['depths fall the other way: 1 is lost', [at(4, 1), at(3, 1e8), at(2, -1e8), at(1, 0)], 0],
    ['equal depths, sorted: -1e8 + 1 + 2 + 1e8', [at(1, 1), at(1, 1e8), at(1, 2), at(1, -1e8)], 0],
    ['a group between two', [at(9, 1), at(7, 1e8), at(7, -1e8), at(2, 3)], 3],
    ['contributions that are none', [at(9, null), at(7, 1e8), at(7, null), at(7, -1e8), at(2, 3)], 3],
  ] as const)('%s', (_, all, want) => {
    for (const arrival of permutations(all.length)) expect([arrival, sumOf(all, arrival)[0]]).toEqual([arrival, want])
  })

  test('summed as they arrive, these would differ: the test above can fail', () => {
    const sums = new Set<number>()
    for (const arrival of permutations(4)) {
      const buffer = new InputBuffer(1)
      for (const i of arrival) buffer.add(0, tensor([1, 1e8, 2, -1e8][i]!))
      sums.add(buffer.take()[0]!.itemSync())
    }
    expect(sums.size).toBeGreaterThan(1)
  })
})

describe('DA-47 only what came too early waits', () => {
  const falling = [at(4, 1), at(3, 2), at(2, 3), at(1, 4)]
  test.each([
    ['in order: none', falling, [0, 1, 2, 3], 0],
    ['the other way round: all but the first', falling, [3, 2, 1, 0], 3],
    ['one comes late', falling, [1, 0, 2, 3], 1],
    ['of equal depth all wait for the last', [at(1, 1), at(1, 2), at(1, 3), at(1, 4)], [0, 1, 2, 3], 4],
    ['two with nothing before them do not', [at(2, 1), at(2, 2), at(1, 3)], [1, 0, 2], 0],
    ['two with something before them do', [at(3, 1), at(2, 2), at(2, 3)], [0, 1, 2], 2],
    ['what is no gradient does not', [at(3, 1), at(2, null), at(2, null)], [2, 1, 0], 0],
  ] as const)('%s', (_, all, arrival, want) => {
    expect(sumOf(all, arrival)[1]).toBe(want)
  })

  test('what a failed pass held back is let go', () => {
    const heldBack = new HeldBack()
    const order = new InputOrder([2, 1, 1], heldBack)
    order.admit(new InputBuffer(1), new Source(1), 0, tensor(1), false)
    expect(heldBack.now).toBe(1)
    order.drop()
    expect([heldBack.now, heldBack.peak]).toEqual([0, 1])
  })
})

/** The slot's sum at the end. */
function gradOf(all: readonly { readonly depth: number; readonly grad: Tensor }[], arrival: readonly number[], exclusive = false): Tensor {
  const order = new InputOrder(
    all.map(({ depth }) => depth),
    new HeldBack(),
  )
  const buffer = new InputBuffer(1)
  for (const i of arrival) order.admit(buffer, new Source(all[i]!.depth), 0, all[i]!.grad, exclusive)
  expect(buffer.owns(0)).toBe(!buffer.take()[0]!.requiresGrad)
  return buffer.take()[0]!
}

test('DA-46 each element has an order of its own', () => {
  const first = { depth: 2, grad: tensor([1, 0, -3]) }
  const equals = [
    [1e8, 1, 2],
    [-1e8, 1e8, 1e8],
    [1, -1e8, -1e8],
    [2, 2, 1],
  ].map((values) => ({ depth: 1, grad: tensor(values) }))
  // -1e8 + 1 + 2 is -1e8, and so is -1e8 − 3.
  for (const arrival of permutations(4)) expect(gradOf(equals, arrival).toArray()).toEqual([0, 0, 0])
  for (const arrival of permutations(5)) expect(gradOf([first, ...equals], arrival, arrival[0] === 1).toArray()).toEqual([0, 0, 0])
})

test('DA-46 under createGraph the sum is one node, to which all contributions are equal', () => {
  for (const arrival of permutations(3)) {
    const leaves = [1e8, 1, -1e8].map((value) => tensor(value, { requiresGrad: true }))
    const sum = withScope({ gradEnabled: true }, () =>
      gradOf(
        leaves.map((grad) => ({ depth: 1, grad })),
        arrival,
      ),
    )
    const { name, depth } = sum.gradFn as Node
    expect([sum.itemSync(), name, depth]).toEqual([0, 'OrderedSumBackward', 1])
    backward(sum.mul(3))
    expect(leaves.map((leaf) => leaf.grad!.itemSync())).toEqual([3, 3, 3])
  }
})

test('DA-46 sparse contributions of one depth, two as well: each adds up its own rows that repeat, then they have no order', () => {
  const rows = (...values: number[]) =>
    new SparseTensor(tensor(Int32Array.from(values, () => 0)), tensor(Float32Array.from(values)).reshape([values.length, 1]), [1, 1])
  const both = [rows(1e8, 1), rows(-1e8, 1)]
  for (const arrival of permutations(2)) {
    const buffer = new InputBuffer(1)
    for (const i of arrival) buffer.add(0, both[i]!, false, true)
    expect((buffer.take()[0] as SparseTensor).values().toArray()).toEqual([[0]])
  }
  const all = [...both, rows(1), rows(2)].map((grad) => ({ depth: 1, grad }))
  for (const arrival of permutations(4)) expect((gradOf(all, arrival) as SparseTensor).values().toArray()).toEqual([[0]])
})

test('DA-46 sparse contributions of two depths keep their order, whether the second has waited or not', () => {
  const rows = (...values: number[]) =>
    new SparseTensor(tensor(Int32Array.from(values, () => 0)), tensor(Float32Array.from(values)).reshape([values.length, 1]), [1, 1])
  const all = [
    { depth: 2, grad: rows(-1e8) },
    { depth: 1, grad: rows(5, 5) },
  ]
  for (const arrival of permutations(2)) expect(toDense(gradOf(all, arrival)).toArray()).toEqual([[-99999984]])
})

test('DA-46 a contribution that nobody expects, or that comes twice, is a bug and not a sum', () => {
  const order = new InputOrder([2, 1, 1], new HeldBack())
  const buffer = new InputBuffer(1)
  expect(() => order.admit(buffer, new Source(3), 0, tensor(1), false)).toThrow('not a source')
  order.admit(buffer, new Source(2), 0, tensor(1), false)
  expect(() => order.admit(buffer, new Source(2), 0, tensor(1), false)).toThrow('delivered twice')
})
