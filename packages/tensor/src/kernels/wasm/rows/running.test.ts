/** Rule SUM of KERNELS.md for running sums and products, and for the derivatives of products: the kernels have the bits of the loops. */
import { expect, test } from '@jest/globals'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { Heap } from '../../../heap/heap.js'
import { RESERVED_BYTES_MIN } from '../../../heap/shared-memory.js'
import { threadHeap } from '../../../heap/thread-heap.js'
import { jsKernels } from '../../js/backend.js'
import { operandOf } from '../../suite/layouts.suite.js'
import type { GradRows, Rows } from '../../table/operands.js'
import { createWasmBackend } from '../backend.js'
import { SLICE } from '../calls/strided.js'

const { kernels } = createWasmBackend(threadHeap)
const SEED = 352
const generator = xoroshiro128plus(SEED)

/** Numbers around 1 of either sign, with special ones near the end of a row, where both orders have met others. */
function factors(n: number, special: readonly number[] = []): Float32Array {
  const x = Float32Array.from({ length: n }, () => {
    const u = (generator.next() >>> 0) / 2 ** 32
    return (u < 0.5 ? -1 : 1) * (0.95 + u / 10)
  })
  special.forEach((v, i) => {
    x[(n >> 1) + 3 * i] = v
  })
  return x
}

/** The first place where `got` is another number than `want`, or −1. */
const difference = (got: Float32Array, want: Float32Array): number => got.findIndex((v, i) => !Object.is(v, want[i]))
const SHAPES = [
  [3, 2 * SLICE + 77, 1],
  [2, SLICE, 1],
  [27, 91, 1],
  [1, 3000, 1],
  [2, 90, 37],
  [1, 5, 40],
  [7, 91, 1],
] as const

test.each(SHAPES)(
  `SUM running sums and products of [%i, %i, %i] have the bits of the loops, also in place (seed ${SEED})`,
  (outer, k, inner) => {
    const shape = [outer, k, inner]
    const n = outer * k * inner
    for (const op of ['cumsum', 'cumprod', 'reverseCumsum'] as const) {
      const [own, loop] = [kernels[op].float32 as Rows, jsKernels[op].float32 as Rows]
      for (const special of [[], [1e-40, -0], [0, -0], [Infinity, 3e38], [Infinity, -Infinity], [Number.NaN]]) {
        const x = factors(n + 2, special)
        const [got, want] = [new Float32Array(n + 3).fill(7), new Float32Array(n + 3).fill(7)]
        own(operandOf(x, 2, shape), operandOf(got, 1, shape), outer, k, inner)
        loop(operandOf(x, 2, shape), operandOf(want, 1, shape), outer, k, inner)
        expect(difference(got, want)).toBe(-1)
        own(operandOf(x, 2, shape), operandOf(x, 2, shape), outer, k, inner)
        expect(difference(x.subarray(2), want.subarray(1, n + 1))).toBe(-1)
      }
    }
  },
)

test.each(SHAPES)(
  `SUM derivatives of products and running products of [%i, %i, %i] have the bits of the loops (seed ${SEED})`,
  (outer, k, inner) => {
    const shape = [outer, k, inner]
    const n = outer * k * inner
    for (const op of ['prodBackward', 'cumprodBackward'] as const) {
      const [own, loop] = [kernels[op].float32 as GradRows, jsKernels[op].float32 as GradRows]
      const gradShape = op === 'prodBackward' ? [outer, inner] : shape
      const g = factors(op === 'prodBackward' ? outer * inner : n)
      for (const special of [[], [0], [0, -0], [1e-40, 0], [Infinity], [Number.NaN]]) {
        const x = factors(n, special)
        const [got, want] = [new Float32Array(n + 1), new Float32Array(n + 1)]
        own(operandOf(g, 0, gradShape), operandOf(x, 0, shape), operandOf(got, 1, shape), outer, k, inner)
        loop(operandOf(g, 0, gradShape), operandOf(x, 0, shape), operandOf(want, 1, shape), outer, k, inner)
        expect(difference(got, want)).toBe(-1)
      }
    }
  },
)

test('SUM running sums and products of fibres that are larger than the whole heap, and their derivatives', () => {
  const small = createWasmBackend(() => Heap.create({ reservedBytes: RESERVED_BYTES_MIN })).kernels
  const k = 9_000_000
  const ones = new Float32Array(2 * k).fill(1)
  for (const inner of [1, 2]) {
    const shape = [1, k, inner]
    const x = operandOf(ones, 0, shape)
    for (const op of ['cumsum', 'cumprod', 'reverseCumsum'] as const) {
      const out = new Float32Array(inner * k)
      ;(small[op].float32 as Rows)(x, operandOf(out, 0, shape), 1, k, inner)
      const last = op === 'cumsum' ? k : 1
      const first = op === 'reverseCumsum' ? k : 1
      expect([op, out[0], out[out.length - 1]]).toEqual([op, first, last])
    }
    for (const op of ['prodBackward', 'cumprodBackward'] as const) {
      const out = new Float32Array(inner * k)
      const g = operandOf(ones, 0, op === 'prodBackward' ? [1, inner] : shape)
      ;(small[op].float32 as GradRows)(g, x, operandOf(out, 0, shape), 1, k, inner)
      expect([op, out[0], out[out.length - 1]]).toEqual([op, op === 'prodBackward' ? 1 : k, 1])
    }
  }
})
