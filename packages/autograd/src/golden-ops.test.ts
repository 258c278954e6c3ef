/** Every operation's gradients as PyTorch computes them: the golden cases of `packages/tensor` that have some. */
import { expect, test } from '@jest/globals'
import type { Tensor } from '@postgrad/tensor'
import { isFloating, isTensor } from '@postgrad/tensor/internal'
import { compare, decode, type GoldenCase, goldenCasesByOp, goldenWeights } from '@postgrad/tensor/suite'
import { grad } from './index.js'
import { operations } from './internal.js'

const tolerance = { float32: 1e-5, float64: 1e-12 }
const calls = operations as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>

for (const [op, all] of goldenCasesByOp()) {
  const cases = all.filter((c) => c.grads !== undefined)
  if (cases.length === 0) continue
  test(`${op}: the gradients of ${cases.length} cases`, () => {
    expect(cases.map(failureOf).filter((failure) => failure !== null)).toEqual([])
  })
}

function failureOf(c: GoldenCase): string | null {
  try {
    const failure = check(c)
    return failure === null ? null : `${c.label}: ${failure}`
  } catch (error) {
    return `${c.label}: ${error instanceof Error ? error.stack : String(error)}`
  }
}

function check(c: GoldenCase): string | null {
  const args = c.args.map((arg) => decode(arg, []))
  const tensors = args.flat().filter((arg) => isTensor(arg))
  for (const x of tensors) if (isFloating(x.dtype)) x.requiresGrad_()
  const out = calls[c.op]!(...args)
  const parts: readonly Tensor[] = isTensor(out) ? [out] : Object.values(out as Readonly<Record<string, Tensor>>)
  const outputs = parts.filter((part) => part.requiresGrad)
  const inputs = tensors.filter((x) => x.requiresGrad)
  const found = outputs.length === 0 ? [] : grad(outputs, inputs, { gradOutputs: outputs.map(goldenWeights), allowUnused: true })
  for (const [i, x] of tensors.entries()) {
    const got = found[inputs.indexOf(x)] ?? null
    const want = c.grads![i]!
    if ((got === null) !== (want === null)) return `gradient of tensor ${i}: expected ${want === null ? 'none' : 'one'}, got ${got}`
    if (got === null || want === null) continue
    const failure = compare(got.dataSync(), got, want, tolerance)
    if (failure !== null) return `gradient of tensor ${i}: ${failure}`
  }
  return null
}
