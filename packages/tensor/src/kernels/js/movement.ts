/**
 * Copies, conversions and fills of the js backend. Neighbour: `indexed.ts`, movement by indices. The gpu.js kernels take both from here: to move bytes
 * through a kernel compiler and back could only add copies.
 */
import type { ArrayOf, DType, TypedArray } from '../../values/dtype.js'
import type { CopyKernel, Dims, FillKernel } from '../table/table.js'
import { copyAny, copyF32 } from './rows.js'
import { denseStrides, type Row2, walk2 } from './walk.js'

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
