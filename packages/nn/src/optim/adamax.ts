/**
 * Adamax: Adam by the infinity norm. PyTorch: `torch.optim.Adamax`, whose formulas these are, at step t = 1, 2, …:
 *
 *     g ← ±g + weightDecay · p                  (− to maximize)
 *     m ← β₁ · m + (1 − β₁) · g
 *     u ← max(β₂ · u, |g| + eps)
 *     p ← p − lr / (1 − β₁ᵗ) · m / u
 */
import { type Tensor, zerosLike } from '@postgrad/tensor'
import { raw, stepInto } from '@postgrad/tensor/internal'
import { addQuotient_, decay_, direction } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, checkBetas, settingsOf } from './settings.js'

/** Settings of a parameter group of `Adamax`. */
export interface AdamaxSettings {
  /** The learning rate; default 2e-3. */
  lr: number
  /** The decay rates of the running average and of the largest gradient; default [0.9, 0.999]. */
  betas: readonly [number, number]
  /** The number that keeps the divisor above 0; default 1e-8. */
  eps: number
  /** The L2 penalty; default 0. */
  weightDecay: number
  /** Whether to maximize instead of minimize; default false. */
  maximize: boolean
}

/** Options of `Adamax`: its settings, all with defaults. */
export type AdamaxOptions = Partial<AdamaxSettings>

type AdamaxState = { step: number; expAvg: Tensor; expInf: Tensor }

const DEFAULTS: AdamaxSettings = { lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, maximize: false }
const NAMES = Object.keys(DEFAULTS) as (keyof AdamaxSettings)[]

/**
 * Adam that divides by the largest recent gradient instead of the root of the average square. State of each parameter: `step`, `expAvg`, `expInf`. PyTorch:
 * `torch.optim.Adamax`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new Adamax([w], { lr: 0.1 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.9, 1.9]
 */
export class Adamax extends OptimizerBase<AdamaxSettings, AdamaxState> {
  static {
    keepsNoGradient(Adamax)
  }

  protected override readonly layout = { step: 'number', expAvg: 'tensor', expInf: 'tensor' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<AdamaxSettings>>, options: AdamaxOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: AdamaxSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'eps', 'weightDecay')
    checkBetas(this.op, settings.betas)
  }

  protected override update(p: Tensor, grad: Tensor, { lr, betas, eps, weightDecay, maximize }: AdamaxSettings): void {
    const state = this.stateOf(p, () => ({ step: 0, expAvg: zerosLike(p), expInf: zerosLike(p) }))
    state.step++
    const rate = -lr / (1 - betas[0] ** state.step)
    const own = [betas[0], 1 - betas[0], betas[1], eps]
    if (stepInto('adamaxStep', p, grad, [state.expAvg, state.expInf], [rate, 1, weightDecay, maximize ? 1 : 0, ...own])) return
    const g = direction(p, grad, maximize, weightDecay)
    decay_(state.expAvg, g, betas[0])
    state.expInf = raw.maximum(raw.mul_(state.expInf, betas[1]), raw.add_(raw.abs(g), eps))
    addQuotient_(p, state.expAvg, state.expInf, rate)
  }
}
