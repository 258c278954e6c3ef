/**
 * The interface between a cluster and the host that runs its workers. Threads are one kind of host (`thread-host.ts`, `thread-side.ts`), threads of other
 * processes another (`process-host.ts`). A host knows nothing of programs, calls and members: it starts a worker with some plain values, carries messages
 * to it and back in order, makes links between two workers, and reports how a worker ended. `worker-host.suite.ts` tests every kind.
 */
import type { ResourceLimits } from 'node:worker_threads'
import type { PostgradError, WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import type { Heap, HeapTransport } from '@postgrad/tensor/internal'
import type { Link } from '@postgrad/transport'
import type { StayAwake } from '@postgrad/transport/internal'
import { transfer } from 'comlink'
import type { ThreadUsage } from './usage.js'

export type { ResourceLimits } from 'node:worker_threads'

/** The cluster's side. */
export interface WorkerHost {
  /** A worker will be started: from now on it may be linked, until `release`. Idempotent. */
  admit(worker: WorkerInfo): void
  /** A link between two workers that were admitted, or to the main thread: the first end is `a`'s. An end may be given away before its worker exists. */
  link(a: WorkerInfo, b: WorkerInfo): readonly [LinkEnd, LinkEnd]
  /** Opens an end of the main thread's here. */
  open(end: LinkEnd): OpenedLink
  /** Starts a worker and returns at once. Throws where the machine has no room for it; whatever goes wrong later is its end. */
  spawn(options: SpawnOptions): HostedWorker
  /** A worker has ended, or will never be started: nothing is kept for it any more. */
  release(id: WorkerId): void
  /** No worker is left, and none will be started. Resolves when nothing of the host's is. */
  close(): Promise<void>
}

/** A link that was opened, and how large tensors travel over it: null where their bytes do. */
export interface OpenedLink {
  readonly link: Link
  readonly transport: HeapTransport | null
}

/** One end of a link that nobody has opened: plain values, which a host may move with a message. Closing it, or the end of the worker that holds it, closes the other one. */
export interface LinkEnd {
  close(): void
}

export interface SpawnOptions {
  readonly worker: WorkerInfo
  /** What it finds as `WorkerSide.boot`: plain values, and ends of links. */
  readonly boot: object
  /** The ends in `boot`, which belong to the worker from now on. */
  readonly ends: readonly LinkEnd[]
  /** Get what it writes, in pieces as they come; undefined: this process's own output gets it. */
  readonly stdout: ((text: string) => void) | undefined
  readonly stderr: ((text: string) => void) | undefined
  readonly resourceLimits: ResourceLimits | undefined
  readonly env: NodeJS.ProcessEnv | undefined
  /** Runs once, after all messages that the worker sent by `control`. */
  readonly onExit: (exit: HostedExit) => void
}

/** How a worker ended, as far as its host can see. */
export interface HostedExit {
  readonly exitCode: number
  /** What was thrown there and nobody caught; undefined if it ended otherwise. */
  readonly thrown: unknown
  /** The end of the process that it ran in, if it ended with that. */
  readonly ofProcess?: ProcessEnd
  /** Why the machine gave it no process, if it gave none: then nothing has run there, and nothing was thrown there. */
  readonly notStarted?: PostgradError
}

/** How a process ended that had workers. */
export interface ProcessEnd {
  readonly pid: number
  /** Null: it ended by itself, with the exit code. */
  readonly signal: NodeJS.Signals | null
}

/** A worker that was started, until it has ended. */
export interface HostedWorker {
  /** Messages to it and from it, in order. Messages to a worker that has ended are lost. */
  readonly control: Control
  /** It counts them up while it comes to its turns. */
  readonly beats: Counter
  /** How many batches of events were taken here, counted up here. */
  readonly taken: Counter
  /** Ends it at any instruction. Resolves when it is gone. */
  kill(): Promise<void>
}

/** The worker's side, for what runs there. */
export interface WorkerSide {
  readonly boot: object
  readonly control: Control
  readonly beats: Counter
  readonly taken: Counter
  /** What it shares with other workers; null: nothing, and its tensors are managed. */
  readonly heap: Heap | null
  /** The thread's, for all its links. */
  readonly stayAwake: StayAwake
  /** What it holds of the machine. */
  usage(): ThreadUsage
  open(end: LinkEnd): OpenedLink
}

/** What comlink runs over: its `Endpoint`, whose own type names types of the browser, which users' compilers may not have. */
export interface Control {
  /** @param transfer buffers that are moved, and ends of links that are in the message and go with it */
  // biome-ignore lint/suspicious/noExplicitAny: comlink's own signature
  postMessage(message: any, transfer?: readonly object[]): void
  addEventListener(type: string, listener: unknown): void
  removeEventListener(type: string, listener: unknown): void
  /** `listen` gets every message, comlink's too. */
  onMessage(listen: (message: unknown) => void): void
  /** A worker that has nothing else open ends by itself when its control is closed on both sides. */
  close(): void
}

/** A number that one side counts up, and that the other may read at any time: without a message, and while the first is busy. */
export interface Counter {
  readonly value: number
  add(): void
}

/** Marks a message as one with ends of links in it: they go with it. */
export function withEnds<T>(message: T, ends: readonly LinkEnd[]): T {
  return transfer(message, [...ends])
}
