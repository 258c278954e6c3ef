/** Every operation's gradients as PyTorch computes them: the golden cases of `packages/tensor` that have some. */
import { expect, test } from '@jest/globals'
import { type Tensor, withDevice } from '@postgrad/tensor'
import { isFloating, isTensor } from '@postgrad/tensor/internal'
import { compare, decode, deferredDevice, type GoldenCase, goldenCasesByOp, goldenWeights } from '@postgrad/tensor/suite'
import { grad } from './index.js'
import { operations } from './internal.js'

const tolerance = { float32: 1e-5, float64: 1e-12 }
/** How large their results are depends on elements. */
const READ_EARLY: ReadonlySet<string> = new Set(['maskedSelect'])
const calls = operations as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>

for (const [op, all] of goldenCasesByOp()) {
  const cases = all.filter((c) => c.grads !== undefined)
  if (cases.length === 0) continue
  test(`${op}: the gradients of ${cases.length} cases`, async () => {
    expect((await Promise.all(cases.map(failureOf))).filter((failure) => failure !== null)).toEqual([])
  })
  if (READ_EARLY.has(op)) continue
  test(`${op}: and on a device that computes late`, async () => {
    const failures = cases.map((c) => withDevice(deferredDevice(), () => failureOf(c)))
    expect((await Promise.all(failures)).filter((failure) => failure !== null)).toEqual([])
  })
}

async function failureOf(c: GoldenCase): Promise<string | null> {
  try {
    const failure = await check(c)
    return failure === null ? null : `${c.label}: ${failure}`
  } catch (error) {
    return `${c.label}: ${error instanceof Error ? error.stack : String(error)}`
  }
}

async function check(c: GoldenCase): Promise<string | null> {
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
    const failure = compare(await got.data(), got, want, tolerance)
    if (failure !== null) return `gradient of tensor ${i}: ${failure}`
  }
  return null
}
