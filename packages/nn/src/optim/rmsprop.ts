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
import { raw, stepInto } from '@postgrad/tensor/internal'
import { addQuotient_, decay_, decaySquare_, direction, inPieces, rootPlus } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, settingsOf } from './settings.js'

/** Settings of a parameter group of `RMSprop`. */
export interface RMSpropSettings {
  /** The learning rate; default 1e-2. */
  lr: number
  /** The decay rate of the running averages; default 0.99. */
  alpha: number
  /** The number that is added to the root of the average square; default 1e-8. */
  eps: number
  /** The L2 penalty; default 0. */
  weightDecay: number
  /** The momentum factor; default 0. */
  momentum: number
  /** Whether to divide by the standard deviation of the gradient instead of its root mean square; default false. */
  centered: boolean
  /** Whether to maximize instead of minimize; default false. */
  maximize: boolean
}

/** Options of `RMSprop`: its settings, all with defaults. */
export type RMSpropOptions = Partial<RMSpropSettings>

type RMSpropState = { step: number; squareAvg: Tensor; gradAvg?: Tensor; momentumBuffer?: Tensor }

const DEFAULTS: RMSpropSettings = { lr: 1e-2, alpha: 0.99, eps: 1e-8, weightDecay: 0, momentum: 0, centered: false, maximize: false }
const NAMES = Object.keys(DEFAULTS) as (keyof RMSpropSettings)[]

/**
 * Steps by the gradient, divided by its recent root mean square. State of each parameter: `step`, `squareAvg`, if centered `gradAvg`, and with momentum
 * `momentumBuffer`. PyTorch: `torch.optim.RMSprop`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new RMSprop([w], { lr: 0.01, momentum: 0.9 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.9, 1.9]
 */
export class RMSprop extends OptimizerBase<RMSpropSettings, RMSpropState> {
  static {
    keepsNoGradient(RMSprop)
  }

  protected override readonly layout = { step: 'number', squareAvg: 'tensor', gradAvg: 'tensor?', momentumBuffer: 'tensor?' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
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
    state.step++
    if (centered) state.gradAvg ??= zerosLike(p)
    // The buffer may begin late: a schedule may have raised the momentum from 0.
    if (momentum !== 0) state.momentumBuffer ??= zerosLike(p)
    const states = [state.squareAvg, centered ? state.gradAvg! : null, momentum === 0 ? null : state.momentumBuffer!]
    const own = [alpha, 1 - alpha, eps, momentum]
    if (stepInto('rmspropStep', p, grad, states, [-lr, 1, weightDecay, maximize ? 1 : 0, ...own])) return
    const average = centered ? [state.gradAvg!] : []
    const buffer = momentum === 0 ? [] : [state.momentumBuffer!]
    inPieces([p, grad, state.squareAvg, ...average, ...buffer], (p, grad, square, ...more) => {
      const g = direction(p, grad, maximize, weightDecay)
      let variance = decaySquare_(square, g, alpha)
      if (centered) {
        const mean = decay_(more[0]!, g, alpha)
        variance = raw.sub(variance, raw.mul(mean, mean))
      }
      const deviation = rootPlus(variance, eps)
      if (momentum === 0) addQuotient_(p, g, deviation, -lr)
      else raw.add_(p, addQuotient_(raw.mul_(more.at(-1)!, momentum), g, deviation, 1), -lr)
    })
  }
}
