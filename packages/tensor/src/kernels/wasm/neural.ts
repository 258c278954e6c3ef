/** The kernels of neural networks in the wasm backend: which code stands in which of their cells, a part of `backend.ts`'s table. */
import type { ArrayOf } from '../../dtype.js'
import type { NEURAL_KERNEL_OPS } from '../neural.js'
import type { KernelOp, KernelTable } from '../table.js'
import { ConvTiles } from './conv.js'
import type { LazyInstance } from './instance.js'

type NeuralOp = (typeof NEURAL_KERNEL_OPS)[number]

export function neuralKernels(instance: LazyInstance, loops: KernelTable): Pick<KernelTable, NeuralOp> {
  const conv = <Op extends 'conv2d' | 'conv2dInput' | 'conv2dWeight'>(op: Op) => ({
    ...loops[op],
    float32: new ConvTiles<ArrayOf['float32']>(instance, 'float32', op),
    float64: new ConvTiles<ArrayOf['float64']>(instance, 'float64', op),
  })
  return { conv2d: conv('conv2d'), conv2dInput: conv('conv2dInput'), conv2dWeight: conv('conv2dWeight') }
}

const tiles = () => 'simd tiles'
/** For `variantOf`, of float32 and float64. */
export const NEURAL_RULES = { conv2d: tiles, conv2dInput: tiles, conv2dWeight: tiles } as const satisfies Partial<
  Record<KernelOp, () => string>
>
