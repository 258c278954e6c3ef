/**
 * The messages between a cluster (`process-host.ts`) and a process that it has started (`process-agent.ts`), over Node's channel between parent and child,
 * as structured clones, in order both ways. The workers of a process are threads of it.
 *
 *     cluster                                       process
 *        │ ── admit(worker), spawn(worker, boot) ──▸ │ starts a thread
 *        │ ◂─ control(id, message) ───────────────▸ │ passes it on to the thread, or from it, with its ends of links
 *        │ ◂────────────────────────────── beats ── │ which threads have come to their turns
 *        │ ── ended(id) ──────────────────────────▸ │ a worker of another process has: notifies workers linked with it by a socket
 *        │ ◂─────────────────────────── exit(id) ── │ after all messages of the worker
 *        │ ── end() ──────────────────────────────▸ │ no worker is left
 */
import type { WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import type { Payload } from '@postgrad/wire/internal'
import type { LinkEnd, ResourceLimits } from '../host/worker-host.js'

/** An end of a link, before anybody has opened it. */
export type ProcessEndToken =
  /** To a worker of the same process: a port, which that process makes when the first of the two ends is wanted. */
  | { readonly kind: 'port'; readonly key: number; readonly a: WorkerInfo; readonly b: WorkerInfo; readonly side: 0 | 1 }
  /** To a worker of another one: a socket, which the two workers make when they first have something to say. */
  | { readonly kind: 'socket'; readonly holder: WorkerInfo; readonly peer: WorkerInfo }

/** By what a worker meets those of other processes. */
export interface SocketBoot {
  /** Of this cluster: connections of another are refused. */
  readonly cluster: string
  /** Where each worker listens: `socketPath(folder, id)`. */
  readonly folder: string
  /** All workers of the cluster have it; nobody else. */
  readonly key: Uint8Array
}

/** To a process. */
export type ToProcess =
  | { readonly do: 'begin'; readonly sockets: SocketBoot; readonly heapBytes: number | undefined }
  | { readonly do: 'admit'; readonly worker: WorkerInfo }
  | {
      readonly do: 'spawn'
      readonly worker: WorkerInfo
      readonly boot: object
      readonly ends: readonly ProcessEndToken[]
      readonly wantsOut: boolean
      readonly wantsErr: boolean
      readonly resourceLimits: ResourceLimits | undefined
      readonly env: NodeJS.ProcessEnv | undefined
    }
  | { readonly do: 'control'; readonly id: WorkerId; readonly message: unknown; readonly ends: readonly ProcessEndToken[] }
  | { readonly do: 'close-control'; readonly id: WorkerId }
  | { readonly do: 'taken'; readonly id: WorkerId }
  | { readonly do: 'kill'; readonly id: WorkerId }
  | { readonly do: 'close-end'; readonly end: ProcessEndToken }
  | { readonly do: 'release'; readonly id: WorkerId }
  /** To all workers, or to one: this one has ended, or will never open its end. */
  | { readonly do: 'ended'; readonly id: WorkerId; readonly to: WorkerId | null }
  | { readonly do: 'end' }

/** From a process. */
export type FromProcess =
  /** It knows that a worker is to be killed. */
  | { readonly tell: 'ending'; readonly id: WorkerId }
  | { readonly tell: 'control'; readonly id: WorkerId; readonly message: unknown }
  | { readonly tell: 'output'; readonly id: WorkerId; readonly stream: 'stdout' | 'stderr'; readonly text: string }
  | { readonly tell: 'beats'; readonly beats: readonly (readonly [id: WorkerId, value: number])[] }
  | {
      readonly tell: 'exit'
      readonly id: WorkerId
      readonly exitCode: number
      /** The error that nobody caught there, as an EXCEPTION; null: none. */
      readonly thrown: Payload | null
    }

/** What a thread of such a process finds as its boot. */
export interface InProcess {
  readonly inProcess: true
  /** What the cluster has said. */
  readonly boot: object
  readonly worker: WorkerInfo
  readonly sockets: SocketBoot
  readonly ends: readonly KeyedEnd[]
}

/** The port of a token, by `portKey`. */
export type KeyedEnd = readonly [key: string, end: LinkEnd]

/** The agent's own messages to its threads. */
export type ToThread =
  /** The ports that the next message needs. */
  { readonly event: 'ends'; readonly ends: readonly KeyedEnd[] } | { readonly event: 'ended'; readonly id: WorkerId }

/** By what a thread finds the port of a token. */
export function portKey({ key, side }: ProcessEndToken & { readonly kind: 'port' }): string {
  return `${key}:${side}`
}

/** Where a worker listens for those of other processes: a Unix socket, or a pipe of Windows. */
export function socketPath(folder: string, id: WorkerId): string {
  return process.platform === 'win32' ? `\\\\.\\pipe\\${folder.replace(/[^\w-]/g, '-')}-${id}` : `${folder}/${id}`
}
