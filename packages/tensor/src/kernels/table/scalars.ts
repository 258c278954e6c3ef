/** Each element-wise operation as a function of numbers: the definition that the js backend maps over its buffers, and that tests compare with. */
import { erf, erfc } from './erf.js'
import type { BinaryOp, CompareOp, GradOp, UnaryOp } from './table.js'

/** `p0` and `p1` are the operation's parameters, if it has some. */
export type Scalar1 = (x: number, p0: number, p1: number) => number
export type Scalar2 = (a: number, b: number) => number

/** In double precision; storing rounds to the dtype. */
export const UNARY_FLOAT: Readonly<Record<UnaryOp, Scalar1>> = {
  neg: (x) => -x,
  exp: (x) => Math.exp(x),
  log: (x) => Math.log(x),
  sqrt: (x) => Math.sqrt(x),
  sin: (x) => Math.sin(x),
  cos: (x) => Math.cos(x),
  tanh: (x) => Math.tanh(x),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  // Of NaN and 0, Math.max gives NaN.
  relu: (x) => Math.max(x, 0),
  abs: (x) => Math.abs(x),
  sign: (x) => (x > 0 ? 1 : x < 0 ? -1 : 0),
  pow: (x, exponent) => power(x, exponent),
  clamp: (x, low, high) => Math.min(Math.max(x, low), high),
  floor: (x) => Math.floor(x),
  ceil: (x) => Math.ceil(x),
  round: (x) => roundHalfEven(x),
  trunc: (x) => Math.trunc(x),
  reciprocal: (x) => 1 / x,
  rsqrt: (x) => 1 / Math.sqrt(x),
  log1p: (x) => Math.log1p(x),
  expm1: (x) => Math.expm1(x),
  log2: (x) => Math.log2(x),
  log10: (x) => Math.log10(x),
  exp2: (x) => 2 ** x,
  tan: (x) => Math.tan(x),
  sinh: (x) => Math.sinh(x),
  cosh: (x) => Math.cosh(x),
  asin: (x) => Math.asin(x),
  acos: (x) => Math.acos(x),
  atan: (x) => Math.atan(x),
  erf: (x) => erf(x),
  leakyRelu: (x, slope) => (x > 0 ? x : x * slope),
  // x Φ(x); by erfc, so that the left tail keeps its digits.
  gelu: (x) => 0.5 * x * erfc(-x * Math.SQRT1_2),
  // x (1 + tanh u) / 2 is x / (1 + e⁻²ᵘ).
  geluTanh: (x) => x / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))),
  silu: (x) => x / (1 + Math.exp(-x)),
  softplus: (x, beta, threshold) => (x * beta > threshold ? x : Math.log1p(Math.exp(x * beta)) / beta),
  elu: (x, alpha) => (x <= 0 ? alpha * Math.expm1(x) : x),
}

export const UNARY_INT: Readonly<Record<'neg' | 'relu' | 'abs' | 'sign' | 'pow' | 'clamp', Scalar1>> = {
  neg: UNARY_FLOAT.neg,
  relu: UNARY_FLOAT.relu,
  abs: UNARY_FLOAT.abs,
  sign: UNARY_FLOAT.sign,
  pow: (x, exponent) => intPower(x, exponent),
  clamp: UNARY_FLOAT.clamp,
}

type BitOp = 'bitwiseAnd' | 'bitwiseOr' | 'bitwiseXor'

export const BINARY_FLOAT: Readonly<Record<Exclude<BinaryOp, BitOp>, Scalar2>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  maximum: (a, b) => Math.max(a, b),
  minimum: (a, b) => Math.min(a, b),
  power: (x, exponent) => cPower(x, exponent),
  remainder: (a, b) => remainder(a, b),
  fmod: (a, b) => a % b,
  floorDivide: (a, b) => floorDivide(a, b),
  atan2: (a, b) => Math.atan2(a, b),
}

/** Wrap around at 32 bits (storing does it for sums). */
export const BINARY_INT: Readonly<Record<Exclude<BinaryOp, 'div' | 'atan2'>, Scalar2>> = {
  add: BINARY_FLOAT.add,
  sub: BINARY_FLOAT.sub,
  mul: (a, b) => Math.imul(a, b),
  maximum: BINARY_FLOAT.maximum,
  minimum: BINARY_FLOAT.minimum,
  power: (x, exponent) => (exponent >= 0 ? intPower(x, exponent) : x === 1 ? 1 : x === -1 ? (exponent % 2 === 0 ? 1 : -1) : 0),
  // PyTorch throws where an integer is divided by 0.
  remainder: (a, b) => (b === 0 ? 0 : remainder(a, b)),
  fmod: (a, b) => (b === 0 ? 0 : a % b),
  floorDivide: (a, b) => (b === 0 ? 0 : Math.floor(a / b)),
  bitwiseAnd: (a, b) => a & b,
  bitwiseOr: (a, b) => a | b,
  bitwiseXor: (a, b) => a ^ b,
}

