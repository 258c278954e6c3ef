/** Rows of the table of derivatives (`derivatives.ts`): functions of two tensors beyond the first ones. g is the gradient of the result y. */
import { Tensor } from '@postgrad/tensor'
import type { ArithmeticOps, PowOps } from '@postgrad/tensor/internal'
import { type BinaryRows, formula, type TensorOps } from '../graph/formula.js'
import { sumToShape } from './sum-to-shape.js'

type Operand = Tensor | number

export const arithmetic: BinaryRows<ArithmeticOps<Tensor> & PowOps<Tensor>> = {
  // g b aᵇ⁻¹, 0 where b is 0; g y log a, 0 where a is 0 and b not negative
  pow: {
    a: formula(['a', 'b'], (g, s, ops) => {
      const slope = ops.mul(g, ops.mul(ops.pow(s.a, ops.sub(s.b, 1)), s.b))
      return sumToShape(ops.where(ops.eq(s.b, 0), 0, slope), s.shapeA)
    }),
    b: formula(['a', 'b', 'result'], (g, s, ops) => {
      const slope = ops.mul(g, ops.mul(s.result, logarithm(s.a, ops)))
      // With a as a number only b decides, and the other way round only if a is 0 anywhere.
      const vanishes = typeof s.a === 'number' ? null : ops.logicalAnd(ops.eq(s.a, 0), ops.ge(s.b, 0))
      if (vanishes !== null) return sumToShape(ops.where(vanishes, 0, slope), s.shapeB)
      return sumToShape(s.a === 0 ? ops.where(ops.ge(s.b, 0), 0, slope) : slope, s.shapeB)
    }),
  },
  // 0 wherever it is differentiable
  floorDivide: {
    a: formula([], (g, s) => Tensor.empty(g.dtype, s.shapeA, g.storage.memory)),
    b: formula([], (g, s) => Tensor.empty(g.dtype, s.shapeB, g.storage.memory)),
  },
  // g, −g ⌊a / b⌋
  remainder: {
    a: formula([], (g, s) => sumToShape(g, s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.neg(ops.mul(g, ops.floorDivide(s.a, s.b))), s.shapeB)),
  },
  // g, −g trunc(a / b)
  fmod: {
    a: formula([], (g, s) => sumToShape(g, s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.neg(ops.mul(g, ops.trunc(ops.div(s.a, s.b)))), s.shapeB)),
  },
  // g b / (a² + b²), −g a / (a² + b²)
  atan2: {
    a: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.mul(g, ops.div(s.b, squares(s.a, s.b, ops))), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.neg(ops.mul(g, ops.div(s.a, squares(s.a, s.b, ops)))), s.shapeB)),
  },
}

function logarithm(a: Operand, ops: TensorOps): Operand {
  return typeof a === 'number' ? Math.log(a) : ops.log(a)
}

function squares(a: Operand, b: Operand, ops: TensorOps): Tensor {
  return ops.add(ops.mul(a, a), ops.mul(b, b))
}
