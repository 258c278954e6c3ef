/** Element-wise arithmetic of several tensors, which broadcast and promote. Where one may be a number, an integer-valued one counts as an integer. */

import { binary, numericBinary, type Operand } from '../raw/elementwise.js'
import { axpyInPlace, binaryInPlace, refuseBoolInPlace } from '../raw/inplace.js'
import { promoteAll } from '../raw/promotion.js'
import { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { dtypeMismatch } from '../values/errors.js'
import type { DivOptions, ValueOptions } from '../values/options.js'
import { composite, inPlace, type Ops, primitive, rawOperations, type WithInPlace } from './define/define.js'
import { bitwise } from './define/elementwise.js'
import { formula } from './define/formula.js'
import { sumToShape } from './parts/dims.js'
import { roundedDivision } from './parts/division.js'

/**
 * a + b, element by element. Shapes broadcast and dtypes promote; a or b may be a number. PyTorch: `torch.add`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([[1], [2]]).add(tensor([10, 20])) // [[11, 21], [12, 22]]
 */
export const add: (a: Tensor | number, b: Tensor | number) => Tensor = primitive('add', {
  args: ['operand', 'operand'],
  raw: (a, b) => binary('add', a, b, false, false),
  // g, g
  grad: { a: formula([], (g, s) => sumToShape(g, s.shapeA)), b: formula([], (g, s) => sumToShape(g, s.shapeB)) },
})

/**
 * a − b, element by element. Shapes broadcast and dtypes promote; a or b may be a number. PyTorch: `torch.sub`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast; DTYPE_MISMATCH if a or b is bool
 * @example sub(10, tensor([1, 2])) // [9, 8]
 */
export const sub: (a: Tensor | number, b: Tensor | number) => Tensor = primitive('sub', {
  args: ['operand', 'operand'],
  raw: (a, b) => {
    refuseBool(a)
    refuseBool(b)
    return binary('sub', a, b, false, false)
  },
  // g, −g
  grad: { a: formula([], (g, s) => sumToShape(g, s.shapeA)), b: formula([], (g, s, ops) => ops.neg(sumToShape(g, s.shapeB))) },
})

/**
 * a · b, element by element. Shapes broadcast and dtypes promote; a or b may be a number. PyTorch: `torch.mul`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 2, 3]).mul(-2) // [-2, -4, -6]
 */
export const mul: (a: Tensor | number, b: Tensor | number) => Tensor = primitive('mul', {
  args: ['operand', 'operand'],
  raw: (a, b) => binary('mul', a, b, false, false),
  // g b, g a
  grad: {
    a: formula(['b'], (g, s, ops) => sumToShape(ops.mul(g, s.b), s.shapeA)),
    b: formula(['a'], (g, s, ops) => sumToShape(ops.mul(g, s.a), s.shapeB)),
  },
})

/**
 * a / b, element by element. The quotient of integers is float32, unless `roundingMode` is 'floor' or 'trunc'. Shapes broadcast; a or b may be a number.
 * PyTorch: `torch.div`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([7, -7]).div(2, { roundingMode: 'floor' }) // [3, -4]
 */
export const div: (a: Tensor | number, b: Tensor | number, options?: DivOptions) => Tensor = composite('div', {
  args: ['operand', 'operand', 'options?'],
  options: { roundingMode: true },
  of: (ops) => (a, b, options) => (options === undefined ? ops.trueDivide(a, b) : roundedDivision(ops, a, b, options)),
})

/**
 * The larger of a and b, element by element; NaN if one of them is NaN. Shapes broadcast; a or b may be a number. PyTorch: `torch.maximum`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, -2, NaN]).maximum(0) // [1, 0, NaN]: NaN wins
 */
export const maximum: (a: Tensor | number, b: Tensor | number) => Tensor = primitive('maximum', {
  args: ['operand', 'operand'],
  raw: (a, b) => binary('maximum', a, b, false, false),
  // g to the one that won, g / 2 where they are equal, g to both where one is NaN (as PyTorch)
  grad: {
    a: formula(['a', 'b'], (g, s, ops) => sumToShape(tieShare(g, ops.lt(s.a, s.b), ops.eq(s.a, s.b), ops), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(tieShare(g, ops.gt(s.a, s.b), ops.eq(s.a, s.b), ops), s.shapeB)),
  },
})

/**
 * The smaller of a and b, element by element; NaN if one of them is NaN. Shapes broadcast; a or b may be a number. PyTorch: `torch.minimum`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, -2, NaN]).minimum(0) // [0, -2, NaN]: NaN wins
 */
export const minimum: (a: Tensor | number, b: Tensor | number) => Tensor = primitive('minimum', {
  args: ['operand', 'operand'],
  raw: (a, b) => binary('minimum', a, b, false, false),
  grad: {
    a: formula(['a', 'b'], (g, s, ops) => sumToShape(tieShare(g, ops.gt(s.a, s.b), ops.eq(s.a, s.b), ops), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(tieShare(g, ops.lt(s.a, s.b), ops.eq(s.a, s.b), ops), s.shapeB)),
  },
})

/**
 * aᵇ, element by element. Shapes broadcast; a or b may be a number. int32 wraps around. PyTorch: `torch.pow`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast; INVALID_ARGUMENT if integers have a negative exponent
 * @example pow(2, tensor([0, 1, 10])) // [1, 2, 1024]
 */
export const pow: WithInPlace<(a: Tensor | number, b: Tensor | number) => Tensor> = composite('pow', {
  args: ['operand', 'operand'],
  inPlace: true,
  of: (ops) => (a, b) => (typeof a === 'object' && typeof b === 'number' ? ops.powNumber(a, b) : ops.powTensor(a, b)),
})

/**
 * The remainder of a / b with the sign of b, element by element. Integers modulo 0 give 0 (PyTorch throws). Shapes broadcast; a or b may be a number. PyTorch:
 * `torch.remainder`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([-5, 5]).remainder(3) // [1, 2]: the sign of the divisor
 */
export const remainder: WithInPlace<(a: Tensor | number, b: Tensor | number) => Tensor> = primitive('remainder', {
  args: ['operand', 'operand'],
  inPlace: true,
  raw: (a, b) => numericBinary('remainder', 'remainder', a, b),
  // g, −g ⌊a / b⌋
  grad: {
    a: formula([], (g, s) => sumToShape(g, s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.neg(ops.mul(g, ops.floorDivide(s.a, s.b))), s.shapeB)),
  },
})

/**
 * The remainder of a / b with the sign of a, element by element. Integers modulo 0 give 0 (PyTorch throws). Shapes broadcast; a or b may be a number. PyTorch:
 * `torch.fmod`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([-5, 5]).fmod(3) // [-2, 2]: the sign of the dividend
 */
export const fmod: WithInPlace<(a: Tensor | number, b: Tensor | number) => Tensor> = primitive('fmod', {
  args: ['operand', 'operand'],
  inPlace: true,
  raw: (a, b) => numericBinary('fmod', 'fmod', a, b),
  // g, −g trunc(a / b)
  grad: {
    a: formula([], (g, s) => sumToShape(g, s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.neg(ops.mul(g, ops.trunc(ops.div(s.a, s.b)))), s.shapeB)),
  },
})

/**
 * a / b rounded towards −∞, element by element. Integers stay integers; divided by 0 they give 0 (PyTorch throws). Shapes broadcast; a or b may be a number.
 * PyTorch: `torch.floor_divide`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([-7, 7]).floorDivide(2) // [-4, 3]
 */
export const floorDivide: WithInPlace<(a: Tensor | number, b: Tensor | number) => Tensor> = primitive('floorDivide', {
  args: ['operand', 'operand'],
  inPlace: true,
  raw: (a, b) => numericBinary('floorDivide', 'floorDivide', a, b),
  // 0 wherever it is differentiable
  grad: {
    a: formula([], (g, s) => Tensor.empty(g.dtype, s.shapeA, g.storage.memory)),
    b: formula([], (g, s) => Tensor.empty(g.dtype, s.shapeB, g.storage.memory)),
  },
})

/**
 * The angle of the point (b, a) in radians, from −π to π, element by element. The signs of a and b choose the quadrant. Shapes broadcast; integers become
 * float32. PyTorch: `torch.atan2`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 1, -1]).atan2(tensor([0, -1, -1])) // [1.5708, 2.3562, -2.3562]
 */
export const atan2: WithInPlace<(a: Tensor, b: Tensor) => Tensor> = primitive('atan2', {
  args: ['tensor', 'tensor'],
  inPlace: true,
  raw: (a, b) => binary('atan2', a, b, false, true),
  // g b / (a² + b²), −g a / (a² + b²)
  grad: {
    a: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.mul(g, ops.div(s.b, squares(s.a, s.b, ops))), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.neg(ops.mul(g, ops.div(s.a, squares(s.a, s.b, ops)))), s.shapeB)),
  },
})

/**
 * log(eᵃ + eᵇ), element by element, without overflow. Two equal infinities give that infinity. Shapes broadcast. PyTorch: `torch.logaddexp`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast; DTYPE_MISMATCH if a or b is int32 or bool
 * @example tensor([1000, 0]).logaddexp(tensor([1000, 0])) // [1000.6932, 0.6931]
 */
export const logaddexp: (a: Tensor, b: Tensor) => Tensor = primitive('logaddexp', {
  args: ['tensor', 'tensor'],
  raw: (a, b) => {
    const dtype = promoteAll([a, b])
    if (!isFloating(dtype)) throw dtypeMismatch('logaddexp', 'floating point tensors', dtype, "Convert with to('float32').")
    const { abs, add, eq, exp, log1p, maximum, neg, sub, to, where } = rawOperations
    const [x, y] = [to(a, dtype), to(b, dtype)]
    const distance = where(eq(x, y), 0, abs(sub(x, y)))
    return add(maximum(x, y), log1p(exp(neg(distance))))
  },
  // g σ(a − b), g σ(b − a)
  grad: {
    a: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.mul(g, ops.sigmoid(ops.sub(s.a, s.b))), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.mul(g, ops.sigmoid(ops.sub(s.b, s.a))), s.shapeB)),
  },
})

