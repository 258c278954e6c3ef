/**
 * The state with which a DataLoader continues in the middle of an epoch, as plain data. An epoch depends on the generators at its begin (Note [What an
 * epoch depends on] in `data-loader.ts`), so their states and a count of batches are enough: earlier batches are planned again, not loaded.
 * PyTorch: torchdata's `StatefulDataLoader`.
 */

import { PostgradError } from '@postgrad/base'
import { structuredClone } from '@postgrad/base/internal'
import type { GeneratorState } from '@postgrad/tensor'
import { argumentText } from '@postgrad/tensor/internal'

/** The states of generators and sampler before an epoch drew its first random number. */
export interface EpochBegin {
  /** The state of the generator that was passed to the loader. Null if there was none. */
  readonly generator: GeneratorState | null
  /** The state of the current generator (`currentGenerator`). */
  readonly current: GeneratorState
  /** The state of the sampler, as its `stateDict` returned it. Null if the sampler has no `stateDict`. */
  readonly sampler: unknown
}

/** The position of a DataLoader, as plain data: the result of `stateDict`. PyTorch: `StatefulDataLoader.state_dict()` of torchdata. */
export interface DataLoaderState {
  /** How many batches of the epoch the loop has received. */
  readonly batches: number
  /** The states at the start of the epoch. Null between epochs. */
  readonly begin: EpochBegin | null
  /** The present state of the generator that was passed to the loader. Null if there was none. */
  readonly generator: GeneratorState | null
  /** The present state of the sampler. Null if the sampler has no `stateDict`. */
  readonly sampler: unknown
  /** The loader's batch size. The loader that loads the state must have the same `batchSize`, `samples`, `order` and `dropLast`. */
  readonly batchSize: number
  /** The dataset's length. Null for an `IterableDataset`. */
  readonly samples: number | null
  /** The kind of sampler: the class name of a sampler of this library, 'own' for another sampler, 'stream' for an `IterableDataset`. */
  readonly order: string
  /** Whether the last batch is left out if it is not full. */
  readonly dropLast: boolean
}

/** The optional methods of a sampler that has a state, which a DataLoader then keeps in its own state. */
export interface Stateful {
  /** Returns all that decides the next iteration, except the current generator, as plain data. */
  stateDict?(): unknown
  /** Makes the next iteration the one that a state of `stateDict` decides. @throws STATE_DICT_MISMATCH if the state is not of such a sampler */
  loadStateDict?(state: unknown): void
}

/** A copy, which later changes of the sampler do not reach. @throws INVALID_ARGUMENT unless it is plain data */
export function samplerState(sampler: Stateful | null): unknown {
  const state = sampler?.stateDict?.() ?? null
  try {
    return structuredClone(state)
  } catch (cause) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'DataLoader',
      expected: "plain data as a sampler's stateDict()",
      got: argumentText(state),
      remedy: 'Return numbers, text, and arrays or objects of them.',
      cause,
    })
  }
}

/** @throws STATE_DICT_MISMATCH, or what the sampler throws */
export function loadSamplerState(sampler: Stateful | null, state: unknown): void {
  if (state === null) return
  if (sampler?.loadStateDict === undefined)
    throw mismatch('a sampler with loadStateDict', 'one without', 'Use the sampler that the state was taken with.')
  sampler.loadStateDict(state)
}

/** How a loader was made, for its states. */
export type LoaderMade = Pick<DataLoaderState, 'batchSize' | 'samples' | 'order' | 'dropLast'>

/** @param own what the loader was made with @throws STATE_DICT_MISMATCH */
export function checkLoaderState(state: DataLoaderState, own: LoaderMade, hasGenerator: boolean): void {
  const given = record('a state, as stateDict() gives', state)
  count('batches', given.batches)
  if (given.begin !== null) {
    const begin = record('begin to be null or an object', given.begin)
    if (begin.generator !== null) checkGeneratorState('begin.generator', begin.generator)
    checkGeneratorState('begin.current', begin.current)
    if ((begin.generator === null) === hasGenerator) throw generatorMismatch(hasGenerator)
    if (begin.sampler === undefined) throw mismatch('begin.sampler', 'none')
  } else if (given.batches !== 0) throw mismatch('0 batches between epochs', `${String(given.batches)}`)
  if (given.generator !== null) checkGeneratorState('generator', given.generator)
  if ((given.generator === null) === hasGenerator) throw generatorMismatch(hasGenerator)
  if (given.sampler === undefined) throw mismatch('sampler', 'none')
  for (const name of ['batchSize', 'samples', 'order', 'dropLast'] as const) {
    if (given[name] === own[name]) continue
    throw mismatch(
      `${name} ${String(own[name])}, as this loader's`,
      argumentText(given[name]),
      'Load it into a loader of the same dataset with the same options.',
    )
  }
}

/** @throws STATE_DICT_MISMATCH for what `Generator.state()` did not give */
export function checkGeneratorState(name: string, state: unknown): asserts state is GeneratorState {
  const { words, spare } = record(`${name} to be a generator's state`, state)
  const areWords = Array.isArray(words) && words.length === WORDS && words.every((word) => Number.isInteger(word) && word === (word | 0))
  if (areWords && (spare === null || (typeof spare === 'number' && Number.isFinite(spare)))) return
  throw mismatch(`${name} to be a generator's state`, JSON.stringify(state))
}

/** Of xoroshiro128+, 32 bits each. */
const WORDS = 4

function record(expected: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw mismatch(expected, argumentText(value))
}

function count(name: string, value: unknown): void {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw mismatch(`${name} to be an integer ≥ 0`, argumentText(value))
}

function generatorMismatch(hasGenerator: boolean): PostgradError {
  const [own, other] = hasGenerator ? ['with', 'without'] : ['without', 'with']
  return mismatch(
    `a state of a loader ${own} a generator, as this one`,
    `one ${other}`,
    'Make both loaders with { generator }, or both without.',
  )
}

export function mismatch(expected: string, got: string, remedy = 'Pass what stateDict() of such a loader gave.'): PostgradError {
  return new PostgradError('STATE_DICT_MISMATCH', { op: 'DataLoader.loadStateDict', expected, got, remedy })
}
