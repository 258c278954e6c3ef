/**
 * The code that runs does not depend on where an operand lies: every kernel of the table on all combinations of arrays inside and outside of the
 * kernels' memory, bit by bit against all of them outside. Arrays inside lie between guards, which show a write beyond one.
 */
import { describe, expect, test } from '@jest/globals'
import { DTYPES } from '../../values/dtype.js'
import { checkKernel } from '../kernel.suite.js'
import { operandOf } from '../suite/layouts.suite.js'
import type { Fill } from '../table/operands.js'
import { isUnsupported, KERNEL_OPS, type KernelOp } from '../table/table.js'
import { createWasmBackend } from './backend.js'
import { BLOCK_BYTES, PAGE_BYTES, placed, SCRATCH_BYTES, TestHeap } from './placed.fixture.js'

const heap = new TestHeap(PAGE_BYTES)
const backend = createWasmBackend(() => heap)
const SEED = 11
/** Below and above every size at which another form begins. */
const SHAPES = [[7], [3, 0, 2], [97], [3, 5, 17], [2100]]

describe(`PLACE: the same bits wherever operands lie (seed ${SEED})`, () => {
  test.each(KERNEL_OPS)('%s', (op: KernelOp) => {
    for (const dtype of DTYPES) {
      const kernel = backend.kernels[op][dtype]
      if (isUnsupported(kernel)) continue
      // A plain loop never asks where its operands lie: once with all inside is enough.
      const isLoop = backend.variantOf(op, dtype, [300, 300]) === 'loop'
      let arrays = 1
      for (let mask = isLoop ? ~0 : 1; mask < 1 << arrays; mask = isLoop ? 1 << arrays : mask + 1) {
        const wrapped = placed(kernel, heap, mask, (count) => {
          arrays = Math.max(arrays, count)
        })
        expect(
          checkKernel(op, dtype, wrapped, { seed: SEED, exact: () => true, expected: backend, shapes: SHAPES }).checked,
        ).toBeGreaterThan(0)
      }
      expect(arrays).toBeGreaterThan(0)
    }
  })

  // Beyond 2 GiB an address is negative as an i32; the last block ends where the heap's last segment begins, 128 KiB below 4 GiB.
  test.each([
    ['blocks across 2 GiB', 2 ** 31 - SCRATCH_BYTES - 64],
    ['scratch across 2 GiB', 2 ** 31 - 4096],
    ['beyond 3 GiB', 2 ** 32 - SCRATCH_BYTES - BLOCK_BYTES - 2 * PAGE_BYTES],
  ])('any address: %s', (_, base) => {
    const far = new TestHeap(base)
    const there = createWasmBackend(() => far)
    for (const op of KERNEL_OPS) {
      for (const dtype of DTYPES) {
        const kernel = there.kernels[op][dtype]
        if (isUnsupported(kernel) || there.variantOf(op, dtype, [300, 300]) === 'loop') continue
        for (const mask of [0, ~0]) {
          const wrapped = placed(kernel, far, mask, () => {})
          const options = { seed: SEED, exact: () => true, expected: backend, shapes: [[97], [3, 5, 17]] }
          expect(checkKernel(op, dtype, wrapped, options).checked).toBeGreaterThan(0)
        }
      }
    }
  })

  test('canary: a write beyond an operand is found', () => {
    const wild: Fill = (value, out) => {
      const host = out.storage.host!
      new Uint8Array(host.buffer)[host.byteOffset + host.byteLength] = 0
      host.fill(value)
    }
    const out = new Float32Array(8)
    expect(() => (placed(wild, heap, 1, () => {}) as Fill)(0, operandOf(out, 0, [8]))).toThrow('beyond an operand')
  })
})
