/** Every operation's gradients as PyTorch computes them: the golden cases of `packages/tensor` that have some. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { type Tensor, withDevice } from '@postgrad/tensor'
import { isFloating, isTensor } from '@postgrad/tensor/internal'
import { compare, decode, type GoldenCase, type GoldenTensor, goldenCasesByOp, goldenWeights, residentDevice } from '@postgrad/tensor/suite'
import { withPoisonedHeap } from '../engine/poisoned-heap.fixture.js'
import { backward, grad } from '../index.js'
import { operations } from '../internal.js'

const tolerance = { float32: 1e-5, float64: 1e-12 }
/** They may have to look at elements: at indices of no dimensions, at counts, offsets and masks. */
const READ_EARLY: ReadonlySet<string> = new Set(['maskedSelect', 'index', 'indexPut', 'repeatInterleave', 'embeddingBag'])
const calls = operations as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>

for (const [op, all] of goldenCasesByOp()) {
  const cases = all.filter((c) => c.grads !== undefined)
  if (cases.length === 0) continue
  test(`${op}: the gradients of ${cases.length} cases`, async () => {
    expect((await Promise.all(cases.map((c) => failureOf(c)))).filter((failure) => failure !== null)).toEqual([])
  })
  test(`${op}: and by a backward pass whose blocks are destroyed when they are given back`, async () => {
    const failures = cases.map((c) => failureOf(c, byBackward))
    expect((await Promise.all(failures)).filter((failure) => failure !== null)).toEqual([])
  })
  test(`${op}: and on a device with a memory of its own`, async () => {
    const failures = cases.map((c) => withDevice(residentDevice(), () => failureOf(c)))
    expect((await Promise.all(failures)).filter((failure) => failure !== null)).toEqual([])
  })
}

type Run = (c: GoldenCase) => Gradients

/** By `grad`, which leaves nothing behind. */
function byGrad(c: GoldenCase): Gradients {
  return gradientsOf(c, (outputs, inputs, gradOutputs) => grad(outputs, inputs, { gradOutputs, allowUnused: true }))
}

/** By `backward`, the pass that gives blocks back, in a heap where that destroys them. */
function byBackward(c: GoldenCase): Gradients {
  return withPoisonedHeap(() =>
    gradientsOf(c, (outputs, inputs, gradOutputs) => {
      backward(outputs, gradOutputs)
      return inputs.map((x) => x.grad)
    }),
  ).result
}

async function failureOf(c: GoldenCase, run: Run = byGrad): Promise<string | null> {
  try {
    const failure = await check(c, run)
    return failure === null ? null : `${c.label}: ${failure}`
  } catch (error) {
    if (isPostgradError(error, 'READ_NOT_SYNCHRONOUS') && READ_EARLY.has(c.op)) return null
    return `${c.label}: ${error instanceof Error ? error.stack : String(error)}`
  }
}

/** Second derivatives, where PyTorch's are among the golden values. */
const twice = [...goldenCasesByOp().values()].flat().filter((c) => c.seconds !== undefined)
test(`the second derivatives of ${twice.length} cases`, async () => {
  expect(twice.length).toBeGreaterThan(30)
  const failures = twice.map(async (c) => {
    const { tensors, found } = gradientsOf(c, (outputs, inputs, gradOutputs) => {
      const first = grad(outputs, inputs, { gradOutputs, allowUnused: true, createGraph: true })
      const recorded = first.filter((g) => g?.requiresGrad) as Tensor[]
      return recorded.length === 0 ? [] : grad(recorded, inputs, { gradOutputs: recorded.map(goldenWeights), allowUnused: true })
    })
    const failure = await compareAll(tensors, found, c.seconds!, true)
    return failure === null ? null : `${c.op}, ${c.label}: ${failure}`
  })
  expect((await Promise.all(failures)).filter((failure) => failure !== null)).toEqual([])
})

interface Gradients {
  readonly tensors: readonly Tensor[]
  /** By tensor; null where none is wanted or none arrived. */
  readonly found: readonly (Tensor | null)[]
}

function gradientsOf(
  c: GoldenCase,
  pass: (outputs: readonly Tensor[], inputs: readonly Tensor[], gradOutputs: readonly Tensor[]) => readonly (Tensor | null)[],
): Gradients {
  const args = c.args.map((arg) => decode(arg, []))
  const tensors = args.flat().filter((arg) => isTensor(arg))
  for (const x of tensors) if (isFloating(x.dtype)) x.requiresGrad_()
  const out = calls[c.op]!(...args)
  const parts: readonly Tensor[] = isTensor(out) ? [out] : Object.values(out as Readonly<Record<string, Tensor>>)
  const outputs = parts.filter((part) => part.requiresGrad)
  const inputs = tensors.filter((x) => x.requiresGrad)
  const found = outputs.length === 0 ? [] : pass(outputs, inputs, outputs.map(goldenWeights))
  return { tensors, found: tensors.map((x) => found[inputs.indexOf(x)] ?? null) }
}

async function check(c: GoldenCase, run: Run): Promise<string | null> {
  const { tensors, found } = run(c)
  return compareAll(tensors, found, c.grads!)
}

/** @param zeroIsNone no gradient is a gradient of 0: of what is constant only one side may have recorded something */
async function compareAll(
  tensors: readonly Tensor[],
  found: readonly (Tensor | null)[],
  wanted: readonly (GoldenTensor | null)[],
  zeroIsNone = false,
): Promise<string | null> {
  for (const i of tensors.keys()) {
    const [got, want] = [found[i]!, wanted[i]!]
    if (zeroIsNone && (got === null || want === null)) {
      const rest = got === null ? (want?.data ?? []).map(Number) : [...(await got.data())]
      if (rest.some((v) => v !== 0)) return `gradient of tensor ${i}: expected ${want === null ? 'none' : want.data}, got ${got}`
      continue
    }
    if ((got === null) !== (want === null)) return `gradient of tensor ${i}: expected ${want === null ? 'none' : 'one'}, got ${got}`
    if (got === null || want === null) continue
    const failure = compare(await got.data(), got, want, tolerance)
    if (failure !== null) return `gradient of tensor ${i}: ${failure}`
  }
  return null
}
