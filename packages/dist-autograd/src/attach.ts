/**
 * Ties the graphs of two workers together where a message with tensors passes between them: at the sender a SendRpcBackward, at the receiver a
 * RecvRpcBackward, under one autograd message id. PyTorch: `addSendRpcBackward`, `addRecvRpcBackward`, `getMessageWithAutograd`
 * in `torch/csrc/distributed/autograd/utils.cpp`. Here it is an interceptor of rpc, which knows nothing of autograd.
 */
import { type Edge, gradientEdge, type InputMeta, setHistory } from '@postgrad/autograd/internal'
import type { WorkerId } from '@postgrad/base'
import { currentScope, type IdCounter, type ScopePatch } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { Interceptor } from '@postgrad/rpc/internal'
import { type Message, MessageType, type OutgoingMessage } from '@postgrad/wire/internal'
import type { DistAutogradContainer } from './dist-autograd-container.js'
import { contextReleased, DistAutogradContext } from './dist-autograd-context.js'
import { type GradientCarrier, RecvRpcBackward } from './functions/recv-rpc-backward.js'
import { SendRpcBackward } from './functions/send-rpc-backward.js'
import type { LineageNode } from './lineage.js'
import { depthOf, FAST_ROOM, isFast, malformed, numberOf, readLineage, unwriteLineage, writeLineage } from './lineage-room.js'
import { lineageBehind } from './lineage-walk.js'

export class AutogradInterceptor implements Interceptor {
  private readonly self: WorkerId
  private readonly ids: IdCounter
  private readonly container: DistAutogradContainer
  private readonly carrier: GradientCarrier

  constructor(self: WorkerId, ids: IdCounter, container: DistAutogradContainer, carrier: GradientCarrier) {
    this.self = self
    this.ids = ids
    this.container = container
    this.carrier = carrier
  }

  /** @throws CONTEXT_RELEASED for a call; a reply just leaves without its graph, which nobody could use any more */
  outgoing(message: OutgoingMessage, to: WorkerInfo): void {
    const context = this.recordingContext(message.type)
    if (context !== null) {
      message.context = context.contextId
      if (to.id !== this.self) context.knownWorkerIds.add(to.id)
      if (context.mode === 'fast') message.lineage = FAST_ROOM
    }
    if (message.tensors.length > 0) this.attachSend(context, message, to)
  }

  private recordingContext(type: MessageType): DistAutogradContext | null {
    const { context, gradEnabled } = currentScope()
    if (!(context instanceof DistAutogradContext) || !gradEnabled) return null
    if (!context.released) return context
    if (isReply(type)) return null
    throw contextReleased(context.contextId, 'call')
  }

  /** Says of every tensor whether its gradient comes back: none does if nothing is recorded (DA-9), whatever the codec noted. */
  private attachSend(context: DistAutogradContext | null, message: OutgoingMessage, to: WorkerInfo): void {
    const edges: Edge[] = []
    const inputMeta: InputMeta[] = []
    message.requiresGrad = message.tensors.map((tensor) => {
      const edge = context === null ? null : gradientEdge(tensor)
      if (edge === null) return false
      edges.push(edge)
      inputMeta.push({ shape: tensor.shape, dtype: tensor.dtype })
      return true
    })
    if (context === null || edges.length === 0) return
    message.autogradId = this.ids.take()
    const send = new SendRpcBackward(message.autogradId, to.id, edges, inputMeta)
    context.sendFunctions.set(message.autogradId, send)
    message.lineage = context.mode === 'fast' ? [send.depth] : lineageRoom(context, send)
  }

  /** No gradient can come for what has not left. */
  unsent({ type, context, autogradId, lineage }: OutgoingMessage): void {
    // A gradient message names the send function at its other end, which is this worker's own in a call to itself.
    if (context === null || autogradId === null || type === MessageType.PROPAGATE_GRADIENTS) return
    const found = this.container.find(context)
    const send = found?.sendFunctions.get(autogradId)
    if (found === undefined || send === undefined) return
    found.sendFunctions.delete(autogradId)
    if (found.mode === 'smart') unwriteLineage(found.lineage, lineage!, send.to)
  }

  /** What a peer tells of the lineage is told once, so it is heard also where the message then meets a refusal, or nobody (DA-35). */
  arrived({ context: contextId, autogradId, pass, lineage }: Message, from: WorkerInfo): void {
    if (contextId === null || autogradId === null || pass !== null || lineage === null || isFast(lineage)) return
    const context = this.container.join(contextId, 'smart')
    if (context === null) return
    if (from.id !== this.self) context.knownWorkerIds.add(from.id)
    readLineage(context.lineage, lineage, from.id)
  }

  /** @throws CONTEXT_RELEASED for a call, and for a reply that carries a graph; LINEAGE_MALFORMED */
  incoming(message: Message, from: WorkerInfo): void {
    const { context: contextId, autogradId, lineage } = message
    if (contextId === null) return
    // Who waits for a plain reply gets it, even if the context has gone meanwhile.
    const context =
      autogradId === null && isReply(message.type)
        ? this.container.find(contextId)
        : this.container.getOrCreate(contextId, isFast(lineage) ? 'fast' : 'smart', 'call')
    if (context === undefined) return
    if (from.id !== this.self) context.knownWorkerIds.add(from.id)
    if (autogradId !== null) this.attachRecv(context, autogradId, message, from)
  }

  private attachRecv(
    context: DistAutogradContext,
    autogradId: bigint,
    { tensors, requiresGrad, lineage }: Message,
    from: WorkerInfo,
  ): void {
    const received = tensors.filter((_, index) => requiresGrad[index])
    const inputMeta = received.map(({ shape, dtype }) => ({ shape, dtype }))
    const origin = context.mode === 'fast' ? null : arrivedAs(context, from.id, lineage)
    const node = new RecvRpcBackward(context.contextId, autogradId, from.id, depthOf(lineage), origin, inputMeta, this.carrier)
    received.forEach((tensor, outputNr) => {
      setHistory(tensor, node, outputNr)
    })
    context.recvFunctions.set(autogradId, node)
  }

  /** A call is served in the context it came with (DA-6). */
  servingScope({ context }: Message): ScopePatch {
    return { context: context === null ? null : (this.container.find(context) ?? null) }
  }
}

const NO_NODES: readonly LineageNode[] = Object.freeze([])

function lineageRoom({ lineage, recvFunctions }: DistAutogradContext, send: SendRpcBackward): number[] {
  const deps = recvFunctions.size === 0 ? NO_NODES : lineageBehind(send.nextEdges, lineage)
  return writeLineage(lineage, lineage.addMessage(send, deps), send.depth, send.to)
}

/** What `arrived` noted of the message. @throws LINEAGE_MALFORMED */
function arrivedAs({ lineage }: DistAutogradContext, from: WorkerId, room: readonly number[] | null): LineageNode {
  const node = lineage.find(from, 2 * numberOf(room))
  if (node === undefined || node.deps === null) throw malformed('its dependencies are no names of messages')
  return node
}

function isReply(type: MessageType): boolean {
  return (
    type === MessageType.RESULT || type === MessageType.EXCEPTION || type === MessageType.REMOTE_RET || type === MessageType.STREAM_ITEM
  )
}
