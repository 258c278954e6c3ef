/** Tests of all optimizers, but not of their formulas: groups, errors, closures, state of their own. */
import { describe, expect, jest, test } from '@jest/globals'
import { isGradEnabled, noGrad } from '@postgrad/autograd'
import { type Device, type DeviceSpec, isTensor, ones, Tensor, tensor, withDevice, zeros } from '@postgrad/tensor'
import { threadHeap, withHeapFrom } from '@postgrad/tensor/internal'
import { gpujsDevice } from '@postgrad/tensor/suite'
import {
  Adadelta,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  clipGradNorm_,
  NAdam,
  type Optimizer,
  type OptimizerBase,
  RAdam,
  RMSprop,
  Rprop,
  SGD,
  type SGDSettings,
} from '../index.js'

const p = (...v: number[]) => tensor(v, { requiresGrad: true })
const values = (t: Tensor) => Array.from(t.dataSync())

function refusal(fn: () => unknown): unknown {
  try {
    fn()
  } catch (error) {
    return error
  }
  throw new Error('expected it to throw')
}

const ALL: readonly (readonly [string, (params: Iterable<Tensor>) => Optimizer])[] = [
  ['SGD', (params) => new SGD(params, { lr: 0.1 })],
  ['SGD with momentum', (params) => new SGD(params, { lr: 0.1, momentum: 0.9 })],
  ['SGD with Nesterov momentum', (params) => new SGD(params, { lr: 0.1, momentum: 0.9, nesterov: true })],
  ['Adam', (params) => new Adam(params, { amsgrad: true })],
  ['AdamW', (params) => new AdamW(params)],
  ['NAdam', (params) => new NAdam(params)],
  ['RAdam', (params) => new RAdam(params)],
  ['Adagrad', (params) => new Adagrad(params)],
  ['Adadelta', (params) => new Adadelta(params)],
  ['Adamax', (params) => new Adamax(params)],
  ['RMSprop', (params) => new RMSprop(params, { momentum: 0.5, centered: true })],
  ['Rprop', (params) => new Rprop(params)],
]

