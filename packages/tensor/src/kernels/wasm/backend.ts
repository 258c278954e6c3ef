/**
 * The wasm backend: a table of its own cells, laid over the table of the js backend, whose loops run where SIMD has nothing to give (bool, float64
 * functions of the engine's `Math`, movement, most of int32). Each own cell says when which of its codes runs.
 */
import type { ArrayOf, DType } from '../../values/dtype.js'
import { hostUserKernels } from '../gpujs/user-kernels.js'
import { jsKernels } from '../js/backend.js'
import * as rows from '../js/rows.js'
import {
  type ArrayBackend,
  type ArrayKernelMap,
  type ArrayKernelTable,
  type BinaryKernel,
  COMPARE_OPS,
  type CompareOp,
  KERNEL_OPS,
  type KernelOp,
  type UnaryKernel,
} from '../table/table.js'
import { copyWith } from './convert.js'
import { AxpyArithmetic, BinaryArithmetic, SIMD_FROM, UnaryArithmetic, UnaryPolynomial } from './elementwise.js'
import { powKernel, UnaryExact } from './exact.js'
import { BinaryPolynomial, powF32 } from './functions.js'
import { FusedGradient, GradientRows, reluRow, sigmoidRow, tanhRow } from './gradients.js'
import type { GradientExport, UnaryExport } from './instance.js'
import { LazyInstance } from './instance.js'
import { MatmulTiles } from './matmul.js'
import type { KernelHeap } from './memory.js'
import { neuralCells } from './neural.js'
import { by, type OwnCell, type OwnCells, type Rule } from './own.js'
import { ExtremeRows, SoftmaxRows, SumRows } from './rows.js'
import { compareKernel, whereKernel } from './select.js'
import { VarianceRows } from './statistics.js'

/** `heap` gives the memory to compute in; asked for at the first kernel that needs it. */
export function createWasmBackend(heap: () => KernelHeap): ArrayBackend {
  const own = ownCells(new LazyInstance(heap))
  return {
    name: 'wasm',
    label: 'wasm',
    kernels: overJs(own),
    userKernels: hostUserKernels(),
    // For dense operands; strided ones may run as loops, with the same bits.
    variantOf: (op, dtype, shape) => (own as AnyCells)[op]?.[dtype]?.variant(shape.reduce((n, extent) => n * extent, 1)) ?? 'loop',
  }
}

/** The cells without the types of their kernels, whose union would be too large for the compiler. */
type AnyCells = Readonly<Partial<Record<KernelOp, Partial<Record<DType, OwnCell<object>>>>>>

function overJs(own: OwnCells): ArrayKernelTable {
  const cells = (op: KernelOp) => Object.entries((own as AnyCells)[op] ?? {}).map(([dtype, cell]) => [dtype, cell.kernel])
  return Object.fromEntries(
    KERNEL_OPS.map((op) => [op, { ...jsKernels[op], ...Object.fromEntries(cells(op)) }]),
  ) as unknown as ArrayKernelTable
}

const bySize: Rule = (elements) => (elements < SIMD_FROM ? 'loop' : 'simd')
const always: Rule = () => 'simd'
const oneLane: Rule = () => 'wasm'
/** `variantOf` gets the output's shape, and these choose by the input's size, between forms with the same bits. */
const byInput: Rule = () => 'simd (loop for small inputs)'
const byProduct: Rule = () => 'simd tiles (loop for small products)'
const copying: Rule = () => 'loop (simd for conversions and strides)'
const bySquare: Rule = (elements) => (elements < SIMD_FROM ? 'loop' : 'simd (loop but for exponent 2)')
const byExponent: Rule = () => 'simd (loop for the exponents 0.5 and -0.5, and for few squares)'

/** The js backend has loops in all cells of these operations that are asked for here. */
type Loops = {
  readonly [Op in CompareOp | 'sign' | 'clamp' | RoundingOp | 'copy' | 'where' | 'pow']: { readonly [D in DType]: ArrayKernelMap<D>[Op] }
}
type RoundingOp = 'floor' | 'ceil' | 'round' | 'trunc' | 'reciprocal' | 'rsqrt'

