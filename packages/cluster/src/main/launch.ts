/**
 * `launch`: a cluster of workers from one process. It checks its options, starts a thread per name (`remote-members.ts`), and resolves when every worker
 * has loaded the program. If one cannot, it ends the others. PyTorch: `mp.spawn` with `init_rpc` in each process.
 */
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PostgradError } from '@postgrad/base'
import { checkTime, locateModule, ownFile, refuseWhileLoading, timeLimit } from '@postgrad/base/internal'
import type { Progress } from '@postgrad/jobs'
import type { MailboxOptions, RoleRights } from '@postgrad/rpc'
import { checkMailbox } from '@postgrad/rpc/internal'
import { type DeviceSpec, device } from '@postgrad/tensor'
import { setHeapBytes } from '@postgrad/tensor/internal'
import type { Clock } from '@postgrad/transport'
import { callListener, processAwakeWords, RealClock } from '@postgrad/transport/internal'
import type { LeakPolicy } from '../admin/leaks.js'
import { type Access, checkAccess } from '../admin/make-runtime.js'
import type { OutputSink } from '../admin/remote-worker.js'
import { runPayloads } from '../admin/run-payloads.js'
import { sharedHeap } from '../host/shared-heap.js'
import { ThreadHost } from '../host/thread-host.js'
import type { ResourceLimits, WorkerHost } from '../host/worker-host.js'
import { ClusterJobs } from '../jobs/cluster-jobs.js'
import { attempt, launchFailed } from '../membership/launch-failed.js'
import { MAIN_ID } from '../membership/roster.js'
import { checkFunctions, checkNames, checkOneOf, type OptionNames } from '../options/check-options.js'
import { workerNames } from '../options/worker-names.js'
import { placement } from '../processes/placement.js'
import { ProcessHost } from '../processes/process-host.js'
import { Cluster } from './cluster.js'
import { MAIN_NAME } from './main-thread.js'
import { News } from './news.js'
import { RemoteMembers } from './remote-members.js'
import type { SupervisionOptions } from './supervision.js'

/** Options of `launch`. */
export interface LaunchOptions {
  /** Names (letters, digits, '-', '_', ':', at most 127 characters, each once), or a count: worker0, worker1, … */
  readonly workers: readonly string[] | number
  /**
   * Over how many processes the workers are spread, in the order of their names; each process runs its workers as threads. A native crash, or memory that runs
   * out, ends one process and its workers; the others continue. Default: all are threads of this process.
   */
  readonly processes?: number
  /** Where the workers' kernels run; default 'wasm'. */
  readonly device?: DeviceSpec
  /** The seed of all random numbers; every worker derives its own from it and its name. Default 0, so that a program gives the same results each time. */
  readonly seed?: number
  /** By which workers know the main thread when it has joined (`cluster.call`, `remote`, `runHere`). Default 'main'. */
  readonly mainName?: string
  /** Default deadline of a call between workers, in ms. Default 60,000. 0: without a limit. */
  readonly rpcTimeoutMs?: number
  /** The roles of workers, by their names. A worker without one is a 'member', and may ask everything of the others. */
  readonly roles?: Readonly<Record<string, string>>
  /** The only things that each role may ask of other workers: `{ observer: { call: ['selectAction'] } }`. See `rolePolicy`. */
  readonly rights?: Readonly<Record<string, RoleRights>>
  /** How much may wait of one worker's calls at another before more are refused with MAILBOX_FULL. */
  readonly mailbox?: MailboxOptions
  /** How long all workers together may take to load the program, in ms; 0: without a limit. Default 60,000. */
  readonly launchTimeoutMs?: number
  /**
   * Workers that die are started again, as by `cluster.restart`, with those that the strategy binds to them. They are started one by one in the order of their
   * names and stopped in reverse order. If it comes to that too often, the cluster ends, with SUPERVISOR_GAVE_UP in `(await cluster.closed).error`.
   * By default what dies stays dead.
   */
  readonly supervision?: SupervisionOptions
  /** A worker that does not come to its next turn for so long, in ms, counts as stalled; 0: nobody looks. Default 10,000. See `cluster.onWorkerStalled`. */
  readonly stallMs?: number
  /** A stalled worker is reported (default), or reported and ended: it then counts as dead, with the cause `stalled`. */
  readonly onStall?: 'report' | 'kill'
  /**
   * If the program still holds references, `close` ignores them ('ignore', the default, as in PyTorch), prints a process warning RREF_LEAK ('warn'), or rejects ('error'). Use it
   * to find out whether a long-lived program disposes of its references.
   * A reference that the collector has not found yet counts.
   */
  readonly referenceLeaks?: LeakPolicy
  /** Keeps where each reference was made, for `cluster.references()` and the report at the end; 2 µs for each. Default false. */
  readonly referenceStacks?: boolean
  /** Receives what the workers print instead of this process's stdout (stderr). */
  readonly stdout?: OutputSink
  /** Receives what the workers print to stderr. */
  readonly stderr?: OutputSink
  /** Receives what the program says by `reportProgress`. */
  readonly onProgress?: (progress: Progress, worker: string) => void
  /**
   * Passed to Node's `Worker`; limits for all, or by name. They bound the JavaScript heap of a thread (a worker that runs out of it dies, with the cause
   * `out-of-memory`, and the others continue), not tensors, nor ArrayBuffers: those are the process's memory.
   */
  readonly workerOptions?: {
    readonly resourceLimits?: ResourceLimits | ((worker: string) => ResourceLimits | undefined)
    readonly env?: NodeJS.ProcessEnv
  }
  /**
   * How much address space the heap that the workers of a process share takes at most, in bytes, from 64 MiB to 4 GiB; tensors beyond it are copied from thread to thread. It takes memory only
   * for tensors. Default 4 GiB, or an eighth of what `ulimit -v` leaves. Launch before the first tensor of this thread.
   */
  readonly heapBytes?: number
  /** URL of `tsx/esm/api` for TypeScript programs; by default it is looked for from the program's folder. */
  readonly typescript?: string
}

