/** The caller of a worker that is linked with others: each call is a request to its callee, this worker itself included. */
import { Future } from '@postgrad/base'
import { collect } from '@postgrad/base/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import type { RemoteStream, StreamOptions } from '../calls/stream.js'
import { startStream } from '../calls/stream-request.js'
import { whenReady } from '../calls/when-ready.js'
import { type CallOptions, checkArgs } from '../common/call-options.js'
import type { Target, WorkerInfo } from '../common/worker-info.js'
import type { WorkerCore } from '../core/worker-core.js'
import type { Caller, RemoteOptions } from './caller.js'
import { startRemote } from './remote-request.js'
import type { RRef } from './rref.js'
import type { RRefContext } from './rref-context.js'

const answerOf = ({ body }: Message): unknown => body[0]

export class RpcCaller implements Caller {
  private readonly core: WorkerCore
  private readonly rrefs: RRefContext

  constructor(core: WorkerCore, rrefs: RRefContext) {
    this.core = core
    this.rrefs = rrefs
  }

  call(to: Target, name: string, args: readonly unknown[], options: CallOptions = {}, op: string = name): Future<unknown> {
    const peer = this.core.peers.resolve(to)
    let future: Future<unknown>
    try {
      checkArgs(args, op)
      future = this.core.requests.ask(peer, MessageType.CALL, [name, args], op, options, answerOf)
    } catch (error) {
      future = Future.rejected(error)
    }
    collect(future)
    return future
  }

  stream(to: Target, name: string, args: readonly unknown[], options: StreamOptions = {}, op: string = name): RemoteStream<unknown> {
    return startStream(this.core, this.core.peers.resolve(to), name, args, options, op)
  }

  remote(to: Target, name: string, args: readonly unknown[], options: RemoteOptions = {}, op: string = name): RRef {
    return startRemote(this.core, this.rrefs, this.core.peers.resolve(to), name, args, options, op)
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
