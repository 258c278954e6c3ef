/** Tests without values from PyTorch: names, modes, initial values, errors, second derivatives of the fused parts. */
import { describe, expect, test } from '@jest/globals'
import { backward, grad, gradcheck, isGradEnabled } from '@postgrad/autograd'
import { withScope } from '@postgrad/base/internal'
import { Generator, manualSeed, ones, rand, type Tensor, tensor, zeros } from '@postgrad/tensor'
import {
  BatchNorm1d,
  BatchNorm2d,
  clipGradNorm_,
  Dropout,
  Embedding,
  Linear,
  LSTM,
  Module,
  mseLoss,
  ReLU,
  Sequential,
  SGD,
} from '../index.js'
import { lstmLayer } from '../internal.js'

class Model extends Module {
  readonly encoder = new Embedding(5, 4)
  readonly rnn = new LSTM(4, 6, { numLayers: 2 })
  readonly heads = [new Linear(6, 2), new Linear(6, 3)]
  readonly gains = [ones([2], { requiresGrad: true }), ones([2])]
  readonly scale = ones([1], { requiresGrad: true })
  readonly constant = ones([3])
  readonly tied = this.encoder
  readonly drop = new Dropout()
}

const values = (t: Tensor) => Array.from(t.dataSync())

function refusal(fn: () => unknown): unknown {
  try {
    fn()
  } catch (error) {
    return error
  }
  throw new Error('expected it to throw')
}

describe('Module', () => {
  test('finds parameters in fields, arrays and submodules, shared ones once', () => {
    const model = new Model()
    const rnn = ['l0', 'l1'].flatMap((l) => ['weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'].map((name) => `rnn.${name}_${l}`))
    const heads = ['0', '1'].flatMap((i) => ['weight', 'bias'].map((name) => `heads.${i}.${name}`))
    const names = ['gains.0', 'scale', 'encoder.weight', ...rnn, ...heads]
    expect([...model.namedParameters()].map(([name]) => name)).toEqual(names)
    expect(Object.keys(model.stateDict()).sort()).toEqual([...names, 'tied.weight'].sort())
    expect([...model.parameters()].every((p) => p.requiresGrad && p.isLeaf)).toBe(true)
  })

  test('a frozen parameter stays a parameter', () => {
    const layer = new Linear(2, 2)
    layer.weight.requiresGrad_(false)
    expect([...layer.namedParameters()].map(([name]) => name)).toEqual(['weight', 'bias'])
  })

  test('a state dict shares storage, has no history, and loads by value', () => {
    const [a, b] = [new Model(), new Model()]
    const state = a.stateDict()
    expect(state.scale!.requiresGrad).toBe(false)
    b.loadStateDict(state)
    for (const [name, parameter] of b.namedParameters()) {
      expect(values(parameter)).toEqual(values(state[name]!))
      expect(parameter.storage).not.toBe(state[name]!.storage)
    }
  })

  test('STATE_DICT_MISMATCH lists all of it and loads nothing', () => {
    const layer = new Linear(2, 2)
    const before = values(layer.weight)
    const error = refusal(() => layer.loadStateDict({ weight: zeros([2, 3]), other: zeros([1]) }))
    expect(error).toMatchObject({
      code: 'STATE_DICT_MISMATCH',
      values: { missing: ['bias'], unexpected: ['other'], shapes: ['weight is [2, 2], not [2, 3]'] },
    })
    expect(values(layer.weight)).toEqual(before)
  })

  test('STATE_DICT_MISMATCH advises { strict: false } only where it helps', () => {
    const layer = new Linear(2, 2)
    const { weight, bias } = layer.stateDict()
    const messageOf = (state: object) => (refusal(() => layer.loadStateDict(state as ReturnType<typeof layer.stateDict>)) as Error).message
    expect(messageOf({ weight, bias, other: bias })).toBe(
      'loadStateDict: the state does not fit this module; unexpected: other. Load it into a module of the same structure and sizes, or pass { strict: false } to skip names that do not fit.',
    )
    expect(messageOf({ weight: zeros([2, 3]), bias, other: bias })).toBe(
      'loadStateDict: the state does not fit this module; unexpected: other; of another shape: weight is [2, 2], not [2, 3]. Load it into a module of the same structure and sizes.',
    )
  })

  test('train and eval reach every module', () => {
    const model = new Model().eval()
    expect([model.training, model.drop.training, model.heads[1]!.training]).toEqual([false, false, false])
    expect(model.train().drop.training).toBe(true)
  })

  test('zeroGrad', () => {
    const layer = new Linear(2, 1)
    layer
      .forward(ones([1, 2]))
      .sum()
      .backward()
    expect(layer.weight.grad).not.toBeNull()
    layer.zeroGrad()
    expect([layer.weight.grad, layer.bias!.grad]).toEqual([null, null])
  })
})

