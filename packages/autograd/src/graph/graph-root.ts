/**
 * Where a pass begins: a node without inputs that returns the roots' gradients, so that roots are delivered like any other gradient (several
 * roots may meet in one node). PyTorch: `GraphRoot` in `torch/csrc/autograd/functions/basic_ops.h`.
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
