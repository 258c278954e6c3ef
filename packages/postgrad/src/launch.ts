/**
 * `launch`: a cluster of worker threads from one process. It checks the names, makes one channel per pair of workers, starts a thread per name,
 * and resolves when every worker has loaded the program; if one cannot, nothing stays behind. PyTorch: `mp.spawn` with `init_rpc` in each process.
 */
import { fileURLToPath } from 'node:url'
import { MessageChannel, type ResourceLimits } from 'node:worker_threads'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { locateModule, timeLimit } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { DeviceSpec } from '@postgrad/tensor'
import { type Heap, type HeapSlot, threadHeap } from '@postgrad/tensor/internal'
import { RealClock } from '@postgrad/transport/internal'
import { PayloadCodec } from '@postgrad/wire/internal'
import { Cluster } from './cluster.js'
import type { PeerPort, Progress } from './protocol.js'
import { workerInfos } from './worker-names.js'
import { type OutputSink, WorkerThread } from './worker-thread.js'

export interface LaunchOptions {
  /** Names (letters, digits, '-', '_', ':', at most 127 characters, each once), or a count: worker0, worker1, … */
  readonly workers: readonly string[] | number
  /** Where the workers' kernels run; default 'wasm'. */
  readonly device?: DeviceSpec
  /** Of all random numbers; every worker derives its own from it and its name. Default 0, so that a program gives the same twice. */
  readonly seed?: number
  /** Default deadline of a call between workers, in ms; 0 is none. Default 60,000. */
  readonly rpcTimeoutMs?: number
  /** How long all workers together may take to load the program, in ms; 0 is no limit. Default 60,000. */
  readonly launchTimeoutMs?: number
  /** Receives what the workers print instead of this process's stdout (stderr). */
  readonly stdout?: OutputSink
  readonly stderr?: OutputSink
  /** Receives what the program says by `reportProgress`. */
  readonly onProgress?: (progress: Progress, worker: string) => void
  /** Passed to Node's `Worker`. */
  readonly workerOptions?: { readonly resourceLimits?: ResourceLimits; readonly env?: NodeJS.ProcessEnv }
  /** URL of `tsx/esm/api` for TypeScript programs; by default it is looked for beside the program. */
  readonly typescript?: string
}

const LAUNCH_TIMEOUT_MS = 60_000

/**
 * Starts one thread per worker, each with the program loaded. The threads keep this process alive until `close`, or until they have died.
 * @param program the module that calls `expose`: a `file:` URL, or a path from the working directory
 * @throws (rejects) LAUNCH_FAILED with the worker in `values` and why in `cause`; then no thread is left
 */
export async function launch(program: URL | string, options: LaunchOptions): Promise<Cluster> {
  const url = attempt(null, () => programUrl(program))
  const infos = attempt(null, () => workerInfos(options.workers))
  const seed = attempt(null, () => checkSeed(options.seed ?? 0))
  const timeoutMs = attempt(null, () => timeLimit('launchTimeoutMs', options.launchTimeoutMs ?? LAUNCH_TIMEOUT_MS))
  if (options.rpcTimeoutMs !== undefined) attempt(null, () => timeLimit('rpcTimeoutMs', options.rpcTimeoutMs!))
  const heap = sharedHeap()
  const slots = infos.map(() => heap?.handle() ?? null)
  const peers = channels(infos, slots)
  const payloads = new PayloadCodec(null)
  const clock = new RealClock()
  /** However a worker ends, what it held goes back, and its slot is free for another. */
  const giveBack = (id: number) => {
    const slot = slots[id]!
    if (slot !== null) heap!.reclaim(slot)
  }
  const start = (info: WorkerInfo): WorkerThread => {
    const thread = new WorkerThread({
      boot: {
        info,
        worldSize: infos.length,
        peers: peers[info.id]!,
        program: url,
        seed,
        device: options.device ?? null,
        rpcTimeoutMs: options.rpcTimeoutMs ?? null,
        heap: slots[info.id]!,
        typescript: options.typescript ?? null,
      },
      payloads,
      clock,
      stdout: options.stdout,
      stderr: options.stderr,
      resourceLimits: options.workerOptions?.resourceLimits,
      env: options.workerOptions?.env,
      onProgress: options.onProgress ?? (() => {}),
    })
    void thread.ended.then(() => giveBack(info.id))
    return thread
  }
  const threads: WorkerThread[] = []
  try {
    for (const info of infos) threads.push(attempt(info.name, () => start(info)))
    const failure = await firstError(threads.map((thread) => thread.request('start', (facade) => facade.start(), timeoutMs)))
    if (failure !== null) throw launchFailed(infos[failure.index]!.name, failure.error)
  } catch (error) {
    await Promise.all(threads.map((thread) => thread.terminate()))
    for (const { id } of infos) giveBack(id)
    throw error
  }
  return new Cluster(threads, payloads, clock)
}

/** This thread's heap, which the workers join; null on a machine that gives no memory for it: then every tensor is managed. */
function sharedHeap(): Heap | null {
  try {
    return threadHeap()
  } catch (error) {
    if (isPostgradError(error, 'HEAP_UNAVAILABLE')) return null
    throw error
  }
}

/** @throws INVALID_ARGUMENT */
function checkSeed(seed: number): number {
  if (Number.isSafeInteger(seed)) return seed
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'seed',
    expected: 'a safe integer',
    got: String(seed),
    remedy: 'Leave it out for 0.',
  })
}

/** @throws PROGRAM_NOT_FOUND */
function programUrl(program: URL | string): string {
  const { url, isThere } = locateModule(program)
  if (isThere) return url
  throw new PostgradError('PROGRAM_NOT_FOUND', {
    op: 'program',
    expected: 'a file: URL or a path that exists',
    got: url.startsWith('file:') ? fileURLToPath(url) : url,
    remedy: "Check the path; new URL('./program.js', import.meta.url) names a file beside the running one.",
    values: { program: url },
  })
}

/** One channel for each pair: the ports that each worker gets, by its id. */
function channels(infos: readonly WorkerInfo[], slots: readonly (HeapSlot | null)[]): readonly (readonly PeerPort[])[] {
  const ports: PeerPort[][] = infos.map(() => [])
  for (const a of infos) {
    for (const b of infos) {
      if (a.id >= b.id) continue
      const { port1, port2 } = new MessageChannel()
      ports[a.id]!.push({ info: b, port: port1, hasHeap: slots[b.id] !== null })
      ports[b.id]!.push({ info: a, port: port2, hasHeap: slots[a.id] !== null })
    }
  }
  return ports
}

/** The first failure in time, with its place; null when all have succeeded. */
function firstError(promises: readonly Promise<unknown>[]): Promise<{ index: number; error: unknown } | null> {
  return new Promise((resolveFirst) => {
    let left = promises.length
    promises.forEach((promise, index) => {
      promise.then(
        () => {
          if (--left === 0) resolveFirst(null)
        },
        (error) => resolveFirst({ index, error }),
      )
    })
  })
}

function attempt<T>(worker: string | null, fn: () => T): T {
  try {
    return fn()
  } catch (error) {
    throw launchFailed(worker, error)
  }
}

function launchFailed(worker: string | null, cause: unknown): PostgradError {
  const why =
    cause instanceof Error || isPostgradError(cause)
      ? `${cause.name === 'PostgradError' ? '' : `${cause.name}: `}${cause.message}`
      : String(cause)
  return new PostgradError('LAUNCH_FAILED', {
    op: 'launch',
    message: worker === null ? why : `worker '${worker}' could not start: ${why}`,
    values: worker === null ? {} : { worker },
    cause,
  })
}
