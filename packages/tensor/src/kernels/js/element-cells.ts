/** The js backend's cells of the element-wise ops: a loop of its own where the op's row names one, else a loop over the row's function. Below: `elementwise.ts`. */
import type { DType, TypedArray } from '../../values/dtype.js'
import { GRADIENTS } from '../elementwise/activations.js'
import { BINARY } from '../elementwise/binary.js'
import { COMPARE } from '../elementwise/compare.js'
import {
  type BinaryDefinition,
  type CompareDefinition,
  eachRow,
  type Functions,
  functionsOf,
  type GradDefinition,
  type UnaryDefinition,
} from '../elementwise/definition.js'
import { UNARY } from '../elementwise/unary.js'
import type { BinaryKernel, BinaryOp, CompareOp, GradKernel, GradOp, UnaryKernel, UnaryOp, Unsupported } from '../table/table.js'
import { REAL_MEAN, real } from './cells.js'
import { binaryOf, binaryRows, unaryOf, unaryRows } from './elementwise.js'
import { gradient } from './gradients.js'

type T = TypedArray
type Cells<K> = Record<DType, K | Unsupported>

/** `of` makes a kernel of a function, `over` of a loop. */
function cellsOf<F extends object, K>(row: Functions<F>, loops: object, of: (f: F) => K, over: (loop: never) => K): Cells<K> {
  const { real, int32, bool } = functionsOf(row)
  const kernel = (f: F | Unsupported): K | Unsupported => ('unsupported' in f ? f : of(f))
  const float = kernel(real)
  const own = Object.entries(loops).map(([dtype, loop]) => [dtype, over(loop as never)])
  return { float32: float, float64: float, int32: kernel(int32), bool: kernel(bool), ...Object.fromEntries(own) }
}

const unary = (row: UnaryDefinition): Cells<UnaryKernel<T>> => cellsOf(row, row.loops ?? {}, unaryOf, unaryRows)
const binary = (row: BinaryDefinition): Cells<BinaryKernel<T, T>> => cellsOf(row, row.loops ?? {}, binaryOf, binaryRows)
const compare = ({ js, loops }: CompareDefinition) =>
  cellsOf({ js, int32: 'js', bool: 'js' }, loops ?? {}, binaryOf, binaryRows) as Record<DType, BinaryKernel<T, Uint8Array>>
const grad = (row: GradDefinition): Cells<GradKernel<T>> => real(gradient(row), REAL_MEAN, REAL_MEAN)

export const cells = {
  ...eachRow<UnaryOp, UnaryDefinition, Cells<UnaryKernel<T>>>(UNARY, unary),
  ...eachRow<BinaryOp, BinaryDefinition, Cells<BinaryKernel<T, T>>>(BINARY, binary),
  ...eachRow<CompareOp, CompareDefinition, Record<DType, BinaryKernel<T, Uint8Array>>>(COMPARE, compare),
  ...eachRow<GradOp, GradDefinition, Cells<GradKernel<T>>>(GRADIENTS, grad),
}
