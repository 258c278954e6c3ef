/** Element-wise functions of one tensor. Those that only exist for real numbers turn int32 and bool into float32 first. */

import { to } from '../raw/copy.js'
import { notOnBool, realUnary, unaryKernel } from '../raw/elementwise.js'
import { rawOperations } from '../raw/operations.js'
import { promoteNumber } from '../raw/promotion.js'
import type { Tensor } from '../tensor/tensor.js'
import { invalidArgument } from '../values/errors.js'
import { primitive, type WithInPlace } from './define/define.js'
import { constant, numeric, real, rounding } from './define/elementwise.js'
import { formula } from './define/formula.js'
import { inverseErf } from './parts/inverse-erf.js'
import { gradient, slope } from './parts/slopes.js'

/**
 * −x of each element. PyTorch: `torch.neg`.
 * @throws DTYPE_MISMATCH if x is bool
 * @example tensor([1, -2]).neg() // [-1, 2]
 */
export const neg: WithInPlace<(x: Tensor) => Tensor> = numeric('neg', [], (g, _, ops) => ops.neg(g)) // −g

/**
 * The absolute value of each element; int32 stays int32. PyTorch: `torch.abs`.
 * @throws DTYPE_MISMATCH if x is bool
 * @example tensor([-3, 0, 2]).abs() // [3, 0, 2]
 */
export const abs: WithInPlace<(x: Tensor) => Tensor> = numeric('abs', ['a'], (g, s, ops) => ops.mul(g, ops.sign(s.a))) // g · sign a

/**
 * −1, 0 or 1 for each element, in the dtype of x. PyTorch: `torch.sign`.
 * @example tensor([-3, 0, 2]).sign() // [-1, 0, 1]
 */
export const sign: WithInPlace<(x: Tensor) => Tensor> = primitive('sign', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => unaryKernel('sign', x, 0, 0),
  grad: constant,
})

/**
 * eˣ of each element. int32 and bool become float32. PyTorch: `torch.exp`.
 * @example tensor([0, 1]).exp() // [1, 2.7183]
 */
export const exp: WithInPlace<(x: Tensor) => Tensor> = real('exp', ['result'], (g, s, ops) => ops.mul(g, s.result)) // g · eᵃ

/**
 * The natural logarithm of each element. int32 and bool become float32. PyTorch: `torch.log`.
 * @example tensor([1, 10, 0]).log() // [0, 2.3026, -Infinity]
 */
export const log: WithInPlace<(x: Tensor) => Tensor> = real('log', ['a'], (g, s, ops) => ops.div(g, s.a)) // g / a

/**
 * The square root of each element; NaN if the element is negative. int32 and bool become float32. PyTorch: `torch.sqrt`.
 * @example tensor([4, 2, -1]).sqrt() // [2, 1.4142, NaN]
 */
export const sqrt: WithInPlace<(x: Tensor) => Tensor> = real('sqrt', ['result'], (g, s, ops) => ops.div(g, ops.mul(s.result, 2))) // g / (2 √a)

/**
 * The sine of each element, in radians. int32 and bool become float32. PyTorch: `torch.sin`.
 * @example tensor([0, Math.PI / 6]).sin() // [0, 0.5]
 */
export const sin: WithInPlace<(x: Tensor) => Tensor> = real('sin', ['a'], (g, s, ops) => ops.mul(g, ops.cos(s.a))) // g · cos a

/**
 * The cosine of each element, in radians. int32 and bool become float32. PyTorch: `torch.cos`.
 * @example tensor([0, Math.PI / 3]).cos() // [1, 0.5]
 */
export const cos: WithInPlace<(x: Tensor) => Tensor> = real('cos', ['a'], (g, s, ops) => ops.neg(ops.mul(g, ops.sin(s.a)))) // −g · sin a

/**
 * The tangent of each element, in radians. int32 and bool become float32. PyTorch: `torch.tan`.
 * @example tensor([0, Math.PI / 4]).tan() // [0, 1]
 */
export const tan: WithInPlace<(x: Tensor) => Tensor> = real('tan', ['result'], (g, s, ops) =>
  // g (1 + y²)
  ops.mul(g, ops.add(ops.mul(s.result, s.result), 1)),
)

