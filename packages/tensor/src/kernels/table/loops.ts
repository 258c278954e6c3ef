/**
 * Plain loops over flat buffers, under the reference backend: arithmetic written out (so that each compiles for its own operation), and
 * generic strided walks that take the operation as a function. For float32, +, −, ×, ÷ and √ computed in double and rounded once on
 * storing are the correctly rounded float32 results: the same bits as SIMD kernels give.
 */
import type { TypedArray } from '../../values/dtype.js'
import type { Dims } from './table.js'

export type Scalar1 = (x: number, p0: number, p1: number) => number
export type Scalar2 = (a: number, b: number) => number

export function addFlat(
  n: number,
  a: TypedArray,
  ao: number,
  as: number,
  b: TypedArray,
  bo: number,
  bs: number,
  out: TypedArray,
  oo: number,
) {
  for (let i = 0; i < n; i++) out[oo + i] = a[ao + i * as]! + b[bo + i * bs]!
}

export function subFlat(
  n: number,
  a: TypedArray,
  ao: number,
  as: number,
  b: TypedArray,
  bo: number,
  bs: number,
  out: TypedArray,
  oo: number,
) {
  for (let i = 0; i < n; i++) out[oo + i] = a[ao + i * as]! - b[bo + i * bs]!
}

/** Not for int32 (products beyond 2^53 lose their low bits) or bool. */
export function mulFlat(
  n: number,
  a: TypedArray,
  ao: number,
  as: number,
  b: TypedArray,
  bo: number,
  bs: number,
  out: TypedArray,
  oo: number,
) {
  for (let i = 0; i < n; i++) out[oo + i] = a[ao + i * as]! * b[bo + i * bs]!
}

export function divFlat(
  n: number,
  a: TypedArray,
  ao: number,
  as: number,
  b: TypedArray,
  bo: number,
  bs: number,
  out: TypedArray,
  oo: number,
) {
  for (let i = 0; i < n; i++) out[oo + i] = a[ao + i * as]! / b[bo + i * bs]!
}

/** float32: alpha and the product are rounded to float32 before the sum, as a kernel without fused multiply-add does. */
export function axpyFlat32(n: number, alpha: number, x: TypedArray, xo: number, xs: number, out: TypedArray, oo: number) {
  const scale = Math.fround(alpha)
  for (let i = 0; i < n; i++) out[oo + i] = out[oo + i]! + Math.fround(scale * x[xo + i * xs]!)
}

/** Not for a conversion to bool. */
export function copyFlat(n: number, x: TypedArray, xo: number, out: TypedArray, oo: number) {
  // Below some 32 elements a loop beats the set-up of a bulk copy.
  if (n < 32 || x.constructor !== out.constructor) for (let i = 0; i < n; i++) out[oo + i] = x[xo + i]!
  else out.set(x.subarray(xo, xo + n), oo)
}

export function fillFlat(n: number, value: number, out: TypedArray, oo: number) {
  out.fill(value, oo, oo + n)
}

export function unaryFlat(f: Scalar1, n: number, x: TypedArray, xo: number, out: TypedArray, oo: number, p0: number, p1: number) {
  for (let i = 0; i < n; i++) out[oo + i] = f(x[xo + i]!, p0, p1)
}

export function binaryFlat(
  f: Scalar2,
  n: number,
  a: TypedArray,
  ao: number,
  as: number,
  b: TypedArray,
  bo: number,
  bs: number,
  out: TypedArray,
  oo: number,
) {
  for (let i = 0; i < n; i++) out[oo + i] = f(a[ao + i * as]!, b[bo + i * bs]!)
}

/** out dense; both dense in `out` and any strides in x. */
export function unaryStrided(
  f: Scalar1,
  shape: Dims,
  x: TypedArray,
  xo: number,
  xs: Dims,
  out: TypedArray,
  oo: number,
  p0: number,
  p1: number,
) {
  const walk = new Walk(shape)
  const { inner } = walk
  const step = walk.innerStep(xs)
  for (let o = 0; o < walk.outer; o++) {
    for (let i = 0; i < inner; i++) out[oo + o * inner + i] = f(x[xo + i * step]!, p0, p1)
    xo += walk.delta(xs)
    walk.next()
  }
}

/** out = f(a, b), all strided. */
export function binaryStrided(
  f: Scalar2,
  shape: Dims,
  a: TypedArray,
  ao: number,
  as: Dims,
  b: TypedArray,
  bo: number,
  bs: Dims,
  out: TypedArray,
  oo: number,
  os: Dims,
) {
  const walk = new Walk(shape)
  const { inner } = walk
  const aStep = walk.innerStep(as)
  const bStep = walk.innerStep(bs)
  const oStep = walk.innerStep(os)
  for (let o = 0; o < walk.outer; o++) {
    for (let i = 0; i < inner; i++) out[oo + i * oStep] = f(a[ao + i * aStep]!, b[bo + i * bStep]!)
    ao += walk.delta(as)
    bo += walk.delta(bs)
    oo += walk.delta(os)
    walk.next()
  }
}

/** out = f(x), both strided; x may have another dtype. */
export function copyStrided(
  f: (x: number) => number,
  shape: Dims,
  x: TypedArray,
  xo: number,
  xs: Dims,
  out: TypedArray,
  oo: number,
  os: Dims,
) {
  const walk = new Walk(shape)
  const { inner } = walk
  const xStep = walk.innerStep(xs)
  const oStep = walk.innerStep(os)
  for (let o = 0; o < walk.outer; o++) {
    for (let i = 0; i < inner; i++) out[oo + i * oStep] = f(x[xo + i * xStep]!)
    xo += walk.delta(xs)
    oo += walk.delta(os)
    walk.next()
  }
}

/**
 * The outer dimensions of a strided loop: `outer` rounds, each over `inner` elements of the last dimension. In each round ask `delta` of
 * every operand how far its offset moves to the next round, then call `next`.
 */
export class Walk {
  readonly outer: number
  readonly inner: number
  private readonly shape: Dims
  private readonly index: number[]
  private readonly last: number

  constructor(shape: Dims) {
    const ndim = shape.length
    this.shape = shape
    this.last = ndim - 2
    this.inner = ndim === 0 ? 1 : shape[ndim - 1]!
    let outer = 1
    for (let d = 0; d < ndim - 1; d++) outer *= shape[d]!
    this.outer = this.inner === 0 ? 0 : outer
    this.index = new Array<number>(Math.max(ndim - 1, 0)).fill(0)
  }

  innerStep(strides: Dims): number {
    return strides.length === 0 ? 0 : strides[strides.length - 1]!
  }

  /** How far an operand's offset moves from this round to the next. */
  delta(strides: Dims): number {
    let sum = 0
    for (let d = this.last; d >= 0; d--) {
      if (this.index[d]! + 1 < this.shape[d]!) return sum + strides[d]!
      sum -= strides[d]! * (this.shape[d]! - 1)
    }
    return sum
  }

  next(): void {
    for (let d = this.last; d >= 0; d--) {
      if (++this.index[d]! < this.shape[d]!) return
      this.index[d] = 0
    }
  }
}
