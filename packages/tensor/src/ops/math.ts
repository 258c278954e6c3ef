/** Element-wise functions of one tensor. Those that only exist for real numbers turn int32 and bool into float32 first. */

import { to } from '../raw/copy.js'
import { gradient } from '../raw/derivative.js'
import { notOnBool, numericUnary, realUnary, unaryKernel } from '../raw/elementwise.js'
import { rounding } from '../raw/math.js'
import { rawOperations } from '../raw/operations.js'
import { promoteNumber } from '../raw/promotion.js'
import { Tensor } from '../tensor/tensor.js'
import { invalidArgument } from '../values/errors.js'
import { primitive, type WithInPlace } from './define/define.js'
import { formula, ofTensor } from './define/formula.js'
import { inverseErf } from './parts/inverse-erf.js'
import { slope } from './parts/slopes.js'

/** −x of each element. PyTorch: `torch.neg`. @throws DTYPE_MISMATCH for bool */
export const neg: WithInPlace<(x: Tensor) => Tensor> = primitive('neg', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => numericUnary('neg', x),
  // −g
  grad: formula([], (g, _, ops) => ops.neg(g)),
})

/** The absolute value of each element; int32 stays, bool is refused. PyTorch: `torch.abs`. @throws DTYPE_MISMATCH */
export const abs: WithInPlace<(x: Tensor) => Tensor> = primitive('abs', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => numericUnary('abs', x),
  // g · sign a
  grad: ofTensor(['a'], (g, s, ops) => ops.mul(g, ops.sign(s.a))),
})

/** −1, 0 or 1 for each element; int32 and bool stay. PyTorch: `torch.sign`. */
export const sign: WithInPlace<(x: Tensor) => Tensor> = primitive('sign', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => unaryKernel('sign', x, 0, 0),
  // 0 wherever it is differentiable
  grad: formula([], (g) => Tensor.empty(g.dtype, g.shape, g.storage.memory)),
})

/** eˣ of each element. int32 and bool become float32. PyTorch: `torch.exp`. */
export const exp: WithInPlace<(x: Tensor) => Tensor> = primitive('exp', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('exp', x),
  // g · eᵃ
  grad: formula(['result'], (g, s, ops) => ops.mul(g, s.result)),
})

/** The natural logarithm of each element. int32 and bool become float32. PyTorch: `torch.log`. */
export const log: WithInPlace<(x: Tensor) => Tensor> = primitive('log', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('log', x),
  // g / a
  grad: formula(['a'], (g, s, ops) => ops.div(g, s.a)),
})

/** The square root of each element, NaN of negative ones. int32 and bool become float32. PyTorch: `torch.sqrt`. */
export const sqrt: WithInPlace<(x: Tensor) => Tensor> = primitive('sqrt', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('sqrt', x),
  // g / (2 √a)
  grad: formula(['result'], (g, s, ops) => ops.div(g, ops.mul(s.result, 2))),
})

/** The sine of each element, in radians. int32 and bool become float32. PyTorch: `torch.sin`. */
export const sin: WithInPlace<(x: Tensor) => Tensor> = primitive('sin', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('sin', x),
  // g · cos a
  grad: ofTensor(['a'], (g, s, ops) => ops.mul(g, ops.cos(s.a))),
})

/** The cosine of each element, in radians. int32 and bool become float32. PyTorch: `torch.cos`. */
export const cos: WithInPlace<(x: Tensor) => Tensor> = primitive('cos', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('cos', x),
  // −g · sin a
  grad: ofTensor(['a'], (g, s, ops) => ops.neg(ops.mul(g, ops.sin(s.a)))),
})

/** The tangent of each element, in radians. int32 and bool become float32. PyTorch: `torch.tan`. */
export const tan: WithInPlace<(x: Tensor) => Tensor> = primitive('tan', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('tan', x),
  // g (1 + y²)
  grad: formula(['result'], (g, s, ops) => ops.mul(g, ops.add(ops.mul(s.result, s.result), 1))),
})

/** The hyperbolic tangent of each element. int32 and bool become float32. PyTorch: `torch.tanh`. */
export const tanh: WithInPlace<(x: Tensor) => Tensor> = primitive('tanh', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('tanh', x),
  // g · (1 − tanh² a)
  grad: slope(
    'result',
    (g, y) => gradient('tanhBackward', g, y, 0, 0),
    (g, y, ops) => ops.mul(g, ops.sub(1, ops.mul(y, y))),
  ),
})

