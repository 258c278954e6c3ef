/**
 * Adam with Nesterov momentum. PyTorch: `torch.optim.NAdam`, whose formulas these are, at step t = 1, 2, …:
 *
 *     g ← g + weightDecay · p
 *     μₜ = β₁ · (1 − ½ · 0.96^(t · momentumDecay));  Π ← Π · μₜ
 *     m ← β₁ · m + (1 − β₁) · g;  v ← β₂ · v + (1 − β₂) · g²
 *     p ← p − lr · ((1 − μₜ) / (1 − Π) · g + μₜ₊₁ / (1 − Π · μₜ · μₜ₊₁) · m) / (√(v / (1 − β₂ᵗ)) + eps)
 *
 * The factor Π · μₜ · μₜ₊₁ (with μₜ twice, since Π has it already) is PyTorch 1.13's, and so is that Π is rounded to float32 for all dtypes.
 */
import { type Tensor, zerosLike } from '@postgrad/tensor'
import { raw, stepInto } from '@postgrad/tensor/internal'
import { addQuotient_, decay_, decaySquare_, direction, inPieces, rootPlus } from './formulas.js'
import type { ParamGroupOptions } from './optimizer.js'
import { keepsNoGradient, OptimizerBase } from './optimizer-base.js'
import { checkAtLeast0, checkBetas, settingsOf } from './settings.js'

/** Settings of a parameter group of `NAdam`. */
export interface NAdamSettings {
  /** The learning rate; default 2e-3. */
  lr: number
  /** The decay rates of the running averages of the gradient and of its square; default [0.9, 0.999]. */
  betas: readonly [number, number]
  /** The number that is added to the root of the average square; default 1e-8. */
  eps: number
  /** The L2 penalty; default 0. */
  weightDecay: number
  /** The decay of the momentum; default 4e-3. */
  momentumDecay: number
}

/** Options of `NAdam`: its settings, all with defaults. */
export type NAdamOptions = Partial<NAdamSettings>

type NAdamState = { step: number; muProduct: number; expAvg: Tensor; expAvgSq: Tensor }

const DEFAULTS: NAdamSettings = { lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, momentumDecay: 4e-3 }
const NAMES = Object.keys(DEFAULTS) as (keyof NAdamSettings)[]

/**
 * Adam with Nesterov's momentum. State of each parameter: `step`, `muProduct`, `expAvg`, `expAvgSq`. PyTorch: `torch.optim.NAdam`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const optimizer = new NAdam([w], { lr: 0.1 })
 * w.square().sum().backward()
 * optimizer.step()
 * w // [0.895, 1.895]
 */
export class NAdam extends OptimizerBase<NAdamSettings, NAdamState> {
  static {
    keepsNoGradient(NAdam)
  }

  protected override readonly layout = { step: 'number', muProduct: 'number', expAvg: 'tensor', expAvgSq: 'tensor' } as const

  /**
   * @param params parameters, or groups of them with settings of their own
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  constructor(params: Iterable<Tensor> | Iterable<ParamGroupOptions<NAdamSettings>>, options: NAdamOptions = {}) {
    super(params, settingsOf(new.target.name, DEFAULTS, options), NAMES)
  }

  protected override check(settings: NAdamSettings): void {
    checkAtLeast0(this.op, settings, 'lr', 'eps', 'weightDecay', 'momentumDecay')
    checkBetas(this.op, settings.betas)
  }

  protected override update(p: Tensor, grad: Tensor, { lr, betas, eps, weightDecay, momentumDecay }: NAdamSettings): void {
    const state = this.stateOf(p, () => ({ step: 0, muProduct: 1, expAvg: zerosLike(p), expAvgSq: zerosLike(p) }))
    const mu = (t: number) => betas[0] * (1 - 0.5 * 0.96 ** (t * momentumDecay))
    state.step++
    const [now, next] = [mu(state.step), mu(state.step + 1)]
    state.muProduct = Math.fround(state.muProduct * Math.fround(now))
    const ahead = Math.fround(Math.fround(state.muProduct * Math.fround(now)) * Math.fround(next))
    // As in Adam, the correction of v is taken out of the root.
    const root = Math.sqrt(1 - betas[1] ** state.step)
    const share = (1 - now) / (1 - state.muProduct)
    const states = [state.expAvg, state.expAvgSq]
    const own = [betas[0], 1 - betas[0], betas[1], 1 - betas[1], eps * root, next / (1 - ahead), share]
    if (stepInto('nadamStep', p, grad, states, [-lr * root, 1, weightDecay, 0, ...own])) return
    inPieces([p, grad, ...states], (p, grad, first, second) => {
      const g = direction(p, grad, false, weightDecay)
      decay_(first, g, betas[0])
      decaySquare_(second, g, betas[1])
      const towards = raw.add_(raw.mul(first, next / (1 - ahead)), g, share)
      addQuotient_(p, towards, rootPlus(second, eps * root), -lr * root)
    })
  }
}
