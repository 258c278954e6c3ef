/**
 * The node that a message with tensors adds to its sender's graph: there the gradients that come back enter it.
 * Its twin at the receiver is `RecvRpcBackward`; one autograd message id names both. PyTorch: `SendRpcBackward`.
 */
import { type Edge, type InputMeta, Node } from '@postgrad/autograd/internal'
import type { WorkerId } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'

export class SendRpcBackward extends Node {
  readonly autogradId: bigint
  /** The worker that the tensors went to. */
  readonly to: WorkerId
  /** Says what the message was, if an error may name it. */
  what = ''

  /** @param edges one per tensor of the message that requires grad, in order, with the shape and dtype of its gradient in `inputMeta` */
  constructor(autogradId: bigint, to: WorkerId, edges: readonly (Edge | null)[], inputMeta: readonly InputMeta[]) {
    super(edges, inputMeta)
    this.autogradId = autogradId
    this.to = to
  }

  get name(): string {
    return 'SendRpcBackward'
  }

  /** Gradients that came in a message are nobody else's: a leaf may keep them, and what is used up goes back to the heap. */
  override get returnsFresh(): boolean {
    return true
  }

  /** The gradients of a pass come as this node's inputs, not as state of the node, so that passes which run at once do not share them. */
  apply(grads: readonly (Tensor | null)[]): readonly (Tensor | null)[] {
    return grads
  }
}
