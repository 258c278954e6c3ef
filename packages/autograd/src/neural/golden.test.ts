/**
 * The operations of neural networks against PyTorch: results and gradients, in float64 and in float32; values made by `scripts/golden/neural.py`.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { type DType, isTensor, type Tensor, tensor } from '@postgrad/tensor'
import { grad } from '../index.js'
import { operations } from '../internal.js'

interface Values {
  readonly t: DType
  readonly shape: readonly number[]
  readonly data: readonly (number | string)[]
}
interface Golden {
  readonly op: string
  readonly label: string
  readonly args: readonly unknown[]
  readonly outs: readonly Values[]
  readonly grads: readonly (Values | null)[]
}

const { cases } = JSON.parse(readFileSync(new URL('../../golden/neural.json', import.meta.url), 'utf8')) as { cases: Golden[] }

const isValues = (value: unknown): value is Values => typeof value === 'object' && value !== null && 'data' in value

function make({ t, shape, data }: Values, dtype: DType, requiresGrad: boolean): Tensor {
  const numbers = data.map(Number)
  if (t === 'float64') return tensor(Float64Array.from(numbers)).to(dtype).reshape(shape).detach().requiresGrad_(requiresGrad)
  const whole = tensor(Int32Array.from(numbers)).reshape(shape)
  return t === 'bool' ? whole.to('bool') : whole
}

/** The sum that the golden gradients belong to. */
function weighted(outs: readonly Tensor[]): Tensor {
  const real = outs.filter((out) => out.requiresGrad)
  return real
    .map((out) => {
      const weights = Float64Array.from({ length: out.numel }, (_, i) => 1 + ((i * 0.37) % 1))
      return out.mul(tensor(weights).to(out.dtype).reshape(out.shape)).sum()
    })
    .reduce((a, b) => a.add(b))
}

function expectClose(got: Tensor | null, want: Values, tolerance: number, what: string): void {
  expect([what, got?.shape]).toEqual([what, want.shape])
  const values = got!.dataSync()
  want.data.forEach((expected, i) => {
    const [x, y] = [values[i]!, Number(expected)]
    const same = Number.isFinite(y) ? Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(y)) : Object.is(x, y)
    if (!same) throw new Error(`${what}[${i}]: PyTorch has ${y}, got ${x}`)
  })
}

const TOLERANCE = { float64: 1e-12, float32: 2e-5 } as const

describe.each(['float64', 'float32'] as const)('as PyTorch, in %s', (dtype) => {
  test.each(cases.map((each) => [each.op, each.label, each] as const))('%s: %s', (op, _, each) => {
    const args = each.args.map((arg, i) => (isValues(arg) ? make(arg, dtype, each.grads[i] !== null) : (arg ?? undefined)))
    const run = (operations as unknown as Record<string, (...args: unknown[]) => Tensor | readonly Tensor[]>)[op]!
    const result = run(...args)
    const outs = isTensor(result) ? [result] : result
    expect(outs).toHaveLength(each.outs.length)
    for (const [i, want] of each.outs.entries()) expectClose(outs[i]!, want, TOLERANCE[dtype], `result ${i}`)
    const inputs = args.flatMap((arg, i) => (each.grads[i] === null ? [] : [[i, arg as Tensor] as const]))
    if (inputs.length === 0) return
    const found = grad(
      weighted(outs),
      inputs.map(([, input]) => input),
    )
    for (const [k, [i, input]] of inputs.entries()) {
      expectClose(found[k]!, each.grads[i]!, TOLERANCE[dtype], `gradient ${i}`)
      expect(found[k]!.dtype).toBe(input.dtype)
    }
  })
})
