/**
 * What a cluster needs of whatever runs its workers, to be read alone. Threads are the first kind (`thread-host.ts`, `thread-side.ts`); a process that is reached
 * over sockets may be another. A host knows nothing of programs, calls and members: it starts a worker with some plain values, carries messages to it and
 * back in order, makes links between two workers, and tells how a worker ended. `worker-host.suite.ts` holds every kind to what is promised here.
 */
import type { ResourceLimits } from 'node:worker_threads'
import type { Link } from '@postgrad/transport'
import { transfer } from 'comlink'
import type { ThreadUsage } from './usage.js'

export type { ResourceLimits } from 'node:worker_threads'

/** The cluster's side. */
export interface WorkerHost {
  /** Whether its workers share this process's memory: then large tensors travel by the names of their blocks. */
  readonly sharesMemory: boolean
  /** A link between two workers: one end for each. An end may be given away before its worker exists; which worker opens it decides whom it leads to. */
  link(): readonly [LinkEnd, LinkEnd]
  /** Opens an end here, in the process that has the cluster. */
  open(end: LinkEnd): Link
  /** Starts a worker and returns at once. Throws where the machine has no room for it; whatever goes wrong later is its end. */
  spawn(options: SpawnOptions): HostedWorker
}

/** One end of a link that nobody has opened. Closing it, or the end of the worker that holds it, closes the other one. */
export interface LinkEnd {
  close(): void
}

export interface SpawnOptions {
  readonly name: string
  /** What it finds as `WorkerSide.boot`: plain values, and ends of links. */
  readonly boot: object
  /** The ends in `boot`, which belong to the worker from now on. */
  readonly ends: readonly LinkEnd[]
  /** Get what it writes, in pieces as they come; undefined: this process's own output gets it. */
  readonly stdout: ((text: string) => void) | undefined
  readonly stderr: ((text: string) => void) | undefined
  readonly resourceLimits: ResourceLimits | undefined
  readonly env: NodeJS.ProcessEnv | undefined
  /** Runs once, behind everything that the worker had said by `control`. */
  readonly onExit: (exit: HostedExit) => void
}

/** How a worker ended, as far as its host can see. */
export interface HostedExit {
  readonly exitCode: number
  /** What was thrown there and nobody caught; undefined if it ended otherwise. */
  readonly thrown: unknown
}

/** A worker that was started, until it has ended. */
export interface HostedWorker {
  /** Messages to it and from it, in order. What is said to one that has ended nobody hears. */
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
  /** What it holds of the machine. */
  usage(): ThreadUsage
  open(end: LinkEnd): Link
}

/** What comlink runs over: its `Endpoint`, whose own type names types of the browser, which users' compilers may not have. */
export interface Control {
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