/**
 * The bits that are set in both a and b, element by element; for int32 and bool only. No gradient. PyTorch: `torch.bitwise_and`.
 * @throws DTYPE_MISMATCH if a or b is not int32 or bool; SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([6, 5], { dtype: 'int32' }).bitwiseAnd(3) // [2, 1]
 */
export const bitwiseAnd: (a: Tensor | number, b: Tensor | number) => Tensor = bitwise('bitwiseAnd')

/**
 * The bits that are set in a or b, element by element; for int32 and bool only. No gradient. PyTorch: `torch.bitwise_or`.
 * @throws DTYPE_MISMATCH if a or b is not int32 or bool; SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([4, 5], { dtype: 'int32' }).bitwiseOr(3) // [7, 7]
 */
export const bitwiseOr: (a: Tensor | number, b: Tensor | number) => Tensor = bitwise('bitwiseOr')

/**
 * The bits that are set in exactly one of a and b, element by element; for int32 and bool only. No gradient. PyTorch: `torch.bitwise_xor`.
 * @throws DTYPE_MISMATCH if a or b is not int32 or bool; SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([6, 5], { dtype: 'int32' }).bitwiseXor(3) // [5, 6]
 */
export const bitwiseXor: (a: Tensor | number, b: Tensor | number) => Tensor = bitwise('bitwiseXor')

