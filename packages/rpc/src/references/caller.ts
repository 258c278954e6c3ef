/**
 * `Caller`, with which the programs and references of a worker make all calls. `RpcCaller` (`rpc-caller.ts`) sends the calls as messages; the inlined
 * program of package `testing` runs them where they are made.
 */
import type { Future } from '@postgrad/base'
import type { RemoteStream, StreamOptions } from '../calls/stream.js'
import type { CallOptions } from '../common/call-options.js'
import type { Target, WorkerInfo } from '../common/worker-info.js'
import type { RRef } from './rref.js'

export interface RemoteOptions extends CallOptions {
  /** This worker will watch the actor that it makes. */
  readonly isWatched?: boolean
}

/** `name` is what is exposed at `to`, whether or not this worker has it; `op` says in errors what was called. */
export interface Caller {
  /** Gives what the function gives. @throws UNKNOWN_WORKER; all else is the future's */
  call(to: Target, name: string, args: readonly unknown[], options?: CallOptions, op?: string): Future<unknown>
  /** Gives the items of what the function gives, one by one. @throws UNKNOWN_WORKER; all else is the stream's */
  stream(to: Target, name: string, args: readonly unknown[], options?: StreamOptions, op?: string): RemoteStream<unknown>
  /** Keeps what the function or class gives there. @throws why the request was not sent */
  remote(to: Target, name: string, args: readonly unknown[], options?: RemoteOptions, op?: string): RRef
  /** Whom it can call: self included; the dead, those that are leaving, and guests excluded. */
  workers(): WorkerInfo[]
  /** @throws UNKNOWN_WORKER */
  resolve(target: Target, op?: string): WorkerInfo
  /** Resolves when there is room for a call. Does not throw. */
  ready(to: Target, options?: CallOptions): Future<void>
}
