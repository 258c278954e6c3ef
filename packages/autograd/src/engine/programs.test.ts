/**
 * Random programs, drawn by fast-check and differentiated by PyTorch (`scripts/golden/programs.mjs`, which makes any number): their values, gradients
 * and, if all operations are smooth, second derivatives, in float64.
 */
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { type Tensor, tensor } from '@postgrad/tensor'
import { operations as F } from '../graph/recorded.js'
import { grad } from '../index.js'
import { backwardInputs, backwardRest } from './backward-parts.js'
import { withPoisonedHeap } from './poisoned-heap.fixture.js'

type Step = readonly [op: string, args: readonly number[], attrs: readonly unknown[]]
interface Program {
  readonly leaves: readonly { readonly shape: readonly number[]; readonly data: readonly number[] }[]
  readonly steps: readonly Step[]
  readonly value: number
  readonly grads: readonly (readonly number[] | null)[]
  readonly second?: readonly (readonly number[] | null)[]
}

const { programs } = JSON.parse(readFileSync(new URL('../../golden/programs.json', import.meta.url), 'utf8')) as { programs: Program[] }
/** Relative to 1 + the largest value: programs may cancel. */
const TOLERANCE = 1e-9

const ints = (values: readonly number[], shape: readonly number[] = [values.length]) => tensor(Int32Array.from(values)).reshape(shape)
const shifted = (x: Tensor) => x.mul(x).add(0.5)
const dims = (dim: number | null) => dim ?? undefined

/** Those whose call differs from `name(...tensors, ...attributes)`. */
const CALLS: Readonly<Record<string, (...args: never[]) => Tensor>> = {
  safeExp: (x: Tensor) => x.tanh().exp(),
  safeLog: (x: Tensor) => shifted(x).log(),
  safeSqrt: (x: Tensor) => shifted(x).sqrt(),
  safeReciprocal: (x: Tensor) => shifted(x).reciprocal(),
  safeRsqrt: (x: Tensor) => shifted(x).rsqrt(),
  safeDiv: (x: Tensor, y: Tensor) => x.div(shifted(y)),
  safeNorm: (x: Tensor, dim: number | null, keep: boolean) => shifted(x).norm(2, dims(dim), keep),
  mulNumber: (x: Tensor, n: number) => x.mul(n),
  rsubNumber: (x: Tensor, n: number) => F.sub(n, x),
  where: (x: Tensor, y: Tensor) => x.gt(y).where(x.mul(2), y),
  sum: (x: Tensor, dim: number | null, keep: boolean) => x.sum(dims(dim), keep),
  mean: (x: Tensor, dim: number | null, keep: boolean) => x.mean(dims(dim), keep),
  prod: (x: Tensor, dim: number | null, keep: boolean) => (dim === null ? x.prod() : x.prod(dim, keep)),
  var: (x: Tensor, dim: number | null, keep: boolean) => x.var(dims(dim), keep),
  amax: (x: Tensor, dim: number | null, keep: boolean) => x.amax(dims(dim), keep),
  amin: (x: Tensor, dim: number | null, keep: boolean) => x.amin(dims(dim), keep),
  max: (x: Tensor, dim: number, keep: boolean) => x.max(dim, keep).values,
  cat: (x: Tensor, y: Tensor, z: Tensor, dim: number) => F.cat([x, y, z], dim),
  stack: (x: Tensor, y: Tensor, dim: number) => F.stack([x, y], dim),
  splitFirst: (x: Tensor, size: number, dim: number) => x.split(size, dim)[0]!,
  gather: (x: Tensor, dim: number, shape: number[], index: number[]) => x.gather(dim, ints(index, shape)),
  scatterAdd: (x: Tensor, y: Tensor, dim: number, shape: number[], index: number[]) => x.scatterAdd(dim, ints(index, shape), y),
  indexSelect: (x: Tensor, dim: number, index: number[]) => x.indexSelect(dim, ints(index)),
  maskedFill: (x: Tensor, mask: number[], value: number) => x.maskedFill(ints(mask, x.shape).to('bool'), value),
  embedding: (x: Tensor, shape: number[], index: number[]) => x.embedding(ints(index, shape)),
  matmulTransposed: (x: Tensor, y: Tensor) => x.matmul(y.transpose(-2, -1)),
  einsum: (x: Tensor, y: Tensor, equation: string) => F.einsum(equation, x, y),
  layerNorm: (...args: Tensor[]) => {
    const [x, weight, bias] = args.slice(0, -1) as [Tensor, Tensor?, Tensor?]
    return F.layerNorm(x, args.at(-1) as unknown as number[], weight, bias)
  },
  conv2dSelf: (x: Tensor) => F.conv2d(x, x.narrow(2, 0, 2).narrow(3, 0, 2)),
  maxPool2d: (x: Tensor, size: number, stride: number) => F.maxPool2d(x, size, { stride }),
  avgPool2d: (x: Tensor, size: number, stride: number) => F.avgPool2d(x, size, { stride }),
}

function run(op: string, args: readonly unknown[]): Tensor {
  const call = (CALLS[op] ?? (F as unknown as Record<string, unknown>)[op]) as ((...args: readonly unknown[]) => Tensor) | undefined
  if (call === undefined) throw new Error(`no operation '${op}'`)
  return call(...args)
}

/** As `weights` in programs.py. */
function weights(x: Tensor, place: number): Tensor {
  return tensor(Float64Array.from({ length: x.numel }, (_, i) => Math.sin(1 + i + 3 * place))).reshape(x.shape)
}

