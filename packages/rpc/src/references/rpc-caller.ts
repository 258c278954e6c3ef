/** The `Caller` of a linked worker: each call is a request to its callee, which may be this worker itself. */
import { Future } from '@postgrad/base'
import { collect } from '@postgrad/base/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import { RemoteStream, type StreamOptions } from '../calls/stream.js'
import { startStream } from '../calls/stream-request.js'
import { whenReady } from '../calls/when-ready.js'
import { type CallOptions, checkArgs, checkCallOptions } from '../common/call-options.js'
import type { Target, WorkerInfo } from '../common/worker-info.js'
import type { WorkerCore } from '../core/worker-core.js'
import type { Caller, RemoteOptions } from './caller.js'
import { startRemote } from './remote-request.js'
import type { RRef } from './rref.js'
import type { RRefContext } from './rref-context.js'

const STREAM_OPTIONS = ['timeoutMs', 'window', 'signal', 'ordered'] as const
const REMOTE_OPTIONS = ['timeoutMs', 'signal', 'ordered', 'isWatched'] as const
const NONE = Object.freeze({})

const answerOf = ({ body }: Message): unknown => body[0]

export class RpcCaller implements Caller {
  private readonly core: WorkerCore
  private readonly rrefs: RRefContext

  constructor(core: WorkerCore, rrefs: RRefContext) {
    this.core = core
    this.rrefs = rrefs
  }

  call(to: Target, name: string, args: readonly unknown[], options?: CallOptions, op: string = name): Future<unknown> {
    const peer = this.core.peers.resolve(to)
    let future: Future<unknown>
    try {
      checkArgs(args, op)
      checkCallOptions(op, options)
      future = this.core.requests.ask(peer, MessageType.CALL, [name, args], op, options ?? NONE, answerOf)
    } catch (error) {
      future = Future.rejected(error)
    }
    collect(future)
    return future
  }

  stream(to: Target, name: string, args: readonly unknown[], options?: StreamOptions, op: string = name): RemoteStream<unknown> {
    const peer = this.core.peers.resolve(to)
    try {
      checkCallOptions(op, options, STREAM_OPTIONS)
    } catch (error) {
      return RemoteStream.failed(error)
    }
    return startStream(this.core, peer, name, args, options ?? NONE, op)
  }

  remote(to: Target, name: string, args: readonly unknown[], options?: RemoteOptions, op: string = name): RRef {
    checkCallOptions(op, options, REMOTE_OPTIONS)
    return startRemote(this.core, this.rrefs, this.core.peers.resolve(to), name, args, options ?? NONE, op)
  }

  workers(): WorkerInfo[] {
    return this.core.peers.members()
  }

  resolve(target: Target, op?: string): WorkerInfo {
    return this.core.peers.resolve(target, op).info
  }

  ready(to: Target, options: CallOptions = {}): Future<void> {
    return whenReady(this.core, to, options)
  }
}
