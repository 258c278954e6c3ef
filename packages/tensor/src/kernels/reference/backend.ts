/**
 * The reference backend: each kernel in its most obvious form, in double precision, with one rounding on storing. The others are tested
 * against it, and it stands in for cells that they leave out.
 */
import type { DType, TypedArray } from '../../values/dtype.js'
import { KernelCompiler } from '../gpujs/compiler.js'
import { GpuUserKernels } from '../gpujs/user-kernels.js'
import {
  addFlat,
  axpyFlat32,
  binaryFlat,
  binaryStrided,
  copyFlat,
  copyStrided,
  divFlat,
  fillFlat,
  mulFlat,
  type Scalar1,
  type Scalar2,
  subFlat,
  unaryFlat,
  unaryStrided,
  Walk,
} from '../table/loops.js'
import { BINARY_BOOL, BINARY_FLOAT, BINARY_INT, COMPARE, UNARY_FLOAT, UNARY_INT } from '../table/scalars.js'
import {
  type ArrayKernelTable,
  type AxpyKernel,
  type Backend,
  type BinaryKernel,
  type CompareOp,
  type CopyKernel,
  type FillKernel,
  type IndexKernel,
  type MatmulKernel,
  type NllBackwardKernel,
  type NllKernel,
  type SoftmaxKernel,
  type UnaryKernel,
  type Unsupported,
  unsupported,
  type WhereKernel,
} from '../table/table.js'
import { gradient, logSoftmaxBackward, softmaxBackward } from './gradients.js'
import { neuralKernels } from './neural.js'
import {
  argsort,
  cumprodBackward,
  extreme,
  fibres,
  firstBest,
  fold,
  greater,
  less,
  placeOf,
  prodBackward,
  scan,
  variance,
} from './reduce.js'

type T = TypedArray

export function createReferenceBackend(): Backend {
  return {
    name: 'reference',
    label: 'reference',
    mode: null,
    kernels: table,
    userKernels: new GpuUserKernels(new KernelCompiler('cpu'), { float64: true }),
    synchronous: true,
    ready: () => Promise.resolve(),
    settle: () => Promise.resolve(),
    isSettled: () => true,
    variantOf: () => 'loop',
  }
}

const REAL_ONLY = unsupported('the function exists for real numbers only; raw operations convert to float32 first')
const NOT_ON_BOOL = unsupported('PyTorch has no such operation on bool')
const DIVIDES_REAL = unsupported('division is true division; raw operations convert to float32 first')
const BITS = unsupported('bits are those of integers; raw operations refuse real numbers')
const REAL_OR_INT = unsupported('bool is summed and multiplied as int32; raw operations convert first')
const REAL_MEAN = unsupported('means and gradients are real numbers; raw operations refuse integers')
const REAL_LOSS = unsupported('probabilities are real numbers')

/** One kernel for both real dtypes, the cells of the others given. */
function real<K, I, B>(kernel: K, int32: I, bool: B) {
  return { float32: kernel, float64: kernel, int32, bool }
}

function unary(f: Scalar1): UnaryKernel<T> {
  return {
    flat: (n, x, xo, out, oo, p0, p1) => unaryFlat(f, n, x, xo, out, oo, p0, p1),
    strided: (shape, x, xo, xs, out, oo, p0, p1) => unaryStrided(f, shape, x, xo, xs, out, oo, p0, p1),
  }
}

function binary(f: Scalar2, flat?: BinaryKernel<T, T>['flat']): BinaryKernel<T, T> {
  return {
    flat: flat ?? ((n, a, ao, as, b, bo, bs, out, oo) => binaryFlat(f, n, a, ao, as, b, bo, bs, out, oo)),
    strided: (shape, a, ao, as, b, bo, bs, out, oo, os) => binaryStrided(f, shape, a, ao, as, b, bo, bs, out, oo, os),
  }
}

function compare(op: CompareOp) {
  const kernel = binary(COMPARE[op]) as BinaryKernel<T, Uint8Array>
  return { float32: kernel, float64: kernel, int32: kernel, bool: kernel }
}

