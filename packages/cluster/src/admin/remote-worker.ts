/**
 * One worker, seen from the cluster: its end, and queries over comlink with what comlink lacks: a deadline, the worker's death, and whole errors.
 * `cluster.ts` above holds several of them; `worker-host.ts` below hosts the worker.
 *
 * Note [A worker's last words]. When a worker ends, results that it posted before may arrive in the same moment, and they still count. The host
 * delivers them first, their promises get a turn to settle, and only then all that still waits is rejected with WORKER_DIED.
 */
import { type DeathCause, PostgradError } from '@postgrad/base'
import {
  callCancelled,
  causeOfThrown,
  markHop,
  onAbort,
  setImmediate,
  tooManyOpenFiles,
  traceAwait,
  workerDied,
} from '@postgrad/base/internal'
import { isJobMessage, type JobFromWorker, type Progress } from '@postgrad/jobs/internal'
import type { Counts, WorkerInfo } from '@postgrad/rpc/internal'
import type { Clock } from '@postgrad/transport'
import { setDeadline } from '@postgrad/transport/internal'
import type { Payload, PayloadCodec } from '@postgrad/wire/internal'
import { wrap } from 'comlink'
import type { Counter, HostedExit, HostedWorker, ProcessEnd, ResourceLimits, WorkerHost } from '../host/worker-host.js'
import type { Answer, Asked, AskWorker, BootData, CancelEvent, FatalEvent, InspectPost, Query, WorkerEvent } from './protocol.js'

/** A function that receives the text that a worker writes, piece by piece, and the worker's name. */
export type OutputSink = (text: string, worker: string) => void

export interface RemoteWorkerOptions {
  readonly host: WorkerHost
  readonly boot: BootData
  readonly payloads: PayloadCodec
  readonly clock: Clock
  readonly stdout: OutputSink | undefined
  readonly stderr: OutputSink | undefined
  readonly resourceLimits: ResourceLimits | undefined
  readonly env: NodeJS.ProcessEnv | undefined
  readonly onProgress: (progress: Progress, worker: string) => void
  readonly onJob: (message: JobFromWorker, worker: RemoteWorker) => void
  /** Nobody waits for it any more, or it has ended. */
  readonly onChange: () => void
}

/** Why a worker ends. Its peers see no more than a closed link. */
type EndCause = Exclude<DeathCause, 'link-closed'>

/** What becomes of a worker that has died, and what can be done then. */
const AFTER = {
  /** It was not ready yet: the launch, join or restart that started it has failed. */
  starting: '',
  single: ' Start it again by cluster.restart(name); a worker that ends takes its values with it.',
  supervised: ' Its supervisor starts it again; what it held is lost: give it back in onRestart of supervision.',
} as const
const REMEDIES: Readonly<Record<Exclude<EndCause, 'left'>, string>> = {
  'out-of-memory': 'Give it more (workerOptions.resourceLimits), or keep less.',
  'uncaught-exception': 'Catch it there.',
  'unhandled-rejection': 'Await the promise, or catch what it rejects with.',
  killed: '',
  stalled: 'Look for what keeps it from its next turn: an endless loop, a lock.',
  exited: 'Let it return instead of calling process.exit.',
  'process-ended': 'Look at what the process has written last; whatever ended it ended all workers in it.',
}

/** How a worker ended. */
export interface WorkerEnd {
  readonly cause: EndCause
  readonly exitCode: number
  /** What it threw and nobody caught; undefined if it ended otherwise. */
  readonly thrown: unknown
  /** Of the process that it ran in, if it ended with that. */
  readonly ofProcess: ProcessEnd | null
  /** Why it has had no process; null: it has had one. */
  readonly notStarted: PostgradError | null
  /** Whether the end has rejected a run of the program, which so has learned of it. Queries of the cluster itself do not count. */
  readonly isHeard: boolean
}