/**
 * Each bit inverted; true becomes false. For int32 and bool only. PyTorch: `torch.bitwise_not`.
 * @throws DTYPE_MISMATCH if x is not int32 or bool
 * @example tensor([0, 5], { dtype: 'int32' }).bitwiseNot() // [-1, -6]
 */
export const bitwiseNot: (x: Tensor) => Tensor = composite('bitwiseNot', {
  args: ['tensor'],
  of: (ops) => (x) => {
    if (isFloating(x.dtype)) throw dtypeMismatch('bitwiseNot', 'int32 or bool', x.dtype, "Convert with to('int32') first.")
    return x.dtype === 'bool' ? ops.logicalNot(x) : ops.bitwiseXor(x, -1)
  },
})

/**
 * a + weight · (b − a), element by element. All three broadcast; `weight` may be a number. PyTorch: `torch.lerp`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([0, 10]).lerp(tensor([10, 20]), 0.25) // [2.5, 12.5]
 */
export const lerp: WithInPlace<(a: Tensor, b: Tensor, weight: Tensor | number) => Tensor> = composite('lerp', {
  args: ['tensor', 'tensor', 'operand'],
  inPlace: true,
  of: (ops) => (a, b, weight) => {
    const way = ops.sub(b, a)
    // From the nearer end, as PyTorch: so that weight 1 gives b exactly.
    if (typeof weight === 'number') return weight < 0.5 ? ops.add(a, ops.mul(way, weight)) : ops.sub(b, ops.mul(way, 1 - weight))
    // One product for both ends: the gradient of one that is not chosen would be 0 · ∞.
    const near = ops.lt(weight, 0.5)
    return ops.add(ops.where(near, a, b), ops.mul(way, ops.where(near, weight, ops.sub(weight, 1))))
  },
})

