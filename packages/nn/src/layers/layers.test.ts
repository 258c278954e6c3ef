/** Tests of layers without values from PyTorch: modes, errors, sparse gradients, dropout's randomness. */
import { describe, expect, test } from '@jest/globals'
import { grad, gradcheck, gradgradcheck } from '@postgrad/autograd'
import { Generator, manualSeed, ones, rand, randn, SparseTensor, type Tensor, tensor, withDevice, zeros } from '@postgrad/tensor'
import { gpujsDevice } from '@postgrad/tensor/suite'
import {
  AdaptiveAvgPool2d,
  AvgPool2d,
  BatchNorm1d,
  BatchNorm2d,
  CELU,
  Conv1d,
  Conv2d,
  CrossEntropyLoss,
  Dropout2d,
  Embedding,
  EmbeddingBag,
  GRU,
  GRUCell,
  GroupNorm,
  Hardswish,
  InstanceNorm1d,
  InstanceNorm2d,
  LayerNorm,
  LSTM,
  loadSafetensors,
  MaxPool1d,
  MaxPool2d,
  MSELoss,
  MultiheadAttention,
  PReLU,
  RNN,
  SELU,
  Sequential,
  safetensorsBytes,
  TransformerEncoder,
  TransformerEncoderLayer,
} from '../index.js'
import { gruLayer } from '../recurrent/gru-layer.js'
import { rnnLayer } from '../recurrent/rnn-layer.js'

const values = (t: Tensor) => Array.from(t.dataSync())
const code = (expected: string) => expect.objectContaining({ code: expected })

describe('Embedding', () => {
  test('fromPretrained shares the storage, frozen unless told otherwise', () => {
    const table = tensor([
      [1, 2],
      [3, 4],
    ])
    const frozen = Embedding.fromPretrained(table)
    expect(frozen.weight.storage).toBe(table.storage)
    expect([frozen.weight.requiresGrad, frozen.parameters().length, frozen.numEmbeddings]).toEqual([false, 1, 2])
    const free = Embedding.fromPretrained(table, { freeze: false, paddingIdx: -1 })
    expect([free.weight.requiresGrad, free.paddingIdx]).toEqual([true, 1])
    expect(values(free.forward(tensor([1], { dtype: 'int32' })))).toEqual([3, 4])
    expect(EmbeddingBag.fromPretrained(table, { mode: 'sum' }).mode).toBe('sum')
    expect(() => Embedding.fromPretrained(zeros([3]))).toThrow(code('SHAPE_MISMATCH'))
    expect(() => Embedding.fromPretrained(table, { paddingIdx: 2 })).toThrow(code('INDEX_OUT_OF_RANGE'))
  })

  test('a bag whose offsets are passed as PyTorch takes them, or under another name, says how they are passed', () => {
    const bag = new EmbeddingBag(3, 2)
    const [indices, offsets] = [tensor([0, 1, 2], { dtype: 'int32' }), tensor([0, 2], { dtype: 'int32' })]
    expect(bag.forward(indices, { offsets }).shape).toEqual([2, 2])
    for (const wrong of [offsets, { Offsets: offsets }, null] as never[]) {
      expect(() => bag.forward(indices, wrong)).toThrow('Write bag.forward(indices, { offsets })')
    }
  })

  test('a sparse gradient has the rows that were used', () => {
    const module = new Embedding(5, 2, { sparse: true })
    const [gradient] = grad(module.forward(tensor([4, 1, 4], { dtype: 'int32' })).sum(), [module.weight])
    expect(gradient).toBeInstanceOf(SparseTensor)
  })
})

describe('BatchNorm', () => {
  test('training changes the statistics and counts; evaluation and frozen statistics do not', () => {
    const module = new BatchNorm1d(2)
    module.forward(randn([8, 2]))
    expect(module.getBuffer('num_batches_tracked').itemSync()).toBe(1)
    const mean = values(module.getBuffer('running_mean'))
    module.eval().forward(randn([8, 2]))
    expect(values(module.getBuffer('running_mean'))).toEqual(mean)
    expect(module.getBuffer('num_batches_tracked').itemSync()).toBe(1)
  })

  test('momentum null: the mean of all batches', () => {
    const module = new BatchNorm1d(1, { momentum: null })
    for (const at of [1, 2, 6]) module.forward(tensor([[at - 1], [at + 1]]))
    expect(module.runningMean!.itemSync()).toBeCloseTo(3, 5)
  })

  test('refuses one value per channel while training, and other ranks', () => {
    expect(() => new BatchNorm1d(2).forward(zeros([1, 2]))).toThrow(code('SHAPE_MISMATCH'))
    expect(() => new BatchNorm1d(2).forward(zeros([4, 3]))).toThrow(code('SHAPE_MISMATCH'))
    expect(() => new BatchNorm2d(2).forward(zeros([4, 2]))).toThrow(code('SHAPE_MISMATCH'))
  })
})

