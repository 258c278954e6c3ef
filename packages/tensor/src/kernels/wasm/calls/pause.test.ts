/** Long kernels pause, in proportion to their work, without showing in the result; short ones do not; and no kernel runs within a pause. */
import { afterEach, expect, test } from '@jest/globals'
import { CPU } from '../../../heap/memory.js'
import { threadHeap } from '../../../heap/thread-heap.js'
import { memoryScope, rand } from '../../../index.js'
import { Tensor } from '../../../tensor/tensor.js'
import { allocate, type TypedArray } from '../../../values/dtype.js'
import { operandOf } from '../../suite/layouts.suite.js'
import type { KernelMap } from '../../table/operands.js'
import { isUnsupported } from '../../table/table.js'
import { createWasmBackend } from '../backend.js'
import { installKernelPause } from './pause.js'

const { kernels } = createWasmBackend(threadHeap)
type F32 = Float32Array

function f32<Op extends 'add' | 'sin' | 'matmul' | 'axpy'>(op: Op): KernelMap[Op] {
  const kernel = kernels[op].float32
  if (isUnsupported(kernel)) throw new Error(kernel.unsupported)
  return kernel as KernelMap[Op]
}

/** All elements of an array, as a vector unless `shape` says otherwise. */
const whole = (x: F32, shape: readonly number[] = [x.length]) => operandOf(x, 0, shape)

let remove = (): void => {}
afterEach(() => remove())

/** Runs `fn` and returns how often it paused. */
function pausesOf(fn: () => void): number {
  let pauses = 0
  remove = installKernelPause(() => pauses++)
  fn()
  remove()
  return pauses
}

const ones = (n: number): F32 => allocate('float32', n).fill(1) as TypedArray as F32

test('a product pauses every 2²⁴ multiplications, packed or not, and gives the same', () => {
  const matmul = f32('matmul')
  const product = (m: number, n: number, k: number): F32 => {
    const out = ones(m * n)
    matmul(whole(ones(m * k), [m, k]), whole(ones(k * n), [k, n]), whole(out, [m, n]))
    return out
  }
  const [m, n, k] = [520, 512, 640]
  let out = ones(0)
  const pauses = pausesOf(() => {
    out = product(m, n, k)
  })
  const expected = (m * n * k) / 2 ** 24
  expect(pauses).toBeGreaterThanOrEqual(Math.floor(expected))
  expect(pauses).toBeLessThanOrEqual(Math.ceil(expected))
  expect(out).toEqual(product(m, n, k))
  expect(out[m * n - 1]).toBe(k)
  // 64 columns of b are used where they lie: cut by rows of a.
  expect(pausesOf(() => product(8192, 64, 64))).toBeGreaterThanOrEqual(1)
  expect(pausesOf(() => product(64, 64, 64))).toBe(0)
})

test('element-wise kernels pause as well, dense and strided', () => {
  const n = 2 ** 20
  const x = ones(n)
  const out = ones(n)
  expect(pausesOf(() => f32('sin')(whole(x), whole(out), 0, 0))).toBeGreaterThanOrEqual(3)
  expect(pausesOf(() => f32('axpy')(2, whole(x), whole(out)))).toBeGreaterThanOrEqual(3)
  const add = f32('add')
  const half = [2, n / 2]
  expect(pausesOf(() => add(whole(x, half), operandOf(x, 0, [n / 2]), whole(out, half)))).toBeGreaterThanOrEqual(3)
  expect(out[n - 1]).toBe(2)
})

test.each(['sum', 'prod', 'amax', 'argmax', 'softmax'] as const)('%s pauses along rows and down columns', (op) => {
  const kernel = kernels[op].float32
  if (isUnsupported(kernel)) throw new Error(kernel.unsupported)
  const x = whole(ones(2 ** 20))
  const out = operandOf(allocate(op === 'argmax' ? 'int32' : 'float32', 2 ** 20), 0, [2 ** 20])
  for (const [outer, k, inner] of [
    // A single row of a softmax is not cut.
    ...(op === 'softmax' ? [] : [[1, 2 ** 20, 1] as const]),
    [1024, 1024, 1],
    [1, 1024, 1024],
  ] as const) {
    expect(pausesOf(() => kernel(x, out, outer, k, inner))).toBeGreaterThanOrEqual(3)
  }
})

test('a kernel that is called from the pause is a bug, and the next one runs again', () => {
  const add = f32('add')
  const x = ones(1000)
  const big = ones(2 ** 20)
  let failure: unknown = null
  pausesOf(() => {
    remove()
    remove = installKernelPause(() => {
      try {
        add(whole(x), whole(x), whole(x))
      } catch (error) {
        failure = error
      }
    })
    add(whole(big), whole(big), whole(big))
  })
  expect(failure).toMatchObject({ message: 'a kernel was called from the kernel pause' })
  add(whole(x), whole(x), whole(x))
  expect(x[999]).toBe(2)
})

test('a thread has one pause', () => {
  remove = installKernelPause(() => {})
  expect(() => installKernelPause(() => {})).toThrow('one kernel pause')
})

test('a tensor that arrives in a pause is not of the memoryScope in which the kernel runs', () => {
  const x = rand([1024, 1024])
  const arrived: Tensor[] = []
  remove = installKernelPause(() => arrived.push(Tensor.uninitialized('float32', [4], CPU)))
  memoryScope(() => void x.sin())
  expect(arrived.length).toBeGreaterThan(0)
  expect(arrived.filter(({ isClosed }) => isClosed).length).toBe(0)
})

test('a convolution pauses for its products, and for its copies of images', () => {
  const conv = kernels.conv2d.float32
  if (isUnsupported(conv)) throw new Error(conv.unsupported)
  const [h, o] = [128, 16]
  const g = { n: 2, c: 8, h, w: h, o, kh: 3, kw: 3, oh: h, ow: h, strideH: 1, strideW: 1, padH: 1, padW: 1, dilH: 1, dilW: 1, groups: 1 }
  const out = ones(2 * o * h * h)
  const work = 2 * 72 * h * h * o + 2 * 8 * 130 * 130 * 8
  const [x, weight] = [operandOf(ones(2 * 8 * h * h), 0, [2, 8, h, h]), operandOf(ones(o * 72), 0, [o, 8, 3, 3])]
  const pauses = pausesOf(() => conv(x, weight, null, operandOf(out, 0, [2, o, h, h]), g))
  // The count before the call is unknown.
  expect(Math.abs(pauses - work / 2 ** 24)).toBeLessThan(1)
  expect(out[h + 1]).toBe(72)
})
