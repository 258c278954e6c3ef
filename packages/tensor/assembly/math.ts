/**
 * Polynomial exp, log, tanh and sigmoid on four float32 lanes, and sin and cos on one; the other kernels build on them.
 *
 * Error bounds (held by `wasm/numerics.test.ts` over all exponents, in units of the last place of the result): exp 1, log 1, tanh 1.5,
 * sigmoid 2.5, sin and cos 0.51; where a result is denormal, one more. Every multiplication and addition rounds to float32 (no fused multiply-add), so that all machines
 * give the same bits. Coefficients: Cephes (Moshier), `expf`, `logf`, `tanhf`; sin and cos: FreeBSD msun `__sindf`, `__cosdf`.
 */

const LOG2E: f32 = 1.44269504088896341
const ROUNDER: f32 = 12582912
const LN2_HIGH: f32 = 0.693359375
const LN2_LOW: f32 = -2.12194440e-4

// @ts-ignore: decorator
@inline function splat(x: f32): v128 {
  return f32x4.splat(x)
}

/** a · x + b */
// @ts-ignore: decorator
@inline function madd(a: v128, x: v128, b: f32): v128 {
  return f32x4.add(f32x4.mul(a, x), splat(b))
}

/** Overflows to infinity above 88.73, is denormal below -87.34, zero below -103.98; NaN stays NaN. */
// @ts-ignore: decorator
@inline export function exp4(input: v128): v128 {
  // Beyond these bounds the result is infinity or zero whatever the input; within them 2^n can be built from two normal factors.
  // pmax and pmin are one instruction each, and give their first operand when it is NaN.
  const x = f32x4.pmin(f32x4.pmax(input, splat(-105)), splat(90))
  // Adding 1.5 · 2^23 rounds to an integer, which then stands in the low bits of the sum.
  const shifted = f32x4.add(f32x4.mul(x, splat(LOG2E)), splat(ROUNDER))
  const n = f32x4.sub(shifted, splat(ROUNDER))
  const k = i32x4.sub(shifted, splat(ROUNDER))
  const r = f32x4.sub(f32x4.sub(x, f32x4.mul(n, splat(LN2_HIGH))), f32x4.mul(n, splat(LN2_LOW)))
  let p = madd(splat(1.9875691500e-4), r, 1.3981999507e-3)
  p = madd(p, r, 8.3334519073e-3)
  p = madd(p, r, 4.1665795894e-2)
  p = madd(p, r, 1.6666665459e-1)
  p = madd(p, r, 5.0000001201e-1)
  p = f32x4.add(f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), r), splat(1))
  const half = i32x4.shr_s(k, 1)
  const bias = i32x4.splat(127)
  const scale1 = i32x4.shl(i32x4.add(half, bias), 23)
  const scale2 = i32x4.shl(i32x4.add(i32x4.sub(k, half), bias), 23)
  return f32x4.mul(f32x4.mul(p, scale1), scale2)
}

/** -infinity at ±0, NaN below, infinity at infinity; denormal inputs are exact. */
// @ts-ignore: decorator
@inline export function log4(input: v128): v128 {
  const tiny = f32x4.lt(input, splat(1.17549435e-38))
  // A denormal is scaled by 2^25 first, so that its exponent can be read from its bits.
  const x = v128.bitselect(f32x4.mul(input, splat(33554432)), input, tiny)
  const bits = i32x4.sub(i32x4.shr_u(x, 23), v128.bitselect(i32x4.splat(126 + 25), i32x4.splat(126), tiny))
  let m = v128.or(v128.and(x, i32x4.splat(0x007fffff)), i32x4.splat(0x3f000000)) // mantissa in [0.5, 1)
  const low = f32x4.lt(m, splat(0.707106781186547524))
  const e = f32x4.convert_i32x4_s(i32x4.add(bits, low)) // the mask is -1 where it holds
  m = f32x4.sub(f32x4.add(m, v128.and(m, low)), splat(1))
  const z = f32x4.mul(m, m)
  let p = madd(splat(7.0376836292e-2), m, -1.1514610310e-1)
  p = madd(p, m, 1.1676998740e-1)
  p = madd(p, m, -1.2420140846e-1)
  p = madd(p, m, 1.4249322787e-1)
  p = madd(p, m, -1.6668057665e-1)
  p = madd(p, m, 2.0000714765e-1)
  p = madd(p, m, -2.4999993993e-1)
  p = madd(p, m, 3.3333331174e-1)
  p = f32x4.mul(f32x4.mul(p, m), z)
  p = f32x4.add(p, f32x4.mul(e, splat(LN2_LOW)))
  p = f32x4.sub(p, f32x4.mul(z, splat(0.5)))
  let r = f32x4.add(f32x4.add(m, p), f32x4.mul(e, splat(LN2_HIGH)))
  r = v128.bitselect(splat(-Infinity), r, f32x4.eq(input, splat(0)))
  r = v128.bitselect(splat(NaN), r, f32x4.lt(input, splat(0)))
  // Infinity and NaN answer themselves.
  return v128.bitselect(r, input, v128.or(f32x4.lt(input, splat(Infinity)), f32x4.lt(input, splat(0))))
}

