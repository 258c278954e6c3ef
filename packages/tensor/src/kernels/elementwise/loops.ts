/**
 * Loops of plain arithmetic, each compiled for one operation: for the js backend, and for wasm where staging for SIMD costs more than the work.
 * float32 has functions of its own, so that they compile for Float32Array alone. Same bits as the SIMD kernels: for
 * +, -, ×, ÷ and √ a double result that is rounded to float32 is the correctly rounded one. The definitions of this folder name them.
 */
import type { ArrayOf, TypedArray } from '../../values/dtype.js'

/** Elements at a step from each other, so that nothing is allocated for each row of a strided operand. */
type Run<A extends TypedArray> = [array: A, offset: number, step: number]
/** `p0` and `p1` are the operation's parameters. */
export type Row2<A extends TypedArray, O extends TypedArray> = (
  n: number,
  ...runs: [...x: Run<A>, ...out: Run<O>, p0: number, p1: number]
) => void
export type Row3<A extends TypedArray, B extends TypedArray, O extends TypedArray> = (
  n: number,
  ...runs: [...a: Run<A>, ...b: Run<B>, ...out: Run<O>]
) => void
/** out = f(g, x), dense, with step 0 or 1 for g. */
export type GradRow = (n: number, g: F32, go: number, gs: number, x: F32, xo: number, out: F32, oo: number) => void

type F32 = ArrayOf['float32']
type Wide = Float64Array | Int32Array
type Bools = Uint8Array

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

/** The logical or of bool elements, which are 0 or 1. */
export const either: Row3<Bools, Bools, Bools> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! | b[bo + i * bs]!
}
/** And. */
export const both: Row3<Bools, Bools, Bools> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! & b[bo + i * bs]!
}
export const differ: Row3<Bools, Bools, Bools> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! ^ b[bo + i * bs]!
}
export const agree: Row3<Bools, Bools, Bools> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! ^ b[bo + i * bs]! ^ 1
}

/** Gradients times slopes, with the roundings of the SIMD kernels. */
export const reluGradF32: GradRow = (n, g, go, gs, y, yo, out, oo) => {
  for (let i = 0; i < n; i++) out[oo + i] = y[yo + i]! <= 0 ? 0 : g[go + i * gs]!
}
export const tanhGradF32: GradRow = (n, g, go, gs, y, yo, out, oo) => {
  for (let i = 0; i < n; i++) {
    const v = y[yo + i]!
    out[oo + i] = g[go + i * gs]! * Math.fround(1 - Math.fround(v * v))
  }
}
export const sigmoidGradF32: GradRow = (n, g, go, gs, y, yo, out, oo) => {
  for (let i = 0; i < n; i++) {
    const v = y[yo + i]!
    out[oo + i] = g[go + i * gs]! * Math.fround(v * Math.fround(1 - v))
  }
}
