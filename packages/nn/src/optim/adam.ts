/**
 * Adam and AdamW. PyTorch: `torch.optim.Adam` and `torch.optim.AdamW`, whose formulas these are, at step t = 1, 2, …:
 *
 *     Adam:  g ← ±g + weightDecay · p          (− to maximize)
 *     AdamW: p ← p − lr · weightDecay · p
 *     m ← β₁ · m + (1 − β₁) · g
 *     v ← β₂ · v + (1 − β₂) · g²               (amsgrad: v̂ is the maximum of all v so far, else v)
 *     p ← p − lr / (1 − β₁ᵗ) · m / (√(v̂ / (1 − β₂ᵗ)) + eps)
 */
import { type Tensor, zerosLike } from '@postgrad/tensor'
import { raw, stepInto } from '@postgrad/tensor/internal'
import { addQuotient_, decay_, decaySquare_, direction, inPieces, rootPlus } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, checkBetas, settingsOf } from './settings.js'

/** Settings of a parameter group of `Adam` or `AdamW`. */
export interface AdamSettings {
  /** The learning rate; default 1e-3. */
  lr: number
  /** The decay rates of the running averages of the gradient and of its square; default [0.9, 0.999]. */
  betas: readonly [number, number]
  /** The number that is added to the root of the average square; default 1e-8. */
  eps: number
  /** The weight decay; default 0 for Adam (an L2 penalty), 1e-2 for AdamW. */
  weightDecay: number
  /** Whether to divide by the largest average square so far; default false. */
  amsgrad: boolean
  /** Whether to maximize instead of minimize; default false. */
  maximize: boolean
}

/** Options of `Adam` and `AdamW`: their settings, all with defaults. */
export type AdamOptions = Partial<AdamSettings>

type AdamState = { step: number; expAvg: Tensor; expAvgSq: Tensor; maxExpAvgSq?: Tensor }

const DEFAULTS: AdamSettings = { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, amsgrad: false, maximize: false }
const NAMES = Object.keys(DEFAULTS) as (keyof AdamSettings)[]

/**
 * Steps by running averages of the gradient and of its square. State of each parameter: `step`, `expAvg`, `expAvgSq`, and with amsgrad `maxExpAvgSq`. PyTorch:
 * `torch.optim.Adam`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new Adam([w], { lr: 0.1 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.9, 1.9]
 */
export class Adam extends OptimizerBase<AdamSettings, AdamState> {
  static {
    keepsNoGradient(Adam)
  }

  protected override readonly layout = { step: 'number', expAvg: 'tensor', expAvgSq: 'tensor', maxExpAvgSq: 'tensor?' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<AdamSettings>>, options: AdamOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: AdamSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'eps', 'weightDecay')
    checkBetas(this.op, settings.betas)
  }

  protected override update(p: Tensor, grad: Tensor, settings: AdamSettings): void {
    this.descend(p, grad, settings, settings.weightDecay, 1)
  }

  /** @param factor p is multiplied by it first */
  protected descend(p: Tensor, grad: Tensor, settings: AdamSettings, weightDecay: number, factor: number): void {
    const { lr, betas, eps, amsgrad, maximize } = settings
    const state = this.stateOf(p, () => ({ step: 0, expAvg: zerosLike(p), expAvgSq: zerosLike(p) }))
    state.step++
    if (amsgrad) state.maxExpAvgSq ??= zerosLike(p)
    // Both corrections are numbers: taking the second one out of the root's quotient saves a pass over the parameter.
    const root = Math.sqrt(1 - betas[1] ** state.step)
    const rate = (-lr * root) / (1 - betas[0] ** state.step)
    const states = amsgrad ? [state.expAvg, state.expAvgSq, state.maxExpAvgSq!] : [state.expAvg, state.expAvgSq]
    const [first, second] = betas
    const numbers = [rate, factor, weightDecay, maximize ? 1 : 0, first, 1 - first, second, 1 - second, eps * root] as const
    if (stepInto('adamStep', p, grad, states, numbers)) return
    if (factor !== 1) raw.mul_(p, factor)
    inPieces([p, grad, ...states], (p, grad, first, second, largest) => {
      const g = direction(p, grad, maximize, weightDecay)
      decay_(first, g, betas[0])
      decaySquare_(second, g, betas[1])
      const square = largest === undefined ? second : raw.copy_(largest, raw.maximum(largest, second))
      addQuotient_(p, first, rootPlus(square, eps * root), rate)
    })
  }
}

/**
 * Adam whose weight decay is applied to the weights directly, and not through the running averages. PyTorch: `torch.optim.AdamW`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new AdamW([w], { lr: 0.1, weightDecay: 0.5 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.85, 1.8]
 */
export class AdamW extends Adam {
  static {
    keepsNoGradient(AdamW)
  }

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<AdamSettings>>, options: AdamOptions = {}) {
    super(params, settingsOf(new.target.name, { weightDecay: 1e-2 }, options))
  }

  protected override update(p: Tensor, grad: Tensor, settings: AdamSettings): void {
    this.descend(p, grad, settings, 0, settings.weightDecay === 0 ? 1 : 1 - settings.lr * settings.weightDecay)
  }
}
