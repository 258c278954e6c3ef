/**
 * A run in one word, for `POSTGRAD_REPLAY=<token>` and `postgrad replay <token>`. It names the run's test or program, and holds what
 * is not in these: the seed, and of a run that was shrunk or searched for its decisions and which faults are left.
 *
 *     pg1.<check>.<base64url of deflated JSON>        check: 32 bits over the rest, so that a word that was cut or mistyped is refused
 */
import { PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import type { FaultKind, FaultRecord } from '@postgrad/sim'
import { hashBytes } from '@postgrad/sim/internal'
import type { FaultRule } from '../faults/message-kind.js'

const zlib = () => builtin<typeof import('node:zlib')>('node:zlib')

/** One run out of those that a program and its options allow. */
export interface RunVariant {
  readonly seed: number
  /** The schedule's answers; null: all from the seed. */
  readonly decisions: readonly number[] | null
  /** The faults that happen, in place of those that the rules ask for; null: as the rules say. */
  readonly faults: readonly FaultRecord[] | null
}

/** The test that a run is of. */
export interface TestIdentity {
  readonly kind: 'test'
  /** Full name; '' where no test runner says. */
  readonly name: string
  readonly file: string
  /** Which of the test's runs, from 0. */
  readonly run: number
}

/** The program that a run is of, with the options under which it ran, as far as they are data. */
export interface ProgramIdentity {
  readonly kind: 'program'
  /** Path or URL of the module. */
  readonly program: string
  readonly export: string
  readonly options: Readonly<Record<string, unknown>>
}

export type RunIdentity = TestIdentity | ProgramIdentity

export interface ReplayToken {
  readonly of: RunIdentity
  readonly variant: RunVariant
}

const PREFIX = 'pg1'
/** A token of a run of 50 million steps has less. */
const JSON_BYTES_MAX = 256 * 1024 * 1024

export function encodeToken({ of, variant }: ReplayToken): string {
  const { seed, decisions, faults } = variant
  const packed = {
    of,
    s: seed,
    ...(decisions === null ? {} : { d: deltas(decisions) }),
    ...(faults === null ? {} : { f: faults.map(({ frame, action, delayMs, worker }) => [frame, action, delayMs, worker]) }),
  }
  const body = zlib()
    .deflateRawSync(Buffer.from(JSON.stringify(packed)), { level: 9 })
    .toString('base64url')
  return `${PREFIX}.${checkOf(body)}.${body}`
}

/** @throws REPLAY_TOKEN_INVALID */
export function decodeToken(token: string): ReplayToken {
  const [prefix, check, body, ...rest] = token.trim().split('.')
  if (prefix !== PREFIX)
    throw invalid(token, prefix?.startsWith('pg') === true ? `a token of another version (${prefix})` : 'something else')
  if (body === undefined || rest.length > 0 || check !== checkOf(body)) throw invalid(token, 'one that was cut or changed')
  try {
    const { of, s, d, f } = JSON.parse(
      zlib().inflateRawSync(Buffer.from(body, 'base64url'), { maxOutputLength: JSON_BYTES_MAX }).toString(),
    ) as {
      of: RunIdentity
      s: number
      d?: readonly number[]
      f?: readonly (readonly [string, FaultKind, number, string])[]
    }
    const faults = f === undefined ? null : f.map(([frame, action, delayMs, worker]) => ({ frame, action, delayMs, worker }))
    return { of, variant: { seed: s, decisions: d === undefined ? null : undeltas(d), faults } }
  } catch (cause) {
    throw invalid(token, 'one that cannot be read', cause)
  }
}

/** Rows of one number are many in what was shrunk: [value, count, value, count, …]. */
function deltas(decisions: readonly number[]): number[] {
  const out: number[] = []
  for (const value of decisions) {
    if (out.length > 0 && out.at(-2) === value) out[out.length - 1]!++
    else out.push(value, 1)
  }
  return out
}

function undeltas(packed: readonly number[]): number[] {
  const out: number[] = []
  for (let i = 0; i + 1 < packed.length; i += 2) for (let n = packed[i + 1]!; n > 0; n--) out.push(packed[i]!)
  return out
}

function checkOf(body: string): string {
  const bytes = new Uint8Array(Buffer.from(body))
  return (hashBytes(0, bytes.buffer, 0, bytes.length) >>> 0).toString(16).padStart(8, '0')
}

function invalid(token: string, got: string, cause?: unknown): PostgradError {
  const shown = token.length > 60 ? `${token.slice(0, 40)}…` : token
  return new PostgradError('REPLAY_TOKEN_INVALID', {
    op: 'replay',
    expected: `a token (${PREFIX}.…) as a failed run prints it`,
    got: `${got}: '${shown}'`,
    remedy: 'Copy the whole line; the program must be of the version of postgrad that printed it.',
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Whether a token can hold a rule. */
export function isData(rule: FaultRule): boolean {
  return typeof rule.match !== 'function' && rule.match?.when === undefined
}