describe.each(ALL)('%s', (_, make) => {
  test('HEAP-14: a step, and clipping before it, leave the gradient to zeroGrad, which gives it back', () => {
    const heap = threadHeap()
    const held = withHeapFrom(1, () => {
      const a = p(1, -2, 3)
      const optimizer = make([a])
      return [1, 2, 3, 4, 5].map(() => {
        a.square().sum().backward()
        clipGradNorm_([a], 0.5)
        optimizer.step()
        const before = heap.heldBytes
        optimizer.zeroGrad()
        return before - heap.heldBytes
      })
    })
    expect(Math.min(...held)).toBeGreaterThan(0)
  })

  test('a pass that meets a parameter which a step has written to says that it was a step, and what to do', () => {
    const a = p(1, -2)
    const optimizer = make([a]) as OptimizerBase<object, never>
    const steps = [
      () => optimizer.step(new Map([[a, tensor([0.5, -0.25])]])),
      () => expect(optimizer.take(optimizer.prepare(new Map([[a, grad]])), new Map([[a, grad]]))).toBe(true),
    ]
    const grad = tensor([0.5, -0.25])
    for (const step of steps) {
      const loss = a.mul(a).sum()
      step()
      const error = refusal(() => loss.backward())
      expect(error).toMatchObject({
        code: 'SAVED_VARIABLE_MODIFIED',
        message: expect.stringContaining('a step of an optimizer has written to it'),
        remedy: expect.stringContaining('asyncExecution'),
      })
      expect(error).toMatchObject({ remedy: expect.stringContaining('detach() the state that one step hands to the next') })
      expect((error as { remedy: string }).remedy).not.toContain('clone()')
    }
    const loss = a.mul(a).sum()
    noGrad(() => a.mul_(2))
    expect(refusal(() => loss.backward())).toMatchObject({ values: { writer: 'mul_' }, remedy: expect.stringContaining('clone()') })
  })

  test('writes to parameters in place, not to gradients, and keeps no gradient as its state', () => {
    const [a, scalar, none] = [p(1, -2), tensor(0.5, { requiresGrad: true }), zeros([0, 2], { requiresGrad: true })]
    const { storage } = a
    const grads = new Map([
      [a, tensor([0.5, -0.25])],
      [scalar, tensor(1)],
      [none, zeros([0, 2])],
    ])
    const optimizer = make([a, scalar, none])
    for (let step = 0; step < 3; step++) optimizer.step(grads)
    expect(a.storage).toBe(storage)
    expect(values(a)).not.toEqual([1, -2])
    expect(values(scalar)).not.toEqual([0.5])
    expect([...grads.values()].map(values)).toEqual([[0.5, -0.25], [1], []])
    const kept = [...(optimizer as unknown as { states: Map<Tensor, object> }).states.values()].flatMap(Object.values).filter(isTensor)
    const held = [...grads.values()].map((g) => g.storage)
    expect(kept.filter((t) => held.includes(t.storage))).toEqual([])
  })

  test('reads nothing back from the device', () => {
    const reads = (['data', 'item', 'dataSync', 'itemSync', 'toArray'] as const).map((name) => jest.spyOn(Tensor.prototype, name))
    const a = p(1, 2)
    const optimizer = make([a])
    for (let step = 0; step < 2; step++) optimizer.step(new Map([[a, ones([2])]]))
    for (const read of reads) {
      expect(read).not.toHaveBeenCalled()
      read.mockRestore()
    }
  })

  test('steps on every device as on js', () => {
    const run = (device: Device | DeviceSpec) =>
      withDevice(device, () => {
        const [a, scalar] = [p(1, -2, 0.5), tensor(0.5, { requiresGrad: true })]
        const optimizer = make([a, scalar])
        for (const g of [1, -0.5, 0.25]) {
          optimizer.step(
            new Map([
              [a, tensor([g, 0.75, -g])],
              [scalar, tensor(g)],
            ]),
          )
        }
        return [...values(a), ...values(scalar)]
      })
    const expected = run('js')
    for (const device of ['wasm', gpujsDevice()] as const) {
      for (const [i, value] of run(device).entries()) expect(Math.abs(value - expected[i]!)).toBeLessThan(1e-6)
    }
  })

  test('raises the version of what it writes, so that a backward pass notices', () => {
    const a = p(1)
    const before = a.storage.version
    make([a]).step(new Map([[a, ones([1])]]))
    expect(a.storage.version).toBeGreaterThan(before)
  })

  test('records nothing, and what it does is not undone by an absent gradient', () => {
    const [a, b] = [p(1), p(1)]
    const optimizer = make([a, b])
    a.grad = ones([1])
    optimizer.step()
    expect([a.gradFn, a.isLeaf, values(b)]).toEqual([null, true, [1]])
    expect(Object.keys(optimizer.stateDict().state)).not.toContain('1')
  })
})

describe('groups', () => {
  test('join later, with the optimizer’s settings where they have none', () => {
    const [a, b, c] = [p(1), p(1), p(1)]
    const optimizer = new SGD([a], { lr: 0.5 })
    optimizer.addParamGroup({ params: [b] })
    optimizer.addParamGroup({ params: [c], lr: 0.25 })
    optimizer.step(new Map([a, b, c].map((t) => [t, ones([1])])))
    expect([a, b, c].map(values)).toEqual([[0.5], [0.5], [0.75]])
    expect(optimizer.paramGroups.map(({ lr }) => lr)).toEqual([0.5, 0.5, 0.25])
  })

  test('that are refused are not added', () => {
    const a = p(1)
    const optimizer = new Adam([a])
    for (const [code, group] of [
      ['DUPLICATE_PARAMETER', { params: [a] }],
      ['DUPLICATE_PARAMETER', { params: [p(1), a] }],
      ['PARAMETER_NOT_A_LEAF', { params: [a.mul(2)] }],
      ['INVALID_ARGUMENT', { params: [p(1)], eps: -1 }],
      ['INVALID_ARGUMENT', { params: [p(1)], betas: [0.9, 1] as const }],
      ['INVALID_ARGUMENT', { params: [1 as unknown as Tensor] }],
      ['INVALID_ARGUMENT', { params: a as unknown as Tensor[] }],
    ] as const) {
      expect(refusal(() => optimizer.addParamGroup(group))).toMatchObject({ code, op: 'Adam' })
    }
    expect(optimizer.paramGroups.length).toBe(1)
  })
})

