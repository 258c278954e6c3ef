/** Comparisons and questions about elements, whose results are bool, and choices by such results. */

import { chainsFrom, recorded, records } from '../chains/record.js'
import { operands } from '../raw/elementwise.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { dtypeMismatch } from '../values/errors.js'
import type { IsCloseOptions, NanToNumOptions } from '../values/options.js'
import { broadcastShapes, numelOf, sameShape } from '../values/shape.js'
import { composite, type Ops, primitive, type WithInPlace } from './define/define.js'
import { comparison } from './define/elementwise.js'
import { formula } from './define/formula.js'
import { sumToShape } from './parts/dims.js'

/**
 * a = b, element by element, as bool. NaN equals nothing. Shapes broadcast; a or b may be a number. PyTorch: `torch.eq`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 2, NaN]).eq(tensor([1, 0, NaN])) // [true, false, false]: NaN equals nothing
 */
export const eq: (a: Tensor | number, b: Tensor | number) => Tensor = comparison('eq')

/**
 * a ≠ b, element by element, as bool. NaN differs from itself. Shapes broadcast; a or b may be a number. PyTorch: `torch.ne`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 2, NaN]).ne(tensor([1, 0, NaN])) // [false, true, true]: NaN differs from itself
 */
export const ne: (a: Tensor | number, b: Tensor | number) => Tensor = comparison('ne')

/**
 * a < b, element by element, as bool. Shapes broadcast; a or b may be a number. PyTorch: `torch.lt`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 2, 3]).lt(2) // [true, false, false]
 */
export const lt: (a: Tensor | number, b: Tensor | number) => Tensor = comparison('lt')

/**
 * a ≤ b, element by element, as bool. Shapes broadcast; a or b may be a number. PyTorch: `torch.le`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 2, 3]).le(2) // [true, true, false]
 */
export const le: (a: Tensor | number, b: Tensor | number) => Tensor = comparison('le')

/**
 * a > b, element by element, as bool. Shapes broadcast; a or b may be a number. PyTorch: `torch.gt`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 2, 3]).gt(2) // [false, false, true]
 */
export const gt: (a: Tensor | number, b: Tensor | number) => Tensor = comparison('gt')

/**
 * a ≥ b, element by element, as bool. Shapes broadcast; a or b may be a number. PyTorch: `torch.ge`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 2, 3]).ge(2) // [false, true, true]
 */
export const ge: (a: Tensor | number, b: Tensor | number) => Tensor = comparison('ge')

/**
 * a where `cond` (bool) is true, else b. All three broadcast; a and b may be numbers. PyTorch: `torch.where`.
 * @throws DTYPE_MISMATCH if `cond` is not bool; SHAPE_MISMATCH if the shapes do not broadcast
 * @example where(tensor([true, false]), tensor([1, 2]), 0) // [1, 0]
 */
export const where: (cond: Tensor, a: Tensor | number, b: Tensor | number) => Tensor = primitive('where', {
  args: ['tensor', 'operand', 'operand'],
  raw: (cond, a, b) => {
    if (cond.dtype !== 'bool') {
      throw dtypeMismatch('where', 'a bool tensor as the condition', cond.dtype, 'Compare first, as in ne(cond, 0).')
    }
    const [x, y] = operands('where', a, b, cond.storage.memory)
    const shape = broadcastShapes('where', cond.shape, broadcastShapes('where', x.shape, y.shape))
    if (records && numelOf(shape) >= chainsFrom) {
      const step = recorded('choice', 'where', x.dtype, x.dtype, shape, [cond, x, y])
      if (step !== null) return step
    }
    const out = Tensor.uninitialized(x.dtype, shape, x.storage.memory)
    kernelsFor(x).where[x.dtype](cond, x, y, out)
    return out
  },
  // g where the condition holds, g where it does not
  grad: {
    a: formula(['index'], (g, s, ops) => sumToShape(ops.where(s.index, g, 0), s.shapeA)),
    b: formula(['index'], (g, s, ops) => sumToShape(ops.where(s.index, 0, g), s.shapeB)),
  },
})

/**
 * Whether each element is NaN, as bool. PyTorch: `torch.isnan`.
 * @example tensor([NaN, Infinity, 1]).isNaN() // [true, false, false]
 */
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch's name, which is also a global's.
export const isNaN: (x: Tensor) => Tensor = composite('isNaN', {
  args: ['tensor'],
  of: (ops) => (x) => (isFloating(x.dtype) ? ops.ne(x, x) : none(x)),
})

/**
 * Whether each element is ∞ or −∞, as bool. PyTorch: `torch.isinf`.
 * @example tensor([NaN, Infinity, 1]).isInf() // [false, true, false]
 */
export const isInf: (x: Tensor) => Tensor = composite('isInf', {
  args: ['tensor'],
  of: (ops) => (x) => (isFloating(x.dtype) ? ops.eq(ops.abs(x), Number.POSITIVE_INFINITY) : none(x)),
})

/**
 * Whether each element is neither NaN nor infinite, as bool. PyTorch: `torch.isfinite`.
 * @example tensor([NaN, Infinity, 1]).isFinite() // [false, false, true]
 */
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch's name, which is also a global's.
export const isFinite: (x: Tensor) => Tensor = composite('isFinite', {
  args: ['tensor'],
  of: (ops) => (x) => (isFloating(x.dtype) ? ops.lt(ops.abs(x), Number.POSITIVE_INFINITY) : ops.logicalNot(none(x))),
})

/**
 * x with NaN replaced by 0, and ±∞ by the largest and smallest finite numbers of the dtype. `options` has other replacements. PyTorch: `torch.nan_to_num`.
 * @example tensor([NaN, Infinity, 1]).nanToNum({ posinf: 100 }) // [0, 100, 1]
 */
