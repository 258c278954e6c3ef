/**
 * Stochastic gradient descent. PyTorch: `torch.optim.SGD`, whose formulas these are:
 *
 *     g ← g + weightDecay · p
 *     v ← momentum · v + (1 − dampening) · g      (v ← g in the first step)
 *     p ← p − lr · (nesterov ? g + momentum · v : v)
 */
import { PostgradError } from '@postgrad/base'
import { isTensor, type Tensor } from '@postgrad/tensor'
import { invalidArgument, raw, sameShape } from '@postgrad/tensor/internal'
import type { Optimizer, OptimizerState, ParamGroup } from './optimizer.js'

export interface SGDSettings {
  lr: number
  momentum: number
  dampening: number
  weightDecay: number
  nesterov: boolean
}

export type SGDOptions = Partial<SGDSettings> & Pick<SGDSettings, 'lr'>
/** A group may have settings of its own. */
export type SGDGroup = Partial<SGDSettings> & { readonly params: Iterable<Tensor> }

const DEFAULTS = { momentum: 0, dampening: 0, weightDecay: 0, nesterov: false }

export class SGD implements Optimizer<SGDSettings> {
  readonly paramGroups: readonly ParamGroup<SGDSettings>[]
  private readonly velocity = new Map<Tensor, Tensor>()

  /**
   * @param params parameters, or groups of them
   * @throws INVALID_ARGUMENT, NO_PARAMETERS, DUPLICATE_PARAMETER, PARAMETER_NOT_A_LEAF
   */
  constructor(params: Iterable<Tensor> | Iterable<SGDGroup>, options: SGDOptions) {
    const list = [...params] as (Tensor | SGDGroup)[]
    const groups = list.some(isTensor) ? [{ params: list as Tensor[] }] : (list as SGDGroup[])
    this.paramGroups = groups.map(({ params: own, ...settings }) => checked({ ...DEFAULTS, ...options, ...settings, params: [...own] }))
    checkParams(this.paramGroups.flatMap((group) => group.params))
  }

  step(grads?: ReadonlyMap<Tensor, Tensor>): void {
    for (const group of this.paramGroups) {
      for (const p of group.params) {
        const grad = grads === undefined ? p.grad : (grads.get(p) ?? null)
        if (grad !== null) this.update(p, grad, group)
      }
    }
  }

  zeroGrad(): void {
    for (const { params } of this.paramGroups) for (const p of params) p.grad = null
  }

  stateDict(): OptimizerState<SGDSettings> {
    const all = this.paramGroups.flatMap((group) => group.params)
    const places = new Map(all.map((p, place) => [p, place]))
    return {
      state: Object.fromEntries([...this.velocity].map(([p, v]) => [places.get(p)!, { momentumBuffer: raw.clone(v) }])),
      paramGroups: this.paramGroups.map(({ params, ...settings }) => ({ ...settings, params: params.map((p) => places.get(p)!) })),
    }
  }

  loadStateDict({ state, paramGroups }: OptimizerState<SGDSettings>): void {
    const sizes = (groups: readonly { readonly params: readonly unknown[] }[]) => groups.map(({ params }) => params.length).join(', ')
    if (sizes(paramGroups) !== sizes(this.paramGroups)) {
      throw new PostgradError('STATE_DICT_MISMATCH', {
        op: 'SGD.loadStateDict',
        expected: `groups of ${sizes(this.paramGroups)} parameters`,
        got: sizes(paramGroups),
        remedy: 'Load it into an optimizer over the same parameters in the same groups.',
      })
    }
    const params = this.paramGroups.flatMap((group) => group.params)
    for (const [place, { shape }] of params.entries()) {
      const buffer = state[place]?.momentumBuffer
      if (buffer === undefined || sameShape(buffer.shape, shape)) continue
      throw new PostgradError('STATE_DICT_MISMATCH', {
        op: 'SGD.loadStateDict',
        expected: `a momentumBuffer of shape [${shape.join(', ')}] for parameter ${place}`,
        got: `[${buffer.shape.join(', ')}]`,
        remedy: 'Load it into an optimizer over the same parameters in the same groups.',
      })
    }
    for (const [i, { params: _, ...settings }] of paramGroups.entries()) Object.assign(this.paramGroups[i]!, settings)
    this.velocity.clear()
    for (const [place, p] of params.entries()) {
      const buffer = state[place]?.momentumBuffer
      if (buffer !== undefined) this.velocity.set(p, raw.clone(buffer))
    }
  }

  // Raw operations: a step is never recorded, whatever the grad mode around it.
  private update(p: Tensor, grad: Tensor, { lr, momentum, dampening, weightDecay, nesterov }: SGDSettings): void {
    const g = weightDecay === 0 ? grad : raw.add(grad, raw.mul(p, weightDecay))
    if (momentum === 0) {
      raw.add_(p, g, -lr)
      return
    }
    let v = this.velocity.get(p)
    if (v === undefined) {
      v = raw.clone(g)
      this.velocity.set(p, v)
    } else {
      raw.add_(raw.mul_(v, momentum), g, 1 - dampening)
    }
    raw.add_(p, nesterov ? raw.add(g, raw.mul(v, momentum)) : v, -lr)
  }
}

function checked(group: ParamGroup<SGDSettings>): ParamGroup<SGDSettings> {
  const refuse = (name: keyof SGDSettings, expected: string): never => {
    throw invalidArgument('SGD', `${name} ${expected}`, group[name], 'Check the settings of the optimizer and of its groups.')
  }
  for (const name of ['lr', 'momentum', 'weightDecay'] as const) if (!(group[name] >= 0)) refuse(name, '≥ 0')
  if (group.nesterov && (group.momentum === 0 || group.dampening !== 0)) refuse('nesterov', 'only with a momentum and without dampening')
  return group
}

function checkParams(params: readonly Tensor[]): void {
  if (params.length === 0) {
    throw new PostgradError('NO_PARAMETERS', {
      op: 'SGD',
      expected: 'at least one parameter',
      got: 'none',
      remedy: 'Pass module.parameters().',
    })
  }
  if (new Set(params).size !== params.length) {
    throw new PostgradError('DUPLICATE_PARAMETER', {
      op: 'SGD',
      message: 'a parameter is listed more than once',
      remedy: 'List each parameter once, in one group.',
    })
  }
  const at = params.findIndex((p) => !p.isLeaf)
  if (at >= 0) {
    throw new PostgradError('PARAMETER_NOT_A_LEAF', {
      op: 'SGD',
      expected: 'leaves',
      got: `parameter ${at}, which was computed from others`,
      remedy: 'Pass the parameters themselves, or detach() the tensor first.',
    })
  }
}
