/**
 * The node of a leaf: where the gradient of a variable ends up. There is one per variable, however many operations use it, so that all
 * contributions meet in one InputBuffer. PyTorch: `torch/csrc/autograd/functions/accumulate_grad.h`.
 */
import assert from 'node:assert'
import type { Tensor } from '@postgrad/tensor'
import { HIGHEST_PRIORITY, Node } from './node.js'

export class AccumulateGrad extends Node {
  readonly variable: Tensor

  constructor(variable: Tensor) {
    super([], [{ shape: variable.shape, dtype: variable.dtype }], HIGHEST_PRIORITY)
    this.variable = variable
  }

  get name(): string {
    return 'AccumulateGrad'
  }

  /** The engine hands (variable, gradient) to the task's GradSink instead: where a gradient goes is the pass's business, not the leaf's. */
  apply(): never {
    assert.fail('AccumulateGrad is not applied: the engine gives its gradient to the GradSink')
  }
}