describe('initial values', () => {
  test.each([
    ['Linear', () => new Linear(16, 50), 1 / 4],
    ['LSTM', () => new LSTM(9, 25), 1 / 5],
  ] as const)('%s: uniform within its bound, and filling it', (_, make, bound) => {
    const all = [...make().parameters()].flatMap(values)
    const largest = Math.max(...all.map(Math.abs))
    expect(largest).toBeLessThanOrEqual(bound)
    expect(largest).toBeGreaterThan(bound * 0.98)
    expect(Math.abs(all.reduce((a, b) => a + b, 0) / all.length)).toBeLessThan(bound * 0.1)
  })

  test('come from the scope’s generator: same seed, same weights', () => {
    const draw = (seed: number) => withScope({ generator: new Generator(seed) }, () => values(new LSTM(3, 4).stateDict().weight_hh_l0!))
    expect(draw(7)).toEqual(draw(7))
    expect(draw(7)).not.toEqual(draw(8))
  })
})

describe('Dropout', () => {
  test('keeps the mean while training, is the identity in eval', () => {
    manualSeed(1)
    const drop = new Dropout(0.25)
    const x = ones([10_000], { requiresGrad: true })
    const y = drop.forward(x)
    const kept = values(y).filter((v) => v !== 0)
    expect(new Set(kept.map((v) => v.toFixed(5)))).toEqual(new Set(['1.33333']))
    expect(Math.abs(kept.length / 10_000 - 0.75)).toBeLessThan(0.02)
    backward(y.sum())
    expect(values(x.grad!)).toEqual(values(y))
    expect(drop.eval().forward(x)).toBe(x)
    expect(values(new Dropout(1).forward(ones([2])))).toEqual([0, 0])
    expect(refusal(() => new Dropout(1.5))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

describe('LSTM', () => {
  const float64 = (...shape: number[]) => rand(shape, { dtype: 'float64', requiresGrad: true, generator: new Generator(3) })

  test('a layer, first and second derivative', () => {
    const inputs = () => [float64(3, 2, 8), float64(8, 2), float64(2, 2), float64(2, 2)] as const
    for (const reverse of [false, true]) {
      const layer = (...args: Tensor[]) => lstmLayer(...(args as [Tensor, Tensor, Tensor, Tensor]), reverse)
      expect(gradcheck(layer, [...inputs()])).toBe(true)
    }
    const first = (...args: Tensor[]) => {
      const [output, last] = lstmLayer(...(args as [Tensor, Tensor, Tensor, Tensor]), false) as [Tensor, Tensor]
      return grad(output.mul(output).sum().add(last.sum()), args, { createGraph: true })
    }
    expect(isGradEnabled()).toBe(true)
    expect(gradcheck(first, [...inputs()])).toBe(true)
  })

  test('in steps with the state handed on, the same as at once', () => {
    const lstm = new LSTM(3, 4, { numLayers: 2, dtype: 'float64' })
    const x = float64(4, 2, 3)
    const [whole, [h, c]] = lstm.forward(x)
    const [first, state] = lstm.forward(x.narrow(0, 0, 2))
    const [second, [h2, c2]] = lstm.forward(x.narrow(0, 2, 2), state)
    const close = (a: Tensor, b: Tensor) => expect(a.sub(b).abs().amax().itemSync()).toBeLessThan(1e-14)
    close(whole.narrow(0, 0, 2), first)
    close(whole.narrow(0, 2, 2), second)
    close(h, h2)
    close(c, c2)
  })

  test('dropout lies between layers, while training', () => {
    const lstm = new LSTM(3, 4, { numLayers: 2, dropout: 0.5 })
    const x = rand([3, 2, 3])
    const run = () => values(lstm.forward(x)[0])
    expect(run()).not.toEqual(run())
    lstm.eval()
    expect(run()).toEqual(run())
  })

  test('wrong shapes are refused', () => {
    const lstm = new LSTM(3, 4)
    const state = [zeros([1, 2, 5]), zeros([1, 2, 4])] as const
    for (const fn of [
      () => lstm.forward(zeros([3])),
      () => lstm.forward(zeros([0, 2, 3])),
      () => lstm.forward(zeros([5, 2, 4])),
      () => lstm.forward(zeros([5, 2, 3]), state),
    ]) {
      expect(refusal(fn)).toMatchObject({ code: 'SHAPE_MISMATCH' })
    }
  })
})

describe('SGD', () => {
  const p = (...v: number[]) => tensor(v, { requiresGrad: true })

  test('a parameter absent from the map is left untouched, its velocity too; gradients are not written to', () => {
    const [a, b] = [p(1), p(1)]
    b.grad = ones([1])
    const g = ones([1])
    const optimizer = new SGD([a, b], { lr: 0.5, momentum: 0.9, weightDecay: 0.1 })
    optimizer.step(new Map([[a, g]]))
    optimizer.step(new Map([[a, g]]))
    expect(values(b)).toEqual([1])
    expect(values(g)).toEqual([1])
    expect(Object.keys(optimizer.stateDict().state)).toEqual(['0'])
  })

  test('groups with settings of their own, which a schedule may change', () => {
    const [a, b] = [p(1), p(1)]
    const optimizer = new SGD([{ params: [a] }, { params: [b], lr: 0.25 }], { lr: 0.5 })
    const grads = new Map([a, b].map((t) => [t, ones([1])]))
    optimizer.step(grads)
    expect([a, b].map(values)).toEqual([[0.5], [0.75]])
    optimizer.paramGroups[1]!.lr = 0
    optimizer.step(grads)
    expect([a, b].map(values)).toEqual([[0], [0.75]])
  })

  /** An optimizer that has taken a step, and so has a velocity. */
  const moved = (parameter: Tensor) => {
    const optimizer = new SGD([parameter], { lr: 1, momentum: 0.5 })
    optimizer.step(new Map([[parameter, ones(parameter.shape)]]))
    return optimizer
  }

  test.each([
    ['INVALID_ARGUMENT', () => new SGD([p(1)], { lr: -1 })],
    ['INVALID_ARGUMENT', () => new SGD([p(1)], { lr: Number.NaN })],
    ['INVALID_ARGUMENT', () => new SGD([p(1)], { lr: 1, nesterov: true })],
    ['NO_PARAMETERS', () => new SGD([], { lr: 1 })],
    ['PARAMETER_NOT_A_LEAF', () => new SGD([p(1).mul(2)], { lr: 1 })],
    [
      'DUPLICATE_PARAMETER',
      () => {
        const a = p(1)
        return new SGD([{ params: [a] }, { params: [a] }], { lr: 1 })
      },
    ],
    ['STATE_DICT_MISMATCH', () => new SGD([ones([2])], { lr: 1 }).loadStateDict(moved(p(1)).stateDict())],
    ['STATE_DICT_MISMATCH', () => new SGD([p(1)], { lr: 1 }).loadStateDict(new SGD([p(1), p(2)], { lr: 1 }).stateDict())],
  ])('%s', (expected, fn) => {
    expect(refusal(fn)).toMatchObject({ code: expected })
  })
})

test('clipGradNorm_ returns the norm, scales only what is too long, skips what has no gradient', () => {
  const [a, b, c] = [zeros([1], { requiresGrad: true }), zeros([2], { requiresGrad: true }), zeros([1], { requiresGrad: true })]
  a!.grad = tensor([3])
  b!.grad = tensor([0, 4])
  expect(clipGradNorm_([a!, b!, c!], 10).itemSync()).toBe(5)
  expect(values(b!.grad)).toEqual([0, 4])
  clipGradNorm_([a!, b!, c!], 1)
  expect(values(a!.grad)[0]).toBeCloseTo(0.6, 5)
  expect(clipGradNorm_([c!], 1).itemSync()).toBe(0)
})

test('clipGradNorm_ scales each gradient of a map once, also where one sum has the gradient of both', () => {
  const [a, b] = [zeros([2], { requiresGrad: true }), zeros([2], { requiresGrad: true })]
  const found = grad(a.add(b).mul(2).sum(), [a, b])
  clipGradNorm_([a, b], 2, { grads: new Map([a, b].map((p, i) => [p, found[i]!])) })
  for (const g of found) for (const v of values(g)) expect(v).toBeCloseTo(1, 5)
})

test('mseLoss refuses a reduction that it does not know', () => {
  expect(refusal(() => mseLoss(zeros([2]), zeros([2]), 'average' as 'mean'))).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'mseLoss' })
})

test('mseLoss refuses to broadcast', () => {
  expect(refusal(() => mseLoss(zeros([2, 1]), zeros([2])))).toMatchObject({ code: 'SHAPE_MISMATCH' })
})

test('a network learns XOR', () => {
  const net = withScope({ generator: new Generator(1) }, () => new Sequential(new Linear(2, 8), new ReLU(), new Linear(8, 1)))
  const x = tensor([
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ])
  const y = tensor([[0], [1], [1], [0]])
  const optimizer = new SGD(net.parameters(), { lr: 0.1, momentum: 0.9 })
  let loss = Number.POSITIVE_INFINITY
  for (let i = 0; i < 300; i++) {
    optimizer.zeroGrad()
    const l = mseLoss(net.forward(x), y)
    l.backward()
    optimizer.step()
    loss = l.itemSync()
  }
  expect(loss).toBeLessThan(1e-3)
})

describe('a batch norm in training of a batch without values', () => {
  // PyTorch 1.13: an empty result, zeros for weight and bias, running statistics as they were, the batch counted.
  test.each([[[0, 3]], [[0, 3, 4]], [[2, 3, 0]], [[1, 3, 0]]])('%j', (shape) => {
    for (const trackRunningStats of [true, false]) {
      const norm = new BatchNorm1d(3, { trackRunningStats })
      const x = zeros(shape, { requiresGrad: true })
      const y = norm.forward(x)
      y.sum().backward()
      expect([y.shape, x.grad!.shape]).toEqual([shape, shape])
      expect([norm.weight!.grad!.toArray(), norm.bias!.grad!.toArray()]).toEqual([
        [0, 0, 0],
        [0, 0, 0],
      ])
      if (!trackRunningStats) continue
      expect([norm.runningMean!.toArray(), norm.runningVar!.toArray(), norm.numBatchesTracked!.itemSync()]).toEqual([
        [0, 0, 0],
        [1, 1, 1],
        1,
      ])
    }
  })

  test('also in two dimensions, without weights, and with an average of all batches; one value for each channel is refused as before', () => {
    for (const shape of [
      [0, 3, 2, 2],
      [2, 3, 0, 2],
    ])
      expect(new BatchNorm2d(3, { affine: false, momentum: null }).forward(zeros(shape)).shape).toEqual(shape)
    for (const shape of [
      [1, 3],
      [1, 3, 1],
    ])
      expect(() => new BatchNorm1d(3).forward(zeros(shape))).toThrow(expect.objectContaining({ code: 'SHAPE_MISMATCH' }))
  })
})
