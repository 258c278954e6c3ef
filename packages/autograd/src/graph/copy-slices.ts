/**
 * The history of a tensor after a write into a view of it: that of the written value for the view's elements, and the old history for all
 * others. See Note [Views and writes] in `views.ts`. PyTorch: `CopySlices` in `torch/csrc/autograd/functions/tensor.h`.
 */
import type { Tensor } from '@postgrad/tensor'
import type { Grads } from './hooks.js'
import { type Edge, type InputMeta, Node } from './node.js'
import { type ViewPath, viewAlong } from './views.js'

export class CopySlices extends Node {
  private readonly path: ViewPath

  /** @param edges of the base as it was, of what was written */
  constructor(path: ViewPath, edges: readonly [Edge | null, Edge | null], base: InputMeta) {
    super(edges, [base])
    this.path = path
  }

  get name(): string {
    return 'CopySlices'
  }

  /** The gradient for the base is a copy with zeros in it, the one for what was written a view of g. */
  override get returnsFresh(): boolean {
    return true
  }

  apply([g]: Grads): Grads {
    if (g === null || g === undefined) return []
    // Dense first: a view of a dense base need not be one of a gradient with other strides.
    const written: Tensor = viewAlong(this.path, g.contiguous())
    if (this.nextEdges[0] === null) return [null, written]
    const rest = g.clone()
    viewAlong(this.path, rest).zero_()
    return [rest, this.nextEdges[1] === null ? null : written]
  }
}
