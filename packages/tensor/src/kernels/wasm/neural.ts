/** The kernels of neural networks in the wasm backend: which code stands in which of their cells, a part of `backend.ts`'s table. */
import type { ArrayOf } from '../../values/dtype.js'
import * as norm from '../host/norm.js'
import * as pool from '../host/pool.js'
import type { NEURAL_KERNEL_OPS } from '../table/neural.js'
import type { ArrayKernelTable, KernelOp } from '../table/table.js'
import { ConvTiles } from './conv.js'
import type { LazyInstance } from './instance.js'
import { LayerNormRows, LayerNormRowsBackward } from './norm.js'
import { AvgPoolPlanes, AvgPoolPlanesBackward, MaxPoolPlanes } from './pool.js'

type NeuralOp = (typeof NEURAL_KERNEL_OPS)[number]

export function neuralKernels(instance: LazyInstance, loops: ArrayKernelTable): Pick<ArrayKernelTable, NeuralOp> {
  const conv = <Op extends 'conv2d' | 'conv2dInput' | 'conv2dWeight'>(op: Op) => ({
    ...loops[op],
    float32: new ConvTiles<ArrayOf['float32']>(instance, 'float32', op),
    float64: new ConvTiles<ArrayOf['float64']>(instance, 'float64', op),
  })
  type F = ArrayOf['float32']
  type D = ArrayOf['float64']
  return {
    conv2d: conv('conv2d'),
    conv2dInput: conv('conv2dInput'),
    conv2dWeight: conv('conv2dWeight'),
    maxPool2d: { ...loops.maxPool2d, float32: new MaxPoolPlanes(instance), float64: pool.maxPool2d<D>() },
    avgPool2d: { ...loops.avgPool2d, float32: new AvgPoolPlanes(instance), float64: pool.avgPool2d<D>() },
    avgPool2dBackward: { ...loops.avgPool2dBackward, float32: new AvgPoolPlanesBackward(instance), float64: pool.avgPool2dBackward<D>() },
    layerNorm: { ...loops.layerNorm, float32: new LayerNormRows(instance), float64: norm.layerNorm<D>() },
    layerNormBackward: { ...loops.layerNormBackward, float32: new LayerNormRowsBackward(instance), float64: norm.layerNormBackward<D>() },
    channelNorm: { ...loops.channelNorm, float32: norm.channelNorm<F>(), float64: norm.channelNorm<D>() },
    channelNormBackward: { ...loops.channelNormBackward, float32: norm.channelNormBackward<F>(), float64: norm.channelNormBackward<D>() },
  }
}

const tiles = () => 'simd tiles'
/** For `variantOf`, of float32 and float64. */
export const NEURAL_RULES = { conv2d: tiles, conv2dInput: tiles, conv2dWeight: tiles } as const satisfies Partial<
  Record<KernelOp, () => string>
>
const simd = () => 'simd'
export const NEURAL_F32_RULES = {
  ...NEURAL_RULES,
  ...{ layerNorm: simd, layerNormBackward: simd, maxPool2d: simd, avgPool2d: simd, avgPool2dBackward: () => 'wasm' },
} as const
