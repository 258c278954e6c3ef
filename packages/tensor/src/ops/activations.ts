/** Activations, `torch.nn.functional`'s: of each element, or along a dimension; most are for real numbers only. */

import type { UnaryOp } from '../kernels/table/table.js'
import { numericUnary, realUnary, unaryKernel } from '../raw/elementwise.js'
import type { Tensor } from '../tensor/tensor.js'
import { invalidArgument } from '../values/errors.js'
import type { GeluOptions, SoftplusOptions } from '../values/options.js'
import { composite, type Ops, primitive, type WithInPlace } from './define/define.js'
import { formula } from './define/formula.js'
import { SOFTPLUS_EXACT } from './parts/common.js'
import { floatingOnly, softmaxAlong } from './parts/fibres.js'
import { gradient, gradientRows, logSoftmaxSlope, slope } from './parts/slopes.js'

/**
 * x where x is positive, else 0; int32 stays int32. PyTorch: `torch.nn.functional.relu`.
 * @throws DTYPE_MISMATCH if x is bool
 * @example tensor([-2, 0, 3]).relu() // [0, 0, 3]
 */
export const relu: WithInPlace<(x: Tensor) => Tensor> = primitive('relu', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => numericUnary('relu', x),
  // g, but 0 where a ≤ 0 (at 0: 0, at NaN: g, as PyTorch)
  grad: slope(
    'result',
    (g, y) => gradient('reluBackward', g, y, 0, 0),
    (g, y, ops) => ops.where(ops.le(y, 0), 0, g),
  ),
})

/**
 * 1 / (1 + e⁻ˣ) of each element. int32 and bool become float32. PyTorch: `torch.sigmoid`.
 * @example tensor([-1, 0, 1]).sigmoid() // [0.2689, 0.5, 0.7311]
 */
export const sigmoid: WithInPlace<(x: Tensor) => Tensor> = primitive('sigmoid', {
  args: ['tensor'],
  inPlace: true,
  raw: (x) => realUnary('sigmoid', x),
  // g · σ (1 − σ)
  grad: slope(
    'result',
    (g, y) => gradient('sigmoidBackward', g, y, 0, 0),
    (g, y, ops) => ops.mul(g, ops.mul(y, ops.sub(1, y))),
  ),
})

/**
 * x where x is positive, else x · negativeSlope (default 0.01). PyTorch: `torch.nn.functional.leaky_relu`.
 * @example tensor([-2, 3]).leakyRelu(0.1) // [-0.2, 3]
 */
export const leakyRelu: WithInPlace<(x: Tensor, negativeSlope?: number) => Tensor> = primitive('leakyRelu', {
  args: ['tensor', 'number?'],
  inPlace: true,
  raw: (x, negativeSlope = 0.01) => {
    checkNumber('leakyRelu', 'negativeSlope', negativeSlope)
    return activation('leakyRelu', 'leakyRelu', x, negativeSlope, 0)
  },
  // g where a > 0, else g · slope
  grad: slope(
    'a',
    (g, x, [negativeSlope = 0.01]) => gradient('leakyReluBackward', g, x, negativeSlope, 0),
    (g, x, ops, [negativeSlope = 0.01]) => ops.where(ops.gt(x, 0), g, ops.mul(g, negativeSlope)),
  ),
})

/**
 * x Φ(x), where Φ is the distribution function of the standard normal; `approximate: 'tanh'` approximates Φ by tanh. PyTorch: `torch.nn.functional.gelu`.
 * @throws DTYPE_MISMATCH if x is int32 or bool
 * @example tensor([-1, 0, 1]).gelu({ approximate: 'tanh' }) // [-0.1588, 0, 0.8412]
 */
export const gelu: (x: Tensor, options?: GeluOptions) => Tensor = primitive('gelu', {
  args: ['tensor', 'options?'],
  options: { approximate: true },
  raw: (x, options) => activation(approximates(options) ? 'geluTanh' : 'gelu', 'gelu', x, 0, 0),
  // g (Φ(a) + a φ(a)), or the derivative of the approximation
  grad: slope(
    'a',
    (g, x, [options]) => gradient(approximates(options) ? 'geluTanhBackward' : 'geluBackward', g, x, 0, 0),
    (g, x, ops, [options]) => ops.mul(g, approximates(options) ? geluTanhSlope(x, ops) : geluSlope(x, ops)),
  ),
})

/**
 * x σ(x), where σ is the sigmoid. PyTorch: `torch.nn.functional.silu`.
 * @throws DTYPE_MISMATCH if x is int32 or bool
 * @example tensor([-1, 0, 1]).silu() // [-0.2689, 0, 0.7311]
 */
