/**
 * The adapters of neural networks' kernels over arrays: convolutions, pooling, normalisation. A part of `over-arrays.ts`; below: `neural.ts`, what these kernels
 * take.
 */
import type { TypedArray } from '../../values/dtype.js'
import { numelOf } from '../../values/shape.js'
import type {
  AvgPoolKernel,
  ChannelNormBackwardKernel,
  ChannelNormKernel,
  ConvKernel,
  LayerNormBackwardKernel,
  LayerNormKernel,
  MaxPoolKernel,
} from './neural.js'
import type { AvgPool, Conv, MaxPool, Norm, NormBackward, Operand } from './operands.js'

type A = TypedArray

export function conv(kernel: ConvKernel<A>): Conv {
  return (a, b, out, geometry) => kernel.run(geometry, a.storage.host!, a.offset, b.storage.host!, b.offset, out.storage.host!, out.offset)
}

export function maxPool(kernel: MaxPoolKernel<A>): MaxPool {
  return (x, out, indices, geometry) =>
    kernel.run(geometry, x.storage.host!, x.offset, out.storage.host!, out.offset, indices.storage.host as Int32Array, indices.offset)
}

export function avgPool(kernel: AvgPoolKernel<A>): AvgPool {
  return (x, out, geometry) => kernel.run(geometry, x.storage.host!, x.offset, out.storage.host!, out.offset)
}

const arrayOf = (x: Operand | null): A | null => (x === null ? null : x.storage.host!)

/** For kernels that take no offset. */
function fromOffset(x: Operand): A {
  return x.offset === 0 ? x.storage.host! : x.storage.host!.subarray(x.offset)
}
const wanted = (x: Operand | null): A | null => (x === null ? null : fromOffset(x))

export function layerNorm(kernel: LayerNormKernel<A>): Norm {
  return (x, weight, bias, out, mean, rstd, eps) => {
    const [rows, d] = x.shape as readonly [number, number]
    const to = [fromOffset(out), fromOffset(mean), fromOffset(rstd)] as const
    kernel.run(rows, d, eps, x.storage.host!, x.offset, arrayOf(weight), weight?.offset ?? 0, arrayOf(bias), bias?.offset ?? 0, ...to)
  }
}

export function layerNormBackward(kernel: LayerNormBackwardKernel<A>): NormBackward {
  return (g, x, mean, rstd, weight, out, weightGrad, biasGrad) => {
    const [rows, d] = x.shape as readonly [number, number]
    const saved = [fromOffset(mean), fromOffset(rstd)] as const
    const to = [fromOffset(out), wanted(weightGrad), wanted(biasGrad)] as const
    kernel.run(rows, d, g.storage.host!, g.offset, x.storage.host!, x.offset, ...saved, arrayOf(weight), weight?.offset ?? 0, ...to)
  }
}

/** What follows the channels of x [n, c, …]. */
const innerOf = (x: Operand): number => numelOf(x.shape.slice(2))

export function channelNorm(kernel: ChannelNormKernel<A>): Norm {
  return (x, weight, bias, out, mean, spread, eps) => {
    const [n, c] = x.shape as readonly [number, number]
    const to = [fromOffset(out), fromOffset(mean), fromOffset(spread)] as const
    const [w, b] = [arrayOf(weight), arrayOf(bias)]
    kernel.run(n, c, innerOf(x), eps, x.storage.host!, x.offset, w, weight?.offset ?? 0, b, bias?.offset ?? 0, ...to)
  }
}

export function channelNormBackward(kernel: ChannelNormBackwardKernel<A>): NormBackward {
  return (g, x, mean, spread, weight, out, weightGrad, biasGrad, eps) => {
    const [n, c] = x.shape as readonly [number, number]
    const saved = [fromOffset(mean), fromOffset(spread)] as const
    const to = [fromOffset(out), wanted(weightGrad), wanted(biasGrad)] as const
    kernel.run(
      n,
      c,
      innerOf(x),
      eps,
      g.storage.host!,
      g.offset,
      x.storage.host!,
      x.offset,
      ...saved,
      arrayOf(weight),
      weight?.offset ?? 0,
      ...to,
    )
  }
}
