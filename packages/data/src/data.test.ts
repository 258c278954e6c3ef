/** Datasets, samplers, collate and the DataLoader in one thread. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { arange, currentGenerator, Generator, type Tensor, tensor, zeros } from '@postgrad/tensor'
import * as fc from 'fast-check'
import { defaultCollate } from './collate.js'
import { DataLoader } from './data-loader.js'
import { ConcatDataset, type Dataset, randomSplit, Subset, TensorDataset } from './dataset.js'
import {
  BatchSampler,
  DistributedSampler,
  RandomSampler,
  SequentialSampler,
  SubsetRandomSampler,
  WeightedRandomSampler,
} from './sampler.js'

const range = (length: number): number[] => Array.from({ length }, (_, i) => i)
const sorted = (numbers: Iterable<number>): number[] => [...numbers].sort((a, b) => a - b)
const counting = (length: number): Dataset<number> => ({ length, get: (index) => index })

interface Golden {
  readonly distributed: readonly {
    readonly n: number
    readonly replicas: number
    readonly dropLast: boolean
    readonly lengths: readonly number[]
    readonly indices: readonly (readonly number[])[]
  }[]
  readonly batches: readonly {
    readonly n: number
    readonly size: number
    readonly dropLast: boolean
    readonly length: number
    readonly indices: readonly (readonly number[])[]
  }[]
  readonly splits: readonly { readonly n: number; readonly lengths: readonly number[]; readonly sizes: readonly number[] }[]
}

/** Of `scripts/golden/data.py`. */
const golden = JSON.parse(readFileSync(new URL('../golden/data.json', import.meta.url), 'utf8')) as Golden

function refusal(fn: () => unknown): PostgradError {
  try {
    fn()
  } catch (error) {
    if (isPostgradError(error)) return error
    throw error
  }
  throw new Error('it was accepted')
}

async function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  if (!isPostgradError(error)) throw error
  return error
}

async function all<B>(loader: AsyncIterable<B>): Promise<B[]> {
  const batches: B[] = []
  for await (const batch of loader) batches.push(batch)
  return batches
}

describe('datasets', () => {
  test('TensorDataset: sample i is row i of each tensor', () => {
    const dataset = new TensorDataset(arange(6).reshape([3, 2]), tensor([7, 8, 9], { dtype: 'int32' }))
    expect(dataset.length).toBe(3)
    const [x, y] = dataset.get(2)
    expect([x.toArray(), y.toArray()]).toEqual([[4, 5], 9])
    expect(refusal(() => dataset.get(3))).toMatchObject({ code: 'INDEX_OUT_OF_RANGE', values: { index: 3 } })
    expect(refusal(() => dataset.get(-1)).message).toContain('0 … 2')
  })

  test('TensorDataset needs one first extent', () => {
    expect(refusal(() => new TensorDataset(zeros([3, 2]), zeros([2]))).message).toContain('[3, 2] and [2]')
    expect(refusal(() => new TensorDataset(tensor(1))).code).toBe('SHAPE_MISMATCH')
    expect(refusal(() => new TensorDataset()).code).toBe('INVALID_ARGUMENT')
  })

  test('Subset and ConcatDataset look the index up', () => {
    const joined = new ConcatDataset([counting(2), { length: 0, get: () => 0 }, { length: 3, get: (i) => 10 + i }])
    expect(range(joined.length).map((i) => joined.get(i))).toEqual([0, 1, 10, 11, 12])
    const part = new Subset(joined, [4, 0, 4])
    expect(range(part.length).map((i) => part.get(i))).toEqual([12, 0, 12])
    expect(refusal(() => new Subset(joined, [5])).code).toBe('INDEX_OUT_OF_RANGE')
    expect(refusal(() => joined.get(5)).code).toBe('INDEX_OUT_OF_RANGE')
    expect(refusal(() => new ConcatDataset([])).code).toBe('INVALID_ARGUMENT')
  })

  test('an array is a dataset, as a list is in PyTorch', async () => {
    const loader = new DataLoader(['a', 'b', 'c', 'd'], { batchSize: 2, shuffle: true, generator: new Generator(1) })
    expect([loader.length, (await all(loader)).flat().sort()]).toEqual([2, ['a', 'b', 'c', 'd']])
    expect(new Subset([5, 6, 7], [2, 0]).get(0)).toBe(7)
    expect(new ConcatDataset([[1, 2], counting(2)]).get(1)).toBe(2)
    expect(sorted(randomSplit([1, 2, 3], [2, 1]).flatMap((part) => range(part.length).map((i) => part.get(i) as number)))).toEqual([
      1, 2, 3,
    ])
    expect(await all(new DataLoader([1, 2, 3], { sampler: [2, 0], collate: (samples) => samples[0] }))).toEqual([3, 1])
  })

  test('randomSplit: disjoint parts of the lengths that torch would give, the same for the same seed', () => {
    const split = (seed: number) => randomSplit(counting(10), [0.5, 0.25, 0.25], { generator: new Generator(seed) })
    const parts = split(1)
    expect(parts.map(({ length }) => length)).toEqual([6, 2, 2])
    expect(sorted(parts.flatMap(({ indices }) => indices))).toEqual(range(10))
    expect(split(1).map(({ indices }) => indices)).toEqual(parts.map(({ indices }) => indices))
    expect(split(2)[0]!.indices).not.toEqual(parts[0]!.indices)
    expect(randomSplit(counting(3), [3, 0]).map(({ length }) => length)).toEqual([3, 0])
    expect(randomSplit(counting(1), [1]).map(({ length }) => length)).toEqual([1])
    expect(refusal(() => randomSplit(counting(10), [5, 4])).message).toContain('add up to 10')
    expect(refusal(() => randomSplit(counting(10), [0.5, 0.4])).code).toBe('INVALID_ARGUMENT')
  })
})

