/**
 * Stochastic gradient descent. PyTorch: `torch.optim.SGD`, whose formulas these are:
 *
 *     g ← ±g + weightDecay · p                    (− to maximize)
 *     v ← momentum · v + (1 − dampening) · g      (v ← g in the first step)
 *     p ← p − lr · (nesterov ? g + momentum · v : v)
 */
import type { Tensor } from '@postgrad/tensor'
import { addSparse_, isSparse, raw } from '@postgrad/tensor/internal'
import { direction } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, refusal, settingsOf } from './settings.js'

export interface SGDSettings {
  lr: number
  momentum: number
  dampening: number
  weightDecay: number
  nesterov: boolean
  /** Go up instead of down. */
  maximize: boolean
}

export type SGDOptions = Partial<SGDSettings> & Pick<SGDSettings, 'lr'>
/** A group may have settings of its own. */
export type SGDGroup = ParamGroupOptions<SGDSettings>

type SGDState = { momentumBuffer?: Tensor }

const DEFAULTS = { momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, maximize: false }

/** State per parameter: `momentumBuffer`, once there was a momentum. Takes sparse gradients without momentum and weightDecay. */
export class SGD extends OptimizerBase<SGDSettings, SGDState> {
  protected override readonly layout = { momentumBuffer: 'tensor?' } as const

  /**
   * @param params parameters, or groups of them
   * @throws INVALID_ARGUMENT, NO_PARAMETERS, DUPLICATE_PARAMETER, PARAMETER_NOT_A_LEAF
   */
  constructor(params: Iterable<Tensor> | Iterable<SGDGroup>, options: SGDOptions) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), ['lr', 'momentum', 'dampening', 'weightDecay', 'nesterov', 'maximize'])
  }

  protected override check(settings: SGDSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'momentum', 'weightDecay')
    if (typeof settings.dampening !== 'number') throw refusal(this.op, 'a number as dampening', settings.dampening)
    if (settings.nesterov && (settings.momentum === 0 || settings.dampening !== 0)) {
      throw refusal(this.op, 'nesterov only with a momentum and without dampening', settings.nesterov)
    }
  }

  protected override update(p: Tensor, grad: Tensor, settings: SGDSettings): void {
    const { lr, momentum, dampening, weightDecay, nesterov, maximize } = settings
    // Without a decay the sign goes with lr, which costs nothing; with one, or a velocity, the direction is needed by itself.
    if (momentum === 0 && weightDecay === 0) {
      if (isSparse(grad)) addSparse_(p, grad, maximize ? lr : -lr)
      else raw.add_(p, grad, maximize ? lr : -lr)
      return
    }
    const g = direction(p, grad, maximize, weightDecay)
    if (momentum === 0) {
      raw.add_(p, g, -lr)
      return
    }
    const state = this.stateOf(p, () => ({}))
    // A clone, where g may be the gradient itself.
    if (state.momentumBuffer === undefined) state.momentumBuffer = raw.clone(g)
    else raw.add_(raw.mul_(state.momentumBuffer, momentum), g, 1 - dampening)
    const v = state.momentumBuffer
    raw.add_(p, nesterov ? raw.add_(raw.clone(g), v, momentum) : v, -lr)
  }
}