describe('dropout', () => {
  test('Dropout2d zeroes whole channels', () => {
    manualSeed(20261120)
    const y = new Dropout2d(0.5).forward(ones([16, 8, 2, 2]))
    const channels = y.reshape([128, 4]).toArray() as number[][]
    for (const channel of channels) expect(new Set(channel).size).toBe(1)
    const zero = channels.filter(([first]) => first === 0).length
    expect(zero).toBeGreaterThan(40)
    expect(zero).toBeLessThan(88)
  })

  test('lies between layers of RNN and GRU and in attention, while training', () => {
    for (const module of [new RNN(2, 3, { numLayers: 2, dropout: 0.5 }), new GRU(2, 3, { numLayers: 2, dropout: 0.5 })]) {
      const x = randn([4, 2, 2])
      const run = () => values(module.forward(x)[0])
      expect(run()).not.toEqual(run())
      module.eval()
      expect(run()).toEqual(run())
    }
    const attention = new MultiheadAttention(4, 2, { dropout: 0.5 })
    const x = randn([6, 2, 4])
    const run = () => values(attention.forward(x, x, x)[0])
    expect(run()).not.toEqual(run())
    attention.eval()
    expect(run()).toEqual(run())
  })
})

test('the layers of an encoder begin with values of their own', () => {
  const encoder = new TransformerEncoder(() => new TransformerEncoderLayer(4, 2, { dimFeedforward: 4 }), 2)
  expect(values(encoder.getParameter('layers.0.linear1.weight'))).not.toEqual(values(encoder.getParameter('layers.1.linear1.weight')))
})

test('an activation of one’s own', () => {
  const layer = new TransformerEncoderLayer(2, 1, { dimFeedforward: 2, dropout: 0, activation: (x) => x.mul(0) })
  const other = new TransformerEncoderLayer(2, 1, { dimFeedforward: 2, dropout: 0, activation: 'gelu' })
  other.loadStateDict(layer.stateDict())
  const x = randn([3, 1, 2])
  expect(values(layer.forward(x))).not.toEqual(values(other.forward(x)))
})

describe('layers as one node', () => {
  const float64 = (...shape: number[]) => rand(shape, { dtype: 'float64', requiresGrad: true, generator: new Generator(3) })
  type Layer = (...inputs: Tensor[]) => Tensor
  const layers: Readonly<Record<string, (reverse: boolean) => readonly [Layer, readonly (readonly number[])[]]>> = {
    rnn: (reverse) => [
      (...a) => rnnLayer(a[0]!, a[1]!, a[2]!, 'tanh', reverse),
      [
        [3, 2, 2],
        [2, 2],
        [2, 2],
      ],
    ],
    gru: (reverse) => [(...a) => gruLayer(a[0]!, a[1]!, a[2]!, a[3]!, reverse), [[3, 2, 6], [6, 2], [2], [2, 2]]],
  }

  test.each(['rnn', 'gru'] as const)('%s, first and second derivative, both ways', (name) => {
    for (const reverse of [false, true]) {
      const [fn, shapes] = layers[name]!(reverse)
      const inputs = shapes.map((shape) => float64(...shape))
      expect(gradcheck(fn, inputs)).toBe(true)
      expect(gradgradcheck(fn, inputs)).toBe(true)
    }
  })

  test('a part of the inputs that needs no gradient, under createGraph', () => {
    const [x, w, h] = [float64(3, 2, 2), float64(2, 2), float64(2, 2).detach()]
    const [gx] = grad(rnnLayer(x, w, h, 'tanh', false).sum(), [x], { createGraph: true })
    const [plain] = grad(rnnLayer(x, w, h, 'tanh', false).sum(), [x])
    for (const [i, v] of values(plain!).entries()) expect(values(gx!)[i]).toBeCloseTo(v as number, 12)
    expect(gx!.requiresGrad).toBe(true)
  })

  test('relu passes nothing where h is 0', () => {
    const module = new RNN(1, 1, { nonlinearity: 'relu', bias: false })
    module.loadStateDict({ weight_ih_l0: ones([1, 1]), weight_hh_l0: ones([1, 1]) })
    const x = tensor([[[2]], [[-5]], [[3]]], { requiresGrad: true })
    module.forward(x)[0].sum().backward()
    expect(values(x.grad!)).toEqual([1, 0, 1])
  })
})

