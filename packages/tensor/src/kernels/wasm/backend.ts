/**
 * The wasm backend: which kernel of this folder stands in which cell of the table, and plain loops of the reference backend where SIMD
 * has nothing to give (bool, float64 functions of the host's `Math`, the rest of int32).
 */
import type { ArrayOf, DType } from '../../values/dtype.js'
import { KernelCompiler } from '../gpujs/compiler.js'
import { GpuUserKernels } from '../gpujs/user-kernels.js'
import { allKernel, andKernel, anyKernel, differKernel, equalKernel, orKernel } from '../host/bool.js'
import { gatherKernel, indexAddKernel, indexSelectKernel, scatterAddKernel, scatterKernel } from '../host/indexed.js'
import { copyKernel, fillKernel } from '../host/movement.js'
import * as rows from '../host/rows.js'
import { argsortKernel } from '../host/sort.js'
import { createReferenceBackend } from '../reference/backend.js'
import type { ArrayKernelMap, ArrayKernelTable, Backend, BinaryKernel, CompareOp, Dims, KernelOp, UnaryKernel } from '../table/table.js'
import { copyWith } from './convert.js'
import { AxpyArithmetic, BinaryArithmetic, SIMD_FROM, UnaryArithmetic, UnaryPolynomial } from './elementwise.js'
import { powKernel, UnaryExact } from './exact.js'
import { BinaryPolynomial, powF32 } from './functions.js'
import { FusedGradient, GradientRows, reluRow, sigmoidRow, tanhRow } from './gradients.js'
import { LazyInstance } from './instance.js'
import { MatmulTiles } from './matmul.js'
import type { KernelHeap } from './memory.js'
import { NEURAL_F32_RULES, NEURAL_RULES, neuralKernels } from './neural.js'
import { ExtremeRows, SoftmaxRows, SumRows, sumLoop } from './rows.js'
import { compareKernel, whereKernel } from './select.js'
import { argmaxF32, argminF32, cumprodF32, cumsumF32, reverseCumsumF32, VarianceRows } from './statistics.js'

/** `heap` gives the memory to compute in; asked for at the first kernel that needs it. */
export function createWasmBackend(heap: () => KernelHeap): Backend {
  return {
    name: 'wasm',
    label: 'wasm',
    mode: null,
    kernels: createTable(new LazyInstance(heap)),
    userKernels: new GpuUserKernels(new KernelCompiler('cpu'), { float64: true }),
    synchronous: true,
    ready: () => Promise.resolve(),
    settle: () => Promise.resolve(),
    isSettled: () => true,
    variantOf,
  }
}