/** Of a query. */
export interface AskOptions {
  /** Whose failure it is; by default the query's. */
  readonly op?: string
  /** In ms; Infinity, the default: as long as the worker lives. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
}

/** Of what is waited for while the worker lives. */
interface Limits extends Omit<AskOptions, 'op'> {
  /** Of a run: notifies the worker that the time or the signal has ended it. */
  readonly onGivenUp?: () => void
}

interface Waiting {
  readonly op: string
  readonly isRun: boolean
  reject(error: unknown): void
}

export class RemoteWorker {
  readonly info: WorkerInfo
  /** Goes up while it comes to its turns. */
  readonly beats: Counter
  /** Resolves when it is gone and everything that waited for it has been settled. */
  readonly ended: Promise<WorkerEnd>
  /** Set while it leaves: a second `leave` waits for it. */
  leaving: Promise<void> | null = null
  /** How its death is spoken of. */
  standing: keyof typeof AFTER = 'starting'
  /** Its end is wanted, and not a death. */
  isExpectedToEnd = false
  /** Its runtime is closed: by its own program, if nobody here has asked for it. */
  hasClosed = false
  /** Called when that is so. */
  onClosed: () => void = () => {}
  /** Gets what it has sent and received, once it was asked to report. */
  onQuiet: (counts: Counts) => void = () => {}
  /** Gets its events, while it was asked to report them. */
  onInspected: (post: InspectPost) => void = () => {}
  private readonly hosted: HostedWorker
  /** Held as long as this object: comlink releases the other end when its proxies are collected, calls in flight included (comlink #692). */
  private readonly facade: AskWorker
  private readonly payloads: PayloadCodec
  private readonly clock: Clock
  private readonly onChange: () => void
  private readonly waiting = new Set<Waiting>()
  private nextRun = 0
  private end: Omit<WorkerEnd, 'isHeard'> | null = null
  /** How what it threw came about, by its own word. */
  private fatal: FatalEvent['origin'] | null = null
  private endedBy: EndCause | null = null
  private restartedAs: WorkerInfo | null = null

  constructor({ host, boot, payloads, clock, stdout, stderr, resourceLimits, env, onProgress, onJob, onChange }: RemoteWorkerOptions) {
    const { name } = boot.info
    this.info = boot.info
    this.payloads = payloads
    this.clock = clock
    this.onChange = onChange
    let resolveEnded: (end: WorkerEnd) => void
    this.ended = new Promise((resolve) => {
      resolveEnded = resolve
    })
    this.hosted = host.spawn({
      worker: boot.info,
      boot,
      ends: boot.peers.map(({ end }) => end),
      stdout: stdout && ((text) => stdout(text, name)),
      stderr: stderr && ((text) => stderr(text, name)),
      resourceLimits,
      env,
      onExit: (exit) => this.onExit(exit, resolveEnded),
    })
    const { control, beats, taken } = this.hosted
    this.beats = beats
    control.onMessage((message) => {
      const event = message as WorkerEvent | { readonly event?: undefined } | null
      if (event?.event === 'progress') onProgress(event.progress, name)
      else if (event?.event === 'fatal') this.fatal = event.origin
      else if (event?.event === 'quiet') this.onQuiet(event.counts)
      else if (event?.event === 'closed') {
        this.hasClosed = true
        this.onClosed()
      } else if (event?.event === 'inspect') {
        taken.add()
        this.onInspected(event)
      } else if (isJobMessage(message)) onJob(message as JobFromWorker, this)
    })
    this.facade = wrap<AskWorker>(control)
  }

  /** True from the moment at which the thread is known to be gone. */
  get dead(): boolean {
    return this.end !== null
  }

  /** This thread has ended it: it is dead, or soon will be. */
  get isTerminated(): boolean {
    return this.endedBy !== null
  }

  /** Asks the worker. Rejects with the worker's error, WORKER_DIED, RUN_TIMEOUT. */
  ask<Q extends Query>(query: Q, args: Asked<Q>, { op = query, ...limits }: AskOptions = {}): Promise<Answer<Q>> {
    return this.request(op, () => this.facade(query, ...args), limits) as Promise<Answer<Q>>
  }

