/**
 * The node that a message with tensors adds to its receiver's graph: there gradients leave the local graph, for the worker that the tensors
 * came from. Its twin there is `SendRpcBackward`; one autograd message id names both. PyTorch: `RecvRpcBackward`.
 */
import { HIGHEST_PRIORITY, type InputMeta, Node } from '@postgrad/autograd/internal'
import type { WorkerId } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'

/** Sends the gradients on their way: the worker's distributed engine. */
export interface GradientCarrier {
  /** Posts the gradients of `node`'s outputs (null where none arrived) as part of the pass of `task`. @throws what makes the pass fail */
  carry(node: RecvRpcBackward, grads: readonly (Tensor | null)[], task: object): void
}

export class RecvRpcBackward extends Node {
  /** The worker that the tensors came from. */
  readonly from: WorkerId
  readonly autogradId: bigint
  readonly contextId: bigint
  private readonly carrier: GradientCarrier

  /**
   * @param depth of the SendRpcBackward at the other end
   * @param lineage the message, as the lineage knows it; null in a FAST context
   * @param inputMeta shape and dtype of each received tensor that requires grad, in order
   */
  constructor(
    contextId: bigint,
    autogradId: bigint,
    from: WorkerId,
    depth: number,
    lineage: object | null,
    inputMeta: readonly InputMeta[],
    carrier: GradientCarrier,
  ) {
    // Before all other nodes, as leaves are: this worker works while the gradient travels.
    super([], inputMeta, HIGHEST_PRIORITY)
    this.depth = depth
    this.lineage = lineage
    this.from = from
    this.autogradId = autogradId
    this.contextId = contextId
    this.carrier = carrier
  }

  get name(): string {
    return 'RecvRpcBackward'
  }

  apply(grads: readonly (Tensor | null)[], task: object): readonly (Tensor | null)[] {
    this.carrier.carry(this, grads, task)
    return []
  }
}
