/** Copies strided elements into a dense snapshot, for reads by the user. Kernels are not involved: a read is the same on every device. */
import type { TypedArray } from './dtype.js'
import type { Shape } from './shape.js'

/** A new array of `numel` elements in row-major order. */
export function snapshot(array: TypedArray, shape: Shape, strides: Shape, offset: number, numel: number, contiguous: boolean): TypedArray {
  if (contiguous) return array.slice(offset, offset + numel)
  const out = new (array.constructor as new (length: number) => TypedArray)(numel)
  const ndim = shape.length
  const index = new Array<number>(ndim).fill(0)
  let at = offset
  for (let i = 0; i < numel; i++) {
    out[i] = array[at]!
    for (let d = ndim - 1; d >= 0; d--) {
      at += strides[d]!
      if (++index[d]! < shape[d]!) break
      at -= strides[d]! * shape[d]!
      index[d] = 0
    }
  }
  return out
}

/** A number or boolean, or arrays of them within arrays, all of one length at each depth. */
export type NestedArray<T = number | boolean> = T | readonly NestedArray<T>[]

/** Dense elements as arrays within arrays, each as `element` has it; a 0-d shape gives the element itself. */
export function nest<T>(flat: ArrayLike<number>, shape: Shape, element: (value: number) => T): NestedArray<T> {
  let next = 0
  const build = (d: number): NestedArray<T> => {
    if (d === shape.length) return element(flat[next++]!)
    return Array.from({ length: shape[d]! }, () => build(d + 1))
  }
  return build(0)
}
