/**
 * The js backend: which loop of this folder is which cell of the table. The table has all cells that PyTorch has, for machines without SIMD and for cells
 * in which it has nothing to give: the wasm backend lays its own cells over this table.
 */
import type { DType, TypedArray } from '../../values/dtype.js'
import { BINARY_BOOL, BINARY_FLOAT, BINARY_INT, COMPARE, type Scalar1, type Scalar2, UNARY_FLOAT, UNARY_INT } from '../table/scalars.js'
import {
  type ArrayBackend,
  type ArrayKernelTable,
  type ArrayUserKernels,
  BINARY_OPS,
  type BinaryKernel,
  type BinaryOp,
  COMPARE_OPS,
  type CompareOp,
  GRAD_OPS,
  type GradKernel,
  type GradOp,
  UNARY_OPS,
  type UnaryKernel,
  type UnaryOp,
  type Unsupported,
  unsupported,
} from '../table/table.js'
import { allKernel, andKernel, anyKernel, differKernel, equalKernel, orKernel } from './bool.js'
import { conv2d, conv2dInput, conv2dWeight } from './conv.js'
import { axpyOf, binaryOf, binaryRows, unaryOf, unaryRows, where } from './elementwise.js'
import { gradient, logSoftmaxBackward, softmaxBackward } from './gradients.js'
import { gatherKernel, indexAddKernel, indexSelectKernel, scatterAddKernel, scatterKernel } from './indexed.js'
import { matmul, nll, nllBackward } from './matmul.js'
import { copyKernel, fillKernel } from './movement.js'
import * as norm from './norm.js'
import * as pool from './pool.js'
import { cumprodBackward, extreme, fold, greater, less, placeOf, prodBackward, scan, variance } from './reduce.js'
import * as rows from './rows.js'
import { argmaxF32, argminF32, cumprodF32, cumsumF32, reverseCumsumF32 } from './running.js'
import { softmax } from './softmax.js'
import { argsortKernel } from './sort.js'
import { sumLoop } from './sum.js'

type T = TypedArray