function createTable(instance: LazyInstance): ArrayKernelTable {
  const loops = createReferenceBackend().kernels
  const everywhere = <K>(make: (dtype: DType) => K) => ({
    float32: make('float32'),
    float64: make('float64'),
    int32: make('int32'),
    bool: make('bool'),
  })
  const f32 = (name: 'add' | 'sub' | 'mul' | 'div' | 'maximum' | 'minimum', row: typeof rows.addF32) =>
    new BinaryArithmetic(instance, 'float32', `${name}_f32`, row)
  const f64 = (name: 'add' | 'sub' | 'mul' | 'div' | 'maximum' | 'minimum', row: typeof rows.addWide) =>
    new BinaryArithmetic(instance, 'float64', `${name}_f64`, row as never) as BinaryKernel<Float64Array, Float64Array>
  const i32 = (name: 'add' | 'sub' | 'mul' | 'maximum' | 'minimum', row: typeof rows.addWide | typeof rows.mulI32) =>
    new BinaryArithmetic(instance, 'int32', `${name}_i32`, row as never) as BinaryKernel<Int32Array, Int32Array>
  const unary = (name: 'neg' | 'abs' | 'sqrt' | 'relu', row: typeof rows.negF32, wide: typeof rows.negWide) => ({
    float32: new UnaryArithmetic(instance, 'float32', `${name}_f32`, row),
    float64: new UnaryArithmetic(instance, 'float64', `${name}_f64`, wide as never) as UnaryKernel<Float64Array>,
  })
  const unaryInt = (name: 'neg' | 'abs' | 'relu', wide: typeof rows.negWide) => ({
    int32: new UnaryArithmetic(instance, 'int32', `${name}_i32`, wide as never) as UnaryKernel<Int32Array>,
  })
  const compare = <Op extends CompareOp>(op: Op) => {
    const cells = loops[op] as Callable<Op>
    return {
      ...cells,
      float32: compareKernel(instance, 'float32', op, cells.float32 as BinaryKernel<Float32Array, Uint8Array>),
      float64: compareKernel(instance, 'float64', op, cells.float64 as BinaryKernel<Float64Array, Uint8Array>),
      int32: compareKernel(instance, 'int32', op, cells.int32 as BinaryKernel<Int32Array, Uint8Array>),
    }
  }
  const where = loops.where as Callable<'where'>
  const pow = loops.pow as Callable<'pow'>
  const everyReal = (op: 'sign' | 'clamp') => {
    const cells = loops[op] as Callable<'sign'>
    return {
      ...loops[op],
      float32: new UnaryExact(instance, 'float32', `${op}_f32`, cells.float32),
      float64: new UnaryExact(instance, 'float64', `${op}_f64`, cells.float64),
      int32: new UnaryExact(instance, 'int32', `${op}_i32`, cells.int32),
    }
  }
  const exact64 = (op: 'floor' | 'ceil' | 'round' | 'trunc' | 'reciprocal' | 'rsqrt') => ({
    float64: new UnaryExact(instance, 'float64', `${op}_f64`, (loops[op] as Callable<'floor'>).float64),
  })
  return {
    ...loops,
    neg: { ...loops.neg, ...unary('neg', rows.negF32, rows.negWide), ...unaryInt('neg', rows.negWide) },
    abs: { ...loops.abs, ...unary('abs', rows.absF32, rows.absWide), ...unaryInt('abs', rows.absWide) },
    sqrt: { ...loops.sqrt, ...unary('sqrt', rows.sqrtF32, rows.sqrtWide) },
    relu: { ...loops.relu, ...unary('relu', rows.reluF32, rows.reluWide), ...unaryInt('relu', rows.reluWide) },
    ...{
      eq: { ...compare('eq'), bool: equalKernel },
      ne: { ...compare('ne'), bool: differKernel },
      lt: compare('lt'),
      le: compare('le'),
      gt: compare('gt'),
      ge: compare('ge'),
    },
    sign: everyReal('sign'),
    clamp: everyReal('clamp'),
    pow: {
      ...loops.pow,
      float32: powF32(instance, powKernel(instance, 'float32', pow.float32)),
      float64: powKernel(instance, 'float64', pow.float64),
    },
    bitwiseAnd: { ...loops.bitwiseAnd, bool: andKernel },
    bitwiseOr: { ...loops.bitwiseOr, bool: orKernel },
    bitwiseXor: { ...loops.bitwiseXor, bool: differKernel },
    where: {
      ...loops.where,
      float32: whereKernel(instance, 'float32', where.float32),
      float64: whereKernel(instance, 'float64', where.float64),
      int32: whereKernel(instance, 'int32', where.int32),
    },
    exp: { ...loops.exp, float32: new UnaryPolynomial(instance, 'exp_f32') },
    log: { ...loops.log, float32: new UnaryPolynomial(instance, 'log_f32') },
    tanh: { ...loops.tanh, float32: new UnaryPolynomial(instance, 'tanh_f32') },
    sigmoid: { ...loops.sigmoid, float32: new UnaryPolynomial(instance, 'sigmoid_f32') },
    sin: { ...loops.sin, float32: new UnaryPolynomial(instance, 'sin_f32') },
    cos: { ...loops.cos, float32: new UnaryPolynomial(instance, 'cos_f32') },
    log2: { ...loops.log2, float32: new UnaryPolynomial(instance, 'log2_f32') },
    log10: { ...loops.log10, float32: new UnaryPolynomial(instance, 'log10_f32') },
    exp2: { ...loops.exp2, float32: new UnaryPolynomial(instance, 'exp2_f32') },
    sinh: { ...loops.sinh, float32: new UnaryPolynomial(instance, 'sinh_f32') },
    cosh: { ...loops.cosh, float32: new UnaryPolynomial(instance, 'cosh_f32') },
    tan: { ...loops.tan, float32: new UnaryPolynomial(instance, 'tan_f32') },
    asin: { ...loops.asin, float32: new UnaryPolynomial(instance, 'asin_f32') },
    acos: { ...loops.acos, float32: new UnaryPolynomial(instance, 'acos_f32') },
    atan: { ...loops.atan, float32: new UnaryPolynomial(instance, 'atan_f32') },
    power: { ...loops.power, float32: new BinaryPolynomial(instance, 'power_f32') },
    atan2: { ...loops.atan2, float32: new BinaryPolynomial(instance, 'atan2_f32') },
    expm1: { ...loops.expm1, float32: new UnaryPolynomial(instance, 'expm1_f32') },
    log1p: { ...loops.log1p, float32: new UnaryPolynomial(instance, 'log1p_f32') },
    erf: { ...loops.erf, float32: new UnaryPolynomial(instance, 'erf_f32') },
    rsqrt: { ...loops.rsqrt, ...exact64('rsqrt'), float32: new UnaryPolynomial(instance, 'rsqrt_f32') },
    reciprocal: { ...loops.reciprocal, ...exact64('reciprocal'), float32: new UnaryPolynomial(instance, 'reciprocal_f32') },
    floor: { ...loops.floor, ...exact64('floor'), float32: new UnaryPolynomial(instance, 'floor_f32') },
    ceil: { ...loops.ceil, ...exact64('ceil'), float32: new UnaryPolynomial(instance, 'ceil_f32') },
    round: { ...loops.round, ...exact64('round'), float32: new UnaryPolynomial(instance, 'round_f32') },
    trunc: { ...loops.trunc, ...exact64('trunc'), float32: new UnaryPolynomial(instance, 'trunc_f32') },
    leakyRelu: { ...loops.leakyRelu, float32: new UnaryPolynomial(instance, 'leaky_relu_f32') },
    elu: { ...loops.elu, float32: new UnaryPolynomial(instance, 'elu_f32') },
    silu: { ...loops.silu, float32: new UnaryPolynomial(instance, 'silu_f32') },
    softplus: { ...loops.softplus, float32: new UnaryPolynomial(instance, 'softplus_f32') },
    gelu: { ...loops.gelu, float32: new UnaryPolynomial(instance, 'gelu_f32') },
    geluTanh: { ...loops.geluTanh, float32: new UnaryPolynomial(instance, 'gelu_tanh_f32') },
    reluBackward: { ...loops.reluBackward, float32: new FusedGradient(instance, 'relu_backward_f32', reluRow) },
    tanhBackward: { ...loops.tanhBackward, float32: new FusedGradient(instance, 'tanh_backward_f32', tanhRow) },
    sigmoidBackward: { ...loops.sigmoidBackward, float32: new FusedGradient(instance, 'sigmoid_backward_f32', sigmoidRow) },
    leakyReluBackward: { ...loops.leakyReluBackward, float32: new FusedGradient(instance, 'leaky_relu_backward_f32') },
    eluBackward: { ...loops.eluBackward, float32: new FusedGradient(instance, 'elu_backward_f32') },
    siluBackward: { ...loops.siluBackward, float32: new FusedGradient(instance, 'silu_backward_f32') },
    softplusBackward: { ...loops.softplusBackward, float32: new FusedGradient(instance, 'softplus_backward_f32') },
    geluBackward: { ...loops.geluBackward, float32: new FusedGradient(instance, 'gelu_backward_f32') },
    geluTanhBackward: { ...loops.geluTanhBackward, float32: new FusedGradient(instance, 'gelu_tanh_backward_f32') },
    softmaxBackward: { ...loops.softmaxBackward, float32: new GradientRows(instance, 'softmax_backward_rows_f32') },
    logSoftmaxBackward: { ...loops.logSoftmaxBackward, float32: new GradientRows(instance, 'log_softmax_backward_rows_f32') },
    add: {
      ...loops.add,
      float32: f32('add', rows.addF32),
      float64: f64('add', rows.addWide),
      int32: i32('add', rows.addWide),
      bool: orKernel,
    },
    sub: { ...loops.sub, float32: f32('sub', rows.subF32), float64: f64('sub', rows.subWide), int32: i32('sub', rows.subWide) },
    mul: {
      ...loops.mul,
      float32: f32('mul', rows.mulF32),
      float64: f64('mul', rows.mulWide),
      int32: i32('mul', rows.mulI32),
      bool: andKernel,
    },
    div: { ...loops.div, float32: f32('div', rows.divF32), float64: f64('div', rows.divWide) },
    maximum: {
      ...loops.maximum,
      float32: f32('maximum', rows.maximumF32),
      float64: f64('maximum', rows.maximumWide),
      int32: i32('maximum', rows.maximumWide),
      bool: orKernel,
    },
    minimum: {
      ...loops.minimum,
      float32: f32('minimum', rows.minimumF32),
      float64: f64('minimum', rows.minimumWide),
      int32: i32('minimum', rows.minimumWide),
      bool: andKernel,
    },
    axpy: { ...loops.axpy, float32: new AxpyArithmetic(instance, 'float32'), float64: new AxpyArithmetic(instance, 'float64') },
    argsort: everywhere(argsortKernel) as ArrayKernelTable['argsort'],
    copy: everywhere((dtype) => copyWith(instance, copyKernel(dtype))) as ArrayKernelTable['copy'],
    fill: everywhere(fillKernel) as ArrayKernelTable['fill'],
    sum: { ...loops.sum, float32: new SumRows(instance), float64: { run: sumLoop } },
    amax: { ...loops.amax, float32: new ExtremeRows(instance, true), bool: anyKernel },
    amin: { ...loops.amin, float32: new ExtremeRows(instance, false), bool: allKernel },
    argmax: { ...loops.argmax, float32: argmaxF32 },
    argmin: { ...loops.argmin, float32: argminF32 },
    variance: { ...loops.variance, float32: new VarianceRows(instance) },
    cumsum: { ...loops.cumsum, float32: cumsumF32 },
    cumprod: { ...loops.cumprod, float32: cumprodF32 },
    reverseCumsum: { ...loops.reverseCumsum, float32: reverseCumsumF32 },
    softmax: { ...loops.softmax, float32: new SoftmaxRows(instance, 'softmax_rows_f32') },
    logSoftmax: { ...loops.logSoftmax, float32: new SoftmaxRows(instance, 'log_softmax_rows_f32') },
    matmul: {
      ...loops.matmul,
      float32: new MatmulTiles<ArrayOf['float32']>(instance, 'float32'),
      float64: new MatmulTiles<ArrayOf['float64']>(instance, 'float64'),
    },
    indexSelect: everywhere(indexSelectKernel) as ArrayKernelTable['indexSelect'],
    gather: everywhere(gatherKernel) as ArrayKernelTable['gather'],
    scatter: everywhere(scatterKernel) as ArrayKernelTable['scatter'],
    indexAdd: { ...loops.indexAdd, float32: indexAddKernel(), float64: indexAddKernel(), int32: indexAddKernel() },
    scatterAdd: { ...loops.scatterAdd, float32: scatterAddKernel(), float64: scatterAddKernel(), int32: scatterAddKernel() },
    ...neuralKernels(instance, loops),
  }
}

