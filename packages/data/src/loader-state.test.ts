/** A DataLoader that continues in the middle of an epoch: the same batches, bits and later epochs. With workers: `workers.real.test.ts`. */
import { describe, expect, test } from '@jest/globals'
import { withScope } from '@postgrad/base/internal'
import { currentGenerator, Generator, rand } from '@postgrad/tensor'
import { DataLoader, type DataLoaderOptions } from './data-loader.js'
import type { DataLoaderState } from './loader-state.js'
import {
  BatchSampler,
  DistributedSampler,
  RandomSampler,
  type Sampler,
  SequentialSampler,
  SubsetRandomSampler,
  WeightedRandomSampler,
} from './sampler.js'

/** Samples that draw, so that seeds count as well. */
const dataset = { length: 11, get: (index: number): number[] => [index, ...rand([1]).dataSync()] }
const collate = (samples: readonly number[][]): number[] => [...samples.flat(), ...rand([1]).dataSync()]
type Options = DataLoaderOptions<number[], number[]>

/** Plain data survives being written. */
const written = <S>(state: S): S => JSON.parse(JSON.stringify(state)) as S

/** A run of three epochs: all batches, and the state after each of them. */
async function whole(make: () => Options): Promise<{ batches: number[][]; states: DataLoaderState[] }> {
  const loader = new DataLoader(dataset, { batchSize: 2, collate, ...make() })
  const [batches, states]: [number[][], DataLoaderState[]] = [[], [written(loader.stateDict())]]
  for (let epoch = 0; epoch < 3; epoch++) {
    for await (const batch of loader) {
      batches.push(batch)
      states.push(written(loader.stateDict()))
    }
  }
  return { batches, states }
}

/** The batches after a state, in a new loader. */
async function rest(make: () => Options, state: DataLoaderState, epochs: number): Promise<number[][]> {
  const loader = new DataLoader(dataset, { batchSize: 2, collate, ...make() })
  loader.loadStateDict(state)
  const batches: number[][] = []
  for (let epoch = 0; epoch < epochs; epoch++) for await (const batch of loader) batches.push(batch)
  return batches
}

const generator = (): Generator => new Generator(5)
const LOADERS: Readonly<Record<string, () => Options>> = {
  'in order': () => ({ generator: generator() }),
  shuffled: () => ({ shuffle: true, generator: generator() }),
  'without the last': () => ({ shuffle: true, dropLast: true, generator: generator() }),
  'a random sampler with another generator': () => ({
    generator: generator(),
    sampler: new RandomSampler(dataset, { generator: new Generator(8), replacement: true }),
  }),
  'a sampler of a subset': () => ({
    generator: generator(),
    sampler: new SubsetRandomSampler([9, 3, 4, 1, 0], { generator: generator() }),
  }),
  'a weighted sampler': () => ({
    generator: generator(),
    sampler: new WeightedRandomSampler([1, 2, 3, 4], 9, { generator: generator(), replacement: true }),
  }),
  'a batch sampler': () => ({
    generator: generator(),
    batchSize: undefined as never,
    batchSampler: new BatchSampler(new RandomSampler(dataset, { generator: generator() }), 3),
  }),
}