/** `userKernels` runs the kernels that users write. */
export function createJsBackend(userKernels: ArrayUserKernels): ArrayBackend {
  return {
    name: 'js',
    label: 'js',
    kernels: jsKernels,
    userKernels,
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
const REAL_IMAGES = unsupported('images, weights and statistics are real numbers')

/** One kernel for both real dtypes, the cells of the others given. */
function real<K, I, B>(kernel: K, int32: I, bool: B) {
  return { float32: kernel, float64: kernel, int32, bool }
}

/** Kernels of images: one object for each dtype. */
function realEach<K>(make: () => K) {
  return { float32: make(), float64: make(), int32: REAL_IMAGES, bool: REAL_IMAGES }
}

/** A kernel for each dtype, made by one function. */
const each = <K>(make: (dtype: DType) => K) => ({
  float32: make('float32'),
  float64: make('float64'),
  int32: make('int32'),
  bool: make('bool'),
})
const everywhere = <K>(kernel: K) => each(() => kernel)

type Cell<K> = K | Unsupported
type Cells<Op extends string, K> = Readonly<Record<Op, Record<DType, Cell<K>>>>

/** The operations of `table/scalars.ts`, as loops over functions. */
const UNARY = Object.fromEntries(
  UNARY_OPS.map((op) => {
    const ofInt = (UNARY_INT as Partial<Record<UnaryOp, Scalar1>>)[op]
    const [int32, bool] = ofInt === undefined ? [REAL_ONLY, REAL_ONLY] : [unaryOf(ofInt), NOT_ON_BOOL]
    return [op, real(unaryOf(UNARY_FLOAT[op]), int32, bool)]
  }),
) as Cells<UnaryOp, UnaryKernel<T>>

const BINARY = Object.fromEntries(
  BINARY_OPS.map((op) => {
    const cell = (of: Partial<Record<BinaryOp, Scalar2>>, reason: Unsupported) => (of[op] === undefined ? reason : binaryOf(of[op]))
    return [op, real(cell(BINARY_FLOAT, BITS), cell(BINARY_INT, REAL_ONLY), cell(BINARY_BOOL, NOT_ON_BOOL))]
  }),
) as Cells<BinaryOp, BinaryKernel<T, T>>

const COMPARISONS = Object.fromEntries(COMPARE_OPS.map((op) => [op, everywhere(binaryOf(COMPARE[op]))])) as Record<
  CompareOp,
  Record<DType, BinaryKernel<T, Uint8Array>>
>

const GRADIENTS = Object.fromEntries(GRAD_OPS.map((op) => [op, real(gradient(op), REAL_MEAN, REAL_MEAN)])) as Cells<GradOp, GradKernel<T>>

/** float32 by a row of its own, float64 and int32 by wide ones. */
function unary(float32: typeof rows.negF32, wide: typeof rows.negWide) {
  return { float32: unaryRows(float32), float64: unaryRows(wide), int32: unaryRows(wide) }
}

function binary(float32: typeof rows.addF32, wide: typeof rows.addWide, int32: typeof rows.addWide | typeof rows.mulI32 = wide) {
  return { float32: binaryRows(float32), float64: binaryRows(wide), int32: binaryRows(int32 as typeof rows.mulI32) }
}

const plus = BINARY_FLOAT.add
const plusInt: Scalar2 = (a, b) => (a + b) | 0

function axpyF32(alpha: number): Scalar2 {
  const scale = Math.fround(alpha)
  return (held, x) => held + Math.fround(scale * x)
}

export const jsKernels: ArrayKernelTable = {
  ...UNARY,
  neg: { ...UNARY.neg, ...unary(rows.negF32, rows.negWide) },
  abs: { ...UNARY.abs, ...unary(rows.absF32, rows.absWide) },
  relu: { ...UNARY.relu, ...unary(rows.reluF32, rows.reluWide) },
  sqrt: { ...UNARY.sqrt, float32: unaryRows(rows.sqrtF32), float64: unaryRows(rows.sqrtWide) },
  sign: { ...UNARY.sign, bool: unaryOf(UNARY_INT.sign) },
  ...BINARY,
  add: { ...binary(rows.addF32, rows.addWide), bool: orKernel },
  sub: { ...binary(rows.subF32, rows.subWide), bool: NOT_ON_BOOL },
  mul: { ...binary(rows.mulF32, rows.mulWide, rows.mulI32), bool: andKernel },
  div: { ...binary(rows.divF32, rows.divWide), int32: DIVIDES_REAL, bool: DIVIDES_REAL },
  maximum: { ...binary(rows.maximumF32, rows.maximumWide), bool: orKernel },
  minimum: { ...binary(rows.minimumF32, rows.minimumWide), bool: andKernel },
  atan2: { ...BINARY.atan2, bool: REAL_ONLY },
  bitwiseAnd: { ...BINARY.bitwiseAnd, bool: andKernel },
  bitwiseOr: { ...BINARY.bitwiseOr, bool: orKernel },
  bitwiseXor: { ...BINARY.bitwiseXor, bool: differKernel },
  ...COMPARISONS,
  eq: { ...COMPARISONS.eq, bool: equalKernel },
  ne: { ...COMPARISONS.ne, bool: differKernel },
  where: everywhere(where),
  axpy: {
    float32: axpyOf(axpyF32),
    float64: axpyOf((alpha) => (held, x) => held + alpha * x),
    int32: axpyOf((alpha) => (held, x) => held + Math.imul(alpha, x)),
    bool: NOT_ON_BOOL,
  },
  copy: each(copyKernel) as ArrayKernelTable['copy'],
  fill: each(fillKernel) as ArrayKernelTable['fill'],
  sum: real({ run: sumLoop }, fold(plusInt, 0), REAL_OR_INT),
  prod: real(fold(BINARY_FLOAT.mul, 1), fold(Math.imul, 1), REAL_OR_INT),
  amax: { ...everywhere(extreme(greater)), bool: anyKernel },
  amin: { ...everywhere(extreme(less)), bool: allKernel },
  argmax: { ...everywhere(placeOf(greater)), float32: argmaxF32 },
  argmin: { ...everywhere(placeOf(less)), float32: argminF32 },
  argsort: each(argsortKernel) as ArrayKernelTable['argsort'],
  variance: real(variance, REAL_MEAN, REAL_MEAN),
  ...GRADIENTS,
  softmaxBackward: real(softmaxBackward, REAL_MEAN, REAL_MEAN),
  logSoftmaxBackward: real(logSoftmaxBackward, REAL_MEAN, REAL_MEAN),
  prodBackward: real(prodBackward, REAL_MEAN, REAL_MEAN),
  cumprodBackward: real(cumprodBackward, REAL_MEAN, REAL_MEAN),
  cumsum: { ...real(scan(plus, 0, false), scan(plusInt, 0, false), REAL_OR_INT), float32: cumsumF32 },
  cumprod: { ...real(scan(BINARY_FLOAT.mul, 1, false), scan(Math.imul, 1, false), REAL_OR_INT), float32: cumprodF32 },
  reverseCumsum: { ...real(scan(plus, 0, true), scan(plusInt, 0, true), REAL_OR_INT), float32: reverseCumsumF32 },
  softmax: real(softmax(false), REAL_LOSS, REAL_LOSS),
  logSoftmax: real(softmax(true), REAL_LOSS, REAL_LOSS),
  matmul: real(matmul(BINARY_FLOAT.mul, plus), matmul(Math.imul, plusInt), REAL_OR_INT),
  nll: real(nll, REAL_LOSS, REAL_LOSS),
  nllBackward: real(nllBackward, REAL_LOSS, REAL_LOSS),
  indexSelect: each(indexSelectKernel) as ArrayKernelTable['indexSelect'],
  gather: each(gatherKernel) as ArrayKernelTable['gather'],
  scatter: each(scatterKernel) as ArrayKernelTable['scatter'],
  indexAdd: { ...each(indexAddKernel), bool: REAL_OR_INT } as ArrayKernelTable['indexAdd'],
  scatterAdd: { ...each(scatterAddKernel), bool: REAL_OR_INT } as ArrayKernelTable['scatterAdd'],
  conv2d: real(conv2d, REAL_IMAGES, REAL_IMAGES),
  conv2dInput: real(conv2dInput, REAL_IMAGES, REAL_IMAGES),
  conv2dWeight: real(conv2dWeight, REAL_IMAGES, REAL_IMAGES),
  maxPool2d: realEach(pool.maxPool2d),
  avgPool2d: realEach(pool.avgPool2d),
  avgPool2dBackward: realEach(pool.avgPool2dBackward),
  layerNorm: realEach(norm.layerNorm),
  layerNormBackward: realEach(norm.layerNormBackward),
  channelNorm: realEach(norm.channelNorm),
  channelNormBackward: realEach(norm.channelNormBackward),
}