  /** Asks for a run, which is cancelled there when it ends here by time or signal. Rejects as `ask` does, and with CALL_CANCELLED. */
  run<Q extends 'run' | 'runMain'>(query: Q, what: Asked<Q>[1], limits: Limits): Promise<Answer<Q>> {
    const run = this.nextRun++
    const onGivenUp = (): void => this.post({ event: 'cancel', run } satisfies CancelEvent, [])
    return this.request('run', () => this.facade(query, run, what), { ...limits, onGivenUp }) as Promise<Answer<Q>>
  }

  private async request(op: string, send: () => Promise<Payload>, limits: Limits): Promise<unknown> {
    try {
      return this.payloads.decodeReply(await this.whileAlive(op, send, limits))
    } catch (error) {
      if ((error as { remoteStack?: unknown } | null)?.remoteStack !== undefined) markHop(error, this.info.name)
      traceAwait(error)
      throw error
    }
  }

  /** What `work` gives, if that comes while the worker lives. Rejects as `ask` does, and as `work` does. */
  async whileAlive<T>(op: string, work: () => Promise<T>, limits: Limits = {}): Promise<T> {
    const { timeoutMs = Number.POSITIVE_INFINITY, signal, onGivenUp } = limits
    if (this.end !== null) throw this.death(op)
    if (signal?.aborted) throw callCancelled(op, this.info, signal.reason)
    return new Promise<T>((resolve, reject) => {
      const entry: Waiting = {
        op,
        isRun: onGivenUp !== undefined,
        reject: (error) => {
          settle()
          reject(error)
        },
      }
      const giveUp = (error: PostgradError): void => {
        onGivenUp?.()
        entry.reject(error)
      }
      const late = (): void => giveUp(this.timedOut(op, timeoutMs))
      // What the cluster asks for itself, above all while it closes, ends under a debugger, too.
      const isProgram = entry.isRun || this.standing === 'starting' || timeoutMs === Number.POSITIVE_INFINITY
      const timer = isProgram ? setDeadline(this.clock, timeoutMs, late) : this.clock.setTimer(timeoutMs, late)
      const unlisten = signal && onAbort(signal, () => giveUp(callCancelled(op, this.info, signal.reason)))
      const settle = (): void => {
        timer?.cancel()
        unlisten?.()
        if (this.waiting.delete(entry) && this.waiting.size === 0) this.onChange()
      }
      this.waiting.add(entry)
      work().then((value) => {
        settle()
        resolve(value)
      }, entry.reject)
    })
  }

  /** Sends a message that is not a query; without effect when the thread has ended. */
  post(message: unknown, transfer: readonly ArrayBuffer[]): void {
    if (!this.dead) this.hosted.control.postMessage(message, [...transfer])
  }

  /** Rejects everything that waits, each with an error of its own. */
  rejectAll(makeError: (op: string) => unknown): void {
    for (const entry of [...this.waiting]) entry.reject(makeError(entry.op))
  }

  get waitingCount(): number {
    return this.waiting.size
  }

  /** Lets go of its control: a worker whose runtime is closed ends by itself when nothing else is open there. */
  release(): void {
    this.hosted.control.close()
  }

  /** Ends the thread wherever it is. */
  async terminate(cause: 'killed' | 'stalled' = 'killed'): Promise<WorkerEnd> {
    this.endedBy ??= cause
    await this.hosted.kill()
    return this.ended
  }

  /** Its name belongs to another worker now, as its errors say from now on. */
  onRestarted(as: WorkerInfo): void {
    this.restartedAs = as
  }

  /** The error that says how this worker died; only when it is dead. */
  death(op: string): PostgradError {
    const { cause, exitCode, thrown, notStarted } = this.end!
    const remedy = cause === 'left' ? undefined : (notStarted?.remedy ?? REMEDIES[cause])
    return workerDied(
      op,
      { worker: this.info, cause, detail: this.detail(), exitCode, thrown: notStarted ?? thrown },
      {
        restartedAs: this.restartedAs?.id ?? null,
        ...(remedy === undefined ? {} : { remedy: `${remedy}${AFTER[this.standing]}`.trim() }),
      },
    )
  }

