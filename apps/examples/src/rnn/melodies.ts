/** Melodies to learn: they climb round a circle of tones in steps of equal size, so two tones determine all that follow. */
import { type Generator, type Tensor, tensor } from 'postgrad'

export const TONES = 7
/** A step is 1 to this many tones. */
export const STEPS = 3

export interface Batch {
  /** int32 [length, batch] */
  readonly input: Tensor
  /** int32 [length · batch]: the tone after each of the input's. */
  readonly target: Tensor
}

/** `batch` melodies of `length` tones and one more. */
export function melodies(generator: Generator, length: number, batch: number): Batch {
  const below = (n: number) => Math.floor(n * generator.uniform())
  const starts = Array.from({ length: batch }, () => ({ first: below(TONES), step: 1 + below(STEPS) }))
  const tones = (from: number) => Array.from({ length }, (_, t) => starts.map(({ first, step }) => (first + (from + t) * step) % TONES))
  return { input: tensor(tones(0), { dtype: 'int32' }), target: tensor(tones(1).flat(), { dtype: 'int32' }) }
}

/** In nats a tone: the first tone does not determine the step, two tones do. */
export const leastLoss = (length: number): number => Math.log(STEPS) / length
