import { describe, expect, test } from '@jest/globals'
import * as T from '../index.js'

const SEED = 41
const generator = () => new T.Generator(SEED)
const code = (name: string) => expect.objectContaining({ code: name })

describe(`drawing (seed ${SEED})`, () => {
  test('bernoulli draws each place with its own probability, and the same for the same seed', () => {
    const p = T.tensor([0, 1, 0.25]).reshape([1, 3]).expand([4000, 3])
    const drawn = T.bernoulli(p, { generator: generator() })
    expect(drawn.shape).toEqual([4000, 3])
    const [never, always, quarter] = drawn.mean(0).toArray() as number[]
    expect([never, always]).toEqual([0, 1])
    // Four standard deviations of the mean of 4000 draws.
    expect(Math.abs(quarter! - 0.25)).toBeLessThan(4 * Math.sqrt((0.25 * 0.75) / 4000))
    expect(T.bernoulli(p, { generator: generator() }).toArray()).toEqual(drawn.toArray())
    expect(() => T.bernoulli(T.tensor([1.5]))).toThrow(code('INVALID_ARGUMENT'))
    expect(() => T.bernoulli(T.tensor([Number.NaN]))).toThrow(code('INVALID_ARGUMENT'))
  })

  test('multinomial with replacement draws by weight, never a weight of 0', () => {
    const drawn = T.multinomial(T.tensor([1, 0, 3, 0]), 4000, { replacement: true, generator: generator() })
    expect([drawn.dtype, drawn.shape]).toEqual(['int32', [4000]])
    const counts = [0, 0, 0, 0]
    for (const i of drawn.dataSync()) counts[i]!++
    expect([counts[1], counts[3]]).toEqual([0, 0])
    expect(Math.abs(counts[2]! / 4000 - 0.75)).toBeLessThan(4 * Math.sqrt((0.25 * 0.75) / 4000))
  })

  test('multinomial without replacement draws nothing twice; the first draw goes by weight', () => {
    const weights = T.tensor([1, 0, 3, 1]).reshape([1, 4]).expand([2000, 4])
    const drawn = T.multinomial(weights, 3, { generator: generator() })
    expect(drawn.shape).toEqual([2000, 3])
    let first = 0
    for (const row of drawn.toArray() as number[][]) {
      expect([...row].sort()).toEqual([0, 2, 3])
      if (row[0] === 2) first++
    }
    expect(Math.abs(first / 2000 - 0.6)).toBeLessThan(4 * Math.sqrt((0.6 * 0.4) / 2000))
    for (const bad of [
      [-1, 2],
      [Number.NaN, 1],
      [0, 0],
      [1, 0],
      [Infinity, 1],
    ]) {
      expect(() => T.multinomial(T.tensor(bad), 2)).toThrow(code('INVALID_ARGUMENT'))
    }
    expect(() => T.multinomial(T.zeros([2, 2, 2]), 1)).toThrow(code('SHAPE_MISMATCH'))
  })

  test('normal broadcasts means and deviations', () => {
    const mean = T.tensor([0, 100]).reshape([1, 2]).expand([4000, 2])
    const drawn = T.normal(mean, T.tensor([1, 0]), undefined, { generator: generator() })
    expect(drawn.select(1, 1).eq(100).toArray()).not.toContain(false)
    const first = drawn.select(1, 0)
    expect(Math.abs(first.mean().itemSync())).toBeLessThan(4 / Math.sqrt(4000))
    expect(Math.abs(first.var().itemSync() - 1)).toBeLessThan(0.1)
    expect(T.normal(5, 0, [2]).toArray()).toEqual([5, 5])
    expect(() => T.normal(0, 1)).toThrow(code('INVALID_ARGUMENT'))
    expect(() => T.normal(0, -1, [2])).toThrow(code('INVALID_ARGUMENT'))
    // torch.normal(0., torch.tensor([1., -1.])), and of NaN: PyTorch raises
    for (const bad of [-1, Number.NaN]) expect(() => T.normal(0, T.tensor([1, bad]))).toThrow(code('INVALID_ARGUMENT'))
  })

  test('randperm holds every index once', () => {
    const drawn = T.randperm(50, { generator: generator() })
    expect(drawn.dtype).toBe('int32')
    expect(drawn.toArray()).not.toEqual(T.arange(50).toArray())
    expect(drawn.sort().values.toArray()).toEqual(T.arange(50).toArray())
    expect(T.randperm(0).shape).toEqual([0])
    expect(() => T.randperm(-1)).toThrow(code('INVALID_ARGUMENT'))
  })

  test('randperm takes the numbers that generator.integer gives, and leaves the generator as they do', () => {
    // The largest permutation passes over some numbers, since they lie beyond the last whole range.
    for (const n of [1, 79, 80, 4096, 4097, 400_000]) {
      const [one, many] = [generator(), generator()]
      // The second normal number of a pair waits.
      expect(one.normal()).toBe(many.normal())
      const expected = new Int32Array(n)
      for (let i = 0; i < n; i++) {
        const j = one.integer(0, i + 1)
        expected[i] = expected[j]!
        expected[j] = i
      }
      const drawn = T.randperm(n, { generator: many })
      expect(Buffer.compare(Buffer.from(expected.buffer), Buffer.from(drawn.dataSync().slice().buffer))).toBe(0)
      expect(T.randperm(n, { dtype: 'float64', generator: generator() }).shape).toEqual([n])
      expect(many.state()).toEqual(one.state())
    }
  })
})

test('linspace and logspace hold both ends exactly', () => {
  expect(T.linspace(0, 1, 5).toArray()).toEqual([0, 0.25, 0.5, 0.75, 1])
  expect(T.linspace(3, 3.3, 7, { dtype: 'float64' }).toArray()).toContain(3.3)
  expect(T.linspace(2, 9, 1).toArray()).toEqual([2])
  expect(T.linspace(2, 9, 0).shape).toEqual([0])
  expect(T.linspace(0, 10, 4, { dtype: 'int32' }).toArray()).toEqual([0, 3, 6, 10])
  expect(T.logspace(0, 3, 4, { dtype: 'float64' }).toArray()).toEqual([1, 10, 100, 1000])
  expect(T.logspace(0, 3, 4, { base: 2 }).toArray()).toEqual([1, 2, 4, 8])
  expect(() => T.linspace(0, Infinity, 2)).toThrow(code('INVALID_ARGUMENT'))
})

test('what is made like another tensor takes its shape and dtype', () => {
  const x = T.zeros([2, 3], { dtype: 'float64' })
  for (const y of [T.fullLike(x, 2), T.emptyLike(x), T.randLike(x), T.randnLike(x)]) expect([y.shape, y.dtype]).toEqual([[2, 3], 'float64'])
  expect(T.fullLike(x, 2).toArray()).toEqual([
    [2, 2, 2],
    [2, 2, 2],
  ])
  expect(T.fullLike(x, 2, { dtype: 'int32' }).dtype).toBe('int32')
})