describe('a state behind each batch', () => {
  test.each(Object.entries(LOADERS))('%s: the rest of the epoch and the epochs behind it, bit for bit', async (_, make) => {
    const { batches, states } = await whole(make)
    for (const [at, state] of states.entries()) {
      // After the last batch of an epoch its rest is empty.
      const got = await rest(make, state, 4)
      expect(got.slice(0, batches.length - at)).toEqual(batches.slice(at))
    }
  })

  test('the loop breaks off, and goes on in the same loader; a state that was loaded is what stateDict gives until then', async () => {
    const make = LOADERS.shuffled!
    const { batches, states } = await whole(make)
    const loader = new DataLoader(dataset, { batchSize: 2, collate, ...make() })
    const got: number[][] = []
    for await (const batch of loader) if (got.push(batch) === 3) break
    const state = loader.stateDict()
    expect(written(state)).toEqual(states[3])
    loader.loadStateDict(state)
    expect(loader.stateDict()).toEqual(state)
    for await (const batch of loader) got.push(batch)
    expect(got).toEqual(batches.slice(0, 6))
    expect(loader.stateDict()).toMatchObject({ batches: 0, begin: null })
  })

  test('samples before it are not loaded', async () => {
    const loaded: number[] = []
    const counting = { length: 6, get: (index: number) => loaded.push(index) }
    const loader = new DataLoader(counting, { batchSize: 2 })
    for await (const _ of loader) break
    const state = loader.stateDict()
    loaded.length = 0
    const other = new DataLoader(counting, { batchSize: 2 })
    other.loadStateDict(state)
    for await (const _ of other);
    expect(loaded).toEqual([2, 3, 4, 5])
  })

  test("the scope's generator gives the same epoch again, and stands afterwards where it stood", async () => {
    const loader = () => new DataLoader(dataset, { batchSize: 2, collate, shuffle: true })
    const run = async (from: DataLoader<number[], number[]>, upTo: number): Promise<number[][]> => {
      const got: number[][] = []
      for await (const batch of from) if (got.push(batch) === upTo) break
      return got
    }
    await withScope({ generator: new Generator(3) }, async () => {
      const first = loader()
      const begin = await run(first, 2)
      const state = written(first.stateDict())
      // A model draws meanwhile.
      currentGenerator().uniform()
      const second = loader()
      second.loadStateDict(state)
      const before = currentGenerator().state()
      const end = await run(second, 100)
      expect(currentGenerator().state()).toEqual(before)
      const all = await withScope({ generator: new Generator(3) }, () => run(loader(), 100))
      expect([...begin, ...end]).toEqual(all)
    })
  })

  test('the epoch of a DistributedSampler', async () => {
    const make = (): { loader: DataLoader<number[], number[]>; sampler: DistributedSampler } => {
      const sampler = new DistributedSampler(dataset, { numReplicas: 2, rank: 1 })
      return { sampler, loader: new DataLoader(dataset, { batchSize: 2, collate, sampler, generator: generator() }) }
    }
    const { loader, sampler } = make()
    sampler.setEpoch(4)
    const got: number[][] = []
    let state: DataLoaderState | undefined
    for await (const batch of loader) {
      got.push(batch)
      if (got.length === 1) state = written(loader.stateDict())
    }
    const again = make()
    again.loader.loadStateDict(state!)
    const rest: number[][] = []
    for await (const batch of again.loader) rest.push(batch)
    expect(rest).toEqual(got.slice(1))
    expect(again.sampler.stateDict()).toEqual({ epoch: 4, numReplicas: 2, shuffle: true, seed: 0, dropLast: false })
  })

  test('a stream is read again up to there', async () => {
    const stream = {
      *[Symbol.iterator]() {
        for (let i = 0; i < 7; i++) yield [i, ...rand([1]).dataSync()]
      },
    }
    const loader = () => new DataLoader<number[], number[]>(stream, { batchSize: 2, collate, generator: generator() })
    const [all, first, second] = [[], [], []] as number[][][]
    for await (const batch of loader()) all!.push(batch)
    const broken = loader()
    for await (const batch of broken) if (first!.push(batch) === 2) break
    const other = loader()
    other.loadStateDict(written(broken.stateDict()))
    for await (const batch of other) second!.push(batch)
    expect([...first!, ...second!]).toEqual(all)
  })

  test('a batch that could not be loaded comes first', async () => {
    let broken = true
    const trouble = {
      length: 4,
      get(index: number) {
        if (index === 2 && broken) throw new Error('not yet')
        return index
      },
    }
    const loader = new DataLoader(trouble, { collate: (samples: readonly number[]) => samples })
    const got: unknown[] = []
    await expect(
      (async () => {
        for await (const batch of loader) got.push(batch)
      })(),
    ).rejects.toMatchObject({ code: 'DATASET_FAILED' })
    broken = false
    loader.loadStateDict(loader.stateDict())
    for await (const batch of loader) got.push(batch)
    expect(got).toEqual([[0], [1], [2], [3]])
  })
})

