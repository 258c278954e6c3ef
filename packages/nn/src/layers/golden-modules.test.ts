/**
 * Compares each module with PyTorch, in float64 and float32: outputs, gradients of inputs and parameters, buffers after a step of training, names and
 * shapes of the state dict. `scripts/golden/modules.py` makes and explains the values.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { backward } from '@postgrad/autograd'
import { type DType, isTensor, ones, type Tensor, tensor } from '@postgrad/tensor'
import * as nn from '../index.js'

interface Values {
  readonly shape: readonly number[]
  readonly values: readonly number[]
}
interface Case {
  readonly label: string
  readonly make: readonly [name: string, ...args: unknown[]]
  readonly train: boolean
  readonly state: Readonly<Record<string, readonly number[]>>
  readonly inputs: readonly { readonly t?: 'int32' | 'bool'; readonly shape: readonly number[]; readonly values?: readonly number[] }[]
  readonly outputs: readonly Values[]
  readonly inputGradients: readonly (Values | null)[]
  readonly gradients: Readonly<Record<string, Values | null>>
  readonly buffers?: Readonly<Record<string, Values>>
  /** Options of the call, and the names of those that the last inputs are. */
  readonly call?: object
  readonly masks?: readonly string[]
}
interface Run {
  readonly label: string
  readonly losses: readonly number[]
  readonly state: Readonly<Record<string, Values>>
}

type Callable = nn.Module & { forward(...inputs: unknown[]): unknown }
type Maker = new (...args: readonly unknown[]) => Callable

const { cases, runs } = JSON.parse(readFileSync(new URL('../../golden/modules.json', import.meta.url), 'utf8')) as {
  cases: readonly Case[]
  runs: readonly Run[]
}

/** Modules that are made of others or of tensors, by their labels. */
const MADE: Readonly<Record<string, () => nn.Module>> = {
  Sequential: () => new nn.Sequential(new nn.Linear(3, 4), new nn.Tanh(), new nn.Linear(4, 2), new nn.LogSoftmax(1)),
  'TransformerEncoder: two layers and a norm': () =>
    new nn.TransformerEncoder(() => new nn.TransformerEncoderLayer(4, 2, { dimFeedforward: 3, dropout: 0 }), 2, new nn.LayerNorm(4)),
  'BCEWithLogitsLoss: weights': () => new nn.BCEWithLogitsLoss({ weight: ones([3]), posWeight: ones([3]) }),
  'NLLLoss: class weights, one ignored, none': () => new nn.NLLLoss({ weight: ones([3]), reduction: 'none', ignoreIndex: 2 }),
  'CrossEntropyLoss: class weights, smoothed': () => new nn.CrossEntropyLoss({ weight: ones([3]), labelSmoothing: 0.2 }),
}

function make({ label, make: [name, ...args] }: Case): Callable {
  const Class = (nn as unknown as Record<string, Maker>)[name]!
  return (label in MADE ? MADE[label]!() : new Class(...args)) as Callable
}

const UNIT = [
  [0, 1, 1],
  [1, 0, 0],
]

/** How a module is called with the script's inputs, where that is not one after the other. */
const CALLS: Readonly<Record<string, (module: Callable, inputs: readonly Tensor[], each: Case) => unknown>> = {
  LSTM: (module, [x, ...state]) => module.forward(x, ...(state.length > 0 ? [state] : [])),
  LSTMCell: (module, [x, ...state]) => module.forward(x, ...(state.length > 0 ? [state] : [])),
  EmbeddingBag: (module, [x, second]) =>
    module.forward(x, second === undefined ? {} : second.dtype === 'int32' ? { offsets: second } : { perSampleWeights: second }),
  MultiheadAttention(module, inputs, each) {
    const tensors = inputs.slice(0, inputs.length - each.masks!.length)
    const [q, k, v] = tensors.length === 1 ? [tensors[0], tensors[0], tensors[0]] : tensors
    return module.forward(q, k, v, { ...each.call, ...masks(inputs, each) })
  },
  TransformerEncoderLayer: (module, inputs, each) => module.forward(inputs[0], masks(inputs, each)),
  TransformerEncoder: (module, inputs, each) => module.forward(inputs[0], masks(inputs, each)),
  BCELoss: (module, [x]) => module.forward(x!.sigmoid(), tensor(UNIT, { dtype: x!.dtype })),
  BCEWithLogitsLoss: (module, [x]) => module.forward(x, tensor(UNIT, { dtype: x!.dtype })),
}

function masks(inputs: readonly Tensor[], { masks: names = [] }: Case): Record<string, Tensor> {
  return Object.fromEntries(names.map((name, i) => [name, inputs[inputs.length - names.length + i]!]))
}

/** The script's. */
function fill(shape: readonly number[], salt: number, dtype: DType, positive = false): Tensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const values = Float64Array.from({ length: count }, (_, i) => (((i * 37 + salt * 29) % 101) - 50) / 64)
  return tensor(positive ? values.map((v) => Math.abs(v) + 0.5) : values, { dtype }).reshape(shape)
}

function weights({ shape, dtype, numel }: Tensor): Tensor {
  return tensor(
    Float64Array.from({ length: numel }, (_, i) => (((i * 7) % 11) - 5.5) / 4),
    { dtype },
  ).reshape(shape)
}