export const silu: (x: Tensor) => Tensor = primitive('silu', {
  args: ['tensor'],
  raw: (x) => activation('silu', 'silu', x, 0, 0),
  // g σ (1 + a (1 − σ))
  grad: slope(
    'a',
    (g, x) => gradient('siluBackward', g, x, 0, 0),
    (g, x, ops) => {
      const sigmoid = ops.sigmoid(x)
      return ops.mul(g, ops.mul(sigmoid, ops.add(ops.mul(x, ops.sub(1, sigmoid)), 1)))
    },
  ),
})

/**
 * log(1 + exp(beta x)) / beta, with beta 1 by default; x itself where beta x is above `threshold` (default 20). PyTorch: `torch.nn.functional.softplus`.
 * @throws DTYPE_MISMATCH if x is int32 or bool
 * @example tensor([-1, 0, 30]).softplus() // [0.3133, 0.6931, 30]
 */
export const softplus: (x: Tensor, options?: SoftplusOptions) => Tensor = primitive('softplus', {
  args: ['tensor', 'options?'],
  options: { beta: true, threshold: true },
  raw: (x, { beta = 1, threshold = 20 } = {}) => {
    checkNumber('softplus', 'beta', beta)
    checkNumber('softplus', 'threshold', threshold)
    return activation('softplus', 'softplus', x, beta, threshold)
  },
  // g σ(beta a); g above the threshold
  grad: slope(
    'a',
    (g, x, [{ beta = 1, threshold = 20 } = {}]) => gradient('softplusBackward', g, x, beta, threshold),
    (g, x, ops, [{ beta = 1, threshold = 20 } = {}]) => {
      const scaled = ops.mul(x, beta)
      // At the threshold itself the next derivative is 0, as in PyTorch.
      const below = ops.where(ops.ge(scaled, threshold), threshold, scaled)
      return ops.where(ops.gt(scaled, threshold), g, ops.mul(g, ops.sigmoid(below)))
    },
  ),
})

/**
 * x where x is positive, else alpha (eˣ − 1), with alpha 1 by default. PyTorch: `torch.nn.functional.elu`.
 * @throws DTYPE_MISMATCH if x is int32 or bool
 * @example tensor([-1, 0, 2]).elu() // [-0.6321, 0, 2]
 */
export const elu: WithInPlace<(x: Tensor, alpha?: number) => Tensor> = primitive('elu', {
  args: ['tensor', 'number?'],
  inPlace: true,
  raw: (x, alpha = 1) => {
    checkNumber('elu', 'alpha', alpha)
    return activation('elu', 'elu', x, alpha, 0)
  },
  // g where a > 0, else g · alpha · eᵃ
  grad: slope(
    'a',
    (g, x, [alpha = 1]) => gradient('eluBackward', g, x, alpha, 0),
    (g, x, ops, [alpha = 1]) => {
      // At the kink itself the next derivative is 0, as in PyTorch.
      const negative = ops.where(ops.lt(x, 0), x, 0)
      return ops.where(ops.le(x, 0), ops.mul(g, ops.mul(ops.exp(negative), alpha)), g)
    },
  ),
})

/**
 * Each element kept between `min` (default −1) and `max` (default 1). At a bound the gradient is 0; that of `clamp` is 1. PyTorch:
 * `torch.nn.functional.hardtanh`.
 * @example tensor([-3, 0.5, 3]).hardtanh(-2, 2) // [-2, 0.5, 2]
 */
export const hardtanh: WithInPlace<(x: Tensor, min?: number, max?: number) => Tensor> = composite('hardtanh', {
  args: ['tensor', 'number?', 'number?'],
  inPlace: true,
  // By conditions and not by clamp, whose gradient is 1 at the bounds; NaN meets neither condition and stays.
  of:
    (ops) =>
    (x, min = -1, max = 1) =>
      ops.where(ops.le(x, min), min, ops.where(ops.ge(x, max), max, x)),
})

/**
 * Each element kept between 0 and 6. PyTorch: `torch.nn.functional.relu6`.
 * @example tensor([-1, 4, 8]).relu6() // [0, 4, 6]
 */
export const relu6: (x: Tensor) => Tensor = composite('relu6', {
  args: ['tensor'],
  of: (ops) => (x) => ops.hardtanh(x, 0, 6),
})

/**
 * log σ(x), without overflow. PyTorch: `torch.nn.functional.logsigmoid`.
 * @throws DTYPE_MISMATCH if x is int32 or bool
 * @example tensor([-200, 0]).logSigmoid() // [-200, -0.6931]
 */
export const logSigmoid: (x: Tensor) => Tensor = composite('logSigmoid', {
  args: ['tensor'],
  // −log(1 + exp(−x)): without the kinks of |x| and min, so that second derivatives are right at 0 too.
  of: (ops) => (x) => {
    floatingOnly('logSigmoid', x)
    return ops.sub(0, ops.softplus(ops.neg(x), { threshold: SOFTPLUS_EXACT }))
  },
})

