/**
 * Matchers for jest and vitest, over the checkers of this folder. They import nothing of a test runner: `expect.extend(matchers)` in a set-up file
 * (or at the head of a test), and TypeScript knows them in jest (global `expect` and `@jest/globals`) and vitest.
 */
import { isPostgradError } from '@postgrad/base'
import { linesOf } from '../replay/reproduce.js'
import { bitDifference, differenceText } from '../replay/same-bits.js'
import { type CleanOptions, type DebugInfos, leaks } from './expect-clean.js'
import { type Checked, type SoundOptions, unsound } from './expect-sound.js'

/** The result of a matcher, as Jest and vitest expect it. */
export interface MatcherResult {
  /** Whether the check succeeded. */
  readonly pass: boolean
  /** Returns the text to print if the test fails. */
  readonly message: () => string
}

/** The types of the matchers, as methods of `expect(…)`. R is void, and a promise after `resolves` and `rejects`. */
export interface PostgradMatchers<R = void> {
  /** Expects that no worker holds anything, as `expectClean` does. The value is a simulation, or the result of `cluster.debugInfo()`. Crashed workers are left out. */
  toBeClean(options?: CleanOptions): R
  /** Expects that a simulation passes all checks of `expectSound`. */
  toBeSound(options?: SoundOptions): R
  /** Expects the same bits as `expected`, as `expectSameBits` does: for tensors, numbers, and lists, objects and maps of them with strings as keys. */
  toHaveSameBitsAs(expected: unknown): R
  /** Expects that a simulation's result has the same bits as `oracle`, the result of `inlined`. */
  toMatchInlined(oracle: unknown): R
  /** Expects that a promise, or the promise that a function returns, rejects with this error code, and with these `values` if they are given. Await this matcher. */
  toRejectWithCode(code: string, values?: Readonly<Record<string, unknown>>): Promise<R>
}

interface Seeded {
  readonly seed?: number
}

/** Matchers for Jest and vitest: `expect.extend(matchers)` adds them to `expect(…)`. `PostgradMatchers` describes each. */
export const matchers = {
  toBeClean(received: unknown, options: CleanOptions = {}): MatcherResult {
    const simulation = received as Partial<Checked>
    const debugInfo = simulation.debugInfo ?? (received as DebugInfos)
    const left = leaks(debugInfo, { ...options, except: [...(options.except ?? []), ...(simulation.crashed ?? [])] })
    if (left.length === 0) return { pass: true, message: () => 'expected something to be held on some worker at the end, and nothing was' }
    const message = `expected nothing to be held on any worker at the end\n  ${left.join('\n  ')}`
    const how = again(simulation, message)
    return { pass: false, message: () => `${message}${how}` }
  },

  toBeSound(received: unknown, options: SoundOptions = {}): MatcherResult {
    const error = unsound(received as Checked, options)
    if (error === null) return { pass: true, message: () => 'expected a checker to find something, and none did' }
    const how = again(received as Seeded, error)
    return { pass: false, message: () => `${error.code}: ${error.message.trimEnd()}${how}` }
  },

  toHaveSameBitsAs(received: unknown, expected: unknown): MatcherResult {
    return sameBits(received, expected)
  },

  toMatchInlined(received: unknown, oracle: unknown): MatcherResult {
    const { result, seed } = received as { readonly result: unknown; readonly seed?: number }
    return sameBits(result, oracle, { simulation: received, seed })
  },

  async toRejectWithCode(received: unknown, code: string, values: Readonly<Record<string, unknown>> = {}): Promise<MatcherResult> {
    let error: unknown
    try {
      const value = await (typeof received === 'function' ? received() : received)
      return { pass: false, message: () => `expected a rejection with ${code}, got the value ${String(value)}` }
    } catch (reason) {
      error = reason
    }
    const got = error as { readonly code?: unknown; readonly values?: Readonly<Record<string, unknown>> } | null
    const unlike = Object.entries(values).filter(([key, value]) => bitDifferenceOrText(got?.values?.[key], value))
    if (got?.code === code && unlike.length === 0) return { pass: true, message: () => `expected another rejection than ${code}` }
    const which = unlike.map(([key, value]) => `\n  values.${key}: expected ${String(value)}, got ${String(got?.values?.[key])}`).join('')
    const what = error instanceof Error || isPostgradError(error) ? `${String(got?.code ?? error.name)}: ${error.message}` : String(error)
    return { pass: false, message: () => `expected a rejection with ${code}, got ${what}${which}${again(error as Seeded)}` }
  },
}

function sameBits(
  got: unknown,
  expected: unknown,
  of: { readonly simulation: unknown; readonly seed: number | undefined } | null = null,
): MatcherResult {
  const difference = bitDifference(got, expected)
  if (difference === null) return { pass: true, message: () => 'expected some bit to differ, and all are the same' }
  const message = differenceText(difference, of?.seed)
  const lines = linesOf(of?.simulation, message).map((line) => `\n${line}`)
  return { pass: false, message: () => `${message}${lines.join('')}` }
}

function bitDifferenceOrText(got: unknown, expected: unknown): boolean {
  try {
    return bitDifference(got, expected) !== null
  } catch {
    // A value without bits, a worker's info say, is compared as it is.
    return got !== expected
  }
}

/** How to see it again. `error`: what was found in the run. */
function again(from: Seeded | null | undefined, error?: unknown): string {
  const lines = linesOf(from, error).map((line) => `\n  ${line}`)
  const seed =
    typeof from?.seed === 'number' ? `\n  seed ${from.seed}: simulate with { seed: ${from.seed} } and the same options runs it again` : ''
  return seed + lines.join('')
}