export const BINARY_BOOL: Readonly<Record<'add' | 'mul' | 'maximum' | 'minimum' | BitOp, Scalar2>> = {
  add: (a, b) => a | b,
  mul: (a, b) => a & b,
  maximum: (a, b) => a | b,
  minimum: (a, b) => a & b,
  bitwiseAnd: (a, b) => a & b,
  bitwiseOr: (a, b) => a | b,
  bitwiseXor: (a, b) => a ^ b,
}

export const COMPARE: Readonly<Record<CompareOp, Scalar2>> = {
  eq: (a, b) => (a === b ? 1 : 0),
  ne: (a, b) => (a !== b ? 1 : 0),
  lt: (a, b) => (a < b ? 1 : 0),
  le: (a, b) => (a <= b ? 1 : 0),
  gt: (a, b) => (a > b ? 1 : 0),
  ge: (a, b) => (a >= b ? 1 : 0),
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))
const SCALE = Math.sqrt(2 / Math.PI)

/** The slope of an activation at its result (relu, tanh, sigmoid) or its argument. */
export const SLOPES: Readonly<Record<GradOp, Scalar1>> = {
  reluBackward: (y) => (y <= 0 ? 0 : 1),
  tanhBackward: (y) => 1 - y * y,
  sigmoidBackward: (y) => y * (1 - y),
  leakyReluBackward: (x, slope) => (x > 0 ? 1 : slope),
  eluBackward: (x, alpha) => (x <= 0 ? alpha * Math.exp(x) : 1),
  siluBackward: (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x))),
  softplusBackward: (x, beta, threshold) => (x * beta > threshold ? 1 : sigmoid(x * beta)),
  geluBackward: (x) => 0.5 * erfc(-x * Math.SQRT1_2) + (x * Math.exp(-0.5 * x * x)) / Math.sqrt(2 * Math.PI),
  geluTanhBackward: (x) => {
    if (Math.abs(x) > 20) return x > 0 ? 1 : 0 // in float32 the cube would overflow
    const s = sigmoid(2 * SCALE * (x + 0.044715 * x ** 3))
    return s + 2 * x * s * (1 - s) * SCALE * (1 + 3 * 0.044715 * x * x)
  },
}

/** PyTorch multiplies for the exponent 2, and takes roots for ±0.5 (of −∞: NaN). */
function power(x: number, exponent: number): number {
  if (exponent === 2) return x * x
  if (exponent === 0.5) return Math.sqrt(x)
  if (exponent === -0.5) return 1 / Math.sqrt(x)
  return cPower(x, exponent)
}

/** C's pow: unlike JavaScript's, 1 to any power is 1, and (−1) to ±∞ is 1. */
function cPower(x: number, exponent: number): number {
  if (x === 1 || (x === -1 && (exponent === Number.POSITIVE_INFINITY || exponent === Number.NEGATIVE_INFINITY))) return 1
  // biome-ignore lint/style/useExponentiationOperator: the call reads as the definition.
  return Math.pow(x, exponent)
}

function roundHalfEven(x: number): number {
  const up = Math.round(x)
  return up - x === 0.5 && up % 2 !== 0 ? up - 1 : up
}

/** With the sign of b, as Python's. */
function remainder(a: number, b: number): number {
  const rest = a % b
  return rest !== 0 && b < 0 !== rest < 0 ? rest + b : rest
}

/** By the remainder, which is exact, and not by rounding the quotient (PyTorch's `div_floor_floating`). */
function floorDivide(a: number, b: number): number {
  if (b === 0) return a / b
  const rest = a % b
  const quotient = (a - rest) / b - (rest !== 0 && b < 0 !== rest < 0 ? 1 : 0)
  if (quotient === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0
  const down = Math.floor(quotient)
  return quotient - down > 0.5 ? down + 1 : down
}

/** By squaring, modulo 2^32; exponent an integer ≥ 0. */
function intPower(x: number, exponent: number): number {
  let base = x
  let result = 1
  for (let e = exponent; e > 0; e = Math.floor(e / 2)) {
    if (e % 2 === 1) result = Math.imul(result, base)
    base = Math.imul(base, base)
  }
  return result
}