describe('a bad state is refused with STATE_DICT_MISMATCH, and changes nothing', () => {
  const make = (options: Partial<Options> = {}) =>
    new DataLoader(dataset, { batchSize: 2, shuffle: true, generator: generator(), ...options })
  const good = async (): Promise<DataLoaderState> => {
    const loader = make()
    for await (const _ of loader) break
    return written(loader.stateDict())
  }
  const BAD: Readonly<Record<string, (state: DataLoaderState) => unknown>> = {
    null: () => null,
    'a list': () => [],
    'an empty object': () => ({}),
    'negative batches': (state) => ({ ...state, batches: -1 }),
    'half a batch': (state) => ({ ...state, batches: 0.5 }),
    'batches between epochs': (state) => ({ ...state, begin: null }),
    'no state of a generator': (state) => ({ ...state, generator: { words: [1, 2], spare: null } }),
    'words that are no integers': (state) => ({ ...state, generator: { words: [1, 2, 3, 'x'], spare: null } }),
    'a spare that is no number': (state) => ({ ...state, begin: { ...state.begin, current: { words: [1, 2, 3, 4], spare: 'x' } } }),
    'no generator': (state) => ({ ...state, generator: null }),
    'no generator at the begin': (state) => ({ ...state, begin: { ...state.begin, generator: null } }),
    'no sampler': (state) => ({ ...state, sampler: undefined }),
    'a sampler without a state': (state) => ({ ...state, sampler: null }),
    'another state of a sampler': (state) => ({ ...state, sampler: { epoch: 1 } }),
    'another batch size': (state) => ({ ...state, batchSize: 3 }),
    'another dataset': (state) => ({ ...state, samples: 12 }),
  }

  test.each(Object.entries(BAD))('%s', async (_, change) => {
    const loader = make()
    const before = loader.stateDict()
    const state = change(await good()) as DataLoaderState
    expect(() => loader.loadStateDict(state)).toThrow(
      expect.objectContaining({ code: 'STATE_DICT_MISMATCH', op: 'DataLoader.loadStateDict', remedy: expect.stringMatching(/./) }),
    )
    expect(loader.stateDict()).toEqual(before)
  })

  test('a generator or a sampler that one loader has and the other has not', async () => {
    const state = await good()
    const refused = expect.objectContaining({ code: 'STATE_DICT_MISMATCH' })
    expect(() => new DataLoader(dataset, { batchSize: 2, shuffle: true }).loadStateDict(state)).toThrow(refused)
    expect(() => make({ shuffle: false }).loadStateDict(state)).toThrow(refused)
    const plain: Sampler = { length: 11, [Symbol.iterator]: () => new SequentialSampler(dataset)[Symbol.iterator]() }
    expect(() => make({ shuffle: false, sampler: plain }).loadStateDict(state)).toThrow(refused)
  })

  test.each<[string, Options, Options]>([
    ['shuffled and in order', { shuffle: true }, {}],
    ['a last batch that is left out', { dropLast: true }, {}],
    ['another sampler', { sampler: new RandomSampler(dataset) }, { sampler: new SequentialSampler(dataset) }],
    ...(
      [
        ['replicas', { numReplicas: 3, rank: 0 }],
        ['seed', { numReplicas: 2, rank: 0, seed: 1 }],
        ['order', { numReplicas: 2, rank: 0, shuffle: false }],
        ['end', { numReplicas: 2, rank: 0, dropLast: true }],
      ] as const
    ).map(([what, options]): [string, Options, Options] => [
      `another ${what} of a DistributedSampler`,
      { sampler: new DistributedSampler(dataset, { numReplicas: 2, rank: 0 }) },
      { sampler: new DistributedSampler(dataset, options) },
    ]),
  ])('a state of other batches: %s', async (_, one, other) => {
    const loader = (options: Options) => new DataLoader(dataset, { batchSize: 2, collate, ...options })
    for (const [from, into] of [
      [one, other],
      [other, one],
    ] as const) {
      const left = loader(from)
      for await (const _ of left) break
      const state = written(left.stateDict())
      const taking = loader(into)
      const before = taking.stateDict()
      expect(() => taking.loadStateDict(state)).toThrow(expect.objectContaining({ code: 'STATE_DICT_MISMATCH' }))
      expect(taking.stateDict()).toEqual(before)
      loader(from).loadStateDict(state)
    }
  })

  test('the state of a DistributedSampler is the same for every rank', async () => {
    const [first, second] = [0, 1].map((rank) => {
      const sampler = new DistributedSampler(dataset, { numReplicas: 2, rank, dropLast: true })
      return new DataLoader(dataset, { batchSize: 2, collate, sampler, generator: generator() })
    })
    for await (const _ of first!) break
    second!.loadStateDict(written(first!.stateDict()))
    const rests: number[] = []
    for await (const _ of second!) rests.push(1)
    expect(rests).toHaveLength(2)
  })

  test('the state of a sampler that is no plain data', () => {
    const sampler = { length: 11, stateDict: () => () => 1, loadStateDict: () => {}, [Symbol.iterator]: () => [0][Symbol.iterator]() }
    expect(() => new DataLoader(dataset, { sampler }).stateDict()).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('got a function') }),
    )
  })

  test('more batches than the epoch has: when the loop comes to it', async () => {
    const loader = make()
    loader.loadStateDict({ ...(await good()), batches: 7 })
    await expect(
      (async () => {
        for await (const _ of loader);
      })(),
    ).rejects.toMatchObject({ code: 'STATE_DICT_MISMATCH', message: expect.stringContaining('at least 7 batches, got 6') })
  })
})
