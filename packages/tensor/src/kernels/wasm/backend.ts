/**
 * The wasm backend: which kernel of this folder stands in which cell of the table, and plain loops of the reference backend where SIMD
 * has nothing to give (comparisons, `where`, bool, int32 and float64 functions: staging would cost more than the loop).
 */
import type { ArrayOf, DType } from '../../dtype.js'
import { copyKernel, embeddingKernel, fillKernel } from '../host/movement.js'
import * as rows from '../host/rows.js'
import { createReferenceBackend } from '../reference/backend.js'
import type { Backend, BinaryKernel, Dims, KernelOp, KernelTable } from '../table.js'
import { AxpyArithmetic, BinaryArithmetic, SIMD_FROM, UnaryArithmetic, UnaryPolynomial } from './elementwise.js'
import { LazyInstance } from './instance.js'
import { MatmulTiles, TILES_FROM } from './matmul.js'
import { type KernelHeap, ScratchMemory } from './memory.js'
import { AmaxRows, SoftmaxRows, SumRows, sumLoop } from './rows.js'

/** `heap` gives the memory to compute in; asked for at the first kernel that needs it. */
export function createWasmBackend(heap: () => KernelHeap = () => new ScratchMemory()): Backend {
  return {
    name: 'wasm',
    label: 'wasm',
    mode: null,
    kernels: createTable(new LazyInstance(heap)),
    synchronous: true,
    ready: () => Promise.resolve(),
    settle: () => Promise.resolve(),
    variantOf,
  }
}

function createTable(instance: LazyInstance): KernelTable {
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
  return {
    ...loops,
    neg: { ...loops.neg, float32: new UnaryArithmetic(instance, 'neg_f32', rows.negF32) },
    abs: { ...loops.abs, float32: new UnaryArithmetic(instance, 'abs_f32', rows.absF32) },
    sqrt: { ...loops.sqrt, float32: new UnaryArithmetic(instance, 'sqrt_f32', rows.sqrtF32) },
    relu: { ...loops.relu, float32: new UnaryArithmetic(instance, 'relu_f32', rows.reluF32) },
    exp: { ...loops.exp, float32: new UnaryPolynomial(instance, 'exp_f32') },
    log: { ...loops.log, float32: new UnaryPolynomial(instance, 'log_f32') },
    tanh: { ...loops.tanh, float32: new UnaryPolynomial(instance, 'tanh_f32') },
    sigmoid: { ...loops.sigmoid, float32: new UnaryPolynomial(instance, 'sigmoid_f32') },
    sin: { ...loops.sin, float32: new UnaryPolynomial(instance, 'sin_f32') },
    cos: { ...loops.cos, float32: new UnaryPolynomial(instance, 'cos_f32') },
    add: { ...loops.add, float32: f32('add', rows.addF32), float64: f64('add', rows.addWide), int32: i32('add', rows.addWide) },
    sub: { ...loops.sub, float32: f32('sub', rows.subF32), float64: f64('sub', rows.subWide), int32: i32('sub', rows.subWide) },
    mul: { ...loops.mul, float32: f32('mul', rows.mulF32), float64: f64('mul', rows.mulWide), int32: i32('mul', rows.mulI32) },
    div: { ...loops.div, float32: f32('div', rows.divF32), float64: f64('div', rows.divWide) },
    maximum: {
      ...loops.maximum,
      float32: f32('maximum', rows.maximumF32),
      float64: f64('maximum', rows.maximumWide),
      int32: i32('maximum', rows.maximumWide),
    },
    minimum: {
      ...loops.minimum,
      float32: f32('minimum', rows.minimumF32),
      float64: f64('minimum', rows.minimumWide),
      int32: i32('minimum', rows.minimumWide),
    },
    axpy: { ...loops.axpy, float32: new AxpyArithmetic(instance, 'float32'), float64: new AxpyArithmetic(instance, 'float64') },
    copy: everywhere(copyKernel) as KernelTable['copy'],
    fill: everywhere(fillKernel) as KernelTable['fill'],
    sum: { ...loops.sum, float32: new SumRows(instance), float64: { run: sumLoop } },
    amax: { ...loops.amax, float32: new AmaxRows(instance) },
    softmax: { ...loops.softmax, float32: new SoftmaxRows(instance, 'softmax_rows_f32') },
    logSoftmax: { ...loops.logSoftmax, float32: new SoftmaxRows(instance, 'log_softmax_rows_f32') },
    matmul: {
      ...loops.matmul,
      float32: new MatmulTiles<ArrayOf['float32']>(instance, 'float32'),
      float64: new MatmulTiles<ArrayOf['float64']>(instance, 'float64'),
    },
    embedding: everywhere(embeddingKernel) as KernelTable['embedding'],
  }
}

type Rule = (elements: number, shape: Dims) => string
const bySize: Rule = (elements) => (elements < SIMD_FROM ? 'loop' : 'simd')
const always: Rule = () => 'simd'
/** The shape that `variantOf` gets is the output's, and these choose by the input's size, between forms with the same bits. */
const byInput: Rule = () => 'simd (loop for small inputs)'
const byTile: Rule = (_, shape) => {
  const [m = 1, n = 1] = shape.slice(-2)
  return m * n < TILES_FROM ? 'loop' : 'simd tiles'
}
const movement: Rule = () => 'host copy'

const F32_RULES: Readonly<Partial<Record<KernelOp, Rule>>> = {
  ...{ neg: bySize, abs: bySize, sqrt: bySize, relu: bySize },
  ...{ exp: always, log: always, tanh: always, sigmoid: always, softmax: always, logSoftmax: always },
  ...{ sin: () => 'wasm', cos: () => 'wasm' },
  ...{ add: bySize, sub: bySize, mul: bySize, div: bySize, maximum: bySize, minimum: bySize, axpy: bySize },
  ...{ sum: byInput, amax: byInput, matmul: byTile },
}
const F64_RULES: Readonly<Partial<Record<KernelOp, Rule>>> = {
  ...{ add: bySize, sub: bySize, mul: bySize, div: bySize, maximum: bySize, minimum: bySize, axpy: bySize, matmul: byTile },
}
const I32_RULES: Readonly<Partial<Record<KernelOp, Rule>>> = { add: bySize, sub: bySize, mul: bySize, maximum: bySize, minimum: bySize }
const RULES: Readonly<Partial<Record<DType, Partial<Record<KernelOp, Rule>>>>> = {
  float32: F32_RULES,
  float64: F64_RULES,
  int32: I32_RULES,
}
const MOVEMENT: ReadonlySet<KernelOp> = new Set(['copy', 'fill', 'embedding'])

/** For dense operands; strided ones run the same rows without SIMD, with the same bits. */
function variantOf(op: KernelOp, dtype: DType, shape: Dims): string {
  let elements = 1
  for (let d = 0; d < shape.length; d++) elements *= shape[d]!
  const rule = MOVEMENT.has(op) ? movement : RULES[dtype]?.[op]
  return rule === undefined ? 'loop' : rule(elements, shape)
}
