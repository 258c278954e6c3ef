/**
 * A tensor that a derivative will read later, with the version that its storage had. If something wrote to it in between, the gradient would be
 * silently wrong; reading it back throws instead. PyTorch: `torch/csrc/autograd/saved_variable.h`.
 */
import { PostgradError } from '@postgrad/base'
import { Tensor } from '@postgrad/tensor'

export class SavedVariable {
  private tensor: Tensor | null
  private readonly version: number
  private readonly meta: Tensor['autograd']

  constructor(tensor: Tensor) {
    this.tensor = tensor
    this.version = tensor.storage.version
    this.meta = tensor.autograd
  }

  /**
   * The tensor as it was saved, with its history.
   * @param op name of the node that reads it, for the message
   * @throws GRAPH_FREED, SAVED_VARIABLE_MODIFIED
   */
  unpack(op: string): Tensor {
    const { tensor, version, meta } = this
    if (tensor === null) throw graphFreed(op)
    if (tensor.storage.version !== version) throw modified(op, tensor, version)
    if (tensor.autograd !== meta && meta !== null && meta.gradFn !== null) {
      // `detach_()` took its history since.
      const saved = Tensor.view(tensor, tensor.shape, tensor.strides, tensor.offset)
      saved.autograd = meta
      return saved
    }
    return tensor
  }

  release(): void {
    this.tensor = null
  }
}

export function graphFreed(op: string): PostgradError {
  return new PostgradError('GRAPH_FREED', {
    op,
    message: 'its saved tensors were freed by an earlier backward pass through this graph',
    remedy: 'Pass retainGraph: true to every backward but the last, or run the forward pass again.',
  })
}

function modified(op: string, tensor: Tensor, version: number): PostgradError {
  const found = tensor.storage.version
  return new PostgradError('SAVED_VARIABLE_MODIFIED', {
    op,
    expected: `a tensor of shape [${tensor.shape.join(', ')}] that it needs for its gradient at version ${version}`,
    got: `version ${found}: an in-place operation has written to it`,
    remedy: 'Write to a clone() of the tensor, use the operation that is not in place, or write after backward.',
    values: { shape: [...tensor.shape], expectedVersion: version, foundVersion: found },
  })
}