  private detail(): string {
    const { cause, exitCode, thrown, ofProcess, notStarted } = this.end!
    switch (cause) {
      case 'left':
        return ''
      case 'out-of-memory':
        return 'it ran out of memory: its JavaScript heap reached the limit'
      case 'uncaught-exception':
        return tooManyOpenFiles('launch', thrown) === null
          ? `its thread threw ${describe(thrown)}, and nobody caught it`
          : `no open files were left for it, ${describe(Object(thrown).cause ?? thrown)}`
      case 'unhandled-rejection':
        return `a promise on its thread was rejected with ${describe(thrown)}, and nobody handled it`
      case 'killed':
        return 'from the main thread'
      case 'stalled':
        return 'it was alive but did nothing, and was ended for that'
      case 'exited':
        return `its thread ended with exit code ${exitCode} (process.exit)`
      case 'process-ended': {
        if (notStarted !== null) return `its process could not be started: ${describe(notStarted.cause)}`
        const { pid, signal } = ofProcess!
        const perhaps = signal === 'SIGKILL' ? ', perhaps because the machine or its container was out of memory' : ''
        return `its process (${pid}) was ended by ${signal ?? `exit code ${exitCode}`}${perhaps}`
      }
      default:
        return cause satisfies never
    }
  }

  /** See Note [A worker's last words]. */
  private onExit(exit: HostedExit, resolve: (end: WorkerEnd) => void): void {
    const { exitCode, thrown } = exit
    const [ofProcess, notStarted] = [exit.ofProcess ?? null, exit.notStarted ?? null]
    // It has said goodbye to all before.
    if (this.hasClosed && thrown === undefined && exitCode === 0) this.isExpectedToEnd = true
    const end = (): Omit<WorkerEnd, 'isHeard'> => ({
      cause: this.causeOfEnd(thrown, ofProcess, notStarted),
      exitCode,
      thrown,
      ofProcess,
      notStarted,
    })
    this.end = end()
    setImmediate(() => {
      // That it had agreed to leave may be what it said last.
      this.end = end()
      const isHeard = [...this.waiting].some(({ isRun }) => isRun)
      this.rejectAll((op) => this.death(op))
      resolve({ ...this.end!, isHeard })
      this.onChange()
    })
  }

  private causeOfEnd(thrown: unknown, ofProcess: ProcessEnd | null, notStarted: PostgradError | null): EndCause {
    if (this.isExpectedToEnd) return 'left'
    if (notStarted !== null) return 'process-ended'
    if (thrown === undefined) return this.endedBy ?? (ofProcess === null ? 'exited' : 'process-ended')
    return causeOfThrown(thrown, this.fatal === 'unhandledRejection')
  }

  private timedOut(op: string, timeoutMs: number): PostgradError {
    const { name } = this.info
    const [what, remedy] =
      this.standing === 'starting'
        ? [
            'loaded the program',
            'Look at the top level of its modules for an await that never ends, or for an endless loop: a module must come to its end, so start such work in a function. ' +
              'Or give it more time: launchTimeoutMs of launch, timeoutMs of join and restart.',
          ]
        : [
            'answered',
            'Pass a larger timeoutMs, or end the worker with cluster.kill(name): a function that does not look at currentSignal() continues there.',
          ]
    return new PostgradError('RUN_TIMEOUT', {
      op,
      message: `worker '${name}' has not ${what} within ${timeoutMs} ms`,
      remedy,
      values: { worker: name, timeoutMs },
    })
  }
}

function describe(thrown: unknown): string {
  return thrown instanceof Error || (thrown as { message?: unknown } | null)?.message !== undefined
    ? `${(thrown as Error).name}: ${(thrown as Error).message.replace(/\.$/, '')}`
    : String(thrown)
}
