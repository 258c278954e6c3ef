/**
 * Rows of plain arithmetic, one function per operation: the js backend's, and the wasm backend's where staging for SIMD costs more than the work.
 * float32 has functions of its own, so that they compile for Float32Array alone. Same bits as the SIMD kernels: for
 * +, -, ×, ÷ and √ a double result that is rounded to float32 is the correctly rounded one.
 */
import type { ArrayOf, TypedArray } from '../../values/dtype.js'
import type { Row2, Row3 } from './walk.js'

type F32 = ArrayOf['float32']
type Wide = Float64Array | Int32Array

export const addF32: Row3<F32, F32, F32> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! + b[bo + i * bs]!
}
export const subF32: Row3<F32, F32, F32> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! - b[bo + i * bs]!
}
export const mulF32: Row3<F32, F32, F32> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! * b[bo + i * bs]!
}
export const divF32: Row3<F32, F32, F32> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! / b[bo + i * bs]!
}
export const maximumF32: Row3<F32, F32, F32> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.max(a[ao + i * as]!, b[bo + i * bs]!)
}
export const minimumF32: Row3<F32, F32, F32> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.min(a[ao + i * as]!, b[bo + i * bs]!)
}

export const addWide: Row3<Wide, Wide, Wide> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! + b[bo + i * bs]!
}
export const subWide: Row3<Wide, Wide, Wide> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! - b[bo + i * bs]!
}
export const mulWide: Row3<Wide, Wide, Wide> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! * b[bo + i * bs]!
}
export const divWide: Row3<Wide, Wide, Wide> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! / b[bo + i * bs]!
}
export const maximumWide: Row3<Wide, Wide, Wide> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.max(a[ao + i * as]!, b[bo + i * bs]!)
}
export const minimumWide: Row3<Wide, Wide, Wide> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.min(a[ao + i * as]!, b[bo + i * bs]!)
}

/** Products of int32 wrap around at 32 bits; `*` would lose their low bits beyond 2^53. */
export const mulI32: Row3<Int32Array, Int32Array, Int32Array> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.imul(a[ao + i * as]!, b[bo + i * bs]!)
}

export const negF32: Row2<F32, F32> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = -x[xo + i * xs]!
}
export const absF32: Row2<F32, F32> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.abs(x[xo + i * xs]!)
}
export const sqrtF32: Row2<F32, F32> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.sqrt(x[xo + i * xs]!)
}
export const reluF32: Row2<F32, F32> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.max(x[xo + i * xs]!, 0)
}

export const negWide: Row2<Wide, Wide> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = -x[xo + i * xs]!
}
export const absWide: Row2<Wide, Wide> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.abs(x[xo + i * xs]!)
}
export const sqrtWide: Row2<Wide, Wide> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.sqrt(x[xo + i * xs]!)
}
export const reluWide: Row2<Wide, Wide> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = Math.max(x[xo + i * xs]!, 0)
}

export const copyF32: Row2<F32, F32> = (n, x, xo, xs, out, oo, os) => {
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
