/** The kernel suite on the wasm backend. Arithmetic must agree in every bit; polynomials and other orders of summation within tolerance. */

import { expect, test } from '@jest/globals'
import { threadHeap } from '../../heap/thread-heap.js'
import { DTYPES } from '../../values/dtype.js'
import { jsKernels } from '../js/backend.js'
import { kernelSuite } from '../kernel.suite.js'
import { isUnsupported, KERNEL_OPS } from '../table/table.js'
import { isExact } from './approximate.fixture.js'
import { createWasmBackend } from './backend.js'

const create = () => createWasmBackend(threadHeap)

kernelSuite('wasm', create, {
  seed: 20261120,
  exact: isExact,
  over: jsKernels,
})

test('variantOf names a loop where the kernel is that of js, and only there', () => {
  const { kernels, variantOf } = create()
  const cells = KERNEL_OPS.flatMap((op) => DTYPES.map((dtype) => ({ op, dtype }))).filter(
    ({ op, dtype }) => !isUnsupported(kernels[op][dtype]),
  )
  const loops = cells.filter(({ op, dtype }) => variantOf(op, dtype, [100, 100]) === 'loop')
  expect(loops).toEqual(cells.filter(({ op, dtype }) => kernels[op][dtype] === jsKernels[op][dtype]))
  expect(loops.length).toBeGreaterThan(0)
  expect(loops.length).toBeLessThan(cells.length)
})