describe('samplers', () => {
  test('RandomSampler: each index once, another order each time, as often as numSamples asks', () => {
    const sampler = new RandomSampler(counting(20), { generator: new Generator(3) })
    const [first, second] = [[...sampler], [...sampler]]
    expect(sorted(first)).toEqual(range(20))
    expect(second).not.toEqual(first)
    expect([...new RandomSampler(counting(20), { generator: new Generator(3) })]).toEqual(first)
    const more = [...new RandomSampler(counting(4), { numSamples: 10, generator: new Generator(0) })]
    expect([sorted(more.slice(0, 4)), sorted(more.slice(4, 8)), more.length]).toEqual([range(4), range(4), 10])
    const drawn = [...new RandomSampler(counting(4), { numSamples: 100, replacement: true, generator: new Generator(0) })]
    expect([drawn.length, new Set(drawn).size]).toEqual([100, 4])
    expect(refusal(() => new RandomSampler(counting(0), { numSamples: 1 })).code).toBe('INVALID_ARGUMENT')
  })

  test('an order is drawn when the iteration begins, by one draw', () => {
    const generator = new Generator(5)
    const sampler = new RandomSampler(counting(50), { generator })
    const iteration = sampler[Symbol.iterator]()
    const state = generator.state()
    for (let next = iteration.next(); next.done !== true; next = iteration.next());
    expect(generator.state()).toEqual(state)
  })

  test('SubsetRandomSampler', () => {
    expect(sorted(new SubsetRandomSampler([5, 7, 9], { generator: new Generator(1) }))).toEqual([5, 7, 9])
  })

  test('WeightedRandomSampler draws in proportion, and never what has weight 0', () => {
    const counts = [0, 0, 0, 0]
    for (const i of new WeightedRandomSampler([0, 1, 3, 0], 4000, { generator: new Generator(1) })) counts[i]!++
    expect([counts[0], counts[3]]).toEqual([0, 0])
    // Binomial with n = 4000 and p = 1/4: five standard deviations are 137.
    expect(Math.abs(counts[1]! - 1000)).toBeLessThan(137)
    expect([...new WeightedRandomSampler(tensor([0, 1, 0]), 2)]).toEqual([1, 1])
    expect(refusal(() => new WeightedRandomSampler(tensor([[0, 1]]), 2)).code).toBe('INVALID_ARGUMENT')
    expect(sorted(new WeightedRandomSampler([0, 1, 3, 2], 3, { replacement: false }))).toEqual([1, 2, 3])
    const firsts = range(2000).map(
      (seed) => [...new WeightedRandomSampler([1, 3], 1, { replacement: false, generator: new Generator(seed) })][0]!,
    )
    // n = 2000, p = 3/4: five standard deviations are 97.
    expect(Math.abs(firsts.filter((i) => i === 1).length - 1500)).toBeLessThan(97)
  })

  test.each([
    [[1, -1], 1, true],
    [[1, Number.NaN], 1, true],
    [[0, 0], 1, true],
    [[1, 0], 2, false],
    [[1], 0, true],
  ])('WeightedRandomSampler(%j, %d, %j) is refused', (weights, count, replacement) => {
    expect(refusal(() => new WeightedRandomSampler(weights, count, { replacement })).code).toBe('INVALID_ARGUMENT')
  })

  test('BatchSampler', () => {
    expect([...new BatchSampler(new SequentialSampler(counting(5)), 2)]).toEqual([[0, 1], [2, 3], [4]])
    const full = new BatchSampler(new SequentialSampler(counting(5)), 2, true)
    expect([[...full], full.length]).toEqual([
      [
        [0, 1],
        [2, 3],
      ],
      2,
    ])
    expect(refusal(() => new BatchSampler(new SequentialSampler(counting(5)), 0)).code).toBe('INVALID_ARGUMENT')
  })

  test.each(golden.distributed)('DistributedSampler as in PyTorch: $n samples for $replicas, dropLast $dropLast', (one) => {
    const { n, replicas: numReplicas, dropLast } = one
    const parts = range(numReplicas).map((rank) => new DistributedSampler(counting(n), { numReplicas, rank, dropLast, shuffle: false }))
    expect(parts.map((part) => [...part])).toEqual(one.indices)
    expect(parts.map(({ length }) => length)).toEqual(one.lengths)
  })

  test.each(golden.batches)(
    'BatchSampler as in PyTorch: $n samples by $size, dropLast $dropLast',
    ({ n, size, dropLast, length, indices }) => {
      const sampler = new BatchSampler(new SequentialSampler(counting(n)), size, dropLast)
      expect([[...sampler], sampler.length]).toEqual([indices, length])
    },
  )

  test.each(golden.splits)('randomSplit as in PyTorch: $n samples by $lengths', ({ n, lengths, sizes }) => {
    expect(randomSplit(counting(n), lengths).map(({ length }) => length)).toEqual(sizes)
  })

  test('DistributedSampler: the replicas share one order, which seed and epoch decide', () => {
    const parts = (epoch: number, seed = 0) =>
      range(4).map((rank) => {
        const sampler = new DistributedSampler(counting(12), { numReplicas: 4, rank, seed })
        sampler.setEpoch(epoch)
        return [...sampler]
      })
    expect(sorted(parts(0).flat())).toEqual(range(12))
    expect(parts(0)).toEqual(parts(0))
    expect(parts(1)).not.toEqual(parts(0))
    expect(parts(0, 1)).toEqual(parts(1, 0))
    expect(refusal(() => new DistributedSampler(counting(3), { numReplicas: 2, rank: 2 })).message).toContain('0 … 1')
  })
})

