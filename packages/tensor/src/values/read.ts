/** Copies strided elements into dense ones, for reads by the user and for messages. Without kernels: a read is the same on every device. */
import type { TypedArray } from './dtype.js'
import type { Shape } from './shape.js'

/** A new array of `numel` elements in row-major order. */
export function snapshot(array: TypedArray, shape: Shape, strides: Shape, offset: number, numel: number, contiguous: boolean): TypedArray {
  if (contiguous) return array.slice(offset, offset + numel)
  const out = new (array.constructor as new (length: number) => TypedArray)(numel)
  gather(array, shape, strides, offset, numel, out, 0)
  return out
}

/** Copies elements of any strides, 0 and negative ones included, to into[at …] in row-major order: an odometer over the shape, its innermost digit as a loop. */
export function gather(array: TypedArray, shape: Shape, strides: Shape, offset: number, numel: number, into: TypedArray, at: number): void {
  if (numel === 0) return
  const inner = shape.length - 1
  const length = shape[inner]!
  const stride = strides[inner]!
  const index = new Array<number>(inner).fill(0)
  let from = offset
  for (let to = at; ; ) {
    for (let i = 0; i < length; i++) into[to++] = array[from + i * stride]!
    let d = inner - 1
    for (; d >= 0; d--) {
      from += strides[d]!
      if (++index[d]! < shape[d]!) break
      from -= strides[d]! * shape[d]!
      index[d] = 0
    }
    if (d < 0) return
  }
}

/** A number or boolean, or nested arrays of them; at each depth all arrays have the same length. */
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
