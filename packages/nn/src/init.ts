/** How parameters begin: drawn from the scope's generator, as PyTorch draws its defaults. */
import { type DType, rand, randn, type Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'

export interface ParameterOptions {
  /** float32 (default) or float64. */
  readonly dtype?: DType
}

/** A parameter of this shape, uniform in [−bound, bound). */
export function uniform(shape: readonly number[], bound: number, { dtype = 'float32' }: ParameterOptions): Tensor {
  return raw.sub(raw.mul(rand(shape, { dtype }), 2 * bound), bound).requiresGrad_()
}

/** A parameter of this shape, standard normal. */
export function normal(shape: readonly number[], { dtype = 'float32' }: ParameterOptions): Tensor {
  return randn(shape, { dtype, requiresGrad: true })
}
