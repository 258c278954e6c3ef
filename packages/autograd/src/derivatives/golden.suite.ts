/** Golden graphs of one file (made by `scripts/golden/`) against their twins here: losses, first and second derivatives. Called by the tests. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor } from '@postgrad/tensor'
import * as F from '../index.js'

interface Golden {
  readonly name: string
  readonly inputs: readonly { readonly shape: readonly number[]; readonly values: readonly number[] }[]
  readonly loss: number
  readonly first: readonly (readonly number[])[]
  /** Empty where an input has no second derivative. */
  readonly second: readonly (readonly number[])[]
}

/** `graphs`: the twins by name, from the inputs to the loss. */
export function goldenSuite(file: string, graphs: Readonly<Record<string, (...inputs: Tensor[]) => Tensor>>): void {
  const { cases } = JSON.parse(readFileSync(new URL(`../../golden/${file}.json`, import.meta.url), 'utf8')) as { cases: Golden[] }
  describe('as PyTorch', () => {
    test('every golden graph has its twin here', () => {
      expect(cases.map(({ name }) => name).sort()).toEqual(Object.keys(graphs).sort())
    })

    test.each(cases.map((golden) => [golden.name, golden] as const))('%s', (name, golden) => {
      const inputs = golden.inputs.map(({ shape, values }) => tensor(Float64Array.from(values)).reshape(shape).requiresGrad_())
      const loss = graphs[name]!(...inputs)
      expectClose(loss, [golden.loss], 'loss')
      const first = F.grad(loss, inputs, { createGraph: true })
      for (const [i, g] of first.entries()) expectClose(g, golden.first[i]!, `gradient ${i}`)
      const squares = first.map((g) => g.mul(g).sum()).reduce((a, b) => a.add(b))
      const second = squares.requiresGrad ? F.grad(squares, inputs, { allowUnused: true, retainGraph: true }) : inputs.map(() => null)
      for (const [i, g] of second.entries()) expectClose(g ?? tensor(Float64Array.of()), golden.second[i]!, `second derivative ${i}`)
      F.backward(loss)
      for (const [i, input] of inputs.entries()) expectClose(input.grad!, golden.first[i]!, `.grad of ${i}`)
    })
  })
}

function expectClose(got: Tensor, expected: readonly number[], what: string): void {
  const values = Array.from(got.dataSync())
  expect(values).toHaveLength(expected.length)
  values.forEach((value, i) => {
    const error = Math.abs(value - expected[i]!) / (1 + Math.abs(expected[i]!))
    if (!(error < 1e-10)) throw new Error(`${what}[${i}]: PyTorch has ${expected[i]}, got ${value}`)
  })
}