describe('defaultCollate', () => {
  test('follows the structure of the samples', () => {
    const sample = (i: number) => ({
      x: tensor([i, i + 1]),
      label: BigInt(i),
      size: i / 2,
      isOdd: i % 2 === 1,
      name: `n${i}`,
      pair: [i, tensor(i)] as const,
    })
    const batch = defaultCollate([sample(1), sample(2)])
    expect([batch.x.toArray(), batch.x.dtype]).toEqual([
      [
        [1, 2],
        [2, 3],
      ],
      'float32',
    ])
    expect([batch.label.toArray(), batch.label.dtype]).toEqual([[1, 2], 'int32'])
    expect([batch.size.toArray(), batch.size.dtype]).toEqual([[0.5, 1], 'float32'])
    expect([batch.isOdd.toArray(), batch.isOdd.dtype]).toEqual([[true, false], 'bool'])
    expect(batch.name).toEqual(['n1', 'n2'])
    expect(batch.pair.map((one) => one.toArray())).toEqual([
      [1, 2],
      [1, 2],
    ])
  })

  test('typed arrays: floats keep their type, integers become int32', () => {
    expect(defaultCollate([new Float64Array([1.5]), new Float64Array([2.5])])).toMatchObject({ dtype: 'float64', shape: [2, 1] })
    expect(defaultCollate([new Uint8Array([200, 7])])).toMatchObject({ dtype: 'int32' })
    expect(defaultCollate([new Uint8Array([200, 7])]).toArray()).toEqual([[200, 7]])
  })

  test.each([
    ['shapes', [tensor([1, 2]), tensor([1, 2]), tensor([1])], 'shape [1] and dtype float32 in sample 2', ''],
    ['dtypes', [tensor(1), tensor(1, { dtype: 'int32' })], 'dtype int32 in sample 1', ''],
    ['kinds', [{ a: [1] }, { a: ['x'] }], 'string in sample 1', '.a[0]'],
    ['lengths', [[1, 2], [1]], 'length 1 in sample 1', ''],
    ['keys', [{ a: 1 }, { b: 1 }], 'the keys b in sample 1', ''],
    ['range', [{ n: 1n }, { n: 2n ** 31n }], '2147483648n in sample 1', '.n'],
  ])('refuses samples of different %s, naming sample and place', (_, samples, text, path) => {
    const error = refusal(() => defaultCollate<unknown>(samples))
    expect(error).toMatchObject({ code: 'COLLATE_MISMATCH', values: { path } })
    expect(error.message).toContain(text)
  })

  test('a bigint out of range in the first sample is not compared with the first sample', () => {
    const error = refusal(() => defaultCollate([{ n: 2n ** 31n }, { n: 1n }]))
    expect(error).toMatchObject({ code: 'COLLATE_MISMATCH', values: { sample: 0, path: '.n' } })
    expect(error.message).toContain('expected a bigint within 32 bits at sample.n, got 2147483648n in sample 0. Pad')
  })

  test.each([[null], [undefined], [new Date(0)], [new Map()], [Symbol('x')], [new Uint32Array(1)]])('refuses %p', (value) => {
    expect(refusal(() => defaultCollate([{ deep: value }]))).toMatchObject({ code: 'COLLATE_UNSUPPORTED', values: { path: '.deep' } })
  })
})