const where: WhereKernel<T> = {
  flat(n, c, co, cs, a, ao, as, b, bo, bs, out, oo) {
    for (let i = 0; i < n; i++) out[oo + i] = c[co + i * cs] !== 0 ? a[ao + i * as]! : b[bo + i * bs]!
  },
  strided(shape, c, co, cs, a, ao, as, b, bo, bs, out, oo) {
    const walk = new Walk(shape)
    const { inner } = walk
    const cStep = walk.innerStep(cs)
    const aStep = walk.innerStep(as)
    const bStep = walk.innerStep(bs)
    for (let o = 0; o < walk.outer; o++) {
      for (let i = 0; i < inner; i++) out[oo + o * inner + i] = c[co + i * cStep] !== 0 ? a[ao + i * aStep]! : b[bo + i * bStep]!
      co += walk.delta(cs)
      ao += walk.delta(as)
      bo += walk.delta(bs)
      walk.next()
    }
  },
}

const axpyReal = (round: (v: number) => number, flat?: AxpyKernel<T>['flat']): AxpyKernel<T> => ({
  flat:
    flat ??
    ((n, alpha, x, xo, xs, out, oo) => {
      for (let i = 0; i < n; i++) out[oo + i] = out[oo + i]! + round(round(alpha) * x[xo + i * xs]!)
    }),
  strided: (shape, alpha, x, xo, xs, out, oo, os) =>
    binaryStrided((held, v) => held + round(round(alpha) * v), shape, out, oo, os, x, xo, xs, out, oo, os),
})

function axpyInt(): AxpyKernel<T> {
  const step =
    (alpha: number): Scalar2 =>
    (held, v) =>
      held + Math.imul(alpha, v)
  return {
    flat: (n, alpha, x, xo, xs, out, oo) => binaryFlat(step(alpha), n, out, oo, 1, x, xo, xs, out, oo),
    strided: (shape, alpha, x, xo, xs, out, oo, os) => binaryStrided(step(alpha), shape, out, oo, os, x, xo, xs, out, oo, os),
  }
}

const copy: CopyKernel<T> = {
  flat: copyFlat,
  strided: (shape, x, xo, xs, out, oo, os) => copyStrided((v) => v, shape, x, xo, xs, out, oo, os),
}

const truth = (v: number): number => (v !== 0 ? 1 : 0)

const copyToBool: CopyKernel<T> = {
  flat: (n, x, xo, out, oo) => unaryFlat(truth, n, x, xo, out, oo, 0, 0),
  strided: (shape, x, xo, xs, out, oo, os) => copyStrided(truth, shape, x, xo, xs, out, oo, os),
}

const fill = (convert: (v: number) => number): FillKernel<T> => ({
  flat: (n, value, out, oo) => fillFlat(n, convert(value), out, oo),
  strided: (shape, value, out, oo, os) => copyStrided(() => convert(value), shape, out, oo, os, out, oo, os),
})

/** exp(x − max) / Σ exp(x − max), or its logarithm x − max − log Σ exp(x − max). */
const softmax = (logarithm: boolean): SoftmaxKernel<T> => ({
  run(outer, k, inner, x, xo, out, oo) {
    if (k === 0) return
    fibres(outer, inner, k, (at) => {
      const from = xo + at
      const max = x[from + firstBest(greater, x, from, k, inner) * inner]!
      let total = 0
      for (let j = 0; j < k; j++) total += Math.exp(x[from + j * inner]! - max)
      for (let j = 0; j < k; j++) {
        const shifted = x[from + j * inner]! - max
        out[oo + at + j * inner] = logarithm ? shifted - Math.log(total) : Math.exp(shifted) / total
      }
    })
  },
})

const matmul = (multiply: Scalar2, add: Scalar2): MatmulKernel<T> => ({
  run(batch, m, n, k, a, ao, aBatch, aRow, aCol, b, bo, bBatch, bRow, bCol, out, oo) {
    for (let t = 0; t < batch; t++) {
      for (let i = 0; i < m; i++) {
        for (let j = 0; j < n; j++) {
          let total = 0
          for (let p = 0; p < k; p++) {
            total = add(total, multiply(a[ao + t * aBatch + i * aRow + p * aCol]!, b[bo + t * bBatch + p * bRow + j * bCol]!))
          }
          out[oo + (t * m + i) * n + j] = total
        }
      }
    }
  },
})

const nll: NllKernel<T> = {
  run(n, classes, x, xo, target, to, out, oo) {
    for (let i = 0; i < n; i++) out[oo + i] = -x[xo + i * classes + target[to + i]!]!
  },
}

const nllBackward: NllBackwardKernel<T> = {
  run(n, classes, grad, go, gradStep, target, to, out, oo) {
    out.fill(0, oo, oo + n * classes)
    for (let i = 0; i < n; i++) out[oo + i * classes + target[to + i]!] = -grad[go + i * gradStep]!
  },
}

