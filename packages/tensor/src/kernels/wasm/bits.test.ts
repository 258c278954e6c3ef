/** Promises of KERNELS.md for the wasm backend: bits that depend neither on the size of an operation nor on the place of an element. */
import { describe, expect, test } from '@jest/globals'
import { allocate } from '../../values/dtype.js'
import { operandOf } from '../suite/layouts.suite.js'
import { OPS } from '../table/ops.js'
import { SIMD_FROM } from './calls/instance.js'
import { kernels, randoms, run, SEED } from './numerics.fixture.js'

describe('BITS: a value does not depend on how many there are', () => {
  test(`BITS-1 element-wise functions, one by one and all at once (seed ${SEED})`, () => {
    const random = randoms(SEED + 1)
    const x = Float32Array.from({ length: 3 * SIMD_FROM + 3 }, () => (random() - 0.3) * 20)
    // Exponentials of 16 numbers have other code where all of them lie from -87 to 87.
    x.set([87, -87, 87.00001, -87.00001, 88.8, -90, -104, 0, -0, 1e-40, Number.NaN, Infinity, -Infinity], 2 * SIMD_FROM)
    x.set([87, -87, 86.99999, -86.99999, 0, -0, 1e-40], SIMD_FROM)
    for (const op of [
      ...(['expm1', 'log1p', 'erf', 'rsqrt', 'silu', 'gelu', 'softplus', 'elu'] as const),
      ...(['log2', 'log10', 'exp2', 'sinh', 'cosh', 'tan', 'asin', 'acos', 'atan', 'pow'] as const),
      'exp',
      'log',
      'tanh',
      'sigmoid',
      'sin',
      'cos',
      'neg',
      'abs',
      'sqrt',
      'relu',
    ] as const) {
      const all = new Float32Array(x.length)
      const single = new Float32Array(x.length)
      const some = new Float32Array(x.length)
      run(op, x, all)
      for (let i = 0; i < x.length; i++) run(op, x, single, 1, i)
      for (let i = 0; i < x.length; i += 41) run(op, x, some, Math.min(41, x.length - i), i)
      // Bits of NaN say nothing.
      for (const other of [single, some]) {
        const at = all.findIndex((v, i) => !Object.is(v, other[i]))
        expect(at < 0 ? null : [op, x[at], all[at], other[at]]).toBeNull()
      }
    }
  })

  test.each(['float32', 'float64'] as const)(
    `BITS-2 DOT: every form of matmul adds products in ascending order, rounding each (%s, seed ${SEED})`,
    (dtype) => {
      const random = randoms(SEED + 2)
      const kernel = kernels.matmul[dtype]
      if ('unsupported' in kernel) throw new Error(kernel.unsupported)
      const round = dtype === 'float32' ? Math.fround : (x: number) => x
      const make = (n: number) => allocate(dtype, n).map(() => random() - 0.5) as Float32Array & Float64Array
      // Loop, unpacked tiles with ragged edges, packed by size, packed by stride, depth over one block, few columns; rows and columns times matrices.
      for (const [m, n, k, transposed] of [
        [3, 3, 20, false],
        [5, 13, 40, false],
        [21, 530, 130, false],
        [9, 19, 30, true],
        [12, 300, 520, true],
        [70, 9, 270, true],
        [1, 53, 43, false],
        [1, 53, 43, true],
        [1, 7, 300, true],
        [37, 1, 50, false],
        [37, 1, 50, true],
        [1, 1, 300, false],
      ] as const) {
        const a = make(m * k)
        const b = make(k * n)
        const [row, col] = transposed ? [1, k] : [n, 1]
        const out = make(m * n)
        kernel(operandOf(a, 0, [m, k]), operandOf(b, 0, [k, n], [row, col]), operandOf(out, 0, [m, n]))
        for (let i = 0; i < m; i++) {
          for (let j = 0; j < n; j++) {
            let sum = 0
            for (let p = 0; p < k; p++) sum = round(sum + round(a[i * k + p]! * b[p * row + j * col]!))
            if (out[i * n + j] !== sum) throw new Error(`[${m}, ${n}, ${k}] at ${i}, ${j}: ${out[i * n + j]} is not ${sum}`)
          }
        }
      }
    },
  )
})

test(`BITS-5 derivatives of activations, one by one and all at once (seed ${SEED})`, () => {
  const random = randoms(SEED + 5)
  const n = 3 * SIMD_FROM + 3
  const x = Float32Array.from({ length: n }, () => (random() - 0.5) * 10)
  const g = Float32Array.from({ length: n }, () => (random() - 0.5) * 10)
  for (const op of OPS.grad) {
    const kernel = kernels[op].float32
    if ('unsupported' in kernel) throw new Error(kernel.unsupported)
    const [all, single, some] = [new Float32Array(n), new Float32Array(n), new Float32Array(n)]
    const run = (count: number, from: number, out: Float32Array) =>
      kernel(operandOf(g, from, [count]), operandOf(x, from, [count]), operandOf(out, from, [count]), 0.75, 3)
    run(n, 0, all)
    for (let i = 0; i < n; i++) run(1, i, single)
    for (let i = 0; i < n; i += 71) run(Math.min(71, n - i), i, some)
    expect(Buffer.from(single.buffer).equals(Buffer.from(all.buffer))).toBe(true)
    expect(Buffer.from(some.buffer).equals(Buffer.from(all.buffer))).toBe(true)
  }
})
