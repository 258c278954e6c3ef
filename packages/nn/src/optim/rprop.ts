/**
 * Resilient backpropagation: only the signs of the gradient count; for whole batches. PyTorch: `torch.optim.Rprop`, whose formulas these are,
 * element by element, with η = etas, g′ the gradient of the step before (0 at first), and s, which begins as lr:
 *
 *     g ← ±g                                                    (− to maximize)
 *     s ← clamp(s · (g · g′ > 0 ? η₊ : g · g′ < 0 ? η₋ : 1), stepSizes)
 *     g ← 0 where g · g′ < 0
 *     p ← p − s · sign(g)
 */
import { full, type Tensor, zerosLike } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, refusal, settingsOf } from './settings.js'

/** Settings of a parameter group of `Rprop`. */
export interface RpropSettings {
  /** The length of the first step; default 1e-2. */
  lr: number
  /** The factors of a step's length after the sign of the gradient has changed (< 1), and after it has stayed (> 1); default [0.5, 1.2]. */
  etas: readonly [number, number]
  /** The least and the greatest length of a step; default [1e-6, 50]. */
  stepSizes: readonly [number, number]
  /** Whether to maximize instead of minimize; default false. */
  maximize: boolean
}

/** Options of `Rprop`: its settings, all with defaults. */
export type RpropOptions = Partial<RpropSettings>

type RpropState = { step: number; prev: Tensor; stepSize: Tensor }

const DEFAULTS: RpropSettings = { lr: 1e-2, etas: [0.5, 1.2], stepSizes: [1e-6, 50], maximize: false }
const NAMES = Object.keys(DEFAULTS) as (keyof RpropSettings)[]

/**
 * Steps only by the signs of gradients; use it with full batches. State of each parameter: `step`, `prev` (the last gradient), `stepSize`. PyTorch:
 * `torch.optim.Rprop`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new Rprop([w], { lr: 0.1 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.9, 1.9]
 */
export class Rprop extends OptimizerBase<RpropSettings, RpropState> {
  static {
    keepsNoGradient(Rprop)
  }

  protected override readonly layout = { step: 'number', prev: 'tensor', stepSize: 'tensor' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<RpropSettings>>, options: RpropOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: RpropSettings): void {
    checkAtLeast0(this.op, settings, 'lr')
    const { etas, stepSizes } = settings
    if (!(etas[0] > 0 && etas[0] < 1 && etas[1] > 1)) throw refusal(this.op, 'etas with 0 < η₋ < 1 < η₊', etas)
    if (!(stepSizes[0] <= stepSizes[1])) throw refusal(this.op, 'stepSizes: the least and the greatest', stepSizes)
  }

  protected override update(p: Tensor, grad: Tensor, { lr, etas, stepSizes, maximize }: RpropSettings): void {
    const state = this.stateOf(p, () => ({
      step: 0,
      prev: zerosLike(p),
      stepSize: full(p.shape, lr, { dtype: p.dtype, device: p.device }),
    }))
    const g = maximize ? raw.neg(grad) : grad
    state.step++
    const agreement = raw.mul(g, state.prev)
    const [turned, stayed] = [raw.lt(agreement, 0), raw.gt(agreement, 0)]
    const { stepSize } = state
    const next = raw.where(stayed, raw.mul(stepSize, etas[1]), raw.where(turned, raw.mul(stepSize, etas[0]), stepSize))
    state.stepSize = raw.clamp(next, stepSizes[0], stepSizes[1])
    // `where` makes a tensor of its own, so that the gradient of the caller is not kept.
    state.prev = raw.where(turned, 0, g)
    raw.sub_(p, raw.mul_(raw.sign(state.prev), state.stepSize))
  }
}
