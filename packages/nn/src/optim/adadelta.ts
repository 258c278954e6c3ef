/**
 * Adadelta. PyTorch: `torch.optim.Adadelta`, whose formulas these are:
 *
 *     g ← ±g + weightDecay · p                  (− to maximize)
 *     v ← rho · v + (1 − rho) · g²
 *     d = √(u + eps) / √(v + eps) · g
 *     u ← rho · u + (1 − rho) · d²
 *     p ← p − lr · d
 */
import { type Tensor, zerosLike } from '@postgrad/tensor'
import { raw, stepInto } from '@postgrad/tensor/internal'
import { decaySquare_, direction } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, refusal, settingsOf } from './settings.js'

/** Settings of a parameter group of `Adadelta`. */
export interface AdadeltaSettings {
  /** The learning rate; default 1. */
  lr: number
  /** The decay rate of both running averages; default 0.9. */
  rho: number
  /** The number that is added to both averages before the root; default 1e-6. */
  eps: number
  /** The L2 penalty; default 0. */
  weightDecay: number
  /** Whether to maximize instead of minimize; default false. */
  maximize: boolean
}

/** Options of `Adadelta`: its settings, all with defaults. */
export type AdadeltaOptions = Partial<AdadeltaSettings>

type AdadeltaState = { step: number; squareAvg: Tensor; accDelta: Tensor }

const DEFAULTS: AdadeltaSettings = { lr: 1, rho: 0.9, eps: 1e-6, weightDecay: 0, maximize: false }
const NAMES = Object.keys(DEFAULTS) as (keyof AdadeltaSettings)[]

/**
 * Steps by ratios of running averages, so that you need not choose a learning rate. State of each parameter: `step`, `squareAvg`, `accDelta`. PyTorch:
 * `torch.optim.Adadelta`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new Adadelta([w]) // needs no learning rate
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.9968, 1.9968]
 */
export class Adadelta extends OptimizerBase<AdadeltaSettings, AdadeltaState> {
  static {
    keepsNoGradient(Adadelta)
  }

  protected override readonly layout = { step: 'number', squareAvg: 'tensor', accDelta: 'tensor' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<AdadeltaSettings>>, options: AdadeltaOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: AdadeltaSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'eps', 'weightDecay')
    if (!(settings.rho >= 0 && settings.rho <= 1)) throw refusal(this.op, 'rho in [0, 1]', settings.rho)
  }

  protected override update(p: Tensor, grad: Tensor, { lr, rho, eps, weightDecay, maximize }: AdadeltaSettings): void {
    const state = this.stateOf(p, () => ({ step: 0, squareAvg: zerosLike(p), accDelta: zerosLike(p) }))
    state.step++
    const own = [rho, 1 - rho, eps]
    if (stepInto('adadeltaStep', p, grad, [state.squareAvg, state.accDelta], [-lr, 1, weightDecay, maximize ? 1 : 0, ...own])) return
    const g = direction(p, grad, maximize, weightDecay)
    decaySquare_(state.squareAvg, g, rho)
    const delta = raw.div_(raw.sqrt(raw.add(state.accDelta, eps)), raw.sqrt(raw.add(state.squareAvg, eps)))
    raw.mul_(delta, g)
    decaySquare_(state.accDelta, delta, rho)
    raw.add_(p, delta, -lr)
  }
}
