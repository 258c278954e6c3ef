/** Recurrent layers and optimizers next to PyTorch at the sizes where fused kernels work by vectors and stage by chunks; values made by `scripts/golden/nn_sizes.py`. */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { backward } from '@postgrad/autograd'
import { device, type Tensor, withDevice } from '@postgrad/tensor'
import { compare, decode, type GoldenTensor, goldenWeights, type Json, type Tolerance, unfusedDevice } from '@postgrad/tensor/suite'
import * as nn from './index.js'

interface Layer {
  readonly label: string
  readonly layer: 'LSTM' | 'GRU'
  readonly args: readonly [width: number, hidden: number, options: object]
  readonly state: Readonly<Record<string, GoldenTensor>>
  readonly inputs: readonly GoldenTensor[]
  readonly outputs: readonly GoldenTensor[]
  readonly inputGrads: readonly GoldenTensor[]
  readonly grads: Readonly<Record<string, GoldenTensor>>
}
interface Steps {
  readonly label: string
  readonly optimizer: string
  readonly options: object
  readonly p: GoldenTensor
  readonly grads: readonly GoldenTensor[]
  readonly out: GoldenTensor
}
type Recurrent = nn.Module & { forward(x: Tensor, state: unknown): [Tensor, unknown] }

const golden = JSON.parse(readFileSync(new URL('../golden/sizes.json', import.meta.url), 'utf8')) as {
  readonly layers: readonly Layer[]
  readonly steps: readonly Steps[]
}
const classes = nn as unknown as Readonly<Record<string, new (...args: readonly unknown[]) => unknown>>
const made = (tensor: GoldenTensor): Tensor => decode(tensor as unknown as Json, []) as Tensor

function expectClose(got: Tensor, expected: GoldenTensor, tolerance: Tolerance, what: string): void {
  expect([what, compare(got.dataSync(), got, expected, tolerance)]).toEqual([what, null])
}

/** With fused kernels, and by the operations that they are made of. */
const DEVICES = [
  ['fused', device('wasm')],
  ['by operations', unfusedDevice()],
] as const

// A gradient of a weight sums over all steps and rows.
const OF_LAYERS: Tolerance = { float32: 2e-5, float64: 1e-12 }

test.each(DEVICES.flatMap(([how, target]) => golden.layers.map((layer) => [layer.label, how, layer, target] as const)))(
  '%s: as PyTorch, %s',
  (_, __, { layer, args: [width, hidden, options], ...expected }, target) =>
    withDevice(target, () => {
      const dtype = expected.inputs[0]!.t
      const module = new classes[layer]!(width, hidden, { ...options, dtype }) as Recurrent
      module.loadStateDict(Object.fromEntries(Object.entries(expected.state).map(([name, value]) => [name, made(value)])))
      const inputs = expected.inputs.map((input) => made(input).requiresGrad_())
      const [x, ...states] = inputs
      const [y, last] = module.forward(x!, layer === 'LSTM' ? states : states[0])
      const outputs = [y, last].flat() as Tensor[]
      backward(outputs, outputs.map(goldenWeights))
      for (const [i, out] of outputs.entries()) expectClose(out, expected.outputs[i]!, OF_LAYERS, `output ${i}`)
      for (const [i, input] of inputs.entries()) expectClose(input.grad!, expected.inputGrads[i]!, OF_LAYERS, `gradient of input ${i}`)
      for (const [name, p] of module.namedParameters()) expectClose(p.grad!, expected.grads[name]!, OF_LAYERS, `gradient of ${name}`)
    }),
)

test.each(DEVICES.flatMap(([how, target]) => golden.steps.map((steps) => [steps.label, how, steps, target] as const)))(
  '%s: as PyTorch, %s',
  (_, __, { optimizer: name, options, p: start, grads, out }, target) =>
    withDevice(target, () => {
      const p = made(start).requiresGrad_()
      const optimizer = new classes[name]!([p], options) as nn.Optimizer
      for (const grad of grads) optimizer.step(new Map([[p, made(grad)]]))
      expectClose(p, out, { float32: 3e-6, float64: 1e-13 }, 'the parameter')
    }),
)
