/** For tests: the derivative of an operation of one tensor as a function, over raw operations (a kernel, if there is one) or over recorded ones (composed). */
import type { Tensor } from '../../tensor/tensor.js'
import { entries, type Ops } from './define.js'
import type { Formula, Saved } from './formula.js'

/** @returns f(g, v, ...attributes), where v is the operation's argument or its result, whichever the formula reads */
export function derivative(op: string, ops: Ops): (g: Tensor, v: Tensor, ...attrs: unknown[]) => Tensor {
  const how = entries.find(({ name }) => name === op)?.how
  if (how?.kind !== 'primitive' || how.row === null || !('grad' in how.row)) throw new Error(`${op} has no formula of one tensor`)
  const { grad } = how.row as Formula<readonly unknown[]>
  return (g, v, ...attrs) =>
    grad(g, { a: v, result: v, attrs, shapeA: v.shape, dtypeA: v.dtype } as unknown as Saved<readonly unknown[]>, ops)
}