/** The hyperbolic sine of each element. int32 and bool become float32. PyTorch: `torch.sinh`. */
export const sinh: WithInPlace<(x: Tensor) => Tensor> = primitive('sinh', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('sinh', x),
  grad: ofTensor(['a'], (g, s, ops) => ops.mul(g, ops.cosh(s.a))),
})

/** The hyperbolic cosine of each element. int32 and bool become float32. PyTorch: `torch.cosh`. */
export const cosh: WithInPlace<(x: Tensor) => Tensor> = primitive('cosh', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('cosh', x),
  grad: ofTensor(['a'], (g, s, ops) => ops.mul(g, ops.sinh(s.a))),
})

/** The arc sine of each element, in radians; NaN outside of [−1, 1]. int32 and bool become float32. PyTorch: `torch.asin`. */
export const asin: WithInPlace<(x: Tensor) => Tensor> = primitive('asin', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('asin', x),
  // g / √(1 − a²)
  grad: formula(['a'], (g, s, ops) => ops.mul(g, ops.rsqrt(ops.sub(1, ops.mul(s.a, s.a))))),
})

/** The arc cosine of each element, in radians; NaN outside of [−1, 1]. int32 and bool become float32. PyTorch: `torch.acos`. */
export const acos: WithInPlace<(x: Tensor) => Tensor> = primitive('acos', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('acos', x),
  grad: formula(['a'], (g, s, ops) => ops.neg(ops.mul(g, ops.rsqrt(ops.sub(1, ops.mul(s.a, s.a)))))),
})

/** The arc tangent of each element, in radians. int32 and bool become float32. PyTorch: `torch.atan`. */
export const atan: WithInPlace<(x: Tensor) => Tensor> = primitive('atan', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('atan', x),
  // g / (1 + a²)
  grad: formula(['a'], (g, s, ops) => ops.div(g, ops.add(ops.mul(s.a, s.a), 1))),
})

/** The error function of each element. int32 and bool become float32. PyTorch: `torch.erf`. */
export const erf: WithInPlace<(x: Tensor) => Tensor> = primitive('erf', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('erf', x),
  // g · 2/√π · exp(−a²)
  grad: formula(['a'], (g, s, ops) => ops.mul(ops.mul(g, 2 / Math.sqrt(Math.PI)), ops.exp(ops.neg(ops.mul(s.a, s.a))))),
})

/**
 * The inverse of `erf` on [−1, 1], ±Infinity at the ends; NaN outside. int32 and bool become float32. PyTorch: `torch.erfinv`, whose float64 loses digits
 * near ±1; here all are within a few units in the last place.
 */
export const erfinv: WithInPlace<(x: Tensor) => Tensor> = primitive('erfinv', {
  args: ['tensor'],
  inPlace: true,
  raw: inverseErf,
  // g · √π/2 · exp(y²)
  grad: formula(['result'], (g, s, ops) => ops.mul(ops.mul(g, Math.sqrt(Math.PI) / 2), ops.exp(ops.mul(s.result, s.result)))),
})

/** 1 / x of each element. int32 and bool become float32. PyTorch: `torch.reciprocal`. */
export const reciprocal: WithInPlace<(x: Tensor) => Tensor> = primitive('reciprocal', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('reciprocal', x),
  // −g y²
  grad: formula(['result'], (g, s, ops) => ops.neg(ops.mul(g, ops.mul(s.result, s.result)))),
})

/** 1 / √x of each element. int32 and bool become float32. PyTorch: `torch.rsqrt`. */
export const rsqrt: WithInPlace<(x: Tensor) => Tensor> = primitive('rsqrt', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('rsqrt', x),
  // −g y³ / 2
  grad: formula(['result'], (g, s, ops) => ops.mul(ops.mul(g, -0.5), ops.mul(s.result, ops.mul(s.result, s.result)))),
})

/** x² of each element; int32 stays, bool becomes int32. PyTorch: `torch.square`. */
export const square: WithInPlace<(x: Tensor) => Tensor> = primitive('square', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => {
    const factor = x.dtype === 'bool' ? to(x, 'int32') : x
    return rawOperations.mul(factor, factor)
  },
  // 2 g a
  grad: formula(['a'], (g, s, ops) => ops.mul(g, ops.mul(s.a, 2))),
})