/** Calls `f` with the places in [outer, rows, inner] and in [outer, n, inner] that belong together. `wide`: the index has all dimensions. */
function indexed(wide: boolean, f: (x: T, out: T, table: number, part: number) => void, outIsTable: boolean): IndexKernel<T> {
  return {
    run(outer, rows, n, inner, x, xo, index, io, out, oo) {
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < inner; j++) {
            const part = (o * n + i) * inner + j
            const table = (o * rows + index[io + (wide ? part : i)]!) * inner + j
            if (outIsTable) f(x, out, oo + table, xo + part)
            else f(x, out, xo + table, oo + part)
          }
        }
      }
    },
  }
}

const read = (x: T, out: T, table: number, part: number): void => {
  out[part] = x[table]!
}
const write = (x: T, out: T, table: number, part: number): void => {
  out[table] = x[part]!
}
const accumulate = (x: T, out: T, table: number, part: number): void => {
  out[table] = out[table]! + x[part]!
}

const plus = BINARY_FLOAT.add
const plusInt: Scalar2 = (a, b) => (a + b) | 0
const identity = (v: number): number => v
const everywhere = <K>(kernel: K): Record<DType, K> => ({ float32: kernel, float64: kernel, int32: kernel, bool: kernel })
const realOnly = (op: keyof typeof UNARY_FLOAT): Record<DType, UnaryKernel<T> | Unsupported> =>
  real(unary(UNARY_FLOAT[op]), REAL_ONLY, REAL_ONLY)
const realAndInt = (op: keyof typeof UNARY_INT): Record<DType, UnaryKernel<T> | Unsupported> =>
  real(unary(UNARY_FLOAT[op]), unary(UNARY_INT[op]), NOT_ON_BOOL)

const bits = (op: 'bitwiseAnd' | 'bitwiseOr' | 'bitwiseXor') => ({
  float32: BITS,
  float64: BITS,
  int32: binary(BINARY_INT[op]),
  bool: binary(BINARY_BOOL[op]),
})