/**
 * The hyperbolic tangent of each element. int32 and bool become float32. PyTorch: `torch.tanh`.
 * @example tensor([-1, 0, 100]).tanh() // [-0.7616, 0, 1]
 */
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

/**
 * The hyperbolic sine of each element. int32 and bool become float32. PyTorch: `torch.sinh`.
 * @example tensor([-1, 0, 1]).sinh() // [-1.1752, 0, 1.1752]
 */
export const sinh: WithInPlace<(x: Tensor) => Tensor> = real('sinh', ['a'], (g, s, ops) => ops.mul(g, ops.cosh(s.a)))

/**
 * The hyperbolic cosine of each element. int32 and bool become float32. PyTorch: `torch.cosh`.
 * @example tensor([-1, 0, 1]).cosh() // [1.5431, 1, 1.5431]
 */
export const cosh: WithInPlace<(x: Tensor) => Tensor> = real('cosh', ['a'], (g, s, ops) => ops.mul(g, ops.sinh(s.a)))

/**
 * The arc sine of each element, in radians; NaN if the element is not in [−1, 1]. int32 and bool become float32. PyTorch: `torch.asin`.
 * @example tensor([-1, 0.5, 2]).asin() // [-1.5708, 0.5236, NaN]
 */
export const asin: WithInPlace<(x: Tensor) => Tensor> = real('asin', ['a'], (g, s, ops) =>
  // g / √(1 − a²)
  ops.mul(g, ops.rsqrt(ops.sub(1, ops.mul(s.a, s.a)))),
)

/**
 * The arc cosine of each element, in radians; NaN if the element is not in [−1, 1]. int32 and bool become float32. PyTorch: `torch.acos`.
 * @example tensor([-1, 0.5, 2]).acos() // [3.1416, 1.0472, NaN]
 */
export const acos: WithInPlace<(x: Tensor) => Tensor> = real('acos', ['a'], (g, s, ops) =>
  ops.neg(ops.mul(g, ops.rsqrt(ops.sub(1, ops.mul(s.a, s.a))))),
)

/**
 * The arc tangent of each element, in radians. int32 and bool become float32. PyTorch: `torch.atan`.
 * @example tensor([-1, 0, Infinity]).atan() // [-0.7854, 0, 1.5708]
 */
export const atan: WithInPlace<(x: Tensor) => Tensor> = real('atan', ['a'], (g, s, ops) => ops.div(g, ops.add(ops.mul(s.a, s.a), 1))) // g / (1 + a²)

/**
 * The error function of each element. int32 and bool become float32. PyTorch: `torch.erf`.
 * @example tensor([-1, 0, 0.5]).erf() // [-0.8427, 0, 0.5205]
 */
export const erf: WithInPlace<(x: Tensor) => Tensor> = real('erf', ['a'], (g, s, ops) =>
  // g · 2/√π · exp(−a²)
  ops.mul(ops.mul(g, 2 / Math.sqrt(Math.PI)), ops.exp(ops.neg(ops.mul(s.a, s.a)))),
)

/**
 * The inverse of `erf`: ±Infinity at −1 and 1, NaN outside of [−1, 1]. int32 and bool become float32. PyTorch: `torch.erfinv`, whose float64 loses digits near
 * ±1; here every result is within a few units in the last place.
 * @example tensor([-1, 0, 0.5]).erfinv() // [-Infinity, 0, 0.4769]
 */
export const erfinv: WithInPlace<(x: Tensor) => Tensor> = primitive('erfinv', {
  args: ['tensor'],
  inPlace: true,
  raw: inverseErf,
  // g · √π/2 · exp(y²)
  grad: formula(['result'], (g, s, ops) => ops.mul(ops.mul(g, Math.sqrt(Math.PI) / 2), ops.exp(ops.mul(s.result, s.result)))),
})

/**
 * 1 / x of each element. int32 and bool become float32. PyTorch: `torch.reciprocal`.
 * @example tensor([4, -0.5]).reciprocal() // [0.25, -2]
 */
export const reciprocal: WithInPlace<(x: Tensor) => Tensor> = real('reciprocal', ['result'], (g, s, ops) =>
  // −g y²
  ops.neg(ops.mul(g, ops.mul(s.result, s.result))),
)

/**
 * 1 / √x of each element. int32 and bool become float32. PyTorch: `torch.rsqrt`.
 * @example tensor([4, 0.25]).rsqrt() // [0.5, 2]
 */