describe('recurrent layers', () => {
  const modules = { LSTM, GRU, RNN }

  test.each(['LSTM', 'GRU', 'RNN'] as const)('%s: one result on every device', (name) => {
    const module = new modules[name](3, 4, { bidirectional: true, numLayers: 2 })
    const x = randn([5, 2, 3], { requiresGrad: true })
    const run = () => {
      const [output] = module.forward(x)
      return [output, ...grad(output.mul(output).sum(), [x, ...module.parameters()])].flatMap(values) as number[]
    }
    const expected = withDevice('js', run)
    for (const device of ['wasm', gpujsDevice()] as const) {
      for (const [i, v] of withDevice(device, run).entries()) expect(v).toBeCloseTo(expected[i]!, 5)
    }
  })

  test.each(['LSTM', 'GRU', 'RNN'] as const)('%s: its output may be written into', (name) => {
    const module = new modules[name](3, 4)
    const x = randn([5, 2, 3], { requiresGrad: true })
    const through = (last: (y: Tensor) => Tensor) => values(grad(last(module.forward(x)[0]).sum(), [x])[0]!)
    expect(through((y) => y.mul_(2))).toEqual(through((y) => y.mul(2)))
  })

  test.each(['LSTM', 'GRU', 'RNN'] as const)('%s: a batch of nothing', (name) => {
    const [output] = new modules[name](3, 4).forward(zeros([5, 0, 3], { requiresGrad: true }))
    expect(output.shape).toEqual([5, 0, 4])
    output.sum().backward()
  })
})

test('a state with buffers goes through a file: counts too', async () => {
  const make = () => new Sequential(new Conv2d(1, 2, 3), new BatchNorm2d(2))
  const [module, other] = [make(), make()]
  module.forward(randn([2, 1, 4, 4]))
  const state = await loadSafetensors(await safetensorsBytes(module.stateDict()))
  other.loadStateDict(state)
  expect(other.getBuffer('1.num_batches_tracked').itemSync()).toBe(1)
  const x = randn([2, 1, 4, 4])
  expect(values(other.eval().forward(x))).toEqual(values(module.eval().forward(x)))
})

describe('what is refused', () => {
  const x = zeros([3, 2, 4])
  const attention = new MultiheadAttention(4, 2)
  test.each([
    ['INVALID_ARGUMENT', () => new Conv2d(3, 4, 3, { groups: 2 })],
    ['INVALID_ARGUMENT', () => new Conv2d(0, 4, 3)],
    ['INVALID_ARGUMENT', () => new Conv2d(1, 4, [3, 0])],
    ['INVALID_ARGUMENT', () => new Conv2d(1, 1, 3, { paddingMode: 'mirror' as 'reflect' })],
    ['INVALID_ARGUMENT', () => new Conv2d(1, 1, 3, { padding: 'same', paddingMode: 'circular', stride: 2 })],
    ['INVALID_ARGUMENT', () => new Conv1d(1, 1, [3, 3] as unknown as number)],
    ['INVALID_ARGUMENT', () => new RNN(2, 2, { nonlinearity: 'gelu' as 'relu' })],
    ['INVALID_ARGUMENT', () => new GRUCell(2, 0)],
    ['INVALID_ARGUMENT', () => new LayerNorm([])],
    ['INVALID_ARGUMENT', () => new LayerNorm([2, 0])],
    ['INVALID_ARGUMENT', () => new GroupNorm(2, 3)],
    ['INVALID_ARGUMENT', () => new InstanceNorm1d(0)],
    ['SHAPE_MISMATCH', () => new InstanceNorm1d(2).forward(x.unsqueeze(0))],
    ['SHAPE_MISMATCH', () => new InstanceNorm2d(3).forward(zeros([1, 2, 4, 4]))],
    ['INVALID_ARGUMENT', () => new MaxPool2d(0)],
    ['INVALID_ARGUMENT', () => new CELU(0)],
    ['SHAPE_MISMATCH', () => new PReLU({ numParameters: 3 }).forward(zeros([2, 2]))],
    ['INVALID_ARGUMENT', () => new MaxPool1d([2, 2] as unknown as number)],
    ['INVALID_ARGUMENT', () => new AvgPool2d([2, 1.5])],
    ['INVALID_ARGUMENT', () => new AdaptiveAvgPool2d([2, -1])],
    ['INVALID_ARGUMENT', () => new EmbeddingBag(2, 2, { mode: 'min' as 'max' })],
    ['INVALID_ARGUMENT', () => new MultiheadAttention(4, 3)],
    ['INVALID_ARGUMENT', () => new MultiheadAttention(4, 2).forward(x, x, x, { needsWeights: false } as object)],
    ['INVALID_ARGUMENT', () => new TransformerEncoderLayer(4, 2, { activation: 'tanh' as 'relu' })],
    ['INVALID_ARGUMENT', () => new TransformerEncoder(() => new TransformerEncoderLayer(4, 2), 0)],
    ['INVALID_ARGUMENT', () => new MSELoss('average' as 'mean')],
    ['INVALID_ARGUMENT', () => new CrossEntropyLoss({ reduction: 'batchmean' as 'mean' })],
    ['INDEX_OUT_OF_RANGE', () => new Embedding(3, 2, { paddingIdx: 3 })],
    ['DTYPE_MISMATCH', () => new LayerNorm(2, { dtype: 'int32' })],
    ['SHAPE_MISMATCH', () => attention.forward(x, x, zeros([3, 2, 5]))],
    ['SHAPE_MISMATCH', () => attention.forward(x, zeros([3, 1, 4]), x)],
    ['SHAPE_MISMATCH', () => attention.forward(x, x, x, { attnMask: zeros([2, 3]) })],
    ['SHAPE_MISMATCH', () => attention.forward(x, x, x, { keyPaddingMask: zeros([3, 2]) })],
    ['DTYPE_MISMATCH', () => attention.forward(x, x, x, { attnMask: zeros([3, 3], { dtype: 'int32' }) })],
    ['SHAPE_MISMATCH', () => new GRU(4, 2).forward(x, zeros([1, 3, 2]))],
    ['DTYPE_MISMATCH', () => new GRU(4, 2).forward(x, zeros([1, 2, 2], { dtype: 'float64' }))],
    ['DTYPE_MISMATCH', () => new GRU(4, 2).forward(x.to('float64'))],
    ['SHAPE_MISMATCH', () => new GRUCell(4, 2).forward(zeros([1, 2, 4]))],
  ])('%s: %s', (expected, fn) => {
    expect(fn).toThrow(code(expected))
  })
})