/** log(1 + x) of each element, exact near 0. int32 and bool become float32. PyTorch: `torch.log1p`. */
export const log1p: WithInPlace<(x: Tensor) => Tensor> = primitive('log1p', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('log1p', x),
  // g / (a + 1)
  grad: formula(['a'], (g, s, ops) => ops.div(g, ops.add(s.a, 1))),
})

/** eˣ − 1 of each element, exact near 0. int32 and bool become float32. PyTorch: `torch.expm1`. */
export const expm1: WithInPlace<(x: Tensor) => Tensor> = primitive('expm1', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('expm1', x),
  // g (y + 1)
  grad: formula(['result'], (g, s, ops) => ops.mul(g, ops.add(s.result, 1))),
})

/** The logarithm to base 2 of each element. int32 and bool become float32. PyTorch: `torch.log2`. */
export const log2: WithInPlace<(x: Tensor) => Tensor> = primitive('log2', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('log2', x),
  // g / (a ln 2)
  grad: formula(['a'], (g, s, ops) => ops.div(g, ops.mul(s.a, Math.LN2))),
})

/** The logarithm to base 10 of each element. int32 and bool become float32. PyTorch: `torch.log10`. */
export const log10: WithInPlace<(x: Tensor) => Tensor> = primitive('log10', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('log10', x),
  grad: formula(['a'], (g, s, ops) => ops.div(g, ops.mul(s.a, Math.LN10))),
})

/** 2ˣ of each element. int32 and bool become float32. PyTorch: `torch.exp2`. */
export const exp2: WithInPlace<(x: Tensor) => Tensor> = primitive('exp2', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('exp2', x),
  // g y ln 2
  grad: formula(['result'], (g, s, ops) => ops.mul(ops.mul(g, s.result), Math.LN2)),
})

/** The next integer below each element; int32 stays. PyTorch: `torch.floor`. @throws DTYPE_MISMATCH for bool */
export const floor: WithInPlace<(x: Tensor) => Tensor> = primitive('floor', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => rounding('floor', x),
  grad: formula([], (g) => Tensor.empty(g.dtype, g.shape, g.storage.memory)),
})

/** The next integer above each element; int32 stays. PyTorch: `torch.ceil`. @throws DTYPE_MISMATCH for bool */
export const ceil: WithInPlace<(x: Tensor) => Tensor> = primitive('ceil', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => rounding('ceil', x),
  grad: formula([], (g) => Tensor.empty(g.dtype, g.shape, g.storage.memory)),
})

/** The nearest integer of each element, halves to the even one; int32 stays. PyTorch: `torch.round`. @throws DTYPE_MISMATCH for bool */
export const round: WithInPlace<(x: Tensor) => Tensor> = primitive('round', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => rounding('round', x),
  grad: formula([], (g) => Tensor.empty(g.dtype, g.shape, g.storage.memory)),
})

/** Each element without its fraction; int32 stays. PyTorch: `torch.trunc`. @throws DTYPE_MISMATCH for bool */
export const trunc: WithInPlace<(x: Tensor) => Tensor> = primitive('trunc', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => rounding('trunc', x),
  grad: formula([], (g) => Tensor.empty(g.dtype, g.shape, g.storage.memory)),
})

/**
 * Each element kept within [min, max]; null or undefined is no bound, one is needed. The gradient at a bound is 1. PyTorch: `torch.clamp`. @throws
 * INVALID_ARGUMENT
 */
export const clamp: WithInPlace<(x: Tensor, min?: number | null, max?: number | null) => Tensor> = primitive('clamp', {
  args: ['tensor', 'number??', 'number??'],
  inPlace: true,
  raw: (x, min, max) => {
    notOnBool('clamp', x)
    if (min == null && max == null) throw invalidArgument('clamp', 'at least one of min and max', 'neither')
    let dtype = x.dtype
    if (min != null) dtype = promoteNumber(dtype, min)
    if (max != null) dtype = promoteNumber(dtype, max)
    return unaryKernel('clamp', to(x, dtype), min ?? Number.NEGATIVE_INFINITY, max ?? Number.POSITIVE_INFINITY)
  },
  // g where min ≤ a ≤ max
  grad: formula(['a'], (g, s, ops) => {
    const [min, max] = s.attrs
    const above = min === undefined || min === null ? g : ops.where(ops.ge(s.a, min), g, 0)
    return max === undefined || max === null ? above : ops.where(ops.le(s.a, max), above, 0)
  }),
})