/** The loops of the reference backend have all of these cells. */
type Callable<Op extends KernelOp> = { readonly [D in DType]: ArrayKernelMap<D>[Op] }

type Rule = (elements: number, shape: Dims) => string
const bySize: Rule = (elements) => (elements < SIMD_FROM ? 'loop' : 'simd')
const always: Rule = () => 'simd'
/** The shape that `variantOf` gets is the output's, and these choose by the input's size, between forms with the same bits. */
const byInput: Rule = () => 'simd (loop for small inputs)'
const byProduct: Rule = () => 'simd tiles (loop for small products)'
const movement: Rule = () => 'host copy'
const copying: Rule = () => 'host copy (simd for conversions and strides)'

const byExponent: Rule = (elements) => (elements < SIMD_FROM ? 'loop' : 'simd (loop but for exponent 2)')
const SELECT_RULES = { eq: bySize, ne: bySize, lt: bySize, le: bySize, gt: bySize, ge: bySize, where: bySize, sign: bySize, clamp: bySize }
const F32_RULES: Readonly<Partial<Record<KernelOp, Rule>>> = {
  ...NEURAL_F32_RULES,
  ...{ neg: bySize, abs: bySize, sqrt: bySize, relu: bySize },
  ...{ exp: always, log: always, tanh: always, sigmoid: always, softmax: always, logSoftmax: always },
  ...{ sin: () => 'wasm', cos: () => 'wasm' },
  ...{ floor: always, ceil: always, round: always, trunc: always, reciprocal: always, rsqrt: always },
  ...{ expm1: always, log1p: always, erf: always, leakyRelu: always, elu: always, silu: always, softplus: always },
  ...{ gelu: always, geluTanh: always, reluBackward: bySize, tanhBackward: bySize, sigmoidBackward: bySize },
  ...{ leakyReluBackward: always, eluBackward: always, siluBackward: always, softplusBackward: always },
  ...{ geluBackward: always, geluTanhBackward: always, softmaxBackward: always, logSoftmaxBackward: always },
  ...{ add: bySize, sub: bySize, mul: bySize, div: bySize, maximum: bySize, minimum: bySize, axpy: bySize },
  ...{ sum: byInput, amax: byInput, amin: byInput, variance: byInput, matmul: byProduct },
  ...{ log2: always, log10: always, exp2: always, sinh: always, cosh: always, asin: always, acos: always, atan: always },
  ...{ tan: () => 'wasm', power: always, atan2: always, pow: () => 'simd (loop for the exponents 0.5 and -0.5, and for few squares)' },
  ...SELECT_RULES,
}
const F64_RULES: Readonly<Partial<Record<KernelOp, Rule>>> = {
  ...NEURAL_RULES,
  ...{ add: bySize, sub: bySize, mul: bySize, div: bySize, maximum: bySize, minimum: bySize, axpy: bySize, matmul: byProduct },
  ...{ neg: bySize, abs: bySize, sqrt: bySize, relu: bySize, pow: byExponent },
  ...{ floor: bySize, ceil: bySize, round: bySize, trunc: bySize, reciprocal: bySize, rsqrt: bySize },
  ...SELECT_RULES,
}
const I32_RULES: Readonly<Partial<Record<KernelOp, Rule>>> = {
  ...{ add: bySize, sub: bySize, mul: bySize, maximum: bySize, minimum: bySize, neg: bySize, abs: bySize, relu: bySize },
  ...SELECT_RULES,
}
const RULES: Readonly<Partial<Record<DType, Partial<Record<KernelOp, Rule>>>>> = {
  float32: F32_RULES,
  float64: F64_RULES,
  int32: I32_RULES,
}
const MOVEMENT: ReadonlySet<KernelOp> = new Set(['fill', 'indexSelect', 'gather', 'scatter'])

/** For dense operands; strided ones may run as loops, with the same bits. */
function variantOf(op: KernelOp, dtype: DType, shape: Dims): string {
  let elements = 1
  for (let d = 0; d < shape.length; d++) elements *= shape[d]!
  const rule = op === 'copy' ? copying : MOVEMENT.has(op) ? movement : RULES[dtype]?.[op]
  return rule === undefined ? 'loop' : rule(elements, shape)
}