const OPTIONS: OptionNames<LaunchOptions> = {
  workers: true,
  processes: true,
  device: true,
  seed: true,
  mainName: true,
  rpcTimeoutMs: true,
  roles: true,
  rights: true,
  mailbox: true,
  launchTimeoutMs: true,
  supervision: true,
  stallMs: true,
  onStall: true,
  referenceLeaks: true,
  referenceStacks: true,
  stdout: true,
  stderr: true,
  onProgress: true,
  workerOptions: true,
  heapBytes: true,
  typescript: true,
}
const WORKER_OPTIONS: OptionNames<NonNullable<LaunchOptions['workerOptions']>> = { resourceLimits: true, env: true }

const LAUNCH_TIMEOUT_MS = 60_000
const STALL_MS = 10_000

/**
 * Starts one thread per worker, each with the program loaded. The threads keep this process alive until `close`, or until they have died.
 * A program may be in one file with the code that launches it, if only the main thread runs that:
 *
 *     import { isMainThread } from 'node:worker_threads'
 *     expose({ main })
 *     if (isMainThread) {
 *       await using cluster = await launch(new URL(import.meta.url), { workers: 2 })
 *       await cluster.on('worker0').run(main)
 *     }
 *
 * @param program the module that calls `expose`: a `file:` URL, or a path from the working directory
 * @throws (rejects) INVALID_ARGUMENT for an option that there is not or whose value cannot be, and TIMEOUT_INVALID, DEVICE_UNKNOWN, WORKER_NAME_INVALID,
 * WORKER_NAME_DUPLICATE, WORKER_COUNT_INVALID, PROCESSES_UNSUPPORTED, HEAP_EXISTS, before anything is started. LAUNCH_FAILED with the worker in `values` and why in `cause`; then no thread is left.
 * THREADS_WHILE_LOADING where a worker that loads this module comes to it
 * @example await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: 2 })
 */
