/**
 * Rectified Adam. PyTorch: `torch.optim.RAdam`, whose formulas these are, at step t = 1, 2, …:
 *
 *     g ← g + weightDecay · p
 *     m ← β₁ · m + (1 − β₁) · g;  v ← β₂ · v + (1 − β₂) · g²
 *     ρ∞ = 2 / (1 − β₂) − 1;  ρ = ρ∞ − 2 t β₂ᵗ / (1 − β₂ᵗ)
 *     r = √((ρ − 4)(ρ − 2) ρ∞ / ((ρ∞ − 4)(ρ∞ − 2) ρ))
 *     p ← p − lr / (1 − β₁ᵗ) · m · (ρ > 5 ? r · √(1 − β₂ᵗ) / (√v + eps) : 1)
 */
import { type Tensor, zerosLike } from '@postgrad/tensor'
import { raw, stepInto } from '@postgrad/tensor/internal'
import { addQuotient_, decay_, decaySquare_, direction, inPieces, rootPlus } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, checkBetas, settingsOf } from './settings.js'

/** Settings of a parameter group of `RAdam`. */
export interface RAdamSettings {
  /** The learning rate; default 1e-3. */
  lr: number
  /** The decay rates of the running averages of the gradient and of its square; default [0.9, 0.999]. */
  betas: readonly [number, number]
  /** The number that is added to the root of the average square; default 1e-8. */
  eps: number
  /** The L2 penalty; default 0. */
  weightDecay: number
}

/** Options of `RAdam`: its settings, all with defaults. */
export type RAdamOptions = Partial<RAdamSettings>

type RAdamState = { step: number; expAvg: Tensor; expAvgSq: Tensor }

const DEFAULTS: RAdamSettings = { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0 }
const NAMES = Object.keys(DEFAULTS) as (keyof RAdamSettings)[]

/**
 * Adam that corrects the variance of its first steps. State of each parameter: `step`, `expAvg`, `expAvgSq`. PyTorch: `torch.optim.RAdam`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new RAdam([w], { lr: 0.1 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.8, 1.6]
 */
export class RAdam extends OptimizerBase<RAdamSettings, RAdamState> {
  static {
    keepsNoGradient(RAdam)
  }

  protected override readonly layout = { step: 'number', expAvg: 'tensor', expAvgSq: 'tensor' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<RAdamSettings>>, options: RAdamOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: RAdamSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'eps', 'weightDecay')
    checkBetas(this.op, settings.betas)
  }

  protected override update(p: Tensor, grad: Tensor, { lr, betas, eps, weightDecay }: RAdamSettings): void {
    const state = this.stateOf(p, () => ({ step: 0, expAvg: zerosLike(p), expAvgSq: zerosLike(p) }))
    state.step++
    const power = betas[1] ** state.step
    const rate = -lr / (1 - betas[0] ** state.step)
    // The length of the running average of g², at its end and now: the variance of a short one is not to be trusted.
    const full = 2 / (1 - betas[1]) - 1
    const length = full - (2 * state.step * power) / (1 - power)
    const rectified = Math.sqrt(((length - 4) * (length - 2) * full) / ((full - 4) * (full - 2) * length))
    const states = [state.expAvg, state.expAvgSq]
    if (length > 5) {
      // The step of Adam, with another rate.
      const numbers = [betas[0], 1 - betas[0], betas[1], 1 - betas[1], eps]
      if (stepInto('adamStep', p, grad, states, [rate * rectified * Math.sqrt(1 - power), 1, weightDecay, 0, ...numbers])) return
    }
    inPieces([p, grad, ...states], (p, grad, first, second) => {
      const g = direction(p, grad, false, weightDecay)
      decay_(first, g, betas[0])
      decaySquare_(second, g, betas[1])
      if (length > 5) addQuotient_(p, first, rootPlus(second, eps), rate * rectified * Math.sqrt(1 - power))
      else raw.add_(p, first, rate)
    })
  }
}