const table: ArrayKernelTable = {
  neg: realAndInt('neg'),
  exp: realOnly('exp'),
  log: realOnly('log'),
  sqrt: realOnly('sqrt'),
  sin: realOnly('sin'),
  cos: realOnly('cos'),
  tanh: realOnly('tanh'),
  sigmoid: realOnly('sigmoid'),
  relu: realAndInt('relu'),
  abs: realAndInt('abs'),
  sign: real(unary(UNARY_FLOAT.sign), unary(UNARY_INT.sign), unary(UNARY_INT.sign)),
  pow: realAndInt('pow'),
  clamp: realAndInt('clamp'),
  floor: realOnly('floor'),
  ceil: realOnly('ceil'),
  round: realOnly('round'),
  trunc: realOnly('trunc'),
  reciprocal: realOnly('reciprocal'),
  rsqrt: realOnly('rsqrt'),
  log1p: realOnly('log1p'),
  expm1: realOnly('expm1'),
  log2: realOnly('log2'),
  log10: realOnly('log10'),
  exp2: realOnly('exp2'),
  tan: realOnly('tan'),
  sinh: realOnly('sinh'),
  cosh: realOnly('cosh'),
  asin: realOnly('asin'),
  acos: realOnly('acos'),
  atan: realOnly('atan'),
  erf: realOnly('erf'),
  leakyRelu: realOnly('leakyRelu'),
  gelu: realOnly('gelu'),
  geluTanh: realOnly('geluTanh'),
  silu: realOnly('silu'),
  softplus: realOnly('softplus'),
  elu: realOnly('elu'),
  add: real(binary(BINARY_FLOAT.add, addFlat), binary(BINARY_INT.add), binary(BINARY_BOOL.add)),
  sub: real(binary(BINARY_FLOAT.sub, subFlat), binary(BINARY_INT.sub), NOT_ON_BOOL),
  mul: real(binary(BINARY_FLOAT.mul, mulFlat), binary(BINARY_INT.mul), binary(BINARY_BOOL.mul)),
  div: real(binary(BINARY_FLOAT.div, divFlat), DIVIDES_REAL, DIVIDES_REAL),
  maximum: real(binary(BINARY_FLOAT.maximum), binary(BINARY_INT.maximum), binary(BINARY_BOOL.maximum)),
  minimum: real(binary(BINARY_FLOAT.minimum), binary(BINARY_INT.minimum), binary(BINARY_BOOL.minimum)),
  power: real(binary(BINARY_FLOAT.power), binary(BINARY_INT.power), NOT_ON_BOOL),
  remainder: real(binary(BINARY_FLOAT.remainder), binary(BINARY_INT.remainder), NOT_ON_BOOL),
  fmod: real(binary(BINARY_FLOAT.fmod), binary(BINARY_INT.fmod), NOT_ON_BOOL),
  floorDivide: real(binary(BINARY_FLOAT.floorDivide), binary(BINARY_INT.floorDivide), NOT_ON_BOOL),
  atan2: real(binary(BINARY_FLOAT.atan2), REAL_ONLY, REAL_ONLY),
  bitwiseAnd: bits('bitwiseAnd'),
  bitwiseOr: bits('bitwiseOr'),
  bitwiseXor: bits('bitwiseXor'),
  eq: compare('eq'),
  ne: compare('ne'),
  lt: compare('lt'),
  le: compare('le'),
  gt: compare('gt'),
  ge: compare('ge'),
  where: everywhere(where),
  axpy: { float32: axpyReal(Math.fround, axpyFlat32), float64: axpyReal(identity), int32: axpyInt(), bool: NOT_ON_BOOL },
  copy: { float32: copy, float64: copy, int32: copy, bool: copyToBool },
  fill: { float32: fill(identity), float64: fill(identity), int32: fill(identity), bool: fill(truth) },
  sum: real(fold(plus, 0), fold(plusInt, 0), REAL_OR_INT),
  prod: real(fold(BINARY_FLOAT.mul, 1), fold(Math.imul, 1), REAL_OR_INT),
  amax: everywhere(extreme(greater)),
  amin: everywhere(extreme(less)),
  argmax: everywhere(placeOf(greater)),
  argsort: everywhere(argsort),
  argmin: everywhere(placeOf(less)),
  variance: real(variance, REAL_MEAN, REAL_MEAN),
  reluBackward: real(gradient('reluBackward'), REAL_MEAN, REAL_MEAN),
  tanhBackward: real(gradient('tanhBackward'), REAL_MEAN, REAL_MEAN),
  sigmoidBackward: real(gradient('sigmoidBackward'), REAL_MEAN, REAL_MEAN),
  leakyReluBackward: real(gradient('leakyReluBackward'), REAL_MEAN, REAL_MEAN),
  eluBackward: real(gradient('eluBackward'), REAL_MEAN, REAL_MEAN),
  siluBackward: real(gradient('siluBackward'), REAL_MEAN, REAL_MEAN),
  softplusBackward: real(gradient('softplusBackward'), REAL_MEAN, REAL_MEAN),
  geluBackward: real(gradient('geluBackward'), REAL_MEAN, REAL_MEAN),
  geluTanhBackward: real(gradient('geluTanhBackward'), REAL_MEAN, REAL_MEAN),
  softmaxBackward: real(softmaxBackward, REAL_MEAN, REAL_MEAN),
  logSoftmaxBackward: real(logSoftmaxBackward, REAL_MEAN, REAL_MEAN),
  prodBackward: real(prodBackward, REAL_MEAN, REAL_MEAN),
  cumprodBackward: real(cumprodBackward, REAL_MEAN, REAL_MEAN),
  cumsum: real(scan(plus, 0, false), scan(plusInt, 0, false), REAL_OR_INT),
  cumprod: real(scan(BINARY_FLOAT.mul, 1, false), scan(Math.imul, 1, false), REAL_OR_INT),
  reverseCumsum: real(scan(plus, 0, true), scan(plusInt, 0, true), REAL_OR_INT),
  softmax: real(softmax(false), REAL_LOSS, REAL_LOSS),
  logSoftmax: real(softmax(true), REAL_LOSS, REAL_LOSS),
  matmul: real(matmul(BINARY_FLOAT.mul, plus), matmul(Math.imul, plusInt), REAL_OR_INT),
  nll: real(nll, REAL_LOSS, REAL_LOSS),
  nllBackward: real(nllBackward, REAL_LOSS, REAL_LOSS),
  indexSelect: everywhere(indexed(false, read, false)),
  gather: everywhere(indexed(true, read, false)),
  indexAdd: real(indexed(false, accumulate, true), indexed(false, accumulate, true), REAL_OR_INT),
  scatterAdd: real(indexed(true, accumulate, true), indexed(true, accumulate, true), REAL_OR_INT),
  scatter: everywhere(indexed(true, write, true)),
  ...neuralKernels,
}