test.each([
  ['lr ≥ 0', () => new Adam([p(1)], { lr: -1 })],
  ['lr ≥ 0', () => new RMSprop([p(1)], { lr: Number.NaN })],
  ['betas', () => new AdamW([p(1)], { betas: [1, 0.5] })],
  ['betas', () => new NAdam([p(1)], { betas: [0.5] as unknown as [number, number] })],
  ['eps ≥ 0', () => new RAdam([p(1)], { eps: -1 })],
  ['lrDecay ≥ 0', () => new Adagrad([p(1)], { lrDecay: -1 })],
  ['rho in [0, 1]', () => new Adadelta([p(1)], { rho: 1.1 })],
  ['weightDecay ≥ 0', () => new Adamax([p(1)], { weightDecay: -0.1 })],
  ['momentum ≥ 0', () => new RMSprop([p(1)], { momentum: -0.1 })],
  ['etas', () => new Rprop([p(1)], { etas: [1.2, 0.5] })],
  ['stepSizes', () => new Rprop([p(1)], { stepSizes: [1, 0.5] })],
  ['settings lr', () => new Adam([p(1)], { learningRate: 1 } as object)],
  // As in Adam(params, 1e-2) of PyTorch, where the second argument is the rate.
  ['an object of settings', () => new Adam([p(1)], 1e-2 as unknown as object)],
  ['an object of settings', () => new AdamW([p(1)], 1e-2 as unknown as object)],
  ['lr ≥ 0', () => new SGD([p(1)], undefined as unknown as { lr: number })],
  ['parameters, or groups of them', () => new Adam((() => [p(1)]) as unknown as Tensor[])],
  ['parameters, or groups of them', () => new Adam(undefined as unknown as Tensor[])],
  ['a group { params, … }', () => new Adam([['weight', p(1)]] as unknown as Tensor[])],
  ['a group { params, … }', () => new Adam([null] as unknown as Tensor[])],
  ['a Map of gradients', () => new Adam([p(1)]).step(3 as unknown as Map<Tensor, Tensor>)],
])('INVALID_ARGUMENT: expected %s', (expected, fn) => {
  expect(refusal(fn)).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(expected) })
})

describe('set', () => {
  test('changes the settings of all groups, from the next step on', () => {
    const [a, b] = [p(1), p(1)]
    const optimizer = new SGD([{ params: [a] }, { params: [b], lr: 0.25 }], { lr: 0.5 })
    optimizer.set({ lr: 0.125 })
    optimizer.step(new Map([a, b].map((t) => [t, ones([1])])))
    expect([a, b].map(values)).toEqual([[0.875], [0.875]])
    // A schedule may lead there by rounding.
    optimizer.set({ lr: -1e-19 })
    expect(optimizer.paramGroups.map(({ lr }) => lr)).toEqual([-1e-19, -1e-19])
  })

  test.each<[string, object]>([
    ['a name that the groups do not have', { lr: 1, rate: 1 }],
    ['the parameters', { lr: 1, params: [] }],
    ['a value that the constructor would refuse', { lr: Number.NaN }],
    ['one that does not fit the others', { lr: 1, nesterov: true }],
  ])('INVALID_ARGUMENT for %s; nothing is changed', (_, settings) => {
    const optimizer = new SGD([{ params: [p(1)], momentum: 0.9 }, { params: [p(1)] }], { lr: 0.5 })
    expect(refusal(() => optimizer.set(settings))).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'SGD' })
    expect(optimizer.paramGroups.map(({ lr, nesterov }) => [lr, nesterov])).toEqual([
      [0.5, false],
      [0.5, false],
    ])
  })
})

describe('step', () => {
  test('of a closure: computes with gradients recorded, steps, gives the closure’s result', () => {
    const a = p(3)
    const optimizer = new SGD([a], { lr: 0.5 })
    const loss = noGrad(() =>
      optimizer.step(() => {
        expect(isGradEnabled()).toBe(true)
        const squared = a.mul(a).sum()
        squared.backward()
        return squared
      }),
    )
    expect([loss.itemSync(), values(a), optimizer.stepCount]).toEqual([9, [0], 1])
  })

  test('a closure whose gradients would come too late is refused', () => {
    const a = p(3)
    a.grad = ones([1])
    expect(refusal(() => new SGD([a], { lr: 1 }).step(async () => 0))).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'SGD.step' })
    expect(values(a)).toEqual([3])
  })

  test('GRAD_MISMATCH changes nothing, also not the parameters before', () => {
    const [a, b] = [p(1), p(1, 2)]
    const grads = new Map([
      [a, ones([1])],
      [b, ones([1])],
    ])
    expect(refusal(() => new SGD([a, b], { lr: 1 }).step(grads))).toMatchObject({
      code: 'GRAD_MISMATCH',
      values: { expected: [2], got: [1] },
    })
    expect(refusal(() => new SGD([a], { lr: 1 }).step(new Map([[a, ones([1], { dtype: 'float64' })]])))).toMatchObject({
      code: 'GRAD_MISMATCH',
    })
    expect(values(a)).toEqual([1])
  })
})

