/**
 * Stochastic gradient descent. PyTorch: `torch.optim.SGD`, whose formulas these are:
 *
 *     g ← ±g + weightDecay · p                    (− to maximize)
 *     v ← momentum · v + (1 − dampening) · g      (v ← g in the first step)
 *     p ← p − lr · (nesterov ? g + momentum · v : v)
 */
import { type Tensor, zerosLike } from '@postgrad/tensor'
import { addSparse_, isSparse, raw, stepInto } from '@postgrad/tensor/internal'
import { direction, inPieces } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, refusal, settingsOf } from './settings.js'

/** Settings of a parameter group of `SGD`. */
export interface SGDSettings {
  /** The learning rate; it has no default. */
  lr: number
  /** The momentum factor; default 0. */
  momentum: number
  /** The share of the gradient that does not enter the momentum; default 0. */
  dampening: number
  /** The L2 penalty: this factor times the parameter is added to the gradient. Default 0. */
  weightDecay: number
  /** Whether to use Nesterov's momentum, which requires momentum > 0 and dampening 0; default false. */
  nesterov: boolean
  /** Whether to maximize instead of minimize; default false. */
  maximize: boolean
}

/** Options of `SGD`: its settings. Only `lr` is required. */
export type SGDOptions = Partial<SGDSettings> & Pick<SGDSettings, 'lr'>
/** A parameter group of `SGD`, which may have settings of its own. */
export type SGDGroup = ParamGroupOptions<SGDSettings>

type SGDState = { momentumBuffer?: Tensor }

const DEFAULTS = { momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, maximize: false }

/**
 * Gradient descent, optionally with momentum: p ← p − lr · g. It accepts sparse gradients if momentum and weightDecay are 0. State of each parameter, with
 * momentum: `momentumBuffer`. PyTorch: `torch.optim.SGD`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new SGD([w], { lr: 0.1, momentum: 0.9 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.8, 1.6]
 */
export class SGD extends OptimizerBase<SGDSettings, SGDState> {
  static {
    keepsNoGradient(SGD)
  }

  protected override readonly layout = { momentumBuffer: 'tensor?' } as const

  /**
   * @param params parameters, or groups of them
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
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
    if (momentum === 0) {
      if (stepInto('sgdStep', p, grad, [], [-lr, 1, weightDecay, maximize ? 1 : 0])) return
      inPieces([p, grad], (p, grad) => raw.add_(p, direction(p, grad, maximize, weightDecay), -lr))
      return
    }
    const state = this.stateOf(p, () => ({}))
    const isFirst = state.momentumBuffer === undefined
    state.momentumBuffer ??= zerosLike(p)
    const own = [momentum, 1 - dampening, isFirst ? 1 : 0, nesterov ? 1 : 0]
    if (stepInto('sgdStep', p, grad, [state.momentumBuffer], [-lr, 1, weightDecay, maximize ? 1 : 0, ...own])) return
    inPieces([p, grad, state.momentumBuffer], (p, grad, v) => {
      const g = direction(p, grad, maximize, weightDecay)
      if (isFirst) raw.copy_(v, g)
      else raw.add_(raw.mul_(v, momentum), g, 1 - dampening)
      raw.add_(p, nesterov ? raw.add_(raw.clone(g), v, momentum) : v, -lr)
    })
  }
}
