/**
 * The first node of a pass. It has no inputs and returns the roots' gradients, so the engine delivers them like any others (several roots
 * may lead to one node). PyTorch: `GraphRoot` in `torch/csrc/autograd/functions/basic_ops.h`.
 */
import type { Tensor } from '@postgrad/tensor'
import { type Edge, Node } from './node.js'

export class GraphRoot extends Node {
  private readonly grads: readonly Tensor[]

  constructor(edges: readonly Edge[], grads: readonly Tensor[]) {
    super(edges, [])
    this.grads = grads
  }

  get name(): string {
    return 'GraphRoot'
  }

  apply(): readonly Tensor[] {
    return this.grads
  }
}