export const rsqrt: WithInPlace<(x: Tensor) => Tensor> = real('rsqrt', ['result'], (g, s, ops) =>
  // −g y³ / 2
  ops.mul(ops.mul(g, -0.5), ops.mul(s.result, ops.mul(s.result, s.result))),
)

/**
 * x² of each element; int32 stays int32, and bool becomes int32. PyTorch: `torch.square`.
 * @example tensor([-3, 0.5]).square() // [9, 0.25]
 */
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

/**
 * log(1 + x) of each element, accurate near 0. int32 and bool become float32. PyTorch: `torch.log1p`.
 * @example tensor([0, 1, -1]).log1p() // [0, 0.6931, -Infinity]
 */
export const log1p: WithInPlace<(x: Tensor) => Tensor> = real('log1p', ['a'], (g, s, ops) => ops.div(g, ops.add(s.a, 1))) // g / (a + 1)

/**
 * eˣ − 1 of each element, accurate near 0. int32 and bool become float32. PyTorch: `torch.expm1`.
 * @example tensor([0, 1, -Infinity]).expm1() // [0, 1.7183, -1]
 */
export const expm1: WithInPlace<(x: Tensor) => Tensor> = real('expm1', ['result'], (g, s, ops) => ops.mul(g, ops.add(s.result, 1))) // g (y + 1)

/**
 * The logarithm to base 2 of each element. int32 and bool become float32. PyTorch: `torch.log2`.
 * @example tensor([8, 0.5]).log2() // [3, -1]
 */
export const log2: WithInPlace<(x: Tensor) => Tensor> = real('log2', ['a'], (g, s, ops) => ops.div(g, ops.mul(s.a, Math.LN2))) // g / (a ln 2)

/**
 * The logarithm to base 10 of each element. int32 and bool become float32. PyTorch: `torch.log10`.
 * @example tensor([1000, 0.01]).log10() // [3, -2]
 */
export const log10: WithInPlace<(x: Tensor) => Tensor> = real('log10', ['a'], (g, s, ops) => ops.div(g, ops.mul(s.a, Math.LN10)))

/**
 * 2ˣ of each element. int32 and bool become float32. PyTorch: `torch.exp2`.
 * @example tensor([3, -1]).exp2() // [8, 0.5]
 */
export const exp2: WithInPlace<(x: Tensor) => Tensor> = real('exp2', ['result'], (g, s, ops) => ops.mul(ops.mul(g, s.result), Math.LN2)) // g y ln 2

/**
 * Each element rounded towards −∞; int32 stays int32. PyTorch: `torch.floor`.
 * @throws DTYPE_MISMATCH if x is bool
 * @example tensor([1.5, -1.5]).floor() // [1, -2]
 */
export const floor: WithInPlace<(x: Tensor) => Tensor> = rounding('floor')

/**
 * Each element rounded towards ∞; int32 stays int32. PyTorch: `torch.ceil`.
 * @throws DTYPE_MISMATCH if x is bool
 * @example tensor([1.5, -1.5]).ceil() // [2, -1]
 */
export const ceil: WithInPlace<(x: Tensor) => Tensor> = rounding('ceil')

/**
 * Each element rounded to the nearest integer, and halves to the even one; int32 stays int32. PyTorch: `torch.round`.
 * @throws DTYPE_MISMATCH if x is bool
 * @example tensor([0.5, 1.5, 2.5]).round() // [0, 2, 2]: halves go to the even number
 */
export const round: WithInPlace<(x: Tensor) => Tensor> = rounding('round')

/**
 * Each element rounded towards 0; int32 stays int32. PyTorch: `torch.trunc`.
 * @throws DTYPE_MISMATCH if x is bool
 * @example tensor([1.5, -1.5]).trunc() // [1, -1]
 */
export const trunc: WithInPlace<(x: Tensor) => Tensor> = rounding('trunc')

/**
 * Each element kept between `min` and `max`. One of the two may be null or left out, which means without that bound. At a bound the gradient is 1. PyTorch:
 * `torch.clamp`.
 * @throws INVALID_ARGUMENT if neither `min` nor `max` is given
 * @example tensor([-2, 0.5, 9]).clamp(0, 1) // [0, 0.5, 1]
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