function ownCells(instance: LazyInstance): OwnCells {
  const loops = jsKernels as Pick<ArrayKernelTable, keyof Loops> as Loops
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
  const arithmetic = (name: 'add' | 'sub' | 'maximum' | 'minimum', row: typeof rows.addF32, wide: typeof rows.addWide) =>
    by(bySize, { float32: f32(name, row), float64: f64(name, wide), int32: i32(name, wide) })
  const compare = (op: CompareOp) => {
    const cells = loops[op]
    return by(bySize, {
      float32: compareKernel(instance, 'float32', op, cells.float32),
      float64: compareKernel(instance, 'float64', op, cells.float64),
      int32: compareKernel(instance, 'int32', op, cells.int32),
    })
  }
  const exact = (op: 'sign' | 'clamp') => {
    const cells = loops[op]
    return by(bySize, {
      float32: new UnaryExact(instance, 'float32', `${op}_f32`, cells.float32),
      float64: new UnaryExact(instance, 'float64', `${op}_f64`, cells.float64),
      int32: new UnaryExact(instance, 'int32', `${op}_i32`, cells.int32),
    })
  }
  const polynomial = (name: UnaryExport, rule = always) => by(rule, { float32: new UnaryPolynomial(instance, name) })
  const rounding = (op: RoundingOp) => ({
    ...polynomial(`${op}_f32`),
    ...by(bySize, { float64: new UnaryExact(instance, 'float64', `${op}_f64`, loops[op].float64) }),
  })
  const gradient = (name: GradientExport) => by(always, { float32: new FusedGradient(instance, name) })
  const { copy, where, pow } = loops
  return {
    neg: by(bySize, { ...unary('neg', rows.negF32, rows.negWide), ...unaryInt('neg', rows.negWide) }),
    abs: by(bySize, { ...unary('abs', rows.absF32, rows.absWide), ...unaryInt('abs', rows.absWide) }),
    relu: by(bySize, { ...unary('relu', rows.reluF32, rows.reluWide), ...unaryInt('relu', rows.reluWide) }),
    sqrt: by(bySize, unary('sqrt', rows.sqrtF32, rows.sqrtWide)),
    ...(Object.fromEntries(COMPARE_OPS.map((op) => [op, compare(op)])) as Pick<OwnCells, CompareOp>),
    sign: exact('sign'),
    clamp: exact('clamp'),
    pow: {
      ...by(byExponent, { float32: powF32(instance, powKernel(instance, 'float32', pow.float32)) }),
      ...by(bySquare, { float64: powKernel(instance, 'float64', pow.float64) }),
    },
    where: by(bySize, {
      float32: whereKernel(instance, 'float32', where.float32),
      float64: whereKernel(instance, 'float64', where.float64),
      int32: whereKernel(instance, 'int32', where.int32),
    }),
    exp: polynomial('exp_f32'),
    log: polynomial('log_f32'),
    tanh: polynomial('tanh_f32'),
    sigmoid: polynomial('sigmoid_f32'),
    sin: polynomial('sin_f32', oneLane),
    cos: polynomial('cos_f32', oneLane),
    tan: polynomial('tan_f32', oneLane),
    log2: polynomial('log2_f32'),
    log10: polynomial('log10_f32'),
    exp2: polynomial('exp2_f32'),
    sinh: polynomial('sinh_f32'),
    cosh: polynomial('cosh_f32'),
    asin: polynomial('asin_f32'),
    acos: polynomial('acos_f32'),
    atan: polynomial('atan_f32'),
    expm1: polynomial('expm1_f32'),
    log1p: polynomial('log1p_f32'),
    erf: polynomial('erf_f32'),
    leakyRelu: polynomial('leaky_relu_f32'),
    elu: polynomial('elu_f32'),
    silu: polynomial('silu_f32'),
    softplus: polynomial('softplus_f32'),
    gelu: polynomial('gelu_f32'),
    geluTanh: polynomial('gelu_tanh_f32'),
    power: by(always, { float32: new BinaryPolynomial(instance, 'power_f32') }),
    atan2: by(always, { float32: new BinaryPolynomial(instance, 'atan2_f32') }),
    rsqrt: rounding('rsqrt'),
    reciprocal: rounding('reciprocal'),
    floor: rounding('floor'),
    ceil: rounding('ceil'),
    round: rounding('round'),
    trunc: rounding('trunc'),
    reluBackward: by(bySize, { float32: new FusedGradient(instance, 'relu_backward_f32', reluRow) }),
    tanhBackward: by(bySize, { float32: new FusedGradient(instance, 'tanh_backward_f32', tanhRow) }),
    sigmoidBackward: by(bySize, { float32: new FusedGradient(instance, 'sigmoid_backward_f32', sigmoidRow) }),
    leakyReluBackward: gradient('leaky_relu_backward_f32'),
    eluBackward: gradient('elu_backward_f32'),
    siluBackward: gradient('silu_backward_f32'),
    softplusBackward: gradient('softplus_backward_f32'),
    geluBackward: gradient('gelu_backward_f32'),
    geluTanhBackward: gradient('gelu_tanh_backward_f32'),
    softmaxBackward: by(always, { float32: new GradientRows(instance, 'softmax_backward_rows_f32') }),
    logSoftmaxBackward: by(always, { float32: new GradientRows(instance, 'log_softmax_backward_rows_f32') }),
    add: arithmetic('add', rows.addF32, rows.addWide),
    sub: arithmetic('sub', rows.subF32, rows.subWide),
    mul: by(bySize, { float32: f32('mul', rows.mulF32), float64: f64('mul', rows.mulWide), int32: i32('mul', rows.mulI32) }),
    div: by(bySize, { float32: f32('div', rows.divF32), float64: f64('div', rows.divWide) }),
    maximum: arithmetic('maximum', rows.maximumF32, rows.maximumWide),
    minimum: arithmetic('minimum', rows.minimumF32, rows.minimumWide),
    axpy: by(bySize, { float32: new AxpyArithmetic(instance, 'float32'), float64: new AxpyArithmetic(instance, 'float64') }),
    copy: by(copying, {
      float32: copyWith(instance, copy.float32),
      float64: copyWith(instance, copy.float64),
      int32: copyWith(instance, copy.int32),
      bool: copyWith(instance, copy.bool),
    }),
    sum: by(byInput, { float32: new SumRows(instance) }),
    amax: by(byInput, { float32: new ExtremeRows(instance, true) }),
    amin: by(byInput, { float32: new ExtremeRows(instance, false) }),
    variance: by(byInput, { float32: new VarianceRows(instance) }),
    softmax: by(always, { float32: new SoftmaxRows(instance, 'softmax_rows_f32') }),
    logSoftmax: by(always, { float32: new SoftmaxRows(instance, 'log_softmax_rows_f32') }),
    matmul: by(byProduct, {
      float32: new MatmulTiles<ArrayOf['float32']>(instance, 'float32'),
      float64: new MatmulTiles<ArrayOf['float64']>(instance, 'float64'),
    }),
    ...neuralCells(instance),
  }
}
