/**
 * Joins the graphs of two workers where a message with tensors passes between them: at the sender a SendRpcBackward, at the receiver a
 * RecvRpcBackward, under one autograd message id. PyTorch: `addSendRpcBackward`, `addRecvRpcBackward`, `getMessageWithAutograd`
 * in `torch/csrc/distributed/autograd/utils.cpp`. Here it is an interceptor of rpc, which knows nothing of autograd.
 */
import { type Edge, gradientEdge, type InputMeta, metaOfOutput, setHistory, watchScopes } from '@postgrad/autograd/internal'
import { type WorkerId, workerOf } from '@postgrad/base'
import type { IdCounter, Scope, ScopePatch } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import { currentServing, functionOf, type Interceptor } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { anomalyOf, type Message, MessageType, type OutgoingMessage, setAnomaly } from '@postgrad/wire/internal'
import type { DistAutogradContainer } from '../context/dist-autograd-container.js'
import { contextReleased, DistAutogradContext } from '../context/dist-autograd-context.js'
import { type GradientCarrier, RecvRpcBackward } from '../functions/recv-rpc-backward.js'
import { SendRpcBackward } from '../functions/send-rpc-backward.js'
import { lineageOfGradients, type RecordedSend } from '../lineage/gradient-field.js'
import type { LineageNode } from '../lineage/lineage.js'
import {
  depthOf,
  FAST_FIELD,
  isFast,
  malformed,
  numberOf,
  readLineage,
  readNodes,
  type Told,
  unwriteLineage,
  writeLineage,
} from '../lineage/lineage-field.js'
import { lineageBehind } from '../lineage/lineage-walk.js'

export class AutogradInterceptor implements Interceptor {
  private readonly self: WorkerId
  private readonly ids: IdCounter
  private readonly container: DistAutogradContainer
  private readonly carrier: GradientCarrier
  private readonly tell: TellLineage

  constructor(self: WorkerId, ids: IdCounter, container: DistAutogradContainer, carrier: GradientCarrier, tell: TellLineage) {
    this.self = self
    this.ids = ids
    this.container = container
    this.carrier = carrier
    this.tell = tell
  }

  /** @throws CONTEXT_RELEASED for a call; a reply just leaves without its graph, which nobody could use any more */
  outgoing(message: OutgoingMessage, to: WorkerInfo, scope: Scope): void {
    const context = this.recordingContext(message.type, scope)
    if (context !== null) {
      message.context = context.contextId
      if (to.id !== this.self) context.knownWorkerIds.add(to.id)
      if (context.mode === 'fast') message.lineage = FAST_FIELD
    }
    if (message.tensors.length > 0) this.attachSend(context, message, to)
    if (context !== null && scope.anomaly !== null) setAnomaly(message, scope.anomaly)
  }

  private recordingContext(type: MessageType, { context, gradEnabled }: Scope): DistAutogradContext | null {
    if (!(context instanceof DistAutogradContext) || !gradEnabled) return null
    if (!context.released) return context
    if (isReply(type)) return null
    throw contextReleased(context.contextId, 'call')
  }

  /** The codec has noted which tensors require grad; where nothing is recorded, no gradient comes back for any (DA-9). */
  private attachSend(context: DistAutogradContext | null, message: OutgoingMessage, to: WorkerInfo): void {
    const { tensors } = message
    if (context === null) {
      message.requiresGrad = tensors.map(() => false)
      return
    }
    const recorded = recordSend(context, this.ids, tensors, to.id, this.tell)
    if (recorded === null) return
    // Only in FAST is it an error that no gradient comes back (DA-23).
    if (context.mode === 'fast') context.sendFunctions.get(recorded.autogradId)!.what = whatOf(message)
    message.autogradId = recorded.autogradId
    message.lineage = recorded.field
  }

  /** No gradient can come for what has not left. */
  unsent({ type, context, autogradId, lineage }: OutgoingMessage): void {
    // A gradient message names the send function at its other end, which is this worker's own in a call to itself.
    if (context === null || autogradId === null || type === MessageType.PROPAGATE_GRADIENTS) return
    const found = this.container.find(context)
    if (found !== undefined) unrecordSend(found, { autogradId, field: lineage as number[] })
  }

  /** A peer sends each node of the lineage once: it is noted even if the message is then refused, or nobody awaits it (DA-35). */
  arrived(message: Message, from: WorkerInfo): void {
    const { context: contextId, autogradId } = message
    const isAhead = message.type === MessageType.LINEAGE
    const lineage = message.type === MessageType.PROPAGATE_GRADIENTS ? lineageOfGradients(message) : message.lineage
    if (contextId === null || lineage === null || (!isAhead && (autogradId === null || isFast(lineage)))) return
    const context = this.container.join(contextId, 'smart')
    if (context === null) return
    if (from.id !== this.self) context.knownWorkerIds.add(from.id)
    if (isAhead) readNodes(context.lineage, lineage, 0, from.id)
    else readLineage(context.lineage, lineage, from.id)
  }

