/** The comparison with PyTorch excuses a difference only if KERNELS.md lists it and the program has its cause. Here postgrad plays PyTorch. */
import { expect, test } from '@jest/globals'
import type { Program, Step } from './builder.fixture.js'
import { difference, isRounding } from './compare.fixture.js'
import { type Outcome, runProgram } from './run.fixture.js'

const step = (op: string, args: readonly number[], outs: readonly number[], ...attrs: readonly unknown[]): Step => ({
  op,
  args,
  outs,
  attrs,
})
const pass = (create: boolean, gradient = false) => ({ gradient, retain: true, create, unused: true })
const program = (dtype: 'float32' | 'float64', data: readonly number[], steps: readonly Step[]): Program => ({
  seed: 0,
  leaves: [{ id: 0, dtype, shape: [data.length], data, requiresGrad: true }],
  steps,
})
/** PyTorch's outcome, if its `.grad` of the leaf were postgrad's times `factor`. */
const scaled = (outcome: Outcome, factor: number): Outcome => {
  const leaf = outcome.end[0]!
  return { ...outcome, end: { ...outcome.end, 0: { ...leaf, grad: leaf.grad!.map((v) => v! * factor) } } }
}
/** As if PyTorch had called no hook. */
const silent = (outcome: Outcome): Outcome => ({ ...outcome, hooks: {} })

test('a small difference of float32 is rounding only where postgrad’s own result hangs on the last bits', () => {
  const tame = program('float32', [1, 2, 3], [step('sin', [0], [1]), step('loss', [1], [2]), step('backward', [2], [], pass(false))])
  const steep = program(
    'float32',
    [200, 150, 170],
    [step('square', [0], [1]), step('sin', [1], [2]), step('loss', [2], [3]), step('backward', [3], [], pass(false))],
  )
  const seen = (one: Program, factor: number) => {
    const here = runProgram(one)
    const there = scaled(here, factor)
    return [difference(one, here, there)?.kind ?? null, isRounding(one, here, there)]
  }
  expect(seen(tame, 1)).toEqual([null, false])
  expect(seen(tame, 1.0001)).toEqual(['end: grad', false])
  expect(seen(steep, 1.01)).toEqual(['end: grad', true])
  expect(seen(steep, 2)).toEqual(['end: grad', false])
  expect(seen({ ...steep, leaves: [{ ...steep.leaves[0]!, dtype: 'float64' }] }, 1.01)).toEqual(['end: grad', false])
})

test('a hook that PyTorch does not call: where grad asks for another result of its node, and nowhere else', () => {
  const of = (asked: number) =>
    program(
      'float64',
      [1, 2],
      [
        step('custom:Passes', [0, 0], [1, 2]),
        step('mulNumber', [2], [3], 2),
        step('hook', [2], [], 'look'),
        step('loss', [3], [4]),
        step('grad', [4, asked], [5], pass(false)),
      ],
    )
  const seen = (one: Program) => {
    const here = runProgram(one)
    expect(here.hooks[2]).toHaveLength(1)
    return difference(one, here, silent(here))?.kind ?? null
  }
  expect([1, 0].map((asked) => seen(of(asked)))).toEqual([null, 'hook'])
})

test('a hook of the result of a checkpoint: after a pass with createGraph, and not before', () => {
  const of = (create: boolean) =>
    program(
      'float64',
      [1, 2],
      [
        step('checkpoint:smooth', [0, 0], [1]),
        step('grad', [1, 0], [2], pass(create, true)),
        step('hook', [1], [], 'double'),
        step('loss', [1], [3]),
        step('backward', [3], [], pass(false)),
      ],
    )
  const seen = (one: Program, there: (here: Outcome) => Outcome) => {
    const here = runProgram(one)
    return difference(one, here, there(here))
  }
  expect(seen(of(true), (here) => silent(here))).toBeNull()
  expect(seen(of(true), (here) => scaled(here, 0.5))).toMatchObject({ kind: 'a hook of the result of a checkpoint', isListed: true })
  expect(seen(of(false), (here) => silent(here))?.kind).toBe('hook')
  expect(seen(of(false), (here) => scaled(here, 0.5))?.kind).toBe('end: grad')
})

/** Of a leaf there are two products, 1 and 2, before these steps. */
const withTwoProducts = (...steps: readonly Step[]) =>
  program('float64', [1, 2], [step('mulNumber', [0], [1], 2), step('mulNumber', [0], [2], 3), ...steps])

test('a view that PyTorch refuses: after a write into its memory that is not recorded, not into another', () => {
  const of = (written: number) =>
    withTwoProducts(step('custom:Reshaped', [1], [3]), { ...step('mulNumber_', [written], [], 2), quiet: true }, step('loss', [3], [4]))
  const seen = (one: Program) => {
    const here = runProgram(one)
    return difference(one, here, { ...here, steps: here.steps.with(4, { error: 'view', text: '' }) })
  }
  expect(seen(of(1))).toMatchObject({ kind: 'a view of a custom function after a write that is not recorded', isListed: true })
  expect(seen(of(2))?.kind).toBe('loss: fine here, view there')
})

test('a checkpoint that postgrad refuses: after a write into its argument, not into another tensor', () => {
  const of = (written: number) =>
    withTwoProducts(
      step('checkpoint:product', [1, 1], [3]),
      step('mulNumber_', [written], [], 2),
      step('loss', [3], [4]),
      step('backward', [4], [], pass(false)),
    )
  const seen = (one: Program) => {
    const there = runProgram(one)
    return difference(
      one,
      { ...there, steps: there.steps.with(5, { error: 'modified', text: '' }) },
      there.steps[5] !== null && 'error' in there.steps[5]! ? { ...there, steps: there.steps.with(5, []) } : there,
    )
  }
  expect(seen(of(1))).toMatchObject({ kind: 'a checkpoint whose argument was written to', isListed: true })
  expect(seen(of(2))?.kind).toBe('backward: modified here, fine there')
})

test('a second pass that postgrad alone refuses', () => {
  const of = (op: string, ...attrs: unknown[]) =>
    program(
      'float64',
      [1, 2],
      [
        step(op, [0], [1], ...attrs),
        step('backward', [1], [], { ...pass(false, true), retain: false }),
        step('loss', [1], [2]),
        step('backward', [2], [], pass(false)),
      ],
    )
  const sin = runProgram(of('sin'))
  expect(sin.steps[3]).toMatchObject({ error: 'freed' })
  expect(difference(of('sin'), sin, { ...sin, steps: sin.steps.with(3, []) })?.kind).toBe('backward: freed here, fine there')
  // As in PyTorch, its node keeps nothing.
  expect(runProgram(of('flip', 0)).steps[3]).not.toMatchObject({ error: 'freed' })
})
