/** Bounds gradients: the norm of all together, or each element. PyTorch: `torch.nn.utils.clip_grad_norm_`, `clip_grad_value_`. */
import { PostgradError } from '@postgrad/base'
import { isTensor, type Tensor, zeros } from '@postgrad/tensor'
import { invalidArgument, peekGrad, raw } from '@postgrad/tensor/internal'

/** Options of `clipGradValue_`. */
export interface ClipGradOptions {
  /** The gradient of each parameter, as for `Optimizer.step`; default `.grad`. Parameters without a gradient do not count. */
  readonly grads?: ReadonlyMap<Tensor, Tensor>
}

/** Options of `clipGradNorm_`. */
export interface ClipGradNormOptions extends ClipGradOptions {
  /** The p > 0 of the p-norm, or Infinity for the largest absolute value; default 2. */
  readonly normType?: number
  /** Whether to fail with GRAD_NOT_FINITE, instead of scaling, if the norm is infinite or NaN; default false. This reads the norm back from the device. */
  readonly errorIfNonfinite?: boolean
}

/**
 * Scales the gradients in place by min(1, maxNorm / norm), where norm is the p-norm of all gradients as one vector. Returns the norm before the scaling, a
 * tensor []. Nothing is read back from the device unless `errorIfNonfinite` is set. PyTorch: `torch.nn.utils.clip_grad_norm_`.
 * @throws INVALID_ARGUMENT if `parameters` is not a list of parameters, maxNorm is negative, or normType is not positive; GRAD_NOT_FINITE if `errorIfNonfinite`
 * is set and the norm is not finite (nothing is scaled then)
 * @example
 * const w = tensor([3, 4], { requiresGrad: true })
 * w.square().sum().backward() // the gradient is [6, 8], of norm 10
 * clipGradNorm_([w], 1) // 10
 * w.grad! // [0.6, 0.8]
 */
export function clipGradNorm_(parameters: Iterable<Tensor> | Tensor, maxNorm: number, options: ClipGradNormOptions = {}): Tensor {
  const { normType = 2, errorIfNonfinite = false } = options
  if (!(maxNorm >= 0)) throw invalidArgument('clipGradNorm_', 'a maxNorm ≥ 0', maxNorm)
  if (!(normType > 0)) throw invalidArgument('clipGradNorm_', 'a normType > 0 or Infinity', normType)
  const found = gradientsOf('clipGradNorm_', parameters, options)
  if (found.length === 0) return zeros([])
  const norm = normOfShares(
    found.map((g) => normShare(g, normType)),
    normType,
  )
  if (errorIfNonfinite) checkFinite(norm.itemSync(), normType)
  const factor = clipFactor(norm, maxNorm)
  for (const g of found) raw.mul_(g, factor)
  return norm
}

/** @throws GRAD_NOT_FINITE */
export function checkFinite(norm: number, normType: number, op = 'clipGradNorm_'): void {
  if (Number.isFinite(norm)) return
  throw new PostgradError('GRAD_NOT_FINITE', {
    op,
    expected: 'gradients whose norm is finite',
    got: `a norm of ${norm}`,
    remedy: 'Skip this step, lower the learning rate, or leave errorIfNonfinite out.',
    values: { normType: String(normType) },
  })
}

/** min(1, maxNorm / norm), a tensor []. The small term is PyTorch's: it keeps 0 / 0 away. */
export function clipFactor(norm: Tensor, maxNorm: number): Tensor {
  return raw.clamp(raw.div(maxNorm, raw.add(norm, 1e-6)), null, 1)
}

/** The existing gradients of the parameters. @throws INVALID_ARGUMENT for a value that is not a list, which `Array.from` would take for empty */
export function gradientsOf(op: string, parameters: Iterable<Tensor> | Tensor, { grads }: ClipGradOptions): Tensor[] {
  if (!isTensor(parameters) && typeof parameters?.[Symbol.iterator] !== 'function') {
    throw invalidArgument(op, 'parameters: a tensor, or a list of them', typeof parameters, 'Pass module.parameters().')
  }
  return Array.from(isTensor(parameters) ? [parameters] : parameters, (p) => (grads === undefined ? peekGrad(p) : grads.get(p))).filter(
    (g) => g !== null && g !== undefined,
  )
}

/**
 * The share of one gradient in the norm, a tensor []: the sum of its p-th powers, or its largest absolute value (0 for a gradient without
 * elements). The shares of all workers' gradients, in one order, give the same bits as the gradients in one place.
 */
export function normShare(g: Tensor, normType: number): Tensor {
  if (normType === Number.POSITIVE_INFINITY) return g.numel === 0 ? zeros([], { dtype: g.dtype, device: g.device }) : raw.amax(raw.abs(g))
  return raw.sum(normType === 2 ? raw.mul(g, g) : normType === 1 ? raw.abs(g) : raw.pow(raw.abs(g), normType))
}

/** The norm over at least one share. */
export function normOfShares(shares: readonly Tensor[], normType: number): Tensor {
  if (normType === Number.POSITIVE_INFINITY) return raw.amax(raw.stack(shares))
  const total = raw.sum(raw.stack(shares))
  return normType === 1 ? total : normType === 2 ? raw.sqrt(total) : raw.pow(total, 1 / normType)
}

/**
 * Clamps the gradients in place to −clipValue … clipValue. NaN stays NaN. PyTorch: `torch.nn.utils.clip_grad_value_`.
 * @throws INVALID_ARGUMENT if `parameters` is not a list of parameters, or clipValue is negative
 * @example
 * const w = tensor([0.1, -4], { requiresGrad: true })
 * w.square().sum().backward()
 * clipGradValue_([w], 1)
 * w.grad! // [0.2, -1]
 */
export function clipGradValue_(parameters: Iterable<Tensor> | Tensor, clipValue: number, options: ClipGradOptions = {}): void {
  if (!(clipValue >= 0)) throw invalidArgument('clipGradValue_', 'a clipValue ≥ 0', clipValue)
  for (const g of gradientsOf('clipGradValue_', parameters, options)) raw.clamp_(g, -clipValue, clipValue)
}
