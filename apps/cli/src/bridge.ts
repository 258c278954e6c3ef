/**
 * What the command line needs of the runtime below, in one place: workers as threads or spread over processes, and a process that joins others. Every command
 * gets it passed in, so that a test puts its own in this place.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  type Cluster,
  type InspectEvent,
  type LaunchOptions,
  launch,
  type Main,
  PostgradError,
  type WorkerInfo,
  type WorkerMetrics,
} from 'postgrad'

/** Who this process is to others, and how they know each other: files, read by the runtime, so that no secret passes through here. */
export type CredentialsFiles =
  | { readonly kind: 'key'; readonly file: string; readonly role?: string }
  | { readonly kind: 'tls'; readonly ca: string; readonly cert: string; readonly key: string }

/** How processes reach each other. */
export interface NetworkOptions {
  readonly credentials?: CredentialsFiles
  /** The address that is listened on; default loopback. */
  readonly bind?: string
  /** The name or address by which others reach this machine. */
  readonly advertise?: string
  /** The ports that may be listened on, first and last. */
  readonly ports?: readonly [number, number]
}

/** `launch` with workers spread over so many processes; without `processes`: threads of this one. */
export interface SpreadOptions extends LaunchOptions {
  readonly processes?: number
  readonly network?: NetworkOptions
}

export interface InitOptions extends NetworkOptions {
  readonly name: string
  readonly rank: number
  readonly worldSize: number
  readonly initMethod: `tcp://${string}`
  readonly device?: string
  readonly seed?: number
  readonly rpcTimeoutMs?: number
  /** How long the others may take to come, in ms; 0 is no limit. */
  readonly timeoutMs?: number
}

/** The worker that this process is, as far as it is used here: a part of `Worker`. */
export interface MemberWorker {
  readonly info: WorkerInfo
  workers(): readonly WorkerInfo[]
  metrics(): WorkerMetrics
  debugInfo(): Readonly<Record<string, number>>
  inspect(listener: (event: InspectEvent) => void): () => void
  /** Waits until everybody has come here, with what is under way done, then leaves: PyTorch's `rpc.shutdown(graceful=True)`. */
  shutdown(): Promise<void>
}

/** This process as one of several. */
export interface Member {
  readonly worker: MemberWorker
  readonly rank: number
  readonly worldSize: number
  /** Runs `fn` as this worker. */
  run<T>(fn: () => T): Promise<Awaited<T>>
  /** Leaves at once: what waits for others rejects. */
  close(): Promise<void>
  /** Resolves when it is over, with what ended it: null for `shutdown` and `close`, else why it is lost. Never rejects. */
  readonly closed: Promise<{ readonly error: Error | null }>
}

export interface Bridge {
  launch(program: string, options: SpreadOptions): Promise<Cluster>
  /** Rejects with the address, and why nobody could be met there. */
  init(options: InitOptions): Promise<Member>
  /** Imports a program in this process, as a worker's thread does, and gives its default export. Rejects with MAIN_MISSING, PROGRAM_NOT_FOUND. */
  loadMain(program: string): Promise<Main>
}

export const bridge: Bridge = {
  launch: async (program, { processes, network, ...options }) => {
    if (processes !== undefined || network !== undefined) throw notYet('run --processes')
    return launch(program, options)
  },
  init: async () => {
    throw notYet('run --rank')
  },
  loadMain: async (program) => {
    // JavaScript only: base's `importModule` is what a worker's thread does.
    const path = program.startsWith('file:') ? fileURLToPath(program) : resolve(program)
    if (!existsSync(path)) throw notFound(path)
    const { default: main } = (await import(pathToFileURL(path).href)) as { default?: unknown }
    if (typeof main === 'function') return main as Main
    throw new PostgradError('MAIN_MISSING', {
      op: 'run',
      expected: 'a function as the default export',
      got: main === undefined ? 'none' : typeof main,
      remedy: 'Write `export default async function main({ name, rank, worldSize, args }) { … }` in the program.',
      values: { program: path },
    })
  },
}

function notFound(path: string): PostgradError {
  return new PostgradError('PROGRAM_NOT_FOUND', {
    op: 'program',
    expected: 'a path that exists',
    got: path,
    remedy: `Check the path, which counts from ${process.cwd()}.`,
    values: { program: path },
  })
}

function notYet(op: string): PostgradError {
  return new PostgradError('PROCESSES_UNAVAILABLE', {
    op,
    message: 'this version runs workers as threads of one process only',
    remedy: 'Leave out --processes, --rank and the options of the network.',
  })
}
