/**
 * The gpujs backend: which kernels of this folder stand in which cell of the table, and why the others have none. Float32 is the only
 * type that gpu.js computes in; the js backend's loops move data (copy, fill, conversion, elements at indices), for all types, and says so.
 */
import type { DType } from '../../values/dtype.js'
import { gatherKernel, indexSelectKernel, scatterKernel } from '../js/indexed.js'
import { copyKernel, fillKernel } from '../js/movement.js'
import {
  type ArrayBackend,
  type ArrayKernelMap,
  type ArrayKernelTable,
  COMPARE_OPS,
  type CompareOp,
  GRAD_OPS,
  type GradOp,
  type KernelOp,
  UNARY_OPS,
  type UnaryOp,
  unsupported,
} from '../table/table.js'
import { KernelCompiler } from './compiler.js'
import { GpuKernels } from './kernels.js'
import { neuralKernels } from './neural-kernels.js'
import { GpuUserKernels } from './user-kernels.js'

const FLOAT64 = unsupported('gpu.js returns float32 alone, which would drop half of the digits')
const INT32 = unsupported('gpu.js computes in float32, in which integers are exact only up to 2^24')
const BOOL = unsupported('the operation has no meaning on bool; raw operations convert first')
const REAL = unsupported('the operation is defined on real numbers; raw operations convert to float32 first')

const REAL_BITS = unsupported('bits are those of integers; raw operations refuse real numbers')
const BITS = { float32: REAL_BITS, float64: REAL_BITS, int32: INT32 }

/** Nothing is loaded yet: kernels are compiled at their first call, and their mode is checked then. No device runs them yet; tests do. */
export function createGpujsBackend(compiler = new KernelCompiler()): ArrayBackend {
  return {
    name: 'gpujs',
    label: 'gpujs',
    kernels: createTable(new GpuKernels(compiler)),
    userKernels: new GpuUserKernels(compiler),
    variantOf: (op) => (MOVEMENT.has(op) ? 'loop' : 'gpu.js cpu'),
  }
}

/** Done by loops for every dtype: nothing is computed. */
export const MOVEMENT: ReadonlySet<KernelOp> = new Set(['copy', 'fill', 'indexSelect', 'gather', 'scatter'])

/** Functions of real numbers alone. */
const REAL_OPS = [
  ...(['exp', 'log', 'sqrt', 'sin', 'cos', 'tanh', 'sigmoid', 'floor', 'ceil', 'round', 'trunc', 'reciprocal', 'rsqrt'] as const),
  ...(['log1p', 'expm1', 'log2', 'log10', 'exp2', 'tan', 'sinh', 'cosh', 'asin', 'acos', 'atan', 'erf'] as const),
  ...(['leakyRelu', 'gelu', 'geluTanh', 'silu', 'softplus', 'elu'] as const),
] as const

