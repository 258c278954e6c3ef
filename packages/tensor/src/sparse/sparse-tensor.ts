/**
 * Sparse rows: the gradient of an embedding of which few rows were used. A SparseTensor passes as a tensor of its full shape through
 * autograd, into `.grad` and the optimizers that know it; operations on elements, which it does not have, refuse it and name the remedy. PyTorch:
 * `torch.sparse_coo_tensor` with one sparse dimension. Nobody writes to its parts, so they may be shared.
 */
import { PostgradError } from '@postgrad/base'
import { Storage } from '../heap/storage.js'
import { checkedIndices } from '../raw/indices.js'
import { Tensor } from '../tensor/tensor.js'
import { shapeMismatch, shapeText } from '../values/errors.js'
import { contiguousStrides, numelOf, type Shape } from '../values/shape.js'

/**
 * A tensor that stores only some of its rows: the gradient of an embedding with `sparse: true`. Operations on elements fail with SPARSE_TENSOR; `toDense`
 * converts it. PyTorch: `torch.sparse_coo_tensor` with one sparse dimension.
 * @example toDense(new SparseTensor(tensor([2, 0]), tensor([[1, 1], [5, 5]]), [3, 2])) // [[5, 5], [0, 0], [1, 1]]
 */
export class SparseTensor extends Tensor {
  declare private readonly rows: Tensor
  declare private readonly elements: Tensor
  declare private readonly unique: boolean

  /**
   * @param indices int32 [nnz], rows of `shape`; may repeat: then their values add up
   * @param values [nnz, …shape without its first extent]
   * @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
   */
  constructor(indices: Tensor, values: Tensor, shape: Shape, unique = false) {
    const expected = [indices.numel, ...shape.slice(1)]
    if (shape.length === 0 || indices.shape.length !== 1 || values.shape.join() !== expected.join()) {
      throw shapeMismatch(
        'SparseTensor',
        `indices [nnz] and values ${shapeText(['nnz', ...shape.slice(1)] as never)} for the shape ${shapeText(shape)}`,
        `${shapeText(indices.shape)} and ${shapeText(values.shape)}`,
        'One row of values belongs to each index.',
      )
    }
    super(withoutElements(values), shape, contiguousStrides(shape), 0, numelOf(shape), true)
    this.rows = checkedIndices('SparseTensor', indices, shape[0]!)
    this.elements = values
    this.unique = unique
  }

  /** Always true. */
  override get isSparse(): true {
    return true
  }

  /** How many rows are stored. An index that is stored twice counts twice. */
  get nnz(): number {
    return this.rows.numel
  }

  /** Whether the indices ascend and none occurs twice. */
  get isCoalesced(): boolean {
    return this.unique
  }

  /** The indices of the stored rows: int32 [nnz]. */
  indices(): Tensor {
    return this.rows
  }

  /** The stored rows, one for each index: [nnz, …]. */
  values(): Tensor {
    return this.elements
  }

  /** Returns the tensor itself: a sparse tensor has no history. */
  override detach(): Tensor {
    return this
  }

  override toString(): string {
    return `tensor(indices=${this.rows}, values=${this.elements}, shape=${shapeText(this.shape)}, sparse)`
  }
}

/** A storage of the dtype whose elements cannot be had. */
function withoutElements(values: Tensor): Storage {
  const storage = new Storage(values.dtype, null, 0, values.storage.memory)
  Object.defineProperty(storage, 'host', { get: refuse })
  return storage
}

function refuse(): never {
  throw new PostgradError('SPARSE_TENSOR', {
    op: 'tensor',
    expected: 'a tensor with all of its elements',
    got: 'sparse rows (a gradient of an embedding with sparse: true)',
    remedy: 'Convert it with toDense(), or use its indices() and values().',
  })
}

export function isSparse(x: Tensor): x is SparseTensor {
  return x.isSparse
}
