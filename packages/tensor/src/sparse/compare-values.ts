/**
 * A total order of tensors of one shape and dtype by their bits: where the order of a sum must be fixed and nothing else tells its terms apart
 * (autograd's Note [Causal order]). The first elements that differ decide, in logical order; two tensors are equal exactly when all of their bits are.
 */

import type { Tensor } from '../tensor/tensor.js'
import type { TypedArray } from '../values/dtype.js'
import { isSparse } from './sparse-tensor.js'

/**
 * Negative if a comes before b, positive if after, 0 if they have the same bits. Numbers ascend, -0 before 0, NaNs last, by their bits. Sparse rows come before
 * dense elements, and go by indices first. Reads elements: on a device that computes late, what lies there now.
 */
export function compareValues(a: Tensor, b: Tensor): number {
  if (isSparse(a) && isSparse(b)) return compareElements(a.indices(), b.indices()) || compareElements(a.values(), b.values())
  if (a.isSparse || b.isSparse) return Number(b.isSparse) - Number(a.isSparse)
  return compareElements(a, b)
}

/** Below it a view of the bytes costs more than the elements. */
const BYTEWISE_MIN = 64

/** Of two that begin alike, the shorter comes first. */
function compareElements(a: Tensor, b: Tensor): number {
  const common = Math.min(a.numel, b.numel)
  const [x, y] = [a.storage.host, b.storage.host]
  // Calls with the same arguments leave the same gradients, so two equal ones are no rare case.
  const isDense = a.isContiguous && b.isContiguous
  if (isDense && common >= BYTEWISE_MIN && bytesOf(a, common).equals(bytesOf(b, common))) return a.numel - b.numel
  const [placeA, placeB] = isDense ? [null, null] : [placesOf(a), placesOf(b)]
  for (let i = 0; i < common; i++) {
    const p = placeA === null ? a.offset + i : placeA()
    const q = placeB === null ? b.offset + i : placeB()
    const u = x[p] as number
    const v = y[q] as number
    if (u < v) return -1
    if (u > v) return 1
    if (u === v && (u !== 0 || Object.is(u, v))) continue
    const order = compareOdd(x, p, y, q)
    if (order !== 0) return order
  }
  return a.numel - b.numel
}

function bytesOf({ storage: { host: array }, offset }: Tensor, elements: number): Buffer {
  const size = array.BYTES_PER_ELEMENT
  return Buffer.from(array.buffer, array.byteOffset + offset * size, elements * size)
}

/** Of two zeros, or where at least one is NaN. */
function compareOdd(x: TypedArray, p: number, y: TypedArray, q: number): number {
  const [u, v] = [x[p] as number, y[q] as number]
  if (u === 0 && v === 0) return Number(Object.is(v, -0)) - Number(Object.is(u, -0))
  const nans = Number(Number.isNaN(u)) - Number(Number.isNaN(v))
  if (nans !== 0) return nans
  const [a, b] = [words(x, p), words(y, q)]
  for (let i = a.length - 1; i >= 0; i--) if (a[i] !== b[i]) return (a[i] as number) - (b[i] as number)
  return 0
}

/** The bits of an element. */
function words(array: TypedArray, at: number): Uint8Array {
  const size = array.BYTES_PER_ELEMENT
  return new Uint8Array(array.buffer, array.byteOffset + at * size, size)
}

/** Where the elements lie in the storage, one after the other in logical order. */
function placesOf({ shape, strides, offset, isContiguous }: Tensor): () => number {
  let at = offset - 1
  if (isContiguous) return () => ++at
  const index = new Array<number>(shape.length).fill(0)
  let next = offset
  return () => {
    const now = next
    for (let d = shape.length - 1; d >= 0; d--) {
      next += strides[d]!
      index[d]!++
      if (index[d]! < shape[d]!) break
      next -= strides[d]! * shape[d]!
      index[d] = 0
    }
    return now
  }
}