function createTable(gpu: GpuKernels): ArrayKernelTable {
  const float = <Op extends KernelOp>(float32: ArrayKernelMap<'float32'>[Op], int32 = INT32, bool = BOOL) => ({
    float32,
    float64: FLOAT64,
    int32,
    bool,
  })
  const real = <Op extends KernelOp>(float32: ArrayKernelMap<'float32'>[Op]) => float<Op>(float32, REAL, REAL)
  const movement = <K>(make: (dtype: DType) => K) => ({
    float32: make('float32'),
    float64: make('float64'),
    int32: make('int32'),
    bool: make('bool'),
  })
  const unary = Object.fromEntries(UNARY_OPS.map((op) => [op, float<'neg'>(gpu.unary(op))])) as Pick<ArrayKernelTable, UnaryOp>
  const realOps = Object.fromEntries(REAL_OPS.map((op) => [op, real<'exp'>(gpu.unary(op))])) as Pick<
    ArrayKernelTable,
    (typeof REAL_OPS)[number]
  >
  const gradients = Object.fromEntries(GRAD_OPS.map((op) => [op, real<'reluBackward'>(gpu.gradient(op))])) as Pick<ArrayKernelTable, GradOp>
  const compare = Object.fromEntries(
    COMPARE_OPS.map((op) => [op, { ...float<'eq'>(gpu.binary(op)), bool: gpu.binary<Uint8Array, Uint8Array>(op) }]),
  ) as Pick<ArrayKernelTable, CompareOp>
  return {
    ...unary,
    ...realOps,
    sign: { ...unary.sign, bool: gpu.unary('sign') },
    ...compare,
    // On bool: or is the maximum, and the product.
    add: { ...float<'add'>(gpu.binary('add')), bool: gpu.binary('maximum') },
    sub: float<'sub'>(gpu.binary('sub')),
    mul: { ...float<'mul'>(gpu.binary('mul')), bool: gpu.binary('mul') },
    div: float<'div'>(gpu.binary('div'), REAL, REAL),
    maximum: { ...float<'maximum'>(gpu.binary('maximum')), bool: gpu.binary('maximum') },
    minimum: { ...float<'minimum'>(gpu.binary('minimum')), bool: gpu.binary('minimum') },
    power: float<'power'>(gpu.binary('power')),
    remainder: float<'remainder'>(gpu.binary('remainder')),
    fmod: float<'fmod'>(gpu.binary('fmod')),
    floorDivide: float<'floorDivide'>(gpu.binary('floorDivide')),
    atan2: real<'atan2'>(gpu.binary('atan2')),
    bitwiseAnd: { ...BITS, bool: gpu.binary('mul') },
    bitwiseOr: { ...BITS, bool: gpu.binary('maximum') },
    bitwiseXor: { ...BITS, bool: gpu.binary('ne') },
    where: { ...float<'where'>(gpu.where()), bool: gpu.where() },
    axpy: float<'axpy'>(gpu.axpy()),
    copy: movement(copyKernel) as ArrayKernelTable['copy'],
    fill: movement(fillKernel) as ArrayKernelTable['fill'],
    sum: float<'sum'>(gpu.reduce('sum')),
    amax: { ...float<'amax'>(gpu.reduce('amax')), bool: gpu.reduce('amax') },
    prod: float<'prod'>(gpu.reduce('prod')),
    amin: { ...float<'amin'>(gpu.reduce('amin')), bool: gpu.reduce('amin') },
    argmin: { ...float<'argmin'>(gpu.reduce('argmin')), bool: gpu.reduce('argmin') },
    argsort: { ...float<'argsort'>(gpu.argsort()), bool: gpu.argsort() },
    variance: real<'variance'>(gpu.variance()),
    ...gradients,
    softmaxBackward: real<'softmaxBackward'>(gpu.gradientRows('softmaxBackward')),
    logSoftmaxBackward: real<'logSoftmaxBackward'>(gpu.gradientRows('logSoftmaxBackward')),
    prodBackward: real<'prodBackward'>(gpu.productBackward('prodBackward')),
    cumprodBackward: real<'cumprodBackward'>(gpu.productBackward('cumprodBackward')),
    cumsum: float<'cumsum'>(gpu.scan('cumsum')),
    cumprod: float<'cumprod'>(gpu.scan('cumprod')),
    reverseCumsum: float<'reverseCumsum'>(gpu.scan('reverseCumsum')),
    argmax: { ...float<'argmax'>(gpu.reduce('argmax')), bool: gpu.reduce('argmax') },
    softmax: real<'softmax'>(gpu.softmax('softmax')),
    logSoftmax: real<'logSoftmax'>(gpu.softmax('logSoftmax')),
    matmul: float<'matmul'>(gpu.matmul()),
    nll: real<'nll'>(gpu.nll()),
    nllBackward: real<'nllBackward'>(gpu.nllBackward()),
    indexSelect: movement(indexSelectKernel) as ArrayKernelTable['indexSelect'],
    gather: movement(gatherKernel) as ArrayKernelTable['gather'],
    scatter: movement(scatterKernel) as ArrayKernelTable['scatter'],
    indexAdd: float<'indexAdd'>(gpu.sumAtIndices('indexAdd')),
    scatterAdd: float<'scatterAdd'>(gpu.sumAtIndices('scatterAdd')),
    ...neuralKernels(gpu),
  }
}