function evaluate({ leaves, steps }: Program): [leaves: Tensor[], value: Tensor] {
  const inputs = leaves.map(({ shape, data }) => tensor(Float64Array.from(data)).reshape(shape).requiresGrad_())
  const values = [...inputs]
  const used = new Set<number>()
  for (const [op, args, attrs] of steps) {
    for (const place of args) used.add(place)
    values.push(run(op, [...args.map((place) => values[place]!), ...attrs]))
  }
  const rest = values.map((x, i) => (used.has(i) ? null : x.mul(weights(x, i)).sum())).filter((x) => x !== null)
  return [inputs, rest.reduce((a, b) => a.add(b))]
}

function difference(got: ArrayLike<number>, expected: readonly number[]): number {
  if (got.length !== expected.length) return Number.POSITIVE_INFINITY
  const scale = 1 + Math.max(0, ...expected.map(Math.abs))
  return Math.max(0, ...expected.map((x, i) => Math.abs(x - got[i]!) / scale))
}

/** The differences from PyTorch. A gradient that PyTorch does not have may be zeros here, and the reverse. */
function complaints(program: Program): string[] {
  const found: string[] = []
  const check = (what: string, got: Tensor | null, expected: readonly number[] | null) => {
    const values = got?.dataSync() ?? []
    const error = difference(
      values.length > 0 || expected === null ? values : new Float64Array(expected.length),
      expected ?? Array.from(values, () => 0),
    )
    if (!(error < TOLERANCE)) found.push(`${what}: PyTorch has ${expected?.join(', ')}, got ${Array.from(values).join(', ')}`)
  }
  const [inputs, value] = evaluate(program)
  check('value', value, [program.value])
  const { second } = program
  const grads = grad(value, inputs, { allowUnused: true, createGraph: second !== undefined })
  for (const [i, g] of grads.entries()) check(`gradient of leaf ${i}`, g, program.grads[i]!)
  if (second !== undefined) {
    const squares = grads
      .filter((g) => g?.requiresGrad)
      .map((g) => g!.mul(g!).sum())
      // Here a gradient may have no history where PyTorch's has one of zeros: then none of the second derivatives is anything but zero.
      .reduce((a, b) => a.add(b), inputs[0]!.mul(0).sum())
    for (const [i, g] of grad(squares, inputs, { allowUnused: true }).entries()) check(`second derivative by leaf ${i}`, g, second[i]!)
  }
  return found
}

test('there are at least 500 programs', () => {
  expect(programs.length).toBeGreaterThanOrEqual(500)
})

// In groups: a test for each would cost more than the programs.
const GROUP = 50
test.each(Array.from({ length: Math.ceil(programs.length / GROUP) }, (_, i) => i * GROUP))(
  'programs %d and the %#. fifty after it: as PyTorch',
  (from) => {
    const wrong: string[] = []
    for (const [i, program] of programs.slice(from, from + GROUP).entries()) {
      let found: string[]
      try {
        found = complaints(program)
      } catch (error) {
        found = [String(error)]
      }
      if (found.length > 0) wrong.push(`program ${from + i} (${program.steps.map(([op]) => op).join(', ')}): ${found.join('; ')}`)
    }
    expect(wrong).toEqual([])
  },
)

/** Value and gradients of a plain backward, the only pass that gives its gradients back; then of another one through the same graph. */
function bits(program: Program): (readonly number[])[] {
  const [leaves, value] = evaluate(program)
  value.backward(null, { retainGraph: true })
  const once = leaves.map(({ grad }) => Array.from(grad?.dataSync() ?? []))
  value.backward()
  return [[value.itemSync()], ...once, ...leaves.map(({ grad }) => Array.from(grad?.dataSync() ?? []))]
}

test('blocks that a pass gives back are read by nobody: all programs have the same bits in a heap that destroys them', () => {
  const wrong: string[] = []
  let all = 0
  for (const [i, program] of programs.entries()) {
    const expected = bits(program)
    try {
      const { result, givenBack } = withPoisonedHeap(() => bits(program))
      all += givenBack
      if (!Object.is(JSON.stringify(result), JSON.stringify(expected))) wrong.push(`program ${i}: ${JSON.stringify([expected, result])}`)
    } catch (error) {
      wrong.push(`program ${i} (${program.steps.map(([op]) => op).join(', ')}): ${String(error)}`)
    }
  }
  expect(wrong).toEqual([])
  expect(all).toBeGreaterThan(20 * programs.length)
})

/** The gradients of a backward in two parts, that of leaf `first` in the first one. */
function inParts(program: Program, first: number): (readonly number[])[] {
  const [leaves, value] = evaluate(program)
  const parts = backwardInputs([value], undefined, [leaves[first]!])
  const found = new Map(leaves.map((leaf): [Tensor, readonly number[]] => [leaf, []]))
  found.set(leaves[first]!, Array.from(parts.inputGrads[0]?.dataSync() ?? []))
  backwardRest([parts], {
    accumulate(leaf, gradient) {
      if (leaf === leaves[first]) throw new Error('the input got its gradient twice')
      found.set(leaf, Array.from(gradient.dataSync()))
    },
  })
  return [...found.values()]
}

test('a backward in two parts: all programs have the bits of one in one part, in a heap that destroys what is given back', async () => {
  const wrong: string[] = []
  for (const [i, program] of programs.entries()) {
    const [leaves, value] = evaluate(program)
    value.backward()
    const expected = leaves.map(({ grad }) => Array.from(grad?.dataSync() ?? []))
    const first = i % leaves.length
    const { result } = withPoisonedHeap(() => inParts(program, first))
    if (JSON.stringify(result) !== JSON.stringify(expected))
      wrong.push(`program ${i}, leaf ${first} (${program.steps.map(([op]) => op).join(', ')})`)
  }
  // The heap looks at its pressure at the end of the turn: within the test.
  await setImmediate()
  expect(wrong).toEqual([])
})