describe('a state dict', () => {
  const moved = () => {
    const a = p(1, 2)
    const optimizer = new Adam([a], { lr: 0.1 })
    optimizer.step(new Map([[a, ones([2])]]))
    return optimizer.stateDict()
  }

  test('has PyTorch’s names in camelCase, and a step that is a number', () => {
    expect(moved()).toMatchObject({
      state: { 0: { step: 1, expAvg: expect.anything(), expAvgSq: expect.anything() } },
      paramGroups: [{ lr: 0.1, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, amsgrad: false, maximize: false, params: [0] }],
    })
  })

  test('converts to the dtype of the parameters it is loaded for', () => {
    const a = tensor([1, 2], { dtype: 'float64', requiresGrad: true })
    const optimizer = new Adam([a])
    optimizer.loadStateDict(moved())
    expect((optimizer.stateDict().state[0]!.expAvg as Tensor).dtype).toBe('float64')
  })

  test.each<[string, (state: ReturnType<typeof moved>) => unknown, string]>([
    ['another shape', ({ state }) => ({ 0: { ...state[0], expAvg: ones([3]) } }), 'expAvg for parameter 0: a tensor of shape [2]'],
    ['a tensor that is missing', ({ state }) => ({ 0: { step: 1, expAvg: state[0]!.expAvg } }), 'expAvgSq'],
    ['a step that is none', ({ state }) => ({ 0: { ...state[0], step: Number.NaN } }), 'step'],
    ['a name of another optimizer', ({ state }) => ({ 0: { ...state[0], momentumBuffer: ones([2]) } }), 'momentumBuffer'],
  ])('STATE_DICT_MISMATCH for %s; nothing is loaded', (_, change, what) => {
    const saved = moved()
    const optimizer = new Adam([p(5, 6)], { lr: 7 })
    const load = () => optimizer.loadStateDict({ ...saved, state: change(saved) as typeof saved.state })
    expect(refusal(load)).toMatchObject({ code: 'STATE_DICT_MISMATCH', message: expect.stringContaining(what) })
    expect([optimizer.paramGroups[0]!.lr, optimizer.stateDict().state]).toEqual([7, {}])
  })

  test.each([null, {}, { state: {} }, { state: null, paramGroups: [] }, { state: {}, paramGroups: [{}] }, [1]])('%j is none', (bad) => {
    const load = () => new Adam([p(5, 6)]).loadStateDict(bad as unknown as ReturnType<typeof moved>)
    expect(refusal(load)).toMatchObject({ code: 'STATE_DICT_MISMATCH' })
  })

  test('with a rate that a schedule has led below 0 loads', () => {
    const saved = moved()
    const optimizer = new Adam([p(5, 6)])
    optimizer.loadStateDict({ ...saved, paramGroups: [{ ...saved.paramGroups[0]!, lr: -1e-19 }] })
    expect(optimizer.paramGroups[0]!.lr).toBe(-1e-19)
  })

  test('with settings that the constructor would refuse: INVALID_ARGUMENT, and nothing is loaded', () => {
    const saved = moved()
    const optimizer = new Adam([p(5, 6)])
    const load = () => optimizer.loadStateDict({ ...saved, paramGroups: [{ ...saved.paramGroups[0]!, eps: -1 }] })
    expect(refusal(load)).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(optimizer.paramGroups[0]!.lr).toBe(1e-3)
  })
})

test('HEAP-14: a class that a user makes of an optimizer may keep the gradients that it sees', () => {
  class Logging extends SGD {
    readonly seen: Tensor[] = []
    protected override update(p: Tensor, grad: Tensor, settings: SGDSettings): void {
      this.seen.push(grad)
      super.update(p, grad, settings)
    }
  }
  withHeapFrom(1, () => {
    const a = p(1, -2, 3)
    const optimizer = new Logging([a], { lr: 0.1 })
    a.square().sum().backward()
    optimizer.step()
    optimizer.zeroGrad()
    expect(optimizer.seen.map(values)).toEqual([[2, -4, 6]])
  })
})
