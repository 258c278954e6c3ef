/** Each formula next to the cell of the backend, over special values and all lengths that leave a rest; alone, and twice in one module. */
import { expect, test } from '@jest/globals'
import { threadHeap } from '../../../heap/thread-heap.js'
import { type TypedArray, tensor } from '../../../index.js'
import { allocate, BYTES_PER_ELEMENT, type DType, viewOn } from '../../../values/dtype.js'
import { ROWS } from '../../elementwise/rows.js'
import type { ChainStep, Form } from '../../table/chain.js'
import { type KernelOp, OPS } from '../../table/ops.js'
import { createWasmBackend } from '../backend.js'
import { formulaOf } from './formulas.js'

const backend = createWasmBackend(threadHeap)
const direct = backend.direct!()

const VALUES = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  1e-40,
  -1e-40,
  3e38,
  -3e38,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NaN,
]

interface Case {
  readonly step: ChainStep
  readonly from: readonly DType[]
}

function casesOf(): Case[] {
  const cases: Case[] = []
  const add = (form: Form, op: KernelOp, made: DType, from: readonly DType[], p0 = 0, p1 = 0, dtype: DType = 'float32') => {
    const step: ChainStep = { form, op, dtype, made, operands: from.map((_, i) => i), p0, p1 }
    if (formulaOf(step, from) !== null) cases.push({ step, from })
  }
  const bounds = [
    [-0.5, 1],
    [0, Number.POSITIVE_INFINITY],
    [Number.NEGATIVE_INFINITY, -0],
    [1, -1],
  ] as const
  for (const op of Object.keys(ROWS.unary) as (keyof typeof ROWS.unary)[]) {
    if (op === 'clamp') for (const [low, high] of bounds) add('unary', op, 'float32', ['float32'], low, high)
    else add('unary', op, 'float32', ['float32'], op === 'pow' ? 2 : Math.fround(0.1))
  }
  for (const op of OPS.binary) add('binary', op, 'float32', ['float32', 'float32'])
  for (const op of OPS.compare) add('compare', op, 'bool', ['float32', 'float32'])
  for (const op of OPS.grad) add('grad', op, 'float32', ['float32', 'float32'], Math.fround(0.1))
  add('choice', 'where', 'float32', ['bool', 'float32', 'float32'])
  for (const [made, from] of [
    ['float32', 'float32'],
    ['bool', 'float32'],
    ['float32', 'bool'],
  ] as const)
    add('conversion', 'copy', made, [from], 0, 0, made)
  return cases
}

/** An array in the kernels' memory. */
function placed(dtype: DType, n: number, valueAt: (i: number) => number, slot: number): { at: number; array: TypedArray } {
  const at = threadHeap().scratch(2 ** 16) + slot * 2 ** 12
  const array = viewOn(dtype, threadHeap().buffer, at, n)
  for (let i = 0; i < n; i++) array[i] = valueAt(i)
  return { at, array }
}

function byCell({ step }: Case, operands: readonly TypedArray[], from: readonly DType[], n: number): number[] {
  const out = tensor(allocate(step.made, n) as Float32Array)
  const cell = backend.kernels[step.op][step.dtype] as unknown as (...args: unknown[]) => void
  const view = (dtype: DType, array: TypedArray) => ({
    ...out,
    storage: { host: array },
    dtype,
    numel: n,
    shape: [n],
    strides: [1],
    offset: 0,
    isContiguous: true,
  })
  const result = allocate(step.made, n)
  cell(...operands.map((array, i) => view(from[i]!, array.slice())), view(step.made, result), step.p0, step.p1)
  return Array.from(result)
}

test.each(casesOf().map((one) => [`${one.step.op} ${one.from} → ${one.step.made} (${one.step.p0}, ${one.step.p1})`, one] as const))(
  'CHAIN-1 %s: the bits of the cell',
  (_, one) => {
    for (const n of [1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 33, 256]) {
      const of = (dtype: DType, k: number) => (i: number) => {
        const v = VALUES[Math.floor(i / VALUES.length ** k) % VALUES.length]!
        return dtype === 'bool' ? Number(v > 0) : v
      }
      const inputs = one.from.map((dtype, k) => placed(dtype, n, of(dtype, k === 2 ? 0 : k), k))
      const twice: ChainStep = { ...one.step, operands: one.step.operands }
      const first = placed(one.step.made, n, () => 7, 5)
      const second = placed(one.step.made, n, () => 7, 6)
      const beyond = threadHeap().scratch(2 ** 16) + 5 * 2 ** 12 + n * BYTES_PER_ELEMENT[one.step.made]
      const guard = viewOn('bool', threadHeap().buffer, beyond, 16)
      guard.fill(9)
      const kernel = direct.lanes({
        inputs: one.from.map((dtype) => ({ dtype, isSingle: false })),
        steps: [one.step, twice],
        outputs: [0, 1],
      })
      kernel(n, [...inputs.map(({ at }) => at), first.at, second.at])
      const expected = byCell(
        one,
        inputs.map(({ array }) => array),
        one.from,
        n,
      )
      expect([n, Array.from(first.array)]).toEqual([n, expected])
      expect(Array.from(second.array)).toEqual(expected)
      expect(Array.from(guard)).toEqual(Array.from({ length: 16 }, () => 9))
    }
  },
)

test('CHAIN-1 every op that is exact or arithmetic has a formula', () => {
  expect(casesOf().length).toBeGreaterThan(35)
})
