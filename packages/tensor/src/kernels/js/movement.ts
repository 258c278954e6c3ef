/**
 * Copies, conversions and fills of the js backend. Neighbour: `indexed.ts`, movement by indices. The gpu.js kernels take both from here: to move bytes
 * through a kernel compiler and back could only add copies.
 */
import type { DType, TypedArray } from '../../values/dtype.js'
import type { Row2 } from '../elementwise/loops.js'
import type { Copy, Fill } from '../table/operands.js'
import { walk } from '../table/walk.js'
import { each } from './cells.js'
import { unaryRows } from './elementwise.js'

const copyF32: Row2<Float32Array, Float32Array> = (n, x, xo, xs, out, oo, os) => {
  if (xs === 1 && os === 1 && n >= BULK_FROM) out.set(x.subarray(xo, xo + n), oo)
  else for (let i = 0; i < n; i++) out[oo + i * os] = x[xo + i * xs]!
}
/** Between any dtypes; to int32 truncates. Not to bool. */
const copyAny: Row2<TypedArray, TypedArray> = (n, x, xo, xs, out, oo, os) => {
  if (xs === 1 && os === 1 && n >= BULK_FROM && x.constructor === out.constructor) out.set(x.subarray(xo, xo + n), oo)
  else for (let i = 0; i < n; i++) out[oo + i * os] = x[xo + i * xs]!
}
/** Below this a loop beats the two views of a bulk copy. */
export const BULK_FROM = 48

const toBool: Row2<TypedArray, Uint8Array> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = x[xo + i * xs] !== 0 ? 1 : 0
}

const [singles, values, truths] = [unaryRows(copyF32), unaryRows(copyAny), unaryRows(toBool)]
export const copy: Copy = (x, out) => {
  // Between two float32 arrays by a loop that compiles for them alone. A bool is 0 or 1 already.
  if (out.dtype === 'float32' && x.dtype === 'float32') singles(x, out, 0, 0)
  else if (out.dtype === 'bool' && x.dtype !== 'bool') truths(x, out, 0, 0)
  else values(x, out, 0, 0)
}

const fill = (dtype: DType): Fill => {
  const convert = (value: number) => (dtype !== 'bool' ? value : value !== 0 ? 1 : 0)
  return (value, out) => {
    const [v, to] = [convert(value), out.storage.host!]
    if (out.isContiguous) {
      to.fill(v, out.offset, out.offset + out.numel)
      return
    }
    // Elements that share their place get the same value: it is written once.
    const shape = out.shape.map((n, d) => (out.strides[d] === 0 ? Math.min(n, 1) : n))
    walk(shape, [{ ...out, shape }], (n, [at = 0], [step = 0]) => {
      if (step === 1) to.fill(v, at, at + n)
      else for (let i = 0; i < n; i++) to[at + i * step] = v
    })
  }
}

export const cells = { copy: each(() => copy), fill: each(fill) }