function flat(output: unknown): Tensor[] {
  if (isTensor(output)) return [output]
  return Array.isArray(output) ? output.flatMap(flat) : []
}

function expectClose(got: Tensor | null, expected: Values | null, what: string, tolerance: number): void {
  expect([what, got?.shape]).toEqual([what, expected?.shape])
  if (got === null || expected === null) return
  const scale = Math.max(1, ...expected.values.map(Math.abs))
  for (const [i, value] of got.dataSync().entries()) {
    const error = Math.abs(Number(value) - expected.values[i]!) / scale
    if (!(error <= tolerance)) throw new Error(`${what}[${i}]: PyTorch has ${expected.values[i]}, got ${value}`)
  }
}

/** The script's: the k-th entry of the state dict is fill(shape, k). */
function load(module: nn.Module, dtype: DType): void {
  const given = Object.entries(module.stateDict()).map(([name, own], k) => {
    const values = own.dtype === 'int32' ? own : fill(own.shape, k, dtype, name.includes('running_var'))
    return [name, values] as const
  })
  module.loadStateDict(Object.fromEntries(given))
}

const DTYPES = [
  ['float64', 1e-12],
  ['float32', 1e-5],
] as const

describe.each(DTYPES)('%s', (dtype, tolerance) => {
  test.each(cases.map((each) => [each.label, each] as const))('%s', (_, each) => {
    const module = make(each).to(dtype) as Callable
    module.train(each.train)
    const state = module.stateDict()
    expect(Object.fromEntries(Object.entries(state).map(([name, { shape }]) => [name, shape]))).toEqual(each.state)
    expect(Object.keys(state)).toEqual(Object.keys(each.state))
    load(module, dtype)
    const inputs = each.inputs.map(({ t, shape, values }, k) =>
      t === undefined ? fill(shape, 50 + k, dtype).requiresGrad_() : tensor(Int32Array.from(values!)).to(t).reshape(shape),
    )
    const special = CALLS[each.make[0]]
    const outputs = flat(special === undefined ? module.forward(...inputs) : special(module, inputs, each))
    expect(outputs.length).toBe(each.outputs.length)
    for (const [i, output] of outputs.entries()) expectClose(output, each.outputs[i]!, `output ${i}`, tolerance)
    const roots = outputs.filter((output) => output.requiresGrad)
    if (roots.length > 0) backward(roots, roots.map(weights))
    for (const [i, expected] of each.inputGradients.entries()) expectClose(inputs[i]!.grad, expected, `gradient of input ${i}`, tolerance)
    expect(module.namedParameters().map(([name]) => name)).toEqual(Object.keys(each.gradients))
    for (const [name, parameter] of module.namedParameters()) expectClose(parameter.grad, each.gradients[name]!, name, tolerance)
    for (const [name, expected] of Object.entries(each.buffers ?? {})) expectClose(module.getBuffer(name), expected, name, tolerance)
  })

  test.each(runs.map((each) => [each.label, each] as const))('three steps of SGD: %s', (label, each) => {
    const { model, x, target } = RUNS[label]!(dtype)
    load(model.to(dtype), dtype)
    const optimizer = new nn.SGD(model.parameters(), { lr: 0.1, momentum: 0.9 })
    const losses = each.losses.map(() => {
      optimizer.zeroGrad()
      const loss = nn.crossEntropy(model.forward(x), target)
      loss.backward()
      optimizer.step()
      return loss.itemSync()
    })
    // Errors add up over the steps.
    expectClose(tensor(losses, { dtype: 'float64' }), { shape: [3], values: each.losses }, 'losses', 10 * tolerance)
    const state = model.stateDict()
    expect(Object.keys(state)).toEqual(Object.keys(each.state))
    for (const [name, values] of Object.entries(each.state)) expectClose(state[name]!, values, name, 10 * tolerance)
  })
})

class Net extends nn.Module {
  readonly body = new nn.Sequential(
    new nn.Conv2d(1, 2, 3, { padding: 1 }),
    new nn.BatchNorm2d(2),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.Conv2d(2, 3, 3),
    new nn.ReLU(),
    new nn.AdaptiveAvgPool2d(1),
    new nn.Flatten(),
  )
  readonly head = new nn.Linear(3, 3)

  forward(x: Tensor): Tensor {
    return this.head.forward(this.body.forward(x))
  }
}

class Block extends nn.Module {
  readonly embedding = new nn.Embedding(7, 4)
  readonly layer = new nn.TransformerEncoderLayer(4, 2, { dimFeedforward: 6, dropout: 0, batchFirst: true })
  readonly head = new nn.Linear(4, 7)

  forward(x: Tensor): Tensor {
    return this.head.forward(this.layer.forward(this.embedding.forward(x))).reshape([-1, 7])
  }
}

function ints(shape: readonly number[], below: number, salt = 0): Tensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  return tensor(Int32Array.from({ length: count }, (_, i) => (i * 5 + salt * 3 + 1) % below)).reshape(shape)
}

const RUNS: Readonly<Record<string, (dtype: DType) => { model: nn.Layer; x: Tensor; target: Tensor }>> = {
  'a small CNN': (dtype) => ({ model: new Net(), x: fill([4, 1, 8, 8], 50, dtype), target: ints([4], 3) }),
  'a transformer block': () => ({ model: new Block(), x: ints([2, 3], 7), target: ints([6], 7, 1) }),
}