/** Odd, ±1 from |x| = 9.02 on; -0 stays -0. */
// @ts-ignore: decorator
@inline export function tanh4(x: v128): v128 {
  const sign = v128.and(x, i32x4.splat(0x80000000))
  const a = f32x4.abs(x)
  const z = f32x4.mul(x, x)
  let p = madd(splat(-5.70498872745e-3), z, 2.06390887954e-2)
  p = madd(p, z, -5.37397155531e-2)
  p = madd(p, z, 1.33314422036e-1)
  p = madd(p, z, -3.33332819422e-1)
  const small = f32x4.add(f32x4.mul(f32x4.mul(p, z), x), x)
  const large = f32x4.sub(splat(1), f32x4.div(splat(2), f32x4.add(exp4(f32x4.add(a, a)), splat(1))))
  // The sign is that of x in both branches; the sum above loses it at -0.
  return v128.or(v128.bitselect(small, large, f32x4.lt(a, splat(0.625))), sign)
}

/** 1 / (1 + exp(-x)), as PyTorch: zero below -88.73. */
// @ts-ignore: decorator
@inline export function sigmoid4(x: v128): v128 {
  return f32x4.div(splat(1), f32x4.add(splat(1), exp4(f32x4.neg(x))))
}

/** The host's `Math.sin` and `Math.cos`, for arguments whose reduction needs more than 53 bits. */
@external('math', 'sin')
declare function hostSin(x: f64): f64
@external('math', 'cos')
declare function hostCos(x: f64): f64

// pi/2 in two parts: the first has 33 bits, so that n · PIO2_1 is exact for |n| < 2^20.
const PIO2_1: f64 = 1.57079631090164184570e0
const PIO2_1T: f64 = 1.58932547735281966916e-8
const INV_PIO2: f64 = 6.36619772367581382433e-1
/** Above this the two parts do not suffice. */
const REDUCIBLE: f64 = 1_000_000

/** sin on [-pi/4, pi/4], in double. */
// @ts-ignore: decorator
@inline function sinKernel(x: f64): f64 {
  const z = x * x
  const w = z * z
  const r = -1.98393348360966317347e-4 + z * 2.7183114939898219064e-6
  const s = z * x
  return x + s * (-1.66666666416265235595e-1 + z * 8.33332938588946317560e-3) + s * w * r
}

/** cos on [-pi/4, pi/4], in double. */
// @ts-ignore: decorator
@inline function cosKernel(x: f64): f64 {
  const z = x * x
  const w = z * z
  const r = -1.38867637746099294692e-3 + z * 2.43904487962774090654e-5
  return 1.0 + z * -4.99999997251031003120e-1 + w * 4.16666233237390631894e-2 + w * z * r
}

/** Quarter q of the circle: 0 sin, 1 cos, 2 -sin, 3 -cos. */
// @ts-ignore: decorator
@inline function quarter(x: f64, first: i32): f32 {
  const n = nearest(x * INV_PIO2)
  const r = x - n * PIO2_1 - n * PIO2_1T
  const q = (<i32>n + first) & 3
  const y = q & 1 ? cosKernel(r) : sinKernel(r)
  return <f32>(q & 2 ? -y : y)
}

// @ts-ignore: decorator
@inline export function sin1(x: f32): f32 {
  const d = <f64>x
  if (d == 0) return x // keeps -0
  return abs(d) < REDUCIBLE ? quarter(d, 0) : <f32>hostSin(d)
}

// @ts-ignore: decorator
@inline export function cos1(x: f32): f32 {
  const d = <f64>x
  return abs(d) < REDUCIBLE ? quarter(d, 1) : <f32>hostCos(d)
}