describe('DataLoader', () => {
  test('batches in order; the last one is shorter, or left out', async () => {
    const dataset = new TensorDataset(arange(5), tensor([0, 1, 0, 1, 0], { dtype: 'int32' }))
    const loader = new DataLoader(dataset, { batchSize: 2 })
    expect(loader.length).toBe(3)
    expect((await all(loader)).map(([x, y]) => [x.toArray(), y.toArray()])).toEqual([
      [
        [0, 1],
        [0, 1],
      ],
      [
        [2, 3],
        [0, 1],
      ],
      [[4], [0]],
    ])
    expect(await all(new DataLoader(dataset, { batchSize: 2, dropLast: true }))).toHaveLength(2)
  })

  test('shuffling: every sample once, each epoch otherwise, and again from the state of the generator', async () => {
    const generator = new Generator(9)
    const loader = new DataLoader(counting(30), { batchSize: 7, shuffle: true, generator })
    const before = generator.state()
    const epoch = async (): Promise<number[]> => (await all(loader)).flatMap((batch: Tensor) => batch.toArray() as number[])
    const [first, second] = [await epoch(), await epoch()]
    expect(sorted(first)).toEqual(range(30))
    expect(second).not.toEqual(first)
    generator.restore(before)
    expect([await epoch(), await epoch()]).toEqual([first, second])
  })

  test('what a loop draws meanwhile, and where it ends, does not change the epochs', async () => {
    const run = async (disturb: boolean): Promise<unknown[]> => {
      const generator = new Generator(4)
      const loader = new DataLoader({ length: 9, get: () => currentGenerator().uniform() }, { batchSize: 2, shuffle: true, generator })
      for await (const _ of loader) if (disturb) break
      return (await all(loader)).map((batch) => batch.toArray())
    }
    expect(await run(true)).toEqual(await run(false))
  })

  test("a sample's random numbers depend on its place in the epoch, not on the batches", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.boolean(), async (batchSize, shuffle) => {
        const draw = async (size: number): Promise<number[]> => {
          const loader = new DataLoader(
            { length: 11, get: async (i) => i + currentGenerator().uniform() },
            { batchSize: size, shuffle, generator: new Generator(1) },
          )
          return (await all(loader)).flatMap((batch) => batch.toArray() as number[])
        }
        expect(await draw(batchSize)).toEqual(await draw(1))
      }),
      { numRuns: 20 },
    )
  })

  test('a sampler, a batchSampler, a collate of the user', async () => {
    const sampler = new SubsetRandomSampler([3, 1], { generator: new Generator(0) })
    expect(sorted((await all(new DataLoader(counting(5), { sampler }))).flatMap((b) => b.toArray() as number[]))).toEqual([1, 3])
    const batchSampler = { length: 2, [Symbol.iterator]: () => [[4], [0, 2]].values() }
    const loader = new DataLoader(counting(5), { batchSampler, collate: async (samples) => samples.join('+') })
    expect([await all(loader), loader.length]).toEqual([['4', '0+2'], 2])
  })

  test('a stream, sync or async, is read in its own order and closed when the loop ends', async () => {
    let open = 0
    const stream = {
      async *[Symbol.asyncIterator]() {
        open++
        try {
          for (let i = 0; i < 5; i++) yield currentGenerator().uniform()
        } finally {
          open--
        }
      },
    }
    const loader = () => new DataLoader<number>(stream, { batchSize: 2, generator: new Generator(2) })
    const batches = await all(loader())
    expect(batches.map(({ shape }) => shape)).toEqual([[2], [2], [1]])
    for await (const first of loader()) {
      expect(first.toArray()).toEqual(batches[0]!.toArray())
      break
    }
    expect(open).toBe(0)
    expect(await all(new DataLoader([1, 2, 3], { batchSize: 2, dropLast: true }))).toHaveLength(1)
    expect(refusal(() => loader().length).code).toBe('INVALID_ARGUMENT')
  })

  test.each(['sampler', 'batchSampler'] as const)(
    'the generator of a %s is closed when the loop ends early, or by an error',
    async (as) => {
      let open = 0
      const order = {
        length: 6,
        *[Symbol.iterator]() {
          open++
          try {
            for (let i = 0; i < 6; i++) yield i
          } finally {
            open--
          }
        },
      }
      const sampler = as === 'sampler' ? { sampler: order, batchSize: 2 } : { batchSampler: new BatchSampler(order, 2) }
      for await (const _ of new DataLoader([0, 1, 2, 3, 4, 5], sampler)) {
        expect(open).toBe(1)
        break
      }
      expect(open).toBe(0)
      const broken: Dataset<number> = { length: 6, get: (i) => (i === 3 ? Promise.reject(new RangeError('gone')) : i) }
      await expect(all(new DataLoader(broken, sampler))).rejects.toMatchObject({ code: 'DATASET_FAILED' })
      expect(open).toBe(0)
    },
  )

  test('errors of dataset and collate come with index, batch and cause', async () => {
    const broken: Dataset<number> = { length: 6, get: (i) => (i === 3 ? Promise.reject(new RangeError('gone')) : i) }
    const error = await rejection(all(new DataLoader(broken, { batchSize: 2 })))
    expect(error).toMatchObject({ code: 'DATASET_FAILED', values: { index: 3, batch: 1 }, cause: { message: 'gone' } })
    expect(error.message).toContain('RangeError: gone')
    const ragged: Dataset<Tensor> = { length: 4, get: (i) => zeros([i === 3 ? 2 : 1]) }
    expect(await rejection(all(new DataLoader(ragged, { batchSize: 2 })))).toMatchObject({
      code: 'COLLATE_MISMATCH',
      values: { sample: 1, batch: 1, indices: [2, 3] },
      message: expect.stringMatching(/^DataLoader: batch 1, samples 2, 3, in defaultCollate: expected a tensor .* in sample 1\. Pad /),
      remedy: expect.stringContaining('pass { collate }'),
    })
    const batchSampler = { length: 1, [Symbol.iterator]: () => [[]].values() }
    expect(await rejection(all(new DataLoader(counting(1), { batchSampler })))).toMatchObject({
      code: 'COLLATE_MISMATCH',
      message: expect.stringMatching(/^DataLoader: batch 0, in defaultCollate: expected at least one sample, got none\. A batch sampler /),
    })
    const collate = (): number => {
      throw new Error('no')
    }
    expect(await rejection(all(new DataLoader(counting(1), { collate })))).toMatchObject({
      code: 'COLLATE_FAILED',
      values: { indices: [0] },
    })
  })

  test.each([
    { batchSize: 0 },
    { workers: -1 },
    { workers: 1.5 },
    { prefetchFactor: 0 },
    // PyTorch's way to have no batches, and its names: to pass over them would be another training than was asked for.
    { batchSize: null as unknown as number },
    { numWorkers: 2 } as object,
    { collateFn: 'sum' } as object,
    { sampler: 5 as unknown as SequentialSampler },
    { batchSampler: 5 as unknown as BatchSampler },
    { collate: 'sum' as unknown as () => number },
    { shuffle: true, sampler: new SequentialSampler(counting(3)) },
    { batchSampler: new BatchSampler(new SequentialSampler(counting(3)), 2), batchSize: 2 },
  ])('refuses %j', (options) => {
    expect(refusal(() => new DataLoader(counting(3), options)).code).toBe('INVALID_ARGUMENT')
  })

  test('refuses what cannot be: datasets that cannot travel, shuffled streams, no dataset at all', () => {
    expect(refusal(() => new DataLoader(counting(3), { workers: 1 })).code).toBe('DATASET_NOT_SENDABLE')
    class EvenNumbers {
      readonly length = 3
      get(index: number): number {
        return 2 * index
      }
    }
    const others: [Dataset<unknown> | readonly unknown[], string][] = [
      [[1], 'an array'],
      [new Subset([1, 2], [1]), 'an array'],
      [counting(3), 'an object'],
      [new EvenNumbers(), 'an EvenNumbers'],
      [new TensorDataset(zeros([3])), 'a TensorDataset'],
    ]
    for (const [dataset, text] of others) {
      expect(refusal(() => new DataLoader(dataset, { workers: 1 }))).toMatchObject({
        code: 'DATASET_NOT_SENDABLE',
        message: expect.stringContaining(`, got ${text}. Code`),
      })
    }
    expect(refusal(() => new DataLoader(new Set([1]), { workers: 1 })).code).toBe('INVALID_ARGUMENT')
    expect(refusal(() => new DataLoader(new Set([1]), { shuffle: true })).code).toBe('INVALID_ARGUMENT')
    expect(refusal(() => new DataLoader(5 as never)).code).toBe('INVALID_ARGUMENT')
    expect(refusal(() => new DataLoader(zeros([3]) as never))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('a tensor'),
    })
    expect(refusal(() => new DataLoader(counting(3), { timeoutMs: -1 })).code).toBe('TIMEOUT_INVALID')
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 2.5])(
    'a dataset of length %d is refused: an epoch would be empty, or never end',
    (length) => {
      expect(refusal(() => new DataLoader(counting(length)))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('length'),
      })
    },
  )

  test('a batchSampler that gives indices instead of lists of them', async () => {
    const batchSampler = [0, 1] as unknown as BatchSampler
    expect(await rejection(all(new DataLoader(counting(3), { batchSampler })))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('a closed loader gives nothing more', async () => {
    const loader = new DataLoader(counting(3))
    const running = loader[Symbol.asyncIterator]()
    await running.next()
    await loader.close()
    expect(await rejection(running.next())).toMatchObject({ code: 'LOADER_CLOSED' })
    expect(refusal(() => loader[Symbol.asyncIterator]()).code).toBe('LOADER_CLOSED')
  })
})

test.each<[string, () => unknown]>([
  [
    'RandomSampler: expected the options replacement, numSamples, generator, got replace',
    () => new RandomSampler([1], { replace: true } as never),
  ],
  ['RandomSampler: expected an object with options (', () => new RandomSampler([1], null as never)],
  ['SubsetRandomSampler: expected indices, which can be iterated, got number', () => new SubsetRandomSampler(3 as never)],
  ['SubsetRandomSampler: expected the options generator, got seed', () => new SubsetRandomSampler([0], { seed: 1 } as never)],
  ['WeightedRandomSampler: expected the options replacement', () => new WeightedRandomSampler([1], 1, { replace: false } as never)],
  ['DistributedSampler: expected the options numReplicas, rank', () => new DistributedSampler([1], { num_replicas: 1, rank: 0 } as never)],
])('%s', (message, make) => {
  expect(make).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) }))
})
