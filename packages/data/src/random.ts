/**
 * Random order, for samplers and splits. Each takes one number from the caller's generator when it begins, and continues with its own generator. So it
 * does not matter how far ahead batches load, or what else draws.
 */
import { currentGenerator, type Generator } from '@postgrad/tensor'

/** Options of functions and samplers that use random numbers. */
export interface RandomSource {
  /** The generator from which the seed is drawn. Default: the current generator (`currentGenerator`). */
  readonly generator?: Generator
}

/** Seeds are drawn below this; a generator takes 32 bits of a seed. */
const SEEDS = 2 ** 31

/** One seed, drawn now. */
export function sourceOf({ generator = currentGenerator() }: RandomSource): number {
  return generator.integer(0, SEEDS)
}

/** 0 … n−1 in random order (Fisher and Yates). PyTorch: `randperm`. */
export function shuffled(n: number, generator: Generator): number[] {
  const order = Array.from({ length: n }, (_, i) => i)
  for (let i = n - 1; i > 0; i--) {
    const j = generator.integer(0, i + 1)
    const other = order[j] as number
    order[j] = order[i] as number
    order[i] = other
  }
  return order
}

const SPAN = 2 ** 32

/** The seed of one sample's random numbers: by its place in the epoch, so that neither batches nor workers matter. */
export function sampleSeed(epochSeed: number, place: number): number {
  return (epochSeed + place) % SPAN
}

/** The seed of what collate draws for a batch; half a round away from the samples' seeds. */
export function collateSeed(epochSeed: number, batch: number): number {
  return (epochSeed + SPAN / 2 + batch) % SPAN
}
