/**
 * Every module against PyTorch, in float64 and in float32: outputs, gradients of inputs and parameters, buffers after a step of training, and the names and
 * shapes of the state dict. Values made by `scripts/golden/modules.py`, which says what they mean.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { backward } from '@postgrad/autograd'
import { type DType, isTensor, type Tensor, tensor } from '@postgrad/tensor'
import * as nn from './index.js'

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
}

type Callable = nn.Module & { forward(...inputs: unknown[]): unknown }
type Maker = new (...args: readonly unknown[]) => Callable

const { cases } = JSON.parse(readFileSync(new URL('../golden/modules.json', import.meta.url), 'utf8')) as { cases: readonly Case[] }

/** Modules that are made of others. */
const MADE: Readonly<Record<string, () => nn.Module>> = {
  Sequential: () => new nn.Sequential(new nn.Linear(3, 4), new nn.Tanh(), new nn.Linear(4, 2), new nn.LogSoftmax(1)),
}

function make([name, ...args]: Case['make']): Callable {
  const Class = (nn as unknown as Record<string, Maker>)[name]!
  return (name in MADE ? MADE[name]!() : new Class(...args)) as Callable
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

/** Pieces of a state go to an LSTM as one argument. */
function call(module: Callable, inputs: readonly Tensor[]): Tensor[] {
  const [x, ...rest] = inputs
  const pairs = module instanceof nn.LSTM || module instanceof nn.LSTMCell
  return flat(module.forward(x, ...(pairs && rest.length > 0 ? [rest] : rest)))
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

const DTYPES = [
  ['float64', 1e-12],
  ['float32', 1e-5],
] as const

describe.each(DTYPES)('%s', (dtype, tolerance) => {
  test.each(cases.map((each) => [each.label, each] as const))('%s', (_, each) => {
    const module = make(each.make).to(dtype) as Callable
    module.train(each.train)
    const state = module.stateDict()
    expect(Object.fromEntries(Object.entries(state).map(([name, { shape }]) => [name, shape]))).toEqual(each.state)
    const names = Object.keys(each.state)
    expect(Object.keys(state)).toEqual(names)
    const given = names.map((name, k) => {
      const own = state[name]!
      const values = own.dtype === 'int32' ? own : fill(own.shape, k, dtype, name.includes('running_var'))
      return [name, values] as const
    })
    module.loadStateDict(Object.fromEntries(given))
    const inputs = each.inputs.map(({ t, shape, values }, k) =>
      t === undefined ? fill(shape, 50 + k, dtype).requiresGrad_() : tensor(Int32Array.from(values!)).to(t).reshape(shape),
    )
    const outputs = call(module, inputs)
    expect(outputs.length).toBe(each.outputs.length)
    for (const [i, output] of outputs.entries()) expectClose(output, each.outputs[i]!, `output ${i}`, tolerance)
    const roots = outputs.filter((output) => output.requiresGrad)
    if (roots.length > 0) backward(roots, roots.map(weights))
    for (const [i, expected] of each.inputGradients.entries()) expectClose(inputs[i]!.grad, expected, `gradient of input ${i}`, tolerance)
    expect(module.namedParameters().map(([name]) => name)).toEqual(Object.keys(each.gradients))
    for (const [name, parameter] of module.namedParameters()) expectClose(parameter.grad, each.gradients[name]!, name, tolerance)
    for (const [name, expected] of Object.entries(each.buffers ?? {})) expectClose(module.getBuffer(name), expected, name, tolerance)
  })
})
