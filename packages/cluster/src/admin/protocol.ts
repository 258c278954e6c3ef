/**
 * The messages between the cluster (`remote-worker.ts`) and a worker (`worker.ts`). Queries go through comlink on the worker's control, which its
 * host provides (`worker-host.ts`). Comlink loses the class, code and cause of errors, so arguments, results and errors travel as `Payload`s:
 * frames that wire's codec made (its `payload.ts`).
 *
 *     cluster                                  worker
 *        │ host.spawn(BootData)                  │ builds runtime, connects peers
 *        │ ── start() ─────────────────────────▸ │ imports the program
 *        │ ◂───────────────────────── Payload ── │ RESULT, or an EXCEPTION
 *        │ ── run(name, args) ─────────────────▸ │ runs the exposed function as this worker
 *        │ ◂──────────────── ProgressEvent … ── │ from reportProgress, at any time
 *        │ ◂───────────────────────── Payload ── │
 *        │ ── CancelEvent ─────────────────────▸ │ nobody waits for that run: its currentSignal() aborts
 *        │ ── connect(peers, gone) ────────────▸ │ newcomers: their names are known from then on
 *        │ ── leave() ─────────────────────────▸ │ runtime.leave(): notifies its peers
 *        │ ◂── jobs, see port-host.ts of jobs ─▸ │ what currentJobs() submits, and the answers
 *        │ ── close() ─────────────────────────▸ │ runtime.close()
 *        │ closes its control                    │ nothing is left open: the worker ends by itself
 */
import type { Progress } from '@postgrad/jobs'
import type { DeadLetterReport, InspectEvent, References, WorkerMetrics } from '@postgrad/rpc'
import type { Counts, WorkerInfo } from '@postgrad/rpc/internal'
import type { Payload } from '@postgrad/wire/internal'
import type { ThreadUsage } from '../host/usage.js'
import type { LinkEnd } from '../host/worker-host.js'
import type { MemberWords, PeerEnd } from '../membership/members.js'
import type { RuntimeBoot } from './make-runtime.js'
import type { MainContext } from './program.js'

/** Another worker, and this one's end of the link to it. */
export type WorkerPeer = PeerEnd<LinkEnd>

/** Everything a worker is born with (`WorkerSide.boot`). */
export interface BootData extends RuntimeBoot {
  readonly info: WorkerInfo
  /** How many workers had this name before. */
  readonly life: number
  /** Workers that ended before it began, of which others may still have references. */
  readonly gone: readonly WorkerInfo[]
  readonly peers: readonly WorkerPeer[]
  /** `file:` URL of the program. */
  readonly program: string
  /** Of the launch: how long it may stall, in ms. 0: no limit. */
  readonly stallMs: number
  /** How many threads compute its large operations, itself among them. */
  readonly computeThreads: number
  /** Where `tsx/esm/api` is, if the launcher knows; null: the worker looks for it. */
  readonly typescript: string | null
}

/** Counts of all that a worker holds: those of its runtime (`pendingCalls`, `autogradContexts`, `ownerRRefs`, …) and those of its thread. */
export type WorkerDebugInfo = ThreadUsage & Readonly<Record<string, number>>

/** About membership. */
type MemberQueries = { [Word in keyof MemberWords<WorkerPeer>]: (...args: MemberWords<WorkerPeer>[Word]) => void }

/** What a worker is asked, and what it answers. No answer throws: what fails comes back as an EXCEPTION payload. */
export interface Queries extends MemberQueries {
  /** Runs an exposed function; the payload is a CALL [name, args]. */
  run(run: number, call: Payload): unknown
  /** Runs the program's default export with `{ name, rank, worldSize, args }`; what that returns stays there. `isLast`: no other run follows. */
  runMain(run: number, main: { readonly context: Omit<MainContext, 'name'>; readonly isLast: boolean }): void
  debugInfo(): WorkerDebugInfo
  /** Says from now on what it has sent to its peers and received (`QuietEvent`), whenever it is quiet and that is news. */
  reportQuiet(): void
  /** Who holds references to what. */
  references(): References
  deadLetters(): DeadLetterReport
  metrics(): WorkerMetrics
  /** Whether it posts what happens from now on (`InspectPost`). */
  inspect(isWanted: boolean): void
  /** Closes the runtime. */
  close(): void
}

export type Query = keyof Queries
/** Those that every worker is asked at once. */
export type Report = 'debugInfo' | 'references' | 'deadLetters' | 'metrics'
export type Asked<Q extends Query> = Parameters<Queries[Q]>
export type Answer<Q extends Query> = ReturnType<Queries[Q]>

/** What comlink exposes on a worker. */
export type AskWorker = (query: Query, ...args: readonly unknown[]) => Promise<Payload>

/** Sent to the worker outside of comlink: nobody waits for this run any more. */
export interface CancelEvent {
  readonly event: 'cancel'
  readonly run: number
}

/** Sent by the worker on comlink's port, hence in order with answers. Comlink ignores messages without a `type`. */
export type WorkerEvent = ProgressEvent | FatalEvent | QuietEvent | ClosedEvent | InspectPost

export interface ProgressEvent {
  readonly event: 'progress'
  readonly progress: Progress
}

/** An error that nobody caught: the last message of a worker, unless its program has a handler for such errors. */
export interface FatalEvent {
  readonly event: 'fatal'
  readonly origin: NodeJS.UncaughtExceptionOrigin
}

/** Nothing is under way at a worker. */
export interface QuietEvent {
  readonly event: 'quiet'
  readonly counts: Counts
}

/** The runtime is closed, by the cluster, or by the program with `shutdown`, `leave` or `drain`. */
export interface ClosedEvent {
  readonly event: 'closed'
}

/** What has happened at a worker since the last of these. */
export interface InspectPost {
  readonly event: 'inspect'
  readonly events: readonly InspectEvent[]
  /** Events that this worker dropped. */
  readonly dropped: number
  /** The worker's `performance.timeOrigin`, from which the events' times count. */
  readonly originMs: number
}
