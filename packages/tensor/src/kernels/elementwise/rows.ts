/** The rows of all element-wise kernel ops, by family; backends make cells of them. */
import { GRADIENTS } from './activations.js'
import { BINARY } from './binary.js'
import { COMPARE } from './compare.js'
import type { BinaryDefinition, CompareDefinition, GradDefinition, UnaryDefinition } from './definition.js'
import { UNARY } from './unary.js'

interface Rows {
  unary: typeof UNARY
  binary: typeof BINARY
  compare: typeof COMPARE
  grad: typeof GRADIENTS
}
export const ROWS: Rows = { unary: UNARY, binary: BINARY, compare: COMPARE, grad: GRADIENTS }

export type ElementwiseOp = { [F in keyof Rows]: keyof Rows[F] }[keyof Rows]

/** The cells of each op, by what makes them of a family's row. */
export function cellsOfRows(make: {
  unary(row: UnaryDefinition, op: ElementwiseOp): object
  binary(row: BinaryDefinition, op: ElementwiseOp): object
  compare(row: CompareDefinition, op: ElementwiseOp): object
  grad(row: GradDefinition, op: ElementwiseOp): object
}): Readonly<Record<ElementwiseOp, object>> {
  return {
    ...eachRow<keyof typeof UNARY, UnaryDefinition, object>(UNARY, make.unary),
    ...eachRow<keyof typeof BINARY, BinaryDefinition, object>(BINARY, make.binary),
    ...eachRow<keyof typeof COMPARE, CompareDefinition, object>(COMPARE, make.compare),
    ...eachRow<keyof typeof GRADIENTS, GradDefinition, object>(GRADIENTS, make.grad),
  }
}

/** `f` of each row, by op. */
export function eachRow<Op extends string, Row, Made>(rows: Readonly<Record<Op, Row>>, f: (row: Row, op: Op) => Made): Record<Op, Made> {
  const made = (Object.entries(rows) as [Op, Row][]).map(([op, row]) => [op, f(row, op)])
  return Object.fromEntries(made) as Record<Op, Made>
}
