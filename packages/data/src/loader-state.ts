/**
 * What a DataLoader needs to go on in the middle of an epoch, as plain data. An epoch depends on the generators when it begins (Note [What an epoch depends
 * on] in `data-loader.ts`), so their states and the number of batches are enough: the batches before are planned again, and not loaded.
 * PyTorch: torchdata's `StatefulDataLoader`.
 */

import { PostgradError } from '@postgrad/base'
import { structuredClone } from '@postgrad/base/internal'
import type { GeneratorState } from '@postgrad/tensor'
import { argumentText } from '@postgrad/tensor/internal'

/** Before an epoch's first draw. */
export interface EpochBegin {
  /** Of the loader's own generator; null if it has none. */
  readonly generator: GeneratorState | null
  /** Of the scope's generator, else the thread's. */
  readonly current: GeneratorState
  /** Of the sampler, as its `stateDict` gave it; null for one without. */
  readonly sampler: unknown
}

/** Where a DataLoader stands: plain data, for `loadStateDict`. PyTorch: `StatefulDataLoader.state_dict()` of torchdata. */
export interface DataLoaderState {
  /** How many batches of the epoch were handed out. */
  readonly batches: number
  /** null between epochs. */
  readonly begin: EpochBegin | null
  /** Of the loader's own generator, now. */
  readonly generator: GeneratorState | null
  /** Of the sampler, now. */
  readonly sampler: unknown
  /** What it was taken with: another dataset or batch would make other batches. */
  readonly batchSize: number
  /** The dataset's length; null for a stream. */
  readonly samples: number | null
  /** Which sampler gives the order: the name of one of this library, 'own' for another, 'stream' for none. */
  readonly order: string
  /** Whether a last batch that is not full is left out. */
  readonly dropLast: boolean
}

/** A sampler, for its state. */
export interface Stateful {
  /** All that decides the next iteration, apart from the scope's generator, as plain data; a DataLoader keeps it in its own state. */
  stateDict?(): unknown
  /** Takes up such a state. @throws STATE_DICT_MISMATCH */
  loadStateDict?(state: unknown): void
}

/** A copy: what the sampler changes later is no part of it. @throws INVALID_ARGUMENT for what is no plain data */
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

/** What a loader was made with, for its states. */
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