  /** @throws CONTEXT_RELEASED for a call, and for a reply that carries a graph; LINEAGE_MALFORMED */
  incoming(message: Message, from: WorkerInfo): void {
    const { context: contextId, autogradId, lineage } = message
    if (contextId === null) return
    // A caller gets its plain reply, even if the context has gone meanwhile.
    const context =
      autogradId === null && isReply(message.type)
        ? this.container.find(contextId)
        : this.container.getOrCreate(contextId, isFast(lineage) ? 'fast' : 'smart', 'call')
    if (context === undefined) return
    if (from.id !== this.self) context.knownWorkerIds.add(from.id)
    if (autogradId !== null) recordRecv(context, autogradId, message, lineage, from.id, this.carrier)
  }

  /** A call is served in the context it came with (DA-6), and in the anomaly mode. */
  servingScope(message: Message): ScopePatch {
    const { context } = message
    const patch = { context: context === null ? null : (this.container.find(context) ?? null) }
    const anomaly = message.trace === null ? null : anomalyOf(message)
    if (anomaly === null) return patch
    watchScopes()
    return { ...patch, anomaly }
  }
}

function whatOf({ type, body }: OutgoingMessage): string {
  const quoted = (name = '') => (name === '' ? '' : ` of '${name}'`)
  if (type === MessageType.CALL) return `the call${quoted(functionOf(body))}`
  if (type === MessageType.REMOTE_CALL) return `the remote call${quoted(functionOf(body))}`
  if (type === MessageType.STREAM_ITEM) return `an item${quoted(currentServing()?.functionName)}`
  return `the result${quoted(currentServing()?.functionName)}`
}

const NO_NODES: readonly LineageNode[] = Object.freeze([])

/** Sends lineage ahead of a message. */
export type TellLineage = (to: WorkerId, contextId: bigint, lineage: readonly number[]) => void

/** Records a SendRpcBackward for those of `tensors` that require grad; null if none does. */
export function recordSend(
  context: DistAutogradContext,
  ids: IdCounter,
  tensors: readonly (Tensor | null)[],
  to: WorkerId,
  tell: TellLineage,
): RecordedSend | null {
  const edges: Edge[] = []
  const inputMeta: InputMeta[] = []
  for (const tensor of tensors) {
    const edge = tensor === null ? null : gradientEdge(tensor)
    if (edge === null) continue
    edges.push(edge)
    inputMeta.push(metaOfOutput(tensor!))
  }
  if (edges.length === 0) return null
  const autogradId = ids.take()
  const send = new SendRpcBackward(autogradId, to, edges, inputMeta)
  context.sendFunctions.set(autogradId, send)
  if (context.mode === 'fast') return { autogradId, field: [send.depth] }
  const { field, ahead } = told(context, send)
  const recorded = { autogradId, field }
  try {
    for (const lineage of ahead) tell(to, context.contextId, lineage)
  } catch (error) {
    unrecordSend(context, recorded)
    throw error
  }
  return recorded
}

/** Its twin: a RecvRpcBackward as the history of every tensor that requires grad. @throws LINEAGE_MALFORMED */
export function recordRecv(
  context: DistAutogradContext,
  autogradId: bigint,
  { tensors, requiresGrad }: Pick<Message, 'tensors' | 'requiresGrad'>,
  field: readonly number[] | null,
  from: WorkerId,
  carrier: GradientCarrier,
): void {
  if (workerOf(autogradId) !== from || context.recvFunctions.has(autogradId)) throw malformed('its id is that of another message')
  const received = tensors.filter((_, index) => requiresGrad[index])
  const inputMeta = received.map(metaOfOutput)
  const origin = context.mode === 'fast' ? null : arrivedAs(context, from, field)
  const node = new RecvRpcBackward(context.contextId, autogradId, from, depthOf(field), origin, inputMeta, carrier)
  received.forEach((tensor, outputNr) => {
    setHistory(tensor, node, outputNr)
  })
  context.recvFunctions.set(autogradId, node)
}

/** The message has not left after all. */
export function unrecordSend(context: DistAutogradContext, { autogradId, field }: RecordedSend): void {
  const send = context.sendFunctions.get(autogradId)
  if (send === undefined) return
  context.sendFunctions.delete(autogradId)
  if (context.mode === 'smart') unwriteLineage(context.lineage, field, send.to)
}

function told({ lineage, recvFunctions }: DistAutogradContext, send: SendRpcBackward): Told {
  const deps = recvFunctions.size === 0 ? NO_NODES : lineageBehind(send.nextEdges, lineage)
  return writeLineage(lineage, lineage.addMessage(send, deps), send.depth, send.to)
}

/** The node that `arrived` noted. @throws LINEAGE_MALFORMED */
function arrivedAs({ lineage }: DistAutogradContext, from: WorkerId, field: readonly number[] | null): LineageNode {
  const node = lineage.find(from, 2 * numberOf(field))
  if (node === undefined || node.deps === null) throw malformed('its dependencies are not names of messages')
  return node
}

export function isReply(type: MessageType): boolean {
  return (
    type === MessageType.RESULT || type === MessageType.EXCEPTION || type === MessageType.REMOTE_RET || type === MessageType.STREAM_ITEM
  )
}
