/** Modules, losses and optimizer steps against PyTorch in float64; values made by `scripts/golden/nn.py`. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { backward, grad } from '@postgrad/autograd'
import { type Reduction, type Tensor, tensor } from '@postgrad/tensor'
import { clipGradNorm_, crossEntropy, Embedding, Linear, LogSoftmax, LSTM, type Module, mseLoss, Sequential, SGD, Tanh } from '../index.js'

interface Values {
  readonly shape: readonly number[]
  readonly values: readonly number[]
}
type Named = Readonly<Record<string, Values>>
interface Golden {
  readonly modules: readonly {
    readonly name: string
    readonly state: Named
    readonly inputs: readonly Values[]
    readonly outputs: readonly Values[]
    readonly weights: readonly Values[]
    readonly gradients: Named
    readonly inputGradients: readonly (Values | null)[]
  }[]
  readonly losses: readonly {
    readonly name: string
    readonly input: Values
    readonly target: Values
    readonly output: Values
    readonly weights: Values
    readonly gradient: Values
  }[]
  readonly sgd: readonly {
    readonly name: string
    readonly settings: { lr: number }
    readonly clip: number | null
    readonly start: Named
    readonly data: Values
    readonly losses: readonly number[]
    readonly end: Named
  }[]
}

const golden = JSON.parse(readFileSync(new URL('../../golden/nn.json', import.meta.url), 'utf8')) as Golden
const double = ({ shape, values }: Values) => tensor(Float64Array.from(values)).reshape(shape)
const ints = ({ shape, values }: Values) => tensor(Int32Array.from(values)).reshape(shape)
const state = (named: Named) => Object.fromEntries(Object.entries(named).map(([name, values]) => [name, double(values)]))

function expectClose(got: Tensor | null, expected: Values, what: string, tolerance = 1e-10): void {
  expect([what, got?.shape]).toEqual([what, expected.shape])
  for (const [i, value] of got!.dataSync().entries()) {
    const error = Math.abs(value - expected.values[i]!) / (1 + Math.abs(expected.values[i]!))
    if (!(error < tolerance)) throw new Error(`${what}[${i}]: PyTorch has ${expected.values[i]}, got ${value}`)
  }
}

const dtype = 'float64'
const MODULES: Readonly<Record<string, () => { module: Module; run: (inputs: Tensor[]) => Tensor[] }>> = {
  linear: () => single(new Linear(4, 3, { dtype })),
  'linear without bias, batched': () => single(new Linear(4, 3, { bias: false, dtype })),
  embedding: () => single(new Embedding(6, 3, { dtype })),
  'lstm of two layers with a state': () => recurrent(new LSTM(3, 4, { numLayers: 2, dtype })),
  'lstm, batch first, without bias': () => recurrent(new LSTM(2, 3, { bias: false, batchFirst: true, dtype })),
  sequential: () => single(new Sequential(new Linear(3, 4, { dtype }), new Tanh(), new Linear(4, 2, { dtype }), new LogSoftmax(1))),
}

function single(module: Module & { forward(x: Tensor): Tensor }) {
  return { module, run: ([x]: Tensor[]) => [module.forward(x!)] }
}

function recurrent(module: LSTM) {
  return {
    module,
    run: ([x, h, c]: Tensor[]) => {
      const [output, [hn, cn]] = module.forward(x!, h && c && [h, c])
      return [output, hn, cn]
    },
  }
}

describe('modules', () => {
  test.each(golden.modules.map((each) => [each.name, each] as const))('%s', (name, each) => {
    const { module, run } = MODULES[name]!()
    expect([...module.namedParameters()].map(([path]) => path)).toEqual(Object.keys(each.state))
    module.loadStateDict(state(each.state))
    const inputs = each.inputs.map((values, i) => (each.inputGradients[i] === null ? ints(values) : double(values).requiresGrad_()))
    const outputs = run(inputs)
    for (const [i, output] of outputs.entries()) expectClose(output, each.outputs[i]!, `output ${i}`)
    backward(
      outputs,
      each.weights.map((w) => double(w)),
    )
    for (const [path, parameter] of module.namedParameters()) expectClose(parameter.grad, each.gradients[path]!, path)
    for (const [i, expected] of each.inputGradients.entries()) {
      if (expected !== null) expectClose(inputs[i]!.grad, expected, `gradient of input ${i}`)
    }
  })

  test('the linear layer in float32, within its precision', () => {
    const each = golden.modules[0]!
    const module = new Linear(4, 3)
    module.loadStateDict(state(each.state))
    const y = module.forward(double(each.inputs[0]!).to('float32'))
    expect(y.dtype).toBe('float32')
    expectClose(y, each.outputs[0]!, 'output', 1e-6)
  })
})

describe('losses', () => {
  test.each(golden.losses.map((each) => [each.name, each] as const))('%s', (name, each) => {
    const [loss, reduction] = name.split(' ') as [string, Reduction]
    const input = double(each.input).requiresGrad_()
    const output = loss === 'mseLoss' ? mseLoss(input, double(each.target), reduction) : crossEntropy(input, ints(each.target), reduction)
    expectClose(output, each.output, 'output')
    expectClose(grad(output, [input], { gradOutputs: [double(each.weights)] })[0]!, each.gradient, 'gradient')
  })
})

describe('20 steps of SGD', () => {
  const model = () => new Sequential(new Linear(3, 5, { dtype }), new Tanh(), new Linear(5, 3, { dtype }))
  const target = tensor(Int32Array.of(2, 0, 2, 1))
  const cases = golden.sgd.map((each) => [each.name, each] as const)

  test.each(cases)('%s, from .grad', (_, each) => {
    const net = model()
    net.loadStateDict(state(each.start))
    const optimizer = new SGD(net.parameters(), each.settings)
    for (const expected of each.losses) {
      optimizer.zeroGrad()
      const loss = crossEntropy(net.forward(double(each.data)), target)
      loss.backward()
      if (each.clip !== null) clipGradNorm_(net.parameters(), each.clip)
      optimizer.step()
      expectClose(loss, { shape: [], values: [expected] }, 'loss')
    }
    for (const [path, parameter] of net.namedParameters()) expectClose(parameter, each.end[path]!, path)
  })

  test.each(cases)('%s, from a map, the optimizer saved and loaded in the middle', (_, each) => {
    let net = model()
    net.loadStateDict(state(each.start))
    let optimizer = new SGD(net.parameters(), each.settings)
    for (const step of each.losses.keys()) {
      if (step === 10) {
        const [weights, saved] = [net.stateDict(), optimizer.stateDict()]
        net = model()
        net.loadStateDict(weights)
        optimizer = new SGD(net.parameters(), { lr: 99 })
        optimizer.loadStateDict(saved)
      }
      const parameters = [...net.parameters()]
      const found = grad(crossEntropy(net.forward(double(each.data)), target), parameters)
      const grads = new Map(parameters.map((p, i) => [p, found[i]!]))
      if (each.clip !== null) clipGradNorm_(parameters, each.clip, { grads })
      optimizer.step(grads)
    }
    for (const [path, parameter] of net.namedParameters()) {
      expectClose(parameter, each.end[path]!, path)
      expect(parameter.grad).toBeNull()
    }
  })
})
