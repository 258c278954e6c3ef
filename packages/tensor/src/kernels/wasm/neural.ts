/** The wasm backend's own cells of the kernels of neural networks, a part of `backend.ts`'s table. */
import type { ArrayOf } from '../../values/dtype.js'
import { ConvTiles } from './conv.js'
import type { LazyInstance } from './instance.js'
import { LayerNormRows, LayerNormRowsBackward } from './norm.js'
import { by, type OwnCells, type Rule } from './own.js'
import { AvgPoolPlanes, AvgPoolPlanesBackward, MaxPoolPlanes } from './pool.js'

const tiles: Rule = () => 'simd tiles'
const simd: Rule = () => 'simd'

export function neuralCells(instance: LazyInstance) {
  const conv = (op: 'conv2d' | 'conv2dInput' | 'conv2dWeight') =>
    by(tiles, {
      float32: new ConvTiles<ArrayOf['float32']>(instance, 'float32', op),
      float64: new ConvTiles<ArrayOf['float64']>(instance, 'float64', op),
    })
  return {
    conv2d: conv('conv2d'),
    conv2dInput: conv('conv2dInput'),
    conv2dWeight: conv('conv2dWeight'),
    maxPool2d: by(simd, { float32: new MaxPoolPlanes(instance) }),
    avgPool2d: by(simd, { float32: new AvgPoolPlanes(instance) }),
    avgPool2dBackward: by(() => 'wasm', { float32: new AvgPoolPlanesBackward(instance) }),
    layerNorm: by(simd, { float32: new LayerNormRows(instance) }),
    layerNormBackward: by(simd, { float32: new LayerNormRowsBackward(instance) }),
  } satisfies OwnCells
}
