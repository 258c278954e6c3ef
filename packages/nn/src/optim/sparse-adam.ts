/**
 * SparseAdam: Adam whose moments change only in the rows that have a gradient. PyTorch: `torch.optim.SparseAdam`, whose formulas these are, for
 * those rows, at step t = 1, 2, …:
 *
 *     m ← β₁ · m + (1 − β₁) · g
 *     v ← β₂ · v + (1 − β₂) · g²
 *     p ← p − lr · √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + eps)
 */
import { type SparseTensor, type Tensor, zerosLike } from '@postgrad/tensor'
import { addSparse_, coalesce, isSparse, raw } from '@postgrad/tensor/internal'
import { rowsLike } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, checkBetas, refusal, settingsOf } from './settings.js'

/** Settings of a parameter group of `SparseAdam`. */
export interface SparseAdamSettings {
  /** The learning rate; default 1e-3. */
  lr: number
  /** The decay rates of the running averages of the gradient and of its square; default [0.9, 0.999]. */
  betas: readonly [number, number]
  /** The number that is added to the root of the average square; default 1e-8. */
  eps: number
}

/** Options of `SparseAdam`: its settings, all with defaults. */
export type SparseAdamOptions = Partial<SparseAdamSettings>

type SparseAdamState = { step: number; expAvg: Tensor; expAvgSq: Tensor }

const DEFAULTS: SparseAdamSettings = { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8 }
const NAMES = Object.keys(DEFAULTS) as (keyof SparseAdamSettings)[]

/**
 * Adam for parameters with sparse gradients, such as those of an Embedding with `sparse: true`. It changes only the rows that were used. State of each
 * parameter: `step`, `expAvg`, `expAvgSq`. PyTorch: `torch.optim.SparseAdam`.
 * @example
 * const words = new Embedding(1000, 8, { sparse: true })
 * const optimizer = new SparseAdam([words.weight], { lr: 0.01 })
 * words.forward(tensor([3, 5])).sum().backward()
 * optimizer.step() // changes rows 3 and 5 alone
 */
export class SparseAdam extends OptimizerBase<SparseAdamSettings, SparseAdamState> {
  protected override readonly layout = { step: 'number', expAvg: 'tensor', expAvgSq: 'tensor' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<SparseAdamSettings>>, options: SparseAdamOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: SparseAdamSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'eps')
    checkBetas(this.op, settings.betas)
  }

  /** @throws INVALID_ARGUMENT for a dense gradient: Adam is for those */
  protected override update(p: Tensor, grad: Tensor, { lr, betas: [beta1, beta2], eps }: SparseAdamSettings): void {
    if (!isSparse(grad)) throw refusal(this.op, 'sparse gradients (sparse: true of an embedding)', 'a dense one')
    const state = this.stateOf(p, () => ({ step: 0, expAvg: zerosLike(p), expAvgSq: zerosLike(p) }))
    state.step++
    const rows = coalesce(grad)
    const g = rows.values()
    const m = moved(state.expAvg, rows, g, 1 - beta1)
    const v = moved(state.expAvgSq, rows, raw.mul(g, g), 1 - beta2)
    const rate = (lr * Math.sqrt(1 - beta2 ** state.step)) / (1 - beta1 ** state.step)
    addSparse_(p, rowsLike(rows, raw.div(m, raw.add(raw.sqrt(v), eps))), -rate)
  }
}

/** Brings the rows of a moment by `share` nearer to `target`, and gives what they are then. */
function moved(moment: Tensor, rows: SparseTensor, target: Tensor, share: number): Tensor {
  const old = raw.indexSelect(moment, 0, rows.indices())
  const step = raw.mul(raw.sub(target, old), share)
  addSparse_(moment, rowsLike(rows, step))
  return raw.add(old, step)
}
