/**
 * Generator: a seeded source of random numbers, whose state can be saved and restored. The scope carries the current one. Same seed,
 * same numbers, on every machine; they are not PyTorch's numbers.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus, xoroshiro128plusFromState } from 'pure-rand/generator/xoroshiro128plus'
import { normalPair, uniform, uniform64 } from './draws.js'

/** Seeds that differ in a few bits start with similar numbers; after this many they do not. */
const WARM_UP = 64

/** Room for `normalPair`. */
const PAIR = new Float64Array(2)

/** The state of a `Generator`, as plain data. */
export interface GeneratorState {
  /** The state of the random source, in words of 32 bits. */
  readonly words: readonly number[]
  /** The second number of the last pair of normal numbers, which `normal` returns next; null if it makes a new pair next. */
  readonly spare: number | null
}

/**
 * A seeded source of random numbers. One seed gives the same numbers on every machine; they are not the numbers of PyTorch. Each scope has a current generator.
 * PyTorch: `torch.Generator`.
 * @example new Generator(7).uniform() === new Generator(7).uniform() // true: one seed, one sequence
 */
export class Generator {
  private source: ReturnType<typeof xoroshiro128plus>
  private spare: number | null = null

  /** @throws INVALID_ARGUMENT unless the seed is a safe integer */
  constructor(seed = 0) {
    this.source = seeded(seed)
  }

  /** Starts again from this seed, and returns the generator. @throws INVALID_ARGUMENT if the seed is not a safe integer */
  manualSeed(seed: number): this {
    this.source = seeded(seed)
    this.spare = null
    return this
  }

  /** A uniform number in [0, 1), a multiple of 2⁻²⁴: exact in float32. */
  uniform(): number {
    return uniform(this.source)
  }

  /** A uniform number in [0, 1), a multiple of 2⁻⁵³. */
  uniform64(): number {
    return uniform64(this.source)
  }

  /** A standard normal number, by the Box–Muller transform, which makes two at a time. */
  normal(): number {
    if (this.spare !== null) {
      const value = this.spare
      this.spare = null
      return value
    }
    normalPair(this.source, PAIR)
    this.spare = PAIR[1]!
    return PAIR[0]!
  }

  /** A uniform integer from low to high − 1. */
  integer(low: number, high: number): number {
    return uniformInt(this.source, low, high - 1)
  }

  /** The state of the generator, as plain data that fits into JSON. */
  state(): GeneratorState {
    return { words: [...this.source.getState()], spare: this.spare }
  }

  /** Continues from a state that `state()` returned. @throws INVALID_ARGUMENT for any other value */
  restore(state: GeneratorState): void {
    try {
      this.source = xoroshiro128plusFromState(state.words)
    } catch (cause) {
      throw new PostgradError('INVALID_ARGUMENT', {
        op: 'restore',
        expected: 'a state of this generator',
        got: JSON.stringify(state),
        remedy: 'Pass what state() returned.',
        cause,
      })
    }
    this.spare = state.spare
  }

  /** The same as `state()`: so a generator can be a part of a checkpoint. */
  stateDict(): GeneratorState {
    return this.state()
  }

  /** The same as `restore(state)`. @throws INVALID_ARGUMENT */
  loadStateDict(state: GeneratorState): void {
    this.restore(state)
  }
}

function seeded(seed: number): ReturnType<typeof xoroshiro128plus> {
  if (!Number.isSafeInteger(seed)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'manualSeed',
      expected: 'a safe integer',
      got: typeof seed === 'string' ? `'${String(seed)}'` : String(seed),
    })
  }
  // The generator takes 32 bits; the upper bits of a larger seed are folded in.
  const source = xoroshiro128plus(Math.imul(Math.floor(seed / 2 ** 32), 0x9e3779b1) ^ (seed | 0))
  for (let i = 0; i < WARM_UP; i++) source.next()
  return source
}

/** The thread's own generator, for code outside of any scope that sets one; PyTorch has the same per process. */
const threadGenerator = new Generator(0)

/**
 * The generator of the scope; outside of a scope with one, that of the thread.
 * @example manualSeed(7) === currentGenerator() // true
 */
export function currentGenerator(): Generator {
  return (currentScope().generator as Generator | null) ?? threadGenerator
}

/**
 * Seeds the current generator and returns it. PyTorch: `torch.manual_seed`.
 * @throws INVALID_ARGUMENT if the seed is not a safe integer
 * @example
 * manualSeed(7)
 * const x = rand([3])
 * manualSeed(7)
 * x.equal(rand([3])) // true
 */
export function manualSeed(seed: number): Generator {
  return currentGenerator().manualSeed(seed)
}
