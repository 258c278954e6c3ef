/**
 * `launch`: a cluster of workers from one process. It checks its options, starts a thread per name (`remote-members.ts`), and resolves when every worker
 * has loaded the program. If one cannot, it ends the others. PyTorch: `mp.spawn` with `init_rpc` in each process.
 */
import { availableParallelism } from 'node:os'
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PostgradError } from '@postgrad/base'
import { checkTime, locateModule, ownFile, refuseWhileLoading, timeLimit } from '@postgrad/base/internal'
import type { Progress } from '@postgrad/jobs'
import type { MailboxOptions, RoleRights } from '@postgrad/rpc'
import { checkMailbox } from '@postgrad/rpc/internal'
import { type DeviceSpec, device } from '@postgrad/tensor'
import { checkComputeThreads, setHeapBytes } from '@postgrad/tensor/internal'
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
  /** The names of the workers, or how many: 2 makes worker0 and worker1. A name has up to 127 letters, digits, '-', '_' and ':', and occurs once. */
  readonly workers: readonly string[] | number
  /**
   * How many processes to start. The workers are spread over these processes in the order of `workers`, as threads. If a process crashes, or its memory runs
   * out, its workers die and the other processes continue. Default: all workers are threads of this process.
   */
  readonly processes?: number
  /** The device on which workers compute. Default 'wasm'. */
  readonly device?: DeviceSpec
  /**
   * How many threads compute the large operations of each worker: the worker itself, and helper threads. The workers share the cores of the machine: each gets as many
   * threads as there are cores for a worker, and at least 1. The number of threads changes no result. Default 1. See `setComputeThreads`. PyTorch:
   * `torch.set_num_threads`.
   */
  readonly computeThreads?: number
  /** The seed of all random numbers. Each worker derives its own seed from this seed and its name. Default 0, so that a program gives the same results each time. */
  readonly seed?: number
  /** The main thread's name for workers, after it has joined by `cluster.call`, `remote` or `runHere`. Default 'main'. */
  readonly mainName?: string
  /** The time limit of a call that has no `timeoutMs` of its own, in ms. Default 60,000. 0: without a limit. */
  readonly rpcTimeoutMs?: number
  /** The role of each worker, by the worker's name. A worker that is not listed has the role 'member'. */
  readonly roles?: Readonly<Record<string, string>>
  /**
   * The rights of each role at all workers: `{ observer: { call: ['selectAction'] } }`. All other requests of the role fail with NOT_PERMITTED. A role that is
   * not listed has no limits. See `rolePolicy`.
   */
  readonly rights?: Readonly<Record<string, RoleRights>>
  /** How many calls of one worker, and how many bytes of calls, may wait at another. Further calls fail with MAILBOX_FULL. */
  readonly mailbox?: MailboxOptions
  /** How long all workers together may take to load the program, in ms. Default 60,000. 0: without a limit. */
  readonly launchTimeoutMs?: number
  /**
   * Starts a worker that died again, as `cluster.restart` does, together with the workers that `strategy` binds to it. Workers start one by one, in the order of
   * `workers`, and stop in reverse order. If workers die too often, the cluster ends: `(await cluster.closed).error` is an error with the code
   * SUPERVISOR_GAVE_UP. Default: a dead worker is not started again.
   */
  readonly supervision?: SupervisionOptions
  /** A worker counts as stalled if it has not reached its next turn for this long, in ms. Default 10,000. 0: never. See `cluster.onWorkerStalled`. */
  readonly stallMs?: number
  /** 'report' (default) reports a stalled worker. 'kill' also ends it: the worker then counts as dead, with the cause `stalled`. */
  readonly onStall?: 'report' | 'kill'
  /**
   * How `close` treats references that the program still holds. 'ignore' (default) does nothing, as PyTorch. 'warn' prints a process warning RREF_LEAK. 'error'
   * rejects with RREF_LEAK. Use this to find out whether a long-lived program disposes of its references. A reference that the garbage collector has not
   * found yet counts.
   */
  readonly referenceLeaks?: LeakPolicy
  /** Keeps the stack at which each reference was made, for `cluster.references()` and RREF_LEAK. This costs 2 µs for each reference. Default false. */
  readonly referenceStacks?: boolean
  /**
   * Receives the text that workers write to stdout. The text that a worker has written by the end of a run arrives before the result of that run. Default: the text
   * goes to this process's stdout.
   */
  readonly stdout?: OutputSink
  /** Receives the text that workers write to stderr. Default: the text goes to this process's stderr. */
  readonly stderr?: OutputSink
  /** Receives each progress report of a worker's program (`reportProgress`), and the worker's name. */
  readonly onProgress?: (progress: Progress, worker: string) => void
  /**
   * Options of Node's `Worker`: `env` is the environment of each worker, and `resourceLimits` are the limits of all workers, or of each by its name. The limits
   * bound the JavaScript heap of a thread, but not tensors or ArrayBuffers, which are memory of the process. A worker that exceeds its limit dies with the cause
   * `out-of-memory`; the others continue.
   */
  readonly workerOptions?: {
    readonly resourceLimits?: ResourceLimits | ((worker: string) => ResourceLimits | undefined)
    readonly env?: NodeJS.ProcessEnv
  }
  /**
   * The address space of the heap that the workers of a process share, in bytes, from 64 MiB to 4 GiB. The heap uses memory only for tensors. Tensors that find
   * no room in it are copied from thread to thread. Default 4 GiB, or an eighth of the space that `ulimit -v` leaves. Call `launch` before this thread makes
   * its first tensor.
   */
  readonly heapBytes?: number
  /** The URL of `tsx/esm/api`, which loads TypeScript programs. Default: workers look for tsx from the program's folder. */
  readonly typescript?: string
}

const OPTIONS: OptionNames<LaunchOptions> = {
  workers: true,
  processes: true,
  device: true,
  computeThreads: true,
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
 * Starts a cluster: one thread for each worker. Resolves when every worker has loaded the program. The threads keep this process alive until `close`, or until
 * all of them have died. PyTorch: `mp.spawn`, with `init_rpc` in each process.
 *
 * The program may be in the same file as the call of `launch`, if only the main thread makes that call:
 *
 *     import { isMainThread } from 'node:worker_threads'
 *     expose({ main })
 *     if (isMainThread) {
 *       await using cluster = await launch(new URL(import.meta.url), { workers: 2 })
 *       await cluster.on('worker0').run(main)
 *     }
 *
 * @param program the module that calls `expose`: a `file:` URL, or a path from the working directory
 * @throws INVALID_ARGUMENT if an option is unknown or has an invalid value; TIMEOUT_INVALID, DEVICE_UNKNOWN, WORKER_NAME_INVALID,
 * WORKER_NAME_DUPLICATE or WORKER_COUNT_INVALID if that value is invalid; PROCESSES_UNSUPPORTED if `processes` is given in Deno; HEAP_EXISTS if `heapBytes` is
 * given and this thread already has a larger heap; THREADS_WHILE_LOADING if a worker that loads this module makes this call. In all these cases no thread was started;
 * LAUNCH_FAILED if a worker cannot load the program, with the worker in `values` and the reason in `cause`. Then no thread is left.
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
  const computeThreads = threadsOfEach(options.computeThreads ?? 1, names.length)
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
    computeThreads,
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

/** Workers in other processes count, too, since all are on this machine. @throws INVALID_ARGUMENT */
function threadsOfEach(computeThreads: number, workers: number): number {
  return Math.min(checkComputeThreads('computeThreads', computeThreads), Math.max(1, Math.floor(availableParallelism() / workers)))
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
