/** The one source of chance in a simulated world: a generator from a seed, and the few questions that are put to it. */
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import type { RandomGenerator } from 'pure-rand/types/RandomGenerator'

/** Taken once: under jest each look-up of a global costs more than a multiplication. */
export const { imul } = Math
/** Xoroshiro starts from a state that is mostly zeros; this many draws later neighbouring seeds have nothing in common. */
const WARM_UP = 32

export class Random {
  private readonly generator: RandomGenerator

  constructor(seed: number) {
    this.generator = xoroshiro128plus(mix32(seed | 0))
    for (let i = 0; i < WARM_UP; i++) this.generator.next()
  }

  /** An integer from 0 to n − 1. It draws nothing for n = 1: a question with one answer does not change later ones. */
  below(n: number): number {
    return n === 1 ? 0 : uniformInt(this.generator, 0, n - 1)
  }

  /** True in half of the cases. */
  coin(): boolean {
    return this.generator.next() < 0
  }
}

/** Spreads 32 bits over 32 bits, one to one (the finalizer of MurmurHash3). */
export function mix32(x: number): number {
  let h = x
  h = imul(h ^ (h >>> 16), 0x85ebca6b)
  h = imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}