export async function launch(program: URL | string, options: LaunchOptions): Promise<Cluster> {
  refuseWhileLoading('launch')
  checkNames('launch', options, OPTIONS)
  checkFunctions('launch', { stdout: options.stdout, stderr: options.stderr, onProgress: options.onProgress })
  if (options.workerOptions !== undefined) checkNames('launch: workerOptions', options.workerOptions!, WORKER_OPTIONS)
  // Before a thread starts: each of them would die of it.
  if (options.device !== undefined) device(options.device!)
  const url = programUrl(program)
  const names = workerNames(options.workers)
  const processes = options.processes === undefined ? null : checkProcesses(options.processes!, names.length)
  const seed = checkSeed(options.seed ?? 0)
  const launchTimeoutMs = timeLimit('launchTimeoutMs', options.launchTimeoutMs ?? LAUNCH_TIMEOUT_MS)
  if (options.rpcTimeoutMs !== undefined) timeLimit('rpcTimeoutMs', options.rpcTimeoutMs!)
  const stallMs = checkTime('stallMs', options.stallMs ?? STALL_MS, '0 for never')
  checkMailbox(options.mailbox)
  const onStall = checkOneOf<'report' | 'kill'>('onStall', options.onStall ?? 'report', ['report', 'kill'])
  const referenceLeaks = checkOneOf<LeakPolicy>('referenceLeaks', options.referenceLeaks ?? 'ignore', ['ignore', 'warn', 'error'])
  const mainName = options.mainName ?? MAIN_NAME
  workerNames([mainName])
  const access = accessOf(options)
  const payloads = runPayloads(null)
  const clock = new RealClock()
  const pools = new ClusterJobs({
    seed,
    ...(options.device === undefined ? {} : { device: options.device }),
    ...(options.typescript === undefined ? {} : { typescript: options.typescript }),
  })
  const common = {
    program: url,
    seed,
    device: options.device ?? null,
    options: { rpcTimeoutMs: options.rpcTimeoutMs, mailbox: options.mailbox, referenceStacks: options.referenceStacks },
    access,
    typescript: options.typescript ?? null,
    stallMs,
  }
  const news = new News(clock)
  const host =
    processes === null ? threads(options.heapBytes) : otherProcesses(processes, names, { mainName, clock, heapBytes: options.heapBytes })
  const members = new RemoteMembers({
    common,
    host,
    payloads,
    clock,
    stdout: options.stdout,
    stderr: options.stderr,
    env: () => options.workerOptions?.env,
    resourceLimits: limitsOf(options.workerOptions?.resourceLimits),
    isSupervised: options.supervision !== undefined,
    onProgress: (progress, worker) => callListener(clock, () => options.onProgress?.(progress, worker)),
    onJob: (message, thread) => pools.receive(message, thread),
    onChange: () => news.tell(),
  })
  const supervision = options.supervision ?? null
  const cluster = new Cluster({
    members,
    main: { name: mainName, common, host, clock, members },
    pools,
    news,
    payloads,
    clock,
    launchTimeoutMs,
    stallMs,
    onStall,
    referenceLeaks,
    supervision,
  })
  await cluster.begin(names)
  return cluster
}

/** @throws INVALID_ARGUMENT */
function accessOf({ roles, rights }: LaunchOptions): Access | null {
  return roles === undefined && rights === undefined ? null : checkAccess('roles', { roles: roles ?? {}, rights: rights ?? {} })
}

function threads(heapBytes: number | undefined): WorkerHost {
  const entry = attempt('launch', null, () => ownFile('threads', 'cluster', 'worker/worker-entry.js'))
  // Before the first thread, which inherits them.
  processAwakeWords()
  if (heapBytes !== undefined) setHeapBytes(heapBytes)
  const heap = attempt('launch', null, sharedHeap)
  return new ThreadHost(entry, heap)
}

interface OfProcesses {
  readonly mainName: string
  readonly clock: Clock
  readonly heapBytes: number | undefined
}

function otherProcesses(count: number, names: readonly string[], { mainName, clock, heapBytes }: OfProcesses): WorkerHost {
  const entry = attempt('launch', null, () => ownFile('processes', 'cluster', 'processes/process-entry.js'))
  if (heapBytes !== undefined) setHeapBytes(heapBytes)
  const placeOf = placement(names, count)
  return attempt('launch', null, () => new ProcessHost({ entry, placeOf, main: { name: mainName, id: MAIN_ID }, clock, heapBytes }))
}

/** @throws INVALID_ARGUMENT, PROCESSES_UNSUPPORTED */
function checkProcesses(processes: number, workers: number): number {
  if ('deno' in process.versions) {
    throw new PostgradError('PROCESSES_UNSUPPORTED', {
      op: 'processes',
      message: 'Deno does not report when a process has ended, so close() would never end',
      remedy: 'Leave out processes: workers as threads work in Deno. Or run the program by Node.',
    })
  }
  if (Number.isInteger(processes) && processes >= 1 && processes <= workers) return processes
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'processes',
    expected: `a whole number from 1 to the number of workers (${workers})`,
    got: String(processes),
    remedy: 'Each process has one worker at least. Leave it out for threads of this process.',
  })
}

function limitsOf(limits: NonNullable<LaunchOptions['workerOptions']>['resourceLimits']): (worker: string) => ResourceLimits | undefined {
  return typeof limits === 'function' ? limits : () => limits
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

/** @throws INVALID_ARGUMENT, LAUNCH_FAILED with PROGRAM_NOT_FOUND as its cause */
function programUrl(program: URL | string): string {
  const { url, isThere, near } = locateModule(program)
  if (isThere) return url
  const error = new PostgradError('PROGRAM_NOT_FOUND', {
    op: 'program',
    expected: 'a file that is there, by its path or its file: URL',
    got: url.startsWith('file:') ? fileURLToPath(url) : url,
    remedy: `${near}${
      typeof program === 'string' && !program.startsWith('file:')
        ? `Check the path${isAbsolute(program) ? '' : `, which counts from ${process.cwd()}`}.`
        : "Check the URL; new URL('./program.js', import.meta.url) names a file in the folder of the running one. In a bundle, emit the program as an entry of its own."
    }`,
    values: { program: url },
  })
  throw launchFailed('launch', null, error)
}