/**
 * x + value · a · b, element by element, with `value` 1 by default. All three broadcast. PyTorch: `torch.addcmul`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 1]).addcmul(tensor([1, 2]), tensor([3, 4]), { value: 10 }) // [31, 81]
 */
export const addcmul: WithInPlace<(x: Tensor, a: Tensor, b: Tensor, options?: ValueOptions) => Tensor> = composite('addcmul', {
  args: ['tensor', 'tensor', 'tensor', 'options?'],
  options: { value: true },
  inPlace: true,
  of: (ops) => (x, a, b, options) => {
    const [p, q, r] = together(ops, x, a, b)
    return ops.add(p, ops.mul(scaled(ops, q, options), r))
  },
})

/**
 * x + value · a / b, element by element, with `value` 1 by default. All three broadcast. PyTorch: `torch.addcdiv`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 1]).addcdiv(tensor([1, 2]), tensor([2, 8]), { value: 10 }) // [6, 3.5]
 */
export const addcdiv: WithInPlace<(x: Tensor, a: Tensor, b: Tensor, options?: ValueOptions) => Tensor> = composite('addcdiv', {
  args: ['tensor', 'tensor', 'tensor', 'options?'],
  options: { value: true },
  inPlace: true,
  of: (ops) => (x, a, b, options) => {
    const [p, q, r] = together(ops, x, a, b)
    return ops.add(p, ops.div(scaled(ops, q, options), r))
  },
})

/**
 * Adds alpha · y to x in place, with alpha 1 by default, and returns x. y broadcasts to the shape of x. PyTorch: `Tensor.add_`.
 * @throws SHAPE_MISMATCH if y does not broadcast to x; INPLACE_DTYPE if the dtype of x cannot hold the result; INPLACE_OVERLAP if x is an expanded view;
 * INPLACE_ON_LEAF if x is a leaf that requires grad and grad mode is on
 * @example tensor([1, 2]).add_(tensor([1, 1]), -0.5) // [0.5, 1.5]
 */
export const add_: (x: Tensor, y: Tensor | number, alpha?: number) => Tensor = inPlace('add_', {
  args: ['tensor', 'operand', 'number?'],
  raw: (x, y, alpha = 1) => (alpha === 1 ? binaryInPlace('add', 'add_', x, y) : axpyInPlace('add_', x, y, alpha)),
  value: (ops) => (x, y, alpha) => ops.add(x, scaledBy(ops, y, alpha)),
})

