/**
 * One bucket of the reducer: gradients of some parameters that are reduced at once. `bucket-assignment.ts` decides which, and `reducer.ts` when.
 *
 *     in one buffer   [ g9 | g8 | g7 ]                 what hooks ask for: gradients are copied into it, and means out of it, or gradientAsBucketView lets them lie
 *     in place        g9   [ g8 | g7 ]                 large gradients where they lie, the small ones in a buffer: large ones are not copied at all
 *     sparse          rows                             of one parameter, not in place
 *
 * The same ones are large on all ranks. A gradient is reduced in place only if this pass has made it and no other tensor has its memory; others are copied.
 */
import { allReduce, allReduceCoalesced, type ProcessGroup } from '@postgrad/process-group'
import { SparseTensor, tensor } from '@postgrad/tensor'
import { BYTES_PER_ELEMENT, binaryScalarInto, copyInto, isSparse, markShared, raw, Tensor, toDense, wrote } from '@postgrad/tensor/internal'
import { viewsOf } from './grad-bucket.js'

/** A parameter that requires a gradient. */
export interface ReducedParameter {
  readonly name: string
  readonly value: Tensor
  /** Its gradients are sparse. */
  readonly isSparse: boolean
}

/** From so many bytes on a gradient is large: a tensor more in a message costs as much as copying some ten KiB. */
const LARGE_BYTES = 64 * 1024

export class Bucket {
  /** Numbers of its parameters, in the order of their gradients. */
  readonly numbers: readonly number[]
  readonly values: readonly Tensor[]
  /** [n]: of all gradients, or of the small ones; null: there are none. */
  readonly flat: Tensor | null
  /** How many gradients are missing. */
  pending: number
  /** Its reduction, while one is under way. */
  work: PromiseLike<unknown> | null = null
  readonly isSparse: boolean
  /** Of each parameter: its place in `flat`; null: it is large. */
  private readonly views: (Tensor | null)[]
  /** Of each parameter that is large, or sparse: what is reduced. */
  private readonly parts: (Tensor | null)[]
  /** Of those whose `.grad` lies in `flat` and is not this pass's: what was there. */
  private readonly before = new Map<number, Tensor>()

  /** `inOneBuffer`: large ones, too. */
  constructor(numbers: readonly number[], parameters: readonly ReducedParameter[], inOneBuffer: boolean) {
    const members = numbers.map((i) => parameters[i]!)
    this.numbers = numbers
    this.pending = numbers.length
    this.values = members.map(({ value }) => value)
    this.isSparse = members[0]!.isSparse
    const isFlat = (value: Tensor): boolean => !this.isSparse && (inOneBuffer || bytesOf(value) < LARGE_BYTES)
    const small = this.values.filter(isFlat)
    this.flat =
      small.length === 0
        ? null
        : Tensor.empty(small[0]!.dtype, [small.reduce((sum, { numel }) => sum + numel, 0)], small[0]!.storage.memory)
    // Made in a forward pass, perhaps inside of a memoryScope.
    if (this.flat !== null) this.flat.storage.isKept = true
    const views = this.flat === null ? [] : viewsOf(this.flat, small)
    this.views = this.values.map((value) => (isFlat(value) ? views.shift()! : null))
    this.parts = this.values.map(() => null)
  }

  /** Waits for all gradients of an iteration. */
  begin(): void {
    this.pending = this.numbers.length
    this.work = null
    this.parts.fill(null)
    this.before.clear()
  }

  /** `.grad` that lies in `flat` moves out of it: a pass comes whose gradients are not `.grad`. */
  freeGrads(): void {
    for (const [k, value] of this.values.entries()) {
      const view = this.views[k]!
      if (view !== null && value.grad !== null && isSame(value.grad, view)) value.grad = raw.clone(view)
    }
  }

