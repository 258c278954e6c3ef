/**
 * What the cluster (main thread) and a worker's thread say to each other, to be read alone; `worker-thread.ts` is the one end,
 * `worker-entry.ts` the other. Calls go through comlink on one control port per worker. Comlink loses the class, code and cause of errors,
 * so arguments, results and errors travel as `Payload`s: frames that wire's codec made (its `payload.ts`).
 *
 *     cluster                                  worker
 *        │ new Worker(workerData: BootData)      │ builds runtime, connects peers
 *        │ ── start() ─────────────────────────▸ │ imports the program
 *        │ ◂───────────────────────── Payload ── │ RESULT, or EXCEPTION why it could not
 *        │ ── run(name, args) ─────────────────▸ │ runs the exposed function as this worker
 *        │ ◂──────────────── ProgressEvent … ── │ what reportProgress says, any time
 *        │ ◂───────────────────────── Payload ── │
 *        │ ── connect(peers, gone) ────────────▸ │ newcomers: their names are known from then on
 *        │ ── leave() ─────────────────────────▸ │ runtime.leave(): its peers hear that it goes
 *        │ ◂── jobs, see port-host.ts of jobs ─▸ │ what currentJobs() submits, and the answers
 *        │ ── close() ─────────────────────────▸ │ runtime.close()
 *        │ closes the port                       │ nothing is left open: the thread ends by itself
 */

import type { MessagePort } from 'node:worker_threads'
import type { Progress } from '@postgrad/jobs'
import type { InspectEvent, MailboxOptions } from '@postgrad/rpc'
import type { WorkerInfo } from '@postgrad/rpc/internal'
import type { HeapHandle } from '@postgrad/tensor/internal'
import type { Payload } from '@postgrad/wire/internal'
import type { Heartbeat } from '../host/heartbeat.js'
import type { PeerPort } from '../host/port-links.js'
import type { MemberWords } from '../membership/members.js'
import type { MainContext } from './program.js'

/** Everything a worker's thread is born with (`workerData`). */
export interface BootData {
  readonly info: WorkerInfo
  /** How many workers had this name before. */
  readonly life: number
  /** Workers that ended before it began, of which others may still have references. */
  readonly gone: readonly WorkerInfo[]
  readonly peers: readonly PeerPort[]
  readonly control: MessagePort
  /** `file:` URL of the program. */
  readonly program: string
  /** The cluster's; a worker's generator is made from it and its name. */
  readonly seed: number
  /** What `device()` takes; null is the thread's default. */
  readonly device: string | null
  /** null is the runtime's default. */
  readonly rpcTimeoutMs: number | null
  /** Whether it keeps the stacks of where references are made. */
  readonly referenceStacks: boolean
  /** null is the runtime's default. */
  readonly mailbox: MailboxOptions | null
  /** The worker's slot in the process's shared heap; null when there is none left, then its tensors are managed. */
  readonly heap: HeapHandle | null
  readonly heartbeat: Heartbeat
  /** Of the launch: how long it may stand still. 0: nobody looks. */
  readonly stallMs: number
  /** Where `tsx/esm/api` lies, if the launcher knows; null: the worker looks for it. */
  readonly typescript: string | null
}

/** What the controller says about membership. */
type MemberFacade = { [Word in keyof MemberWords<PeerPort>]: (...args: MemberWords<PeerPort>[Word]) => Promise<Payload> }

/** What comlink exposes on a worker. No method throws: what fails comes back as an EXCEPTION payload. */
export interface WorkerFacade extends MemberFacade {
  /** Runs an exposed function; the payload is a CALL [name, args]. */
  run(call: Payload): Promise<Payload>
  /** Runs the program's default export with `{ name, rank, worldSize, args }`. */
  runMain(context: Omit<MainContext, 'name'>): Promise<Payload>
  debugInfo(): Promise<Payload>
  /** What it has sent to its peers and received; null while it is busy. */
  countsIfQuiet(): Promise<Payload>
  /** Who holds references to what. */
  references(): Promise<Payload>
  deadLetters(): Promise<Payload>
  metrics(): Promise<Payload>
  /** Posts what happens from now on, and looks at the word for how much of it was taken; null: no more. */
  inspect(taken: Taken | null): Promise<Payload>
  /** Closes the runtime. */
  close(): Promise<Payload>
}

/** Sent by the worker beside comlink's messages, in the same port, hence in order with results. Comlink ignores what has no `type`. */
export interface ProgressEvent {
  readonly event: 'progress'
  readonly progress: Progress
}

/** Something was thrown and nobody caught it: the last that is heard of a worker, unless its program has a handler for that. */
export interface FatalEvent {
  readonly event: 'fatal'
  readonly origin: NodeJS.UncaughtExceptionOrigin
}

/** How many posts of a worker the main thread has taken, in shared memory. */
export type Taken = Int32Array<SharedArrayBuffer>

/** What has happened at a worker since the last of these. */
export interface InspectPost {
  readonly event: 'inspect'
  readonly events: readonly InspectEvent[]
  /** Events that there was no room for. */
  readonly dropped: number
  /** The worker's `performance.timeOrigin`, from which the events' times count. */
  readonly originMs: number
}