describe('activations at their kinks and ends', () => {
  const x = () => tensor([0, 1, -1, 3, -3, 4, -4, Infinity, -Infinity, NaN]).requiresGrad_()
  const rounded = (t: Tensor) => values(t).map((v) => (Number.isFinite(v) ? Math.round(v * 1e5) / 1e5 : v))

  // torch.autograd.grad(F.celu(x).sum(), x, create_graph=True), and of its sum again; likewise the others. PyTorch 1.13.
  test.each([
    ['CELU', new CELU(), [1, 1, 0.36788, 1, 0.04979, 1, 0.01832, 1, 0, 1], [0, 0, 0.36788, 0, 0.04979, 0, 0.01832, 0, 0, 0]],
    ['CELU of 2', new CELU(2), [1, 1, 0.60653, 1, 0.22313, 1, 0.13534, 1, 0, 1], [0, 0, 0.30327, 0, 0.11157, 0, 0.06767, 0, 0, 0]],
    [
      'SELU',
      new SELU(),
      [1.7581, 1.0507, 0.64677, 1.0507, 0.08753, 1.0507, 0.0322, 1.0507, 0, 1.0507],
      [0, 0, 0.64677, 0, 0.08753, 0, 0.0322, 0, 0, 0],
    ],
    // The second derivatives of Hardswish at its kinks: KERNELS.md.
    [
      'Hardswish',
      new Hardswish(),
      [0.5, 0.83333, 0.16667, 1.5, -0.5, 1, 0, 1, 0, 1],
      [0.33333, 0.33333, 0.33333, 0.33333, 0.33333, 0, 0, 0, 0, 0],
    ],
  ])('%s: first and second derivatives', (_, layer, first, second) => {
    const at = x()
    const slope = grad([layer.forward(at).sum()], [at], { createGraph: true })[0]!
    expect(rounded(slope)).toEqual(first)
    expect(rounded(grad([slope.sum()], [at])[0]!)).toEqual(second)
  })

  // torch.autograd.grad(F.prelu(x, w).sum(), w) with w = 0.25
  test.each([
    [[Infinity, 1, -2, 0], -2],
    [[Infinity, 1], 0],
    [[0, 1, -1, Infinity, -Infinity], -Infinity],
  ])("PReLU: the weight's gradient of %p", (at, expected) => {
    const layer = new PReLU()
    expect(values(grad([layer.forward(tensor(at)).sum()], [layer.weight])[0]!)).toEqual([expected])
  })

  test('several slopes: infinities where they are not used leave them alone', () => {
    const layer = new PReLU({ numParameters: 2 })
    const out = layer.forward(tensor([[Infinity, -2]]))
    expect([values(out), values(grad([out.sum()], [layer.weight])[0]!)]).toEqual([
      [Infinity, -0.5],
      [0, -2],
    ])
  })
})
