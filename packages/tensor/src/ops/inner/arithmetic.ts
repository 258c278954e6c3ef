/** Parts of `pow` and `div`: with a number as the exponent, and each way to divide. */

import { to } from '../../raw/copy.js'
import { binary, numericBinary, type Operand, unaryKernel } from '../../raw/elementwise.js'
import { rawOperations } from '../../raw/operations.js'
import { promoteNumber } from '../../raw/promotion.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { invalidArgument } from '../../values/errors.js'
import { type Functional, type Ops, primitive } from '../define/define.js'
import { formula, ofTensor } from '../define/formula.js'
import { sumToShape } from '../parts/dims.js'

/** The power of a tensor by a number, which is saved as a number. @throws INVALID_ARGUMENT for a negative power of integers */
export const powNumber: Functional<(x: Tensor, exponent: number) => Tensor> = primitive('powNumber', {
  node: 'pow',
  raw: (x, exponent) => {
    if (typeof exponent !== 'number') throw invalidArgument('pow', 'a number as the exponent', typeof exponent)
    const dtype = promoteNumber(x.dtype, exponent)
    const base = to(x, dtype)
    if (dtype === 'int32' && exponent < 0) {
      // As in PyTorch: 2⁻¹ is not one.
      throw invalidArgument('pow', 'an exponent ≥ 0 for an integer tensor', exponent, "Convert with to('float32') first.")
    }
    // The frequent ones as what they are; PyTorch takes the same ways.
    const { mul, sqrt, reciprocal } = rawOperations
    if (exponent === 2) return mul(base, base)
    if (exponent === 3) return mul(mul(base, base), base)
    if (isFloating(dtype) && exponent === 0.5) return sqrt(base)
    if (isFloating(dtype) && exponent === -1) return reciprocal(base)
    return unaryKernel('pow', base, exponent, 0)
  },
  // g · e aᵉ⁻¹; 0 for e = 0, also at a = 0
  grad: ofTensor(['a'], (g, s, ops) => {
    const e = s.attrs[0]
    if (e === 0) return Tensor.empty(g.dtype, g.shape, g.storage.memory)
    if (e === 1) return g
    return ops.mul(g, ops.mul(e === 2 ? s.a : ops.powNumber(s.a, e - 1), e))
  }),
})

/** Powers where the exponent is a tensor. @throws DTYPE_MISMATCH for two bools, SHAPE_MISMATCH */
export const powTensor: Functional<(a: Tensor | number, b: Tensor | number) => Tensor> = primitive('powTensor', {
  node: 'pow',
  raw: (a, b) => numericBinary('power', 'pow', a, b),
  // g b aᵇ⁻¹, 0 where b is 0; g y log a, 0 where a is 0 and b not negative
  grad: {
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
})

export const trueDivide: Functional<(a: Tensor | number, b: Tensor | number) => Tensor> = primitive('trueDivide', {
  node: 'div',
  raw: (a, b) => binary('div', a, b, false, true),
  // g / b, −g a / b²
  grad: {
    a: formula(['b'], (g, s, ops) => sumToShape(ops.div(g, s.b), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.mul(ops.neg(g), ops.div(ops.div(s.a, s.b), s.b)), s.shapeB)),
  },
})

/** Of real numbers, towards 0. As flat as floorDivide: through div and trunc the gradient of a quotient by 0 would be 0 · ∞. */
export const truncDivide: Functional<(a: Tensor | number, b: Tensor | number) => Tensor> = primitive('truncDivide', {
  raw: (a, b) => rawOperations.trunc(rawOperations.trueDivide(a, b)),
  // 0 wherever it is differentiable
  grad: {
    a: formula([], (g, s) => Tensor.empty(g.dtype, s.shapeA, g.storage.memory)),
    b: formula([], (g, s) => Tensor.empty(g.dtype, s.shapeB, g.storage.memory)),
  },
})

function logarithm(a: Operand, ops: Ops): Operand {
  return typeof a === 'number' ? Math.log(a) : ops.log(a)
}