/**
 * Subtracts alpha · y from x in place, with alpha 1 by default, and returns x. y broadcasts to the shape of x. PyTorch: `Tensor.sub_`.
 * @throws SHAPE_MISMATCH if y does not broadcast to x; DTYPE_MISMATCH if x or y is bool; INPLACE_DTYPE if the dtype of x cannot hold the result;
 * INPLACE_OVERLAP if x is an expanded view; INPLACE_ON_LEAF if x is a leaf that requires grad and grad mode is on
 * @example tensor([1, 2]).sub_(tensor([1, 1]), 0.5) // [0.5, 1.5]
 */
export const sub_: (x: Tensor, y: Tensor | number, alpha?: number) => Tensor = inPlace('sub_', {
  args: ['tensor', 'operand', 'number?'],
  raw: (x, y, alpha = 1) => {
    refuseBoolInPlace('sub_', x)
    refuseBoolInPlace('sub_', y)
    return alpha === 1 ? binaryInPlace('sub', 'sub_', x, y) : axpyInPlace('sub_', x, y, -alpha)
  },
  value: (ops) => (x, y, alpha) => ops.sub(x, scaledBy(ops, y, alpha)),
})

/**
 * Multiplies x by y in place and returns x. y broadcasts to the shape of x. PyTorch: `Tensor.mul_`.
 * @throws SHAPE_MISMATCH if y does not broadcast to x; INPLACE_DTYPE if the dtype of x cannot hold the result; INPLACE_OVERLAP if x is an expanded view;
 * INPLACE_ON_LEAF if x is a leaf that requires grad and grad mode is on
 * @example tensor([[1, 2], [3, 4]]).mul_(tensor([1, 0])) // [[1, 0], [3, 0]]
 */
export const mul_: (x: Tensor, y: Tensor | number) => Tensor = inPlace('mul_', {
  args: ['tensor', 'operand'],
  raw: (x, y) => binaryInPlace('mul', 'mul_', x, y),
  value: (ops) => ops.mul,
})

/**
 * Divides x by y in place and returns x. y broadcasts to the shape of x. PyTorch: `Tensor.div_`.
 * @throws SHAPE_MISMATCH if y does not broadcast to x; INPLACE_DTYPE if x is int32 or bool; INPLACE_OVERLAP if x is an expanded view; INPLACE_ON_LEAF if x is a
 * leaf that requires grad and grad mode is on
 * @example tensor([[1, 2], [3, 4]]).div_(tensor([1, 2])) // [[1, 1], [3, 2]]
 */
export const div_: (x: Tensor, y: Tensor | number) => Tensor = inPlace('div_', {
  args: ['tensor', 'operand'],
  raw: (x, y) => binaryInPlace('div', 'div_', x, y),
  value: (ops) => ops.div,
})

function scaledBy(ops: Ops, y: Tensor | number, alpha = 1): Tensor | number {
  return alpha === 1 ? y : typeof y === 'number' ? y * alpha : ops.mul(y, alpha)
}

const scaled = (ops: Ops, x: Tensor, { value = 1 }: ValueOptions = {}) => (value === 1 ? x : ops.mul(x, value))

const together = (ops: Ops, ...tensors: [Tensor, Tensor, Tensor]): [Tensor, Tensor, Tensor] => {
  const dtype = promoteAll(tensors)
  return isFloating(dtype) ? (tensors.map((t) => ops.to(t, dtype)) as [Tensor, Tensor, Tensor]) : tensors
}

/** 0 where it `loses`, half of g where it `ties`, else g. */
function tieShare(g: Tensor, loses: Tensor, ties: Tensor, ops: Ops): Tensor {
  return ops.where(loses, 0, ops.where(ties, ops.mul(g, 0.5), g))
}

function squares(a: Operand, b: Operand, ops: Ops): Tensor {
  return ops.add(ops.mul(a, a), ops.mul(b, b))
}

function refuseBool(x: Tensor | number): void {
  if (typeof x === 'object' && x?.dtype === 'bool') throw dtypeMismatch('sub', 'numbers', 'bool', 'Use ne(a, b), or convert with to().')
}
