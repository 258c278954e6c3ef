/**
 * Where the processes of a group meet, and which rank this one has, as PyTorch's `init_method` says it, for `init.ts`.
 *
 *     env://               MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE of the environment, as torchrun sets them; also TORCHELASTIC_RESTART_COUNT and
 *                          TORCHELASTIC_USE_AGENT_STORE
 *     tcp://host:port      the process of rank 0 listens there, the others dial it
 *     file:///path         a file that all processes reach, which the first process makes
 */
import { fileURLToPath } from 'node:url'
import { PostgradError } from '@postgrad/base'

/** Where they meet. */
export type Meeting =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'file'; readonly path: string }

/** Which process this is. */
export interface Place {
  readonly meeting: Meeting
  /** From 0; null: any that is free, in a group of no fixed size. */
  readonly rank: number | null
  /** Null: the group has no fixed size; its processes come and go. */
  readonly worldSize: number | null
  /** A group that is started again meets in another round. */
  readonly round: number
}

/** Options of `init`: which process this is, and where the processes meet. */
export interface PlaceOptions {
  /**
   * Where the processes meet. 'env://' (default) reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE of the environment. 'tcp://host:port' is an address on which
   * rank 0 listens, 'file:///path' a file that all processes can reach. PyTorch: `init_method`.
   */
  readonly initMethod?: string | undefined
  /** The rank of this process, from 0. Default: RANK of the environment. Rank 0 serves the store. In a group without a fixed size, only rank 0 needs a rank. */
  readonly rank?: number | undefined
  /** How many processes the group has. Default: WORLD_SIZE of the environment. If neither is given, the group has no fixed size: processes may join and leave at any time. */
  readonly worldSize?: number | undefined
}

/** Removes the brackets that an IPv6 address has in a URL. */
const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '')

/** As errors name it. */
export function whereOf(meeting: Meeting): string {
  if (meeting.kind === 'file') return meeting.path
  const { host, port } = meeting
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

const PORT_MAX = 65_535

/**
 * Returns the port on which rank 0 listens if MASTER_PORT is `port`. If torchrun's agent listens on MASTER_PORT for a store of its own
 * (TORCHELASTIC_USE_AGENT_STORE is 'True'), rank 0 takes the next port; after the last port, the one before it.
 */
export function masterPort(port: number, env: Readonly<Record<string, string | undefined>>): number {
  if (env.TORCHELASTIC_USE_AGENT_STORE !== 'True') return port
  return port === PORT_MAX ? port - 1 : port + 1
}

/** @throws INVALID_ARGUMENT, which names the option or the variable that is missing or wrong */
export function placeOf({ initMethod = 'env://', rank, worldSize }: PlaceOptions, env: NodeJS.ProcessEnv): Place {
  const meeting = meetingOf(initMethod, env)
  const [sizeSaid, rankSaid] = [worldSize ?? numberIn(env, 'WORLD_SIZE'), rank ?? numberIn(env, 'RANK')]
  const size = sizeSaid === undefined ? null : checkCount('worldSize', 'WORLD_SIZE', sizeSaid, 1)
  // In a group of no fixed size only rank 0 has to know that it is.
  const place = size === null && rankSaid === undefined ? null : checkCount('rank', 'RANK', rankSaid, 0)
  const round = checkCount('round', 'TORCHELASTIC_RESTART_COUNT', numberIn(env, 'TORCHELASTIC_RESTART_COUNT') ?? 0, 0)
  if (size === null || place! < size) return { meeting, rank: place, worldSize: size, round }
  throw invalid('rank', `a whole number below worldSize (${size})`, String(place), 'Ranks count from 0.')
}

function meetingOf(initMethod: string, env: NodeJS.ProcessEnv): Meeting {
  if (initMethod === 'env://') return fromEnvironment(env)
  const url = URL.canParse(initMethod) ? new URL(initMethod) : null
  // What a URL says beyond where to meet would be left out in silence.
  const more = url === null ? '' : [url.username, url.password, url.search, url.hash].join('')
  if (url?.protocol === 'file:' && url.hostname === '' && more === '') {
    const path = pathOf(initMethod, url)
    if (path !== null) return { kind: 'file', path }
  }
  const port = Number(url?.port)
  const isPlain = more === '' && (url?.pathname === '' || url?.pathname === '/')
  if (url?.protocol === 'tcp:' && isPlain && url.hostname !== '' && port >= 1) {
    return { kind: 'tcp', host: withoutBrackets(url.hostname), port }
  }
  throw invalid(
    'initMethod',
    "'env://', 'tcp://host:port' or 'file:///path'",
    // A password is nothing for a log.
    `'${initMethod.replace(/\/\/.*@/s, '//…@').replace(/[?#].*/s, '…')}'`,
    "Name where rank 0 listens, as in 'tcp://10.0.0.5:29500', or the absolute path of a file, with three slashes; nothing else belongs there.",
  )
}

/** Null: no path, or one that a URL understands differently from the file system. */
function pathOf(initMethod: string, url: URL): string | null {
  if (!/^file:\/\//i.test(initMethod) || /%2f|%00|%(?![0-9a-f]{2})/i.test(url.pathname)) return null
  try {
    return fileURLToPath(url)
  } catch {
    return null
  }
}

function fromEnvironment(env: NodeJS.ProcessEnv): Meeting {
  const host = withoutBrackets(env.MASTER_ADDR ?? '')
  const port = numberIn(env, 'MASTER_PORT')
  const missing = [...(host === '' ? ['MASTER_ADDR'] : []), ...(port === undefined ? ['MASTER_PORT'] : [])]
  if (missing.length > 0) {
    throw invalid(
      'initMethod',
      'MASTER_ADDR and MASTER_PORT in the environment',
      `no ${missing.join(' and no ')}`,
      "Set them, as torchrun does, or pass { initMethod: 'tcp://host:port', rank, worldSize }.",
    )
  }
  if (Number.isInteger(port) && port! >= 1 && port! <= PORT_MAX) return { kind: 'tcp', host, port: masterPort(port!, env) }
  throw invalid('MASTER_PORT', `a port from 1 to ${PORT_MAX}`, String(env.MASTER_PORT), 'Correct it in the environment.')
}

function numberIn(env: NodeJS.ProcessEnv, name: string): number | undefined {
  const text = env[name]
  return text === undefined || text.trim() === '' ? undefined : Number(text)
}

function checkCount(option: string, variable: string, value: number | undefined, least: number): number {
  if (value !== undefined && Number.isInteger(value) && value >= least && value < PORT_MAX) return value
  throw invalid(
    option,
    `a whole number from ${least} to ${PORT_MAX - 1}`,
    value === undefined ? 'none' : String(value),
    `Pass { ${option} }, or set ${variable} in the environment.`,
  )
}

function invalid(op: string, expected: string, got: string, remedy: string): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', { op: `init: ${op}`, expected, got, remedy })
}