export const nanToNum: WithInPlace<(x: Tensor, options?: NanToNumOptions) => Tensor> = composite('nanToNum', {
  args: ['tensor', 'options?'],
  options: { nan: true, posinf: true, neginf: true },
  inPlace: true,
  of:
    (ops) =>
    (x, { nan = 0, posinf, neginf } = {}) => {
      if (!isFloating(x.dtype)) return ops.clone(x)
      const largest = LARGEST[x.dtype]
      const bounded = ops.where(
        ops.eq(x, Number.POSITIVE_INFINITY),
        posinf ?? largest,
        ops.where(ops.eq(x, Number.NEGATIVE_INFINITY), neginf ?? -largest, x),
      )
      return ops.where(ops.isNaN(x), nan, bounded)
    },
})

/**
 * Whether each element is 0, as bool. PyTorch: `torch.logical_not`.
 * @example tensor([0, 2]).logicalNot() // [true, false]
 */
export const logicalNot: (x: Tensor) => Tensor = composite('logicalNot', {
  args: ['tensor'],
  // With the number 0 a bool would become an integer, which not every device compares.
  of: (ops) => (x) => ops.eq(truth(ops, x), Tensor.empty('bool', [], x.storage.memory)),
})

/**
 * Whether a and b are both not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_and`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([0, 0, 2, 2]).logicalAnd(tensor([0, 1, 0, 1])) // [false, false, false, true]
 */
export const logicalAnd: (a: Tensor, b: Tensor) => Tensor = composite('logicalAnd', {
  args: ['tensor', 'tensor'],
  of: (ops) => (a, b) => ops.mul(truth(ops, a), truth(ops, b)),
})

/**
 * Whether a or b, or both, are not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_or`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([0, 0, 2, 2]).logicalOr(tensor([0, 1, 0, 1])) // [false, true, true, true]
 */
export const logicalOr: (a: Tensor, b: Tensor) => Tensor = composite('logicalOr', {
  args: ['tensor', 'tensor'],
  of: (ops) => (a, b) => ops.add(truth(ops, a), truth(ops, b)),
})

/**
 * Whether exactly one of a and b is not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_xor`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([0, 0, 2, 2]).logicalXor(tensor([0, 1, 0, 1])) // [false, true, true, false]
 */
export const logicalXor: (a: Tensor, b: Tensor) => Tensor = composite('logicalXor', {
  args: ['tensor', 'tensor'],
  of: (ops) => (a, b) => ops.ne(truth(ops, a), truth(ops, b)),
})

/**
 * Whether |a − b| ≤ atol + rtol · |b|, element by element, as bool. rtol is 1e-5 and atol 1e-8 by default. Shapes broadcast. PyTorch: `torch.isclose`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 1]).isclose(tensor([1.000001, 1.1])) // [true, false]
 */
export const isclose: (a: Tensor, b: Tensor, options?: IsCloseOptions) => Tensor = composite('isclose', {
  args: ['tensor', 'tensor', 'options?'],
  options: { rtol: true, atol: true, equalNan: true },
  of:
    (ops) =>
    (a, b, { rtol = 1e-5, atol = 1e-8, equalNan = false } = {}) => {
      const same = ops.eq(a, b)
      const close = equalNan ? ops.logicalOr(same, ops.logicalAnd(ops.isNaN(a), ops.isNaN(b))) : same
      if (a.dtype === 'bool' && b.dtype === 'bool') return close
      const allowed = ops.add(ops.mul(ops.abs(isFloating(b.dtype) ? b : ops.to(b, 'float32')), rtol), atol)
      const distance = ops.abs(ops.sub(isFloating(a.dtype) ? a : ops.to(a, 'float32'), b))
      return ops.logicalOr(close, ops.logicalAnd(ops.isFinite(distance), ops.le(distance, allowed)))
    },
})

/**
 * Whether |a − b| ≤ atol + rtol · |b| for all elements. rtol is 1e-5 and atol 1e-8 by default; NaN is close to nothing. Shapes broadcast. Like `itemSync`, it
 * reads the elements at once. PyTorch: `torch.allclose`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example tensor([1, 1]).allclose(tensor([1.01, 1]), { atol: 0.1 }) // true
 */
export const allclose: (a: Tensor, b: Tensor, options?: IsCloseOptions) => boolean = composite('allclose', {
  args: ['tensor', 'tensor', 'options?'],
  options: { rtol: true, atol: true, equalNan: true },
  of: (ops) => (a, b, options) => ops.all(ops.isclose(a, b, options)).itemSync() !== 0,
})

/**
 * Whether a and b have the same shape and equal elements; NaN is not equal to NaN. Like `itemSync`, it reads the elements at once. PyTorch: `torch.equal`.
 * @example tensor([1, 2]).equal(tensor([[1, 2]])) // false: the shapes differ
 */
export const equal: (a: Tensor, b: Tensor) => boolean = composite('equal', {
  args: ['tensor', 'tensor'],
  of: (ops) => (a, b) => sameShape(a.shape, b.shape) && ops.all(ops.eq(a, b)).itemSync() !== 0,
})

/** The largest finite number of each dtype. */
const LARGEST = { float32: (2 - 2 ** -23) * 2 ** 127, float64: Number.MAX_VALUE, int32: 2 ** 31 - 1, bool: 1 } as const

const truth = (ops: Ops, x: Tensor) => ops.to(x, 'bool')

const none = (x: Tensor) => Tensor.empty('bool', x.shape, x.storage.memory)
