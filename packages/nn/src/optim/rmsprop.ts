/**
 * RMSprop. PyTorch: `torch.optim.RMSprop`, whose formulas these are:
 *
 *     g ← ±g + weightDecay · p                  (− to maximize)
 *     v ← alpha · v + (1 − alpha) · g²
 *     a ← alpha · a + (1 − alpha) · g           (centered)
 *     d = g / (√(centered ? v − a² : v) + eps)
 *     b ← momentum · b + d
 *     p ← p − lr · (momentum > 0 ? b : d)
 */
import { type Tensor, zerosLike } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { addQuotient_, decay_, decaySquare_, direction, rootPlus } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, settingsOf } from './settings.js'

export interface RMSpropSettings {
  /** Default 1e-2. */
  lr: number
  /** Of the running averages; default 0.99. */
  alpha: number
  /** Default 1e-8. */
  eps: number
  weightDecay: number
  momentum: number
  /** Divide by the standard deviation of the gradient instead of its root mean square. */
  centered: boolean
  /** Go up instead of down. */
  maximize: boolean
}

export type RMSpropOptions = Partial<RMSpropSettings>

type RMSpropState = { step: number; squareAvg: Tensor; gradAvg?: Tensor; momentumBuffer?: Tensor }

const DEFAULTS: RMSpropSettings = { lr: 1e-2, alpha: 0.99, eps: 1e-8, weightDecay: 0, momentum: 0, centered: false, maximize: false }
const NAMES = Object.keys(DEFAULTS) as (keyof RMSpropSettings)[]

/** State per parameter: `step`, `squareAvg` (v), centered `gradAvg` (a), with momentum `momentumBuffer` (b). */
export class RMSprop extends OptimizerBase<RMSpropSettings, RMSpropState> {
  protected override readonly layout = { step: 'number', squareAvg: 'tensor', gradAvg: 'tensor?', momentumBuffer: 'tensor?' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT, NO_PARAMETERS, DUPLICATE_PARAMETER, PARAMETER_NOT_A_LEAF
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<RMSpropSettings>>, options: RMSpropOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: RMSpropSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'alpha', 'eps', 'weightDecay', 'momentum')
  }

  protected override update(p: Tensor, grad: Tensor, settings: RMSpropSettings): void {
    const { lr, alpha, eps, weightDecay, momentum, centered, maximize } = settings
    const state = this.stateOf(p, () => ({ step: 0, squareAvg: zerosLike(p) }))
    const g = direction(p, grad, maximize, weightDecay)
    state.step++
    decaySquare_(state.squareAvg, g, alpha)
    let variance = state.squareAvg
    if (centered) {
      state.gradAvg = decay_(state.gradAvg ?? zerosLike(p), g, alpha)
      variance = raw.sub(variance, raw.mul(state.gradAvg, state.gradAvg))
    }
    const deviation = rootPlus(variance, eps)
    if (momentum === 0) {
      addQuotient_(p, g, deviation, -lr)
      return
    }
    // The buffer may begin late: a schedule may have raised the momentum from 0.
    state.momentumBuffer = addQuotient_(raw.mul_(state.momentumBuffer ?? zerosLike(p), momentum), g, deviation, 1)
    raw.add_(p, state.momentumBuffer, -lr)
  }
}