  /** Takes the gradient of its k-th parameter, times `factor` if it is dense; null is 0. `isOurs`: this pass has given it, and it may be written to. */
  fill(k: number, grad: Tensor | null, factor: number, isOurs: boolean): void {
    const value = this.values[k]!
    if (this.isSparse) {
      this.parts[k] = grad === null ? zeroRows(value) : isSparse(grad) ? grad : allRows(grad)
      return
    }
    const dense = grad === null ? null : isSparse(grad) ? toDense(grad) : grad
    const view = this.views[k]!
    if (!isOurs && dense !== null && view !== null && isSame(dense, view)) this.before.set(k, raw.clone(dense))
    const into = view ?? (dense !== null && isOurs && isAlone(dense) ? dense : Tensor.empty(value.dtype, value.shape, value.storage.memory))
    this.parts[k] = into
    into.storage.prepareWrite()
    if (dense === null) raw.fill_(into, 0)
    else if (factor !== 1) binaryScalarInto('mul', dense.isContiguous ? dense : raw.contiguous(dense), factor, into)
    else if (!isSame(dense, into)) copyInto(dense.isContiguous ? dense : raw.contiguous(dense), into)
    wrote('allReduce', into)
    markShared(into)
  }

  /** Adds up the gradients of all ranks. `take` needs the result. */
  allReduce(group: ProcessGroup): PromiseLike<unknown> {
    if (this.isSparse) return allReduce(this.parts[0]!, { group })
    const large = this.parts.filter((_, k) => this.views[k] === null) as Tensor[]
    if (large.length === 0) return allReduce(this.flat!, { group })
    return allReduceCoalesced(this.flat === null ? large : [this.flat, ...large], { group })
  }

  /** Takes `allReduce`'s or a hook's result. */
  take(reduced: unknown): void {
    if (this.isSparse) this.parts[0] = reduced as SparseTensor
    else if (Array.isArray(reduced) || reduced === this.flat) return
    else {
      this.flat!.storage.prepareWrite()
      raw.copy_(this.flat!, raw.reshape(reduced as Tensor, this.flat!.shape))
    }
  }

  /** The mean of its k-th parameter: a part of `flat`, or a tensor that is nobody else's, or what was there before. */
  mean(k: number): { readonly tensor: Tensor; readonly isView: boolean } {
    const view = this.views[k]!
    return { tensor: view ?? this.parts[k]!, isView: view !== null }
  }

  /** Nobody has used its k-th parameter, whose `.grad` is as it was. */
  restore(k: number): void {
    const before = this.before.get(k)
    if (before !== undefined) raw.copy_(this.views[k]!, before)
  }

  /** Of its gradients; 0 of sparse ones. */
  get bytes(): number {
    return this.isSparse ? 0 : this.values.reduce((sum, value) => sum + bytesOf(value), 0)
  }

  /** It is not needed any more. Its views may be somebody's `.grad`. */
  drop(): void {
    if (this.flat !== null) this.flat.storage.isKept = false
  }
}

const bytesOf = ({ dtype, numel }: Tensor): number => numel * BYTES_PER_ELEMENT[dtype]

/** Whether no other tensor can lie in its memory, but views on it. */
const isAlone = ({ isContiguous, offset, numel, storage }: Tensor): boolean => isContiguous && offset === 0 && storage.length === numel

function zeroRows({ dtype, shape, storage }: Tensor): SparseTensor {
  return new SparseTensor(Tensor.empty('int32', [0], storage.memory), Tensor.empty(dtype, [0, ...shape.slice(1)], storage.memory), shape)
}

/** Of a table that a pass has used as a dense matrix too. */
function allRows(grad: Tensor): SparseTensor {
  return new SparseTensor(tensor(Int32Array.from({ length: grad.shape[0]! }, (_, row) => row)), raw.clone(grad), grad.shape)
}

export function scaled(rows: SparseTensor, factor: number): SparseTensor {
  return new SparseTensor(rows.indices(), raw.mul(rows.values(), factor), rows.shape)
}

export const isSame = (a: Tensor, b: Tensor): boolean => a.storage === b.storage && a.offset === b.offset
