/** The js backend's cells of the element-wise ops: a loop of its own where the op's row names one, else a loop over the row's function, by `elementwise.ts`. */
import { type Functions, functionsOf } from '../elementwise/definition.js'
import { cellsOfRows, type ElementwiseOp } from '../elementwise/rows.js'
import type { KernelCells } from '../table/backend.js'
import { isUnsupported } from '../table/table.js'
import { REAL_MEAN, real } from './cells.js'
import { binaryOf, binaryRows, gradient, unaryOf, unaryRows } from './elementwise.js'

/** `of` makes a kernel of a function, `over` of a loop. */
function cellsOf<F extends object>(
  row: Functions<F>,
  loops: object | undefined,
  of: (f: F) => object,
  over: (loop: never) => object,
): object {
  const functions = functionsOf(row)
  const kernel = (f: F | object): object => (isUnsupported(f) ? f : of(f as F))
  const own = Object.entries(loops ?? {}).map(([dtype, loop]) => [dtype, over(loop as never)])
  return { ...real(kernel(functions.real), kernel(functions.int32), kernel(functions.bool)), ...Object.fromEntries(own) }
}

export const cells = cellsOfRows({
  unary: (row) => cellsOf(row, row.loops, unaryOf, unaryRows),
  binary: (row) => cellsOf(row, row.loops, binaryOf, binaryRows),
  compare: ({ js, loops }) => cellsOf({ js, int32: 'js', bool: 'js' }, loops, binaryOf, binaryRows),
  grad: (row) => real(gradient(row), REAL_MEAN, REAL_MEAN),
}) as Pick<KernelCells, ElementwiseOp>
