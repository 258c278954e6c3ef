/**
 * The contract of kernels (`operands.ts`) as a suite: every op × dtype of a backend over shapes, steps, strides and special values, compared
 * with the oracle (`reference/`); unsupported cells must say why. Each backend's test is a fixture that calls `kernelSuite`.
 *
 * The whole output array is compared, margins included, after it was filled with rubbish: a kernel must write all of its output and nothing
 * else. Random numbers come from a seed, which is in the name of the suite.
 */
import { describe, expect, test } from '@jest/globals'
import { DTYPES, type DType } from '../values/dtype.js'
import { oracle } from './reference/oracle.suite.js'
import { Cell, type KernelSuiteOptions } from './suite/cell.suite.js'
import { axpy, binary, unary, where } from './suite/elementwise.suite.js'
import { attention, cellOf, step } from './suite/fused.suite.js'
import { gradient, gradientRows } from './suite/gradients.suite.js'
import { classLoss, classLossBackward, firstOutside, indexed, nll, nllBackward } from './suite/indexing.suite.js'
import { matmul } from './suite/matmul.suite.js'
import { copy, draw, fill, triangle } from './suite/movement.suite.js'
import { avgPool, channelNorm, conv, layerNorm, maxPool } from './suite/neural.suite.js'
import {
  argsort,
  extremes,
  flip,
  productBackward,
  products,
  reduce,
  runningSums,
  softmax,
  sumApart,
  variance,
} from './suite/reduce.suite.js'
import type { Backend } from './table/backend.js'
import { OPS } from './table/ops.js'
import { isUnsupported, KERNEL_OPS, type KernelOp } from './table/table.js'

export type { KernelSuiteOptions } from './suite/cell.suite.js'

type Family = (cell: Cell) => void

const each = <Op extends KernelOp>(ops: readonly Op[], family: Family) =>
  Object.fromEntries(ops.map((op) => [op, family])) as Readonly<Record<Op, Family>>

/** Each op's test; total, so that an op without a test does not compile. */
const FAMILIES: Readonly<Record<KernelOp, Family>> = {
  ...each(OPS.unary, unary),
  ...each(OPS.binary, (cell) => binary(cell, cell.dtype)),
  ...each(OPS.compare, (cell) => binary(cell, 'bool')),
  where,
  axpy,
  copy,
  fill,
  ...each(OPS.draw, draw),
  sum: reduce,
  ...each(['amax', 'amin', 'argmax', 'argmin'], extremes),
  prod: (cell) => products(cell, (outer, _k, inner) => outer * inner),
  cumprod: (cell) => products(cell, (outer, k, inner) => outer * k * inner),
  ...each(['cumsum', 'reverseCumsum'], runningSums),
  argsort,
  flip,
  ...each(OPS.triangle, triangle),
  variance,
  ...each(['prodBackward', 'cumprodBackward'], productBackward),
  ...each(OPS.grad, gradient),
  ...each(OPS.gradRows, gradientRows),
  ...each(['softmax', 'logSoftmax'], softmax),
  matmul,
  nll,
  nllBackward,
  classLoss,
  classLossBackward,
  firstOutside,
  ...each(OPS.index, indexed),
  ...each(['conv2d', 'conv2dInput', 'conv2dWeight'], conv),
  maxPool2d: maxPool,
  ...each(['avgPool2d', 'avgPool2dBackward'], avgPool),
  ...each(['layerNorm', 'layerNormBackward'], layerNorm),
  ...each(['channelNorm', 'channelNormBackward'], channelNorm),
  ...each(OPS.step, step),
  sumApart,
  ...each(['lstmCell', 'lstmCellBackward', 'gruCell', 'gruCellBackward'], cellOf),
  ...each(['attention', 'attentionBackward'], attention),
}

export function kernelSuite(name: string, create: () => Backend, options: KernelSuiteOptions): void {
  const backend = create()

  describe(`kernels of ${name} (seed ${options.seed})`, () => {
    let exercised = 0
    for (const op of KERNEL_OPS) {
      for (const dtype of DTYPES) {
        const entry = backend.kernels[op][dtype]
        const expected = oracle[op][dtype]
        if (isUnsupported(entry)) {
          test(`${op} ${dtype}: unsupported, with a reason`, () => {
            expect(entry.unsupported.length).toBeGreaterThan(20)
            // Nothing is left out but what PyTorch has not, and what the backend's test says.
            expect(isUnsupported(expected) || options.lacks?.(op, dtype) === true).toBe(true)
          })
          continue
        }
        if (entry === options.over?.[op][dtype]) {
          exercised++
          continue
        }
        test(`${op} ${dtype}`, () => {
          // No backend may have more than PyTorch.
          if (isUnsupported(expected)) throw new Error(`the oracle has no ${op} on ${dtype}: ${expected.unsupported}`)
          const { checked, missing } = checkKernel(op, dtype, entry, options)
          expect(missing).toEqual([])
          expect(checked).toBeGreaterThan(0)
          exercised++
        })
      }
    }

    test('every cell that the oracle has is exercised, or said to be lacking', () => {
      const cells = KERNEL_OPS.flatMap((op) => DTYPES.map((dtype) => ({ op, dtype })))
      const supported = cells.filter(({ op, dtype }) => !isUnsupported(oracle[op][dtype]))
      const lacking = supported.filter(({ op, dtype }) => options.lacks?.(op, dtype))
      expect(exercised).toBe(supported.length - lacking.length)
    })
  })
}

/**
 * Checks one kernel against the oracle's.
 * @returns the number of comparisons, and what the kernel should have been tried with and was not (see `traits.suite.ts`)
 * @throws an Error at the first difference
 */
export function checkKernel(
  op: KernelOp,
  dtype: DType,
  kernel: object,
  options: KernelSuiteOptions,
): { checked: number; missing: readonly string[] } {
  const reference = (options.expected?.kernels ?? oracle)[op][dtype]
  const cell = new Cell(op, dtype, kernel, reference, options, options.elementsMax ?? Number.POSITIVE_INFINITY)
  FAMILIES[op](cell)
  return { checked: cell.checked, missing: [...cell.missing] }
}
