/** Sums whose terms come in any order: the same bits on every device, those of the sorted terms. */
import { describe, expect, test } from '@jest/globals'
import { device, Generator, randn, SparseTensor, type Tensor, tensor, withDevice } from '../index.js'
import { toDense } from '../internal.js'
import { gpujsDevice } from '../tensor/gpujs-device.suite.js'
import { residentDevice } from '../tensor/resident-device.suite.js'
import { orderedSum } from './ordered-sum.js'

const bits = (x: Tensor): string => Buffer.from(x.dataSync().slice().buffer).toString('hex')

/** Numbers of very different sizes, so that nearly every order has a sum of its own. */
function terms(n: number, length: number, dtype: 'float32' | 'float64', seed: number): Tensor[] {
  const generator = new Generator(seed)
  const one = (): Tensor => randn([length], { dtype, generator })
  return Array.from({ length: n }, () => one().mul(one().mul(8).exp()))
}

/** The promised sum, in plain JavaScript. */
function expected(all: readonly Tensor[], leading: number): number[] {
  const round = all[0]!.dtype === 'float32' ? Math.fround : (x: number) => x
  const columns = all.map((x) => [...x.dataSync()])
  return columns[0]!.map((_, i) => {
    const values = columns.map((column) => column[i]!)
    const sorted = values.slice(leading).sort((a, b) => a - b || Number(Object.is(b, -0)) - Number(Object.is(a, -0)))
    return [...values.slice(0, leading), ...sorted].reduce((a, b) => round(a + b))
  })
}

function shuffled<T>(list: readonly T[], generator: Generator): T[] {
  return list
    .map((value) => [generator.uniform(), value] as const)
    .sort(([a], [b]) => a - b)
    .map(([, value]) => value)
}

describe.each([device('js'), device('wasm'), gpujsDevice()])('DA-46 on %s', (device) => {
  const on = (name: string, fn: () => void) => test(name, () => withDevice(device, fn))

  on('each element is the sum of its sorted terms, in whatever order they are given', () => {
    const generator = new Generator(1)
    for (const [n, length] of [3, 4, 5, 6, 7, 8, 9, 16, 21].flatMap((count) => [[count, 3] as const, [count, 97] as const])) {
      const all = terms(n, length, 'float32', n)
      for (const leading of [0, 1]) {
        const want = expected(all, leading)
        for (let k = 0; k < 4; k++) {
          const given = [...all.slice(0, leading), ...shuffled(all.slice(leading), generator)]
          expect([n, [...orderedSum(given, leading).dataSync()]]).toEqual([n, want])
        }
      }
    }
  })

  on('zeros of both signs, infinities and NaN', () => {
    const rows = [
      [-0, -0, 0, 1, Number.NaN, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
      [0, -0, -0, -1, 1, Number.NEGATIVE_INFINITY, 1],
      [-0, -0, 0, -0, 2, 3, -1],
    ]
    const want = [0, -0, 0, 0, Number.NaN, Number.NaN, Number.POSITIVE_INFINITY]
    for (const order of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]) {
      expect([...orderedSum(order.map((i) => tensor(rows[i]!))).dataSync()]).toEqual(want)
    }
  })
})

test('DA-46 a device with a memory of its own has the same order, and nothing comes down for it', async () => {
  const all = terms(5, 33, 'float32', 2)
  const there = residentDevice()
  const late = all.toReversed().map((x) => x.to(there))
  const sum = orderedSum(late)
  expect(there.home.downloads).toEqual([])
  expect(bits(await sum.cpu())).toBe(bits(orderedSum(all)))
})

test('DA-46 float64, views with strides, scalars, more elements than are sorted at once, and none', () => {
  const wide = terms(5, 10_001, 'float64', 3)
  const want = expected(wide, 0)
  expect([...orderedSum(wide.toReversed()).dataSync()]).toEqual(want)
  const columns = terms(3, 12, 'float32', 4)
  const strided = columns.map((x) => x.reshape([3, 4]).transpose(0, 1))
  const sum = orderedSum(strided)
  expect(sum.shape).toEqual([4, 3])
  expect([...sum.transpose(0, 1).dataSync()]).toEqual(expected(columns, 0))
  expect(orderedSum([tensor(1e8), tensor(1), tensor(-1e8), tensor(2)]).itemSync()).toBe(0)
  expect(orderedSum([tensor([]), tensor([]), tensor([])]).shape).toEqual([0])
})

test('DA-46 one tensor is its own sum, and two are added as they are; nothing is written to', () => {
  const [a, b, c] = terms(3, 5, 'float32', 5) as [Tensor, Tensor, Tensor]
  expect(orderedSum([a])).toBe(a)
  expect(bits(orderedSum([b, a]))).toBe(bits(a.add(b)))
  const before = [a, b, c].map(bits)
  orderedSum([a, b, c], 1)
  expect([a, b, c].map(bits)).toEqual(before)
})

describe('DA-46 sparse rows', () => {
  const rows = (indices: readonly number[], values: readonly number[]) =>
    new SparseTensor(tensor(Int32Array.from(indices)), tensor(Float32Array.from(values)).reshape([values.length, 1]), [4, 1])
  const parts = [rows([1, 3, 1], [1e8, 5, 1]), rows([1], [-1e8]), rows([1, 0], [3, 7]), rows([], [])]

  test('each tensor adds up its own first, then those that have a row are added in the order of their bits', () => {
    for (const order of [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [1, 0, 3, 2],
      [2, 3, 0, 1],
    ]) {
      const sum = orderedSum(order.map((i) => parts[i]!)) as SparseTensor
      expect([sum.isSparse, sum.isCoalesced, [...sum.indices().dataSync()]]).toEqual([true, true, [0, 1, 3]])
      expect([...sum.values().dataSync()]).toEqual([7, 0, 5])
    }
  })

  test('two have an order no more than others, and what comes first does', () => {
    const [a, b] = [rows([0, 0], [1e8, 1]), rows([0, 0], [-1e8, 1])]
    expect([...toDense(orderedSum([a, b])).dataSync()]).toEqual([...toDense(orderedSum([b, a])).dataSync()])
    // -1e8 + (5 + 5), where (-1e8 + 5) + 5 is -99999984.
    expect(toDense(orderedSum([rows([0, 0], [5, 5]), rows([0], [-1e8])])).dataSync()[0]).toBe(-99999992)
    expect(toDense(orderedSum([rows([0], [2]), a, b], 1)).dataSync()[0]).toBe(2)
  })

  test('with a dense one the sum is dense', () => {
    const dense = tensor([[1], [2], [3], [4]])
    const sums = [
      [dense, ...parts],
      [...parts, dense],
      [parts[1]!, dense, parts[3]!, parts[0]!, parts[2]!],
    ].map((all) => orderedSum(all))
    for (const sum of sums) expect([sum.isSparse, [...sum.dataSync()]]).toEqual([false, [8, 0, 3, 9]])
    expect(orderedSum([dense, parts[0]!]).isSparse).toBe(false)
  })

  test('nothing but tensors without rows', () => {
    const sum = orderedSum([parts[3]!, parts[3]!, parts[3]!]) as SparseTensor
    expect([sum.nnz, sum.values().shape]).toEqual([0, [0, 1]])
  })
})
