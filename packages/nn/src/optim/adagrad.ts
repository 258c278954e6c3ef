/**
 * Adagrad. PyTorch: `torch.optim.Adagrad`, whose formulas these are, at step t = 1, 2, …:
 *
 *     g ← ±g + weightDecay · p                                (− to maximize)
 *     s ← s + g²                                              (from initialAccumulatorValue)
 *     p ← p − lr / (1 + (t − 1) · lrDecay) · g / (√s + eps)
 */
import { full, type Tensor } from '@postgrad/tensor'
import { addSparse_, coalesce, isSparse, raw, stepInto } from '@postgrad/tensor/internal'
import { addQuotient_, direction, inPieces, rootPlus, rowsLike } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, settingsOf } from './settings.js'

/** Settings of a parameter group of `Adagrad`. */
export interface AdagradSettings {
  /** The learning rate; default 1e-2. */
  lr: number
  /** The rate of step n is lr / (1 + (n − 1) · lrDecay); default 0. */
  lrDecay: number
  /** The L2 penalty; default 0. */
  weightDecay: number
  /** The initial value of the sum of squared gradients; default 0. */
  initialAccumulatorValue: number
  /** The number that is added to the root of the sum of squares; default 1e-10. */
  eps: number
  /** Whether to maximize instead of minimize; default false. */
  maximize: boolean
}

/** Options of `Adagrad`: its settings, all with defaults. */
export type AdagradOptions = Partial<AdagradSettings>

type AdagradState = { step: number; sum: Tensor }

const DEFAULTS: AdagradSettings = { lr: 1e-2, lrDecay: 0, weightDecay: 0, initialAccumulatorValue: 0, eps: 1e-10, maximize: false }
const NAMES = Object.keys(DEFAULTS) as (keyof AdagradSettings)[]

/**
 * Steps that shrink with the sum of all squared gradients so far. It accepts sparse gradients if weightDecay is 0. State of each parameter, from its first step
 * on (PyTorch: from the start): `step`, `sum`. PyTorch: `torch.optim.Adagrad`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new Adagrad([w], { lr: 0.1 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.9, 1.9]
 */
export class Adagrad extends OptimizerBase<AdagradSettings, AdagradState> {
  static {
    keepsNoGradient(Adagrad)
  }

  protected override readonly layout = { step: 'number', sum: 'tensor' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<AdagradSettings>>, options: AdagradOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: AdagradSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'lrDecay', 'weightDecay', 'initialAccumulatorValue', 'eps')
  }

  protected override update(p: Tensor, grad: Tensor, settings: AdagradSettings): void {
    const { lr, lrDecay, weightDecay, initialAccumulatorValue, eps, maximize } = settings
    const state = this.stateOf(p, () => ({ step: 0, sum: full(p.shape, initialAccumulatorValue, { dtype: p.dtype, device: p.device }) }))
    const rate = -lr / (1 + state.step * lrDecay)
    if (isSparse(grad) && weightDecay === 0) {
      const rows = coalesce(grad)
      const g = rows.values()
      addSparse_(state.sum, rowsLike(rows, raw.mul(g, g)))
      const root = raw.add(raw.sqrt(raw.indexSelect(state.sum, 0, rows.indices())), eps)
      addSparse_(p, rowsLike(rows, raw.div(g, root)), maximize ? -rate : rate)
      state.step++
      return
    }
    state.step++
    if (stepInto('adagradStep', p, grad, [state.sum], [rate, 1, weightDecay, maximize ? 1 : 0, eps])) return
    inPieces([p, grad, state.sum], (p, grad, sum) => {
      const g = direction(p, grad, maximize, weightDecay)
      raw.add_(sum, raw.mul(g, g))
      addQuotient_(p, g, rootPlus(sum, eps), rate)
    })
  }
}
