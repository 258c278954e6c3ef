/** Every operation's gradients as PyTorch computes them: the golden cases of `packages/tensor` that have some. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { withDevice } from '@postgrad/tensor'
import { type GoldenCase, goldenCasesByOp, residentDevice } from '@postgrad/tensor/suite'
import { withPoisonedHeap } from '../engine/poisoned-heap.fixture.js'
import { backward } from '../index.js'
import { byGrad, byGradTwice, compareAll, type Gradients, gradientsOf } from './gradients.fixture.js'

/** They may have to look at elements: at indices of no dimensions, at counts, offsets and masks. */
const READ_EARLY: ReadonlySet<string> = new Set(['maskedSelect', 'index', 'indexPut', 'repeatInterleave', 'embeddingBag'])

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
    const failure = await compareAll(byGradTwice(c), c.seconds!, true)
    return failure === null ? null : `${c.op}, ${c.label}: ${failure}`
  })
  expect((await Promise.all(failures)).filter((failure) => failure !== null)).toEqual([])
})

async function check(c: GoldenCase, run: Run): Promise<string | null> {
  return compareAll(run(c), c.grads!)
}
