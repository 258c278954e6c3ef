/** Sorts and selections that are longer than a slice, which the kernel suite does not reach: the places of the js backend, and pauses in between. */
import { expect, test } from '@jest/globals'
import { threadHeap } from '../../../heap/thread-heap.js'
import { Generator } from '../../../values/generator.js'
import { jsKernels } from '../../js/backend.js'
import { operandOf } from '../../suite/layouts.suite.js'
import type { Argsort } from '../../table/operands.js'
import { createWasmBackend } from '../backend.js'
import { installKernelPause } from '../calls/pause.js'

const K = 150_000
const { kernels } = createWasmBackend(threadHeap)
const generator = new Generator(35)
const float32 = Float32Array.from({ length: K }, () => generator.normal())
const arrays = {
  float32,
  // Half of them equal another one.
  float64: Float64Array.from(float32, (v, i) => (i % 2 === 0 ? v : Math.round(v * 100))),
  int32: Int32Array.from(float32, (v) => v * 1e9),
  bool: Uint8Array.from(float32, (v) => Number(v > 1)),
}
for (let i = 0; i < K; i += 1000) for (const x of [arrays.float32, arrays.float64]) x[i] = [Number.NaN, -0, 0, Infinity][(i / 1000) % 4]!

test.each(['float32', 'float64', 'int32', 'bool'] as const)('%s', (dtype) => {
  const x = operandOf(arrays[dtype], 0, [1, K, 1])
  for (const descending of [false, true]) {
    const places = (kernel: object, m: number) => {
      const out = new Int32Array(m)
      ;(kernel as Argsort)(x, operandOf(out, 0, [1, m, 1]), 1, K, m, 1, descending)
      return out
    }
    const all = places(jsKernels.argsort[dtype], K)
    for (const m of [1, 10, 1000, 70_000, K])
      expect(Buffer.compare(bytes(places(kernels.argsort[dtype], m)), bytes(all.slice(0, m)))).toBe(0)
  }
})

test('a sort pauses', () => {
  let pauses = 0
  const remove = installKernelPause(() => pauses++)
  ;(kernels.argsort.float32 as Argsort)(operandOf(float32, 0, [1, K, 1]), operandOf(new Int32Array(K), 0, [1, K, 1]), 1, K, K, 1, false)
  remove()
  expect(pauses).toBeGreaterThanOrEqual(2)
})

const bytes = (x: Int32Array) => Buffer.from(x.buffer, x.byteOffset, x.byteLength)
