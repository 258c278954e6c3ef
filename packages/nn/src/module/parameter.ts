/** Makes parameters, and draws modules' initial values from the scope's generator, in PyTorch's distributions. */
import { type DType, full, rand, randn, type Tensor } from '@postgrad/tensor'
import { checkTensor, raw } from '@postgrad/tensor/internal'
import { checkFloating } from './check.js'

/** Options of every module with parameters. */
export interface ParameterOptions {
  /** The dtype of the parameters: float32 (default) or float64. */
  readonly dtype?: DType
}

/** Options of `parameter`. */
export interface ParameterSettings {
  /** Whether the parameter is trained; default true. If false, it still belongs to the parameters of its module. */
  readonly requiresGrad?: boolean
}

/**
 * Makes a parameter of `data`: a leaf on the same storage, without the history of `data`. If a field of a module holds it, it belongs to that module. PyTorch:
 * `torch.nn.Parameter`.
 * @throws REQUIRES_GRAD_NEEDS_FLOAT if `data` is int32 or bool
 * @example
 * class Scale extends Module {
 *   factor = parameter(ones([3])) // trained with the module
 *   forward(input: Tensor) { return input.mul(this.factor) }
 * }
 * new Scale().parameters().length // 1
 */
export function parameter(data: Tensor, { requiresGrad = true }: ParameterSettings = {}): Tensor {
  checkTensor('parameter', 'its values', data)
  const leaf = data.detach().requiresGrad_()
  return requiresGrad ? leaf : leaf.requiresGrad_(false)
}

/** A parameter of this shape, uniform in [−bound, bound). */
export function uniform(shape: readonly number[], bound: number, { dtype = 'float32' }: ParameterOptions): Tensor {
  checkFloating('parameter', dtype)
  return raw.sub(raw.mul(rand(shape, { dtype }), 2 * bound), bound).requiresGrad_()
}

/** A parameter of this shape, standard normal. */
export function normal(shape: readonly number[], { dtype = 'float32' }: ParameterOptions): Tensor {
  checkFloating('parameter', dtype)
  return randn(shape, { dtype, requiresGrad: true })
}

/** A parameter of this shape, everywhere `value`. */
export function constant(shape: readonly number[], value: number, { dtype = 'float32' }: ParameterOptions): Tensor {
  checkFloating('parameter', dtype)
  return full(shape, value, { dtype, requiresGrad: true })
}

/** The bound of a layer's default values: PyTorch's `kaiming_uniform_` with a = √5 for weights, and its biases' own rule, are the same. */
export function fanInBound(fanIn: number): number {
  return fanIn > 0 ? 1 / Math.sqrt(fanIn) : 0
}
