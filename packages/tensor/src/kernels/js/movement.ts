/**
 * Copies, conversions and fills of the js backend. Neighbour: `indexed.ts`, movement by indices. The gpu.js kernels take both from here: to move bytes
 * through a kernel compiler and back could only add copies.
 */
import type { ArrayOf, DType, TypedArray } from '../../values/dtype.js'
import type { Row2 } from '../elementwise/loops.js'
import type { ArrayKernelTable, CopyKernel, Dims, FillKernel } from '../table/table.js'
import { each } from './cells.js'
import { denseStrides, walk2 } from './walk.js'

export const copyF32: Row2<Float32Array, Float32Array> = (n, x, xo, xs, out, oo, os) => {
  if (xs === 1 && os === 1 && n >= BULK_FROM) out.set(x.subarray(xo, xo + n), oo)
  else for (let i = 0; i < n; i++) out[oo + i * os] = x[xo + i * xs]!
}
/** Between any dtypes; to int32 truncates. Not to bool. */
export const copyAny: Row2<TypedArray, TypedArray> = (n, x, xo, xs, out, oo, os) => {
  if (xs === 1 && os === 1 && n >= BULK_FROM && x.constructor === out.constructor) out.set(x.subarray(xo, xo + n), oo)
  else for (let i = 0; i < n; i++) out[oo + i * os] = x[xo + i * xs]!
}
/** Below this a loop beats the two views of a bulk copy. */
export const BULK_FROM = 48

const toBool: Row2<TypedArray, Uint8Array> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = x[xo + i * xs] !== 0 ? 1 : 0
}

/** Between two float32 arrays by a loop that compiles for them alone. */
export function copyKernel<D extends DType>(dtype: D): CopyKernel<ArrayOf[D]> {
  const row = (dtype === 'bool' ? toBool : copyAny) as Row2<TypedArray, ArrayOf[D]>
  const fast = copyF32 as unknown as Row2<TypedArray, ArrayOf[D]>
  const single = dtype === 'float32'
  const same = copyAny as Row2<TypedArray, ArrayOf[D]>
  // Of two arrays of bytes the first is bool as well: 0 and 1 already.
  const isBool = dtype === 'bool'
  const pick = (x: TypedArray) => (single && x.constructor === Float32Array ? fast : isBool && x.constructor === Uint8Array ? same : row)
  return {
    flat: (n, x, xo, out, oo) => pick(x)(n, x, xo, 1, out, oo, 1),
    strided: (shape, x, xo, xStrides, out, oo, outStrides) => walk2(pick(x), shape, x, xo, xStrides, out, oo, outStrides),
  }
}

export function fillKernel<D extends DType>(dtype: D): FillKernel<ArrayOf[D]> {
  const convert = (value: number) => (dtype !== 'bool' ? value : value !== 0 ? 1 : 0)
  return {
    flat(n, value, out, oo) {
      out.fill(convert(value), oo, oo + n)
    },
    strided(shape, value, out, oo, outStrides) {
      const v = convert(value)
      const row: Row2<ArrayOf[D], ArrayOf[D]> = (n, _x, _xo, _xs, out, oo, os) => {
        if (os === 1) out.fill(v, oo, oo + n)
        else for (let i = 0; i < n; i++) out[oo + i * os] = v
      }
      walk2(row, shape, out, oo, outStrides, out, oo, outStrides)
    },
  }
}

/** A dense float32 copy of a strided view, for kernels that take dense inputs alone. */
export function gathered(shape: Dims, x: Float32Array, xo: number, xStrides: Dims): Float32Array {
  let n = 1
  for (let d = 0; d < shape.length; d++) n *= shape[d]!
  const out = new Float32Array(n)
  walk2(copyF32, shape, x, xo, xStrides, out, 0, denseStrides(shape))
  return out
}

export const cells = {
  copy: each(copyKernel),
  fill: each(fillKernel),
} as Pick<ArrayKernelTable, 'copy' | 'fill'>