/**
 * x tanh(softplus(x)). PyTorch: `torch.nn.functional.mish`.
 * @throws DTYPE_MISMATCH if x is int32 or bool
 * @example tensor([-1, 0, 1]).mish() // [-0.3034, 0, 0.8651]
 */
export const mish: (x: Tensor) => Tensor = composite('mish', {
  args: ['tensor'],
  of: (ops) => (x) => {
    floatingOnly('mish', x)
    return ops.mul(x, ops.tanh(ops.softplus(x)))
  },
})

/**
 * x / (1 + |x|). PyTorch: `torch.nn.functional.softsign`.
 * @example tensor([-3, 0, 1]).softsign() // [-0.75, 0, 0.5]
 */
export const softsign: (x: Tensor) => Tensor = composite('softsign', {
  args: ['tensor'],
  of: (ops) => (x) => ops.div(x, ops.add(ops.abs(x), 1)),
})

/**
 * x − tanh x. PyTorch: `torch.nn.functional.tanhshrink`.
 * @example tensor([-1, 0, 1]).tanhshrink() // [-0.2384, 0, 0.2384]
 */
export const tanhshrink: (x: Tensor) => Tensor = composite('tanhshrink', {
  args: ['tensor'],
  of: (ops) => (x) => ops.sub(x, ops.tanh(x)),
})

/**
 * eˣ / Σ eˣ along `dim`, without overflow. PyTorch: `torch.nn.functional.softmax`.
 * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 2], [0, 0]]).softmax(-1) // [[0.2689, 0.7311], [0.5, 0.5]]
 */
export const softmax: (x: Tensor, dim: number) => Tensor = primitive('softmax', {
  args: ['tensor', 'number'],
  raw: (x, dim) => softmaxAlong('softmax', x, dim),
  // y · (g − Σ g y)
  grad: slope(
    'result',
    (g, y, [dim]) => gradientRows('softmaxBackward', g, y, dim),
    (g, y, ops, [dim]) => ops.mul(y, ops.sub(g, ops.sum(ops.mul(g, y), dim, true))),
  ),
})

/**
 * The logarithm of softmax along `dim`, without overflow. PyTorch: `torch.nn.functional.log_softmax`.
 * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 2], [0, 0]]).logSoftmax(-1) // [[-1.3133, -0.3133], [-0.6931, -0.6931]]
 */
export const logSoftmax: (x: Tensor, dim: number) => Tensor = primitive('logSoftmax', {
  args: ['tensor', 'number'],
  raw: (x, dim) => softmaxAlong('logSoftmax', x, dim),
  // g − eʸ Σ g
  grad: formula(['result'], (g, s, ops) => logSoftmaxSlope(g, s.result, s.attrs[0], ops)),
})

/** PyTorch has activations for real numbers alone. @throws DTYPE_MISMATCH */
function activation(op: UnaryOp, name: string, x: Tensor, p0: number, p1: number): Tensor {
  floatingOnly(name, x)
  // As PyTorch, which computes with parameters of the tensor's dtype.
  return x.dtype === 'float32' ? unaryKernel(op, x, Math.fround(p0), Math.fround(p1)) : unaryKernel(op, x, p0, p1)
}

function checkNumber(op: string, what: string, value: unknown): void {
  if (typeof value !== 'number') throw invalidArgument(op, `a number as ${what}`, value === null ? 'null' : typeof value)
}

/** Φ(a) + a φ(a), of the normal distribution. */
function geluSlope(a: Tensor, ops: Ops): Tensor {
  const cdf = ops.mul(ops.add(ops.erf(ops.mul(a, Math.SQRT1_2)), 1), 0.5)
  const pdf = ops.mul(ops.exp(ops.mul(ops.mul(a, a), -0.5)), 1 / Math.sqrt(2 * Math.PI))
  return ops.add(cdf, ops.mul(a, pdf))
}

/** With u = √(2/π) (a + 0.044715 a³): (1 + tanh u) / 2 + a (1 − tanh² u) u′ / 2. */
function geluTanhSlope(a: Tensor, ops: Ops): Tensor {
  const scale = Math.sqrt(2 / Math.PI)
  const squared = ops.mul(a, a)
  const tanh = ops.tanh(ops.mul(ops.mul(a, ops.add(ops.mul(squared, 0.044715), 1)), scale))
  const slope = ops.mul(ops.add(ops.mul(squared, 3 * 0.044715), 1), scale)
  const left = ops.add(tanh, 1)
  return ops.mul(ops.add(left, ops.mul(ops.mul(a, ops.sub(1, ops.mul(tanh, tanh))), slope)), 0.5)
}

/** Whether gelu is to use tanh. @throws INVALID_ARGUMENT */
function approximates(options: GeluOptions | undefined): boolean {
  const approximate = options?.approximate ?? 'none'
  if (approximate !== 'none' && approximate !== 'tanh') throw invalidArgument('gelu', "'none' or 'tanh' as approximate", approximate)
  return approximate === 'tanh'
}
