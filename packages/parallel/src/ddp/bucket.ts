/**
 * One bucket of the reducer: the gradients of some parameters, one behind the other in one buffer, which is reduced at once. `bucket-assignment.ts` says whose, and
 * `reducer.ts` when. A parameter whose gradients are sparse has a bucket of its own, which has no buffer.
 */
import { SparseTensor, tensor } from '@postgrad/tensor'
import { binaryScalarInto, copyInto, isSparse, raw, Tensor, toDense, wrote } from '@postgrad/tensor/internal'
import { viewsOf } from './grad-bucket.js'

/** A parameter that requires a gradient. */
export interface ReducedParameter {
  readonly name: string
  readonly value: Tensor
  /** Its gradients are sparse. */
  readonly isSparse: boolean
}

export class Bucket {
  /** Numbers of its parameters, in the order of their gradients in `flat`. */
  readonly numbers: readonly number[]
  /** [n]; null: that of one sparse gradient. */
  readonly flat: Tensor | null
  /** Of each parameter, in `flat`. */
  readonly views: readonly Tensor[]
  readonly values: readonly Tensor[]
  /** How many gradients are missing. */
  pending: number
  /** In the place of `flat`. */
  sparse: Tensor | null = null
  /** Its reduction, while one is under way. */
  work: PromiseLike<Tensor> | null = null

  constructor(numbers: readonly number[], parameters: readonly ReducedParameter[]) {
    const members = numbers.map((i) => parameters[i]!)
    this.numbers = numbers
    this.pending = numbers.length
    this.values = members.map(({ value }) => value)
    const isDense = !members[0]!.isSparse
    this.flat = isDense ? Tensor.empty(this.values[0]!.dtype, [this.values.reduce((sum, { numel }) => sum + numel, 0)]) : null
    // Made in a forward pass, perhaps inside of a memoryScope.
    if (this.flat !== null) this.flat.storage.isKept = true
    this.views = this.flat === null ? [] : viewsOf(this.flat, this.values)
  }

  /** Waits for all gradients of an iteration. */
  begin(): void {
    this.pending = this.numbers.length
    this.sparse = null
    this.work = null
  }

  /** Puts the gradient of its k-th parameter, times `factor` if it is dense, into its place; null is 0. */
  fill(k: number, grad: Tensor | null, factor: number): void {
    const { flat } = this
    if (flat === null) {
      const parameter = this.values[k]!
      this.sparse = grad === null ? zeroRows(parameter) : isSparse(grad) ? grad : allRows(grad)
      return
    }
    const view = this.views[k]!
    flat.storage.prepareWrite()
    if (grad === null) {
      raw.fill_(view, 0)
      return
    }
    const dense = isSparse(grad) ? toDense(grad) : grad
    if (factor !== 1) binaryScalarInto('mul', dense.isContiguous ? dense : raw.contiguous(dense), factor, view)
    else if (!isSame(dense, view)) copyInto(dense.isContiguous ? dense : raw.contiguous(dense), view)
    wrote('allReduce', view)
  }

  /** As if no parameter had a gradient. */
  fillZeros(): void {
    if (this.flat === null) this.sparse = zeroRows(this.values[0]!)
    else {
      this.flat.storage.prepareWrite()
      raw.fill_(this.flat, 0)
    }
  }

  /** What it holds. */
  get contents(): Tensor {
    return this.flat ?? this.sparse!
  }

  /** Takes over what a hook has given, if that is another tensor. */
  take(reduced: Tensor): void {
    const { flat } = this
    if (flat === null || reduced === flat) return
    flat.storage.prepareWrite()
    raw.copy_(flat, raw.reshape(reduced, flat.shape))
  }

  /** Bytes of its buffer; 0 of a sparse one. */
  get bytes(): number {
    return this.flat === null ? 0 : this.flat.numel * this.flat.storage.array.BYTES_PER_ELEMENT
  }

  /** It is not needed any more. Its views may be somebody's `.grad`. */
  drop(): void {
    if (this.flat !== null) this.flat.storage.isKept = false
  }
}

function zeroRows({ dtype, shape }: Tensor): SparseTensor {
  return new SparseTensor(Tensor.empty('int32', [0]), Tensor.empty(dtype, [0, ...shape.slice(1)]), shape)
}

/** Of a table that a pass has used as a dense matrix too. */
function allRows(grad: Tensor): SparseTensor {
  return new SparseTensor(tensor(Int32Array.from({ length: grad.shape[0]! }, (_, row) => row)), raw.clone(grad), grad.shape)
}

export function scaled(rows: SparseTensor, factor: number): SparseTensor {
  return new SparseTensor(rows.indices(), raw.mul(rows.values(), factor), rows.shape)
}

export const isSame = (a: Tensor, b: Tensor): boolean => a.storage === b.storage && a.offset === b.offset
