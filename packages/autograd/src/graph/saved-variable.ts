/**
 * A tensor that a derivative will read later, with the version that its storage had. If something wrote to it in between, the gradient would be
 * silently wrong; reading it back throws instead. PyTorch: `torch/csrc/autograd/saved_variable.h`.
 */
import { PostgradError } from '@postgrad/base'
import { Tensor } from '@postgrad/tensor'
import { OPTIMIZER_STEP } from '@postgrad/tensor/internal'
import { writtenAt } from './anomaly.js'
import { VariableMeta } from './variable.js'

/** Replaces a tensor that is not kept but can be made again. */
export interface Packed {
  /** @param op as for `SavedVariable.unpack` */
  unpack(op: string): Tensor
  release(): void
}

/** Sees every variable that is saved while it is in force, and may keep something else in its place. PyTorch: saved tensor hooks. */
export interface Packer {
  /** null: the tensor is kept. */
  pack(variable: SavedVariable, tensor: Tensor): Packed | null
}

/**
 * The packer in force. It is set for the length of a synchronous call, so nothing of another worker, scope or turn of the event loop ever runs under it,
 * and asking for it costs nothing where a look at the scope would cost as much as a saved variable.
 */
let packer: Packer | null = null

/** Runs `fn`, to which `next` is the packer (null: none). */
export function withPacker<T>(next: Packer | null, fn: () => T): T {
  const before = packer
  packer = next
  try {
    return fn()
  } finally {
    packer = before
  }
}

export class SavedVariable {
  private tensor: Tensor | null
  private readonly version: number
  /** The tensor's slot for autograd at that time: `detach_()` puts another there. */
  private meta: Tensor['autograd']
  private packed: Packed | null

  constructor(tensor: Tensor) {
    this.packed = packer === null ? null : packer.pack(this, tensor)
    this.version = tensor.storage.version
    const kept = this.packed === null
    this.tensor = kept ? tensor : null
    if (kept) tensor.storage.saves++
    this.meta = kept ? tensor.autograd : null
  }

  /** Whether it keeps a tensor alive. */
  get keepsTensor(): boolean {
    return this.tensor !== null
  }

  /**
   * The tensor as it was saved, with its history.
   * @param op name of the node that reads it, for the message
   * @throws GRAPH_FREED, SAVED_VARIABLE_MODIFIED
   */
  unpack(op: string): Tensor {
    const { tensor, version, meta } = this
    if (tensor === null) {
      if (this.packed === null) throw graphFreed(op)
      return this.packed.unpack(op)
    }
    if (tensor.storage.version !== version) throw modified(op, tensor, version)
    if (tensor.autograd !== meta && meta !== null && meta.gradFn !== null) {
      const saved = Tensor.view(tensor, tensor.shape, tensor.strides, tensor.offset)
      saved.autograd = meta
      return saved
    }
    return tensor
  }

  /** One that has the same tensor as a leaf; itself if that was written to, so that `unpack` says so. */
  withoutHistory(): SavedVariable {
    const { tensor } = this
    if (tensor === null || tensor.storage.version !== this.version) return this
    const leaf = tensor.detach()
    // No `requiresGrad_`, which would keep the storage for good: nobody else sees this leaf.
    if (tensor.requiresGrad) leaf.autograd = new VariableMeta(true, null, 0)
    return new SavedVariable(leaf)
  }

  release(): void {
    if (this.tensor !== null) this.tensor.storage.saves--
    this.tensor = null
    this.meta = null
    if (this.packed !== null) {
      this.packed.release()
      this.packed = null
    }
  }
}

export function graphFreed(op: string): PostgradError {
  return new PostgradError('GRAPH_FREED', {
    op,
    message: 'its saved tensors were freed by an earlier backward pass through this graph',
    remedy:
      'If a step uses a tensor of an earlier step, such as a hidden state, detach() it. If two losses share a graph, pass retainGraph: true to every backward but the last, or run the forward pass again.',
  })
}

const AFTER_STEP =
  'If the loss still reaches an earlier step, detach() the state that one step hands to the next (retainGraph does not help). Otherwise step when no pass over the parameter is under way, here or of another trainer: let trainers take one step at a time, or sum their gradients and step once for all (asyncExecution, as the parameter-server example does).'

function modified(op: string, tensor: Tensor, version: number): PostgradError {
  const { version: found, writer } = tensor.storage
  return new PostgradError('SAVED_VARIABLE_MODIFIED', {
    op,
    expected: `a tensor of shape [${tensor.shape.join(', ')}] that it needs for its gradient at version ${version}`,
    got: `version ${found}: ${writer ?? 'an in-place operation'} has written to it${writtenAt(tensor.storage)}`,
    remedy:
      writer === OPTIMIZER_STEP
        ? AFTER_STEP
        : 'Write to a clone() of the tensor, use the operation that is not in place, or write after backward.',
    values: { shape: [...tensor.shape], expectedVersion: version, foundVersion: found, writer },
  })
}
