/**
 * Parts of in-place operations: they write into a view of any strides and raise its storage's version. The shape and dtype of `x` stay; an
 * argument broadcasts to the shape and converts to the dtype. Autograd checks its rules about leaves and saved tensors.
 */

import { PostgradError } from '@postgrad/base'
import type { BinaryOp } from '../kernels/table/table.js'
import { kernelsFor } from '../tensor/device.js'
import type { Tensor } from '../tensor/tensor.js'
import { categoryOf, type DType, isFloating } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { broadcastsTo, sameShape } from '../values/shape.js'
import { clone, to } from './copy.js'
import { binary, scalarTensor } from './elementwise.js'
import { rawOperations } from './operations.js'
import { promoteNumber, promoteTensors, toFloating } from './promotion.js'

/**
 * Called by everything that writes to x, before it takes x's array.
 * @throws INPLACE_OVERLAP when several elements of x are one memory cell (after `expand`)
 */
export function checkWritable(op: string, x: Tensor): void {
  x.storage.prepareWrite()
  if (x.isContiguous) return
  for (let d = 0; d < x.shape.length; d++) {
    if (x.strides[d] === 0 && x.shape[d]! > 1) {
      throw new PostgradError('INPLACE_OVERLAP', {
        op,
        expected: 'a tensor whose elements lie in different places',
        got: `shape ${shapeText(x.shape)} with strides ${shapeText(x.strides)}`,
        remedy: 'It was expanded: clone() it before writing to it.',
      })
    }
  }
}

/** The writer of a parameter's storage where an optimizer is: its user has called none of the operations that it is made of. */
export const OPTIMIZER_STEP = 'a step of an optimizer'

let writes = 0

/** How many writes to storages this thread has made. */
export function writeCount(): number {
  return writes
}

/** After a write: what was read from this storage before is no longer there. */
export function wrote(op: string, x: Tensor): void {
  x.storage.version++
  x.storage.writtenAt = ++writes
  x.storage.writer = op
}

/** @throws SHAPE_MISMATCH */
export function checkBroadcast(op: string, x: Tensor, y: Tensor): void {
  if (sameShape(x.shape, y.shape) || broadcastsTo(y.shape, x.shape)) return
  throw shapeMismatch(
    op,
    `an argument that broadcasts to ${shapeText(x.shape)}`,
    shapeText(y.shape),
    'An in-place operation keeps the shape: use the one that makes a new tensor, or reshape the argument.',
    { x: [...x.shape], y: [...y.shape] },
  )
}

/** @throws INPLACE_DTYPE when a value of `from` cannot be stored in `into` without losing its category (PyTorch's `can_cast`) */
function checkStorable(op: string, from: DType, into: DType): void {
  if (categoryOf(from) <= categoryOf(into)) return
  throw new PostgradError('INPLACE_DTYPE', {
    op,
    expected: `a result that ${into} can hold`,
    got: from,
    remedy: `Use ${op.replace(/_$/, '')}, which makes a new tensor, or convert this one with to('${from}') first.`,
    values: { from, into },
  })
}

/** `y` as a tensor of x's dtype that does not lie under x unless it is the same view. `result` is the dtype of the computation. */
function argument(op: string, x: Tensor, y: Tensor | number, floating: boolean): Tensor {
  if (typeof y === 'number') {
    const result = promoteNumber(x.dtype, y)
    checkStorable(op, floating ? toFloating(result) : result, x.dtype)
    return scalarTensor(y, x.dtype, x.storage.memory)
  }
  if (typeof y !== 'object' || y === null) throw invalidArgument(op, 'a tensor or a number', y === null ? 'null' : typeof y)
  checkBroadcast(op, x, y)
  const result = promoteTensors(x, y)
  checkStorable(op, floating ? toFloating(result) : result, x.dtype)
  return apart(x, to(y, x.dtype))
}

/** float64 with float32: computed in float64, of which x keeps the rounded result. */
function isWider(y: Tensor | number, x: Tensor): y is Tensor {
  return typeof y === 'object' && y.dtype !== x.dtype && isFloating(x.dtype) && promoteTensors(x, y) !== x.dtype
}

/** A kernel's output may be an input's very view, but may not overlap it otherwise: then the input is copied first. */
export function apart(x: Tensor, y: Tensor): Tensor {
  if (x.storage !== y.storage) return y
  const same = x.offset === y.offset && sameShape(x.shape, y.shape) && sameShape(x.strides, y.strides)
  return same ? y : clone(y)
}

/** x = x op y. @throws SHAPE_MISMATCH, INPLACE_DTYPE, INPLACE_OVERLAP */
export function binaryInPlace(op: BinaryOp, name: string, x: Tensor, y: Tensor | number): Tensor {
  checkWritable(name, x)
  const b = argument(name, x, y, op === 'div')
  if (isWider(y, x)) return overwrite(name, x, binary(op, x, y, false, op === 'div'))
  kernelsFor(x)[op][x.dtype](x, b, x)
  wrote(name, x)
  return x
}

/** x += alpha · y. @throws as binaryInPlace, DTYPE_MISMATCH for bool */
export function axpyInPlace(name: string, x: Tensor, y: Tensor | number, alpha: number): Tensor {
  if (typeof alpha !== 'number') throw invalidArgument(name, 'a number as alpha', typeof alpha)
  checkWritable(name, x)
  refuseBoolInPlace(name, x)
  checkStorable(name, promoteNumber(x.dtype, alpha), x.dtype)
  const b = argument(name, x, y, false)
  if (isWider(y, x)) return overwrite(name, x, binary('add', x, binary('mul', y, alpha, false, false), false, false))
  kernelsFor(x).axpy[x.dtype](alpha, b, x)
  wrote(name, x)
  return x
}

/**
 * Writes `value`, which op computed from x and others, into x.
 * @throws SHAPE_MISMATCH unless it has x's shape, INPLACE_DTYPE, INPLACE_OVERLAP
 */
export function overwrite(op: string, x: Tensor, value: Tensor): Tensor {
  checkWritable(op, x)
  if (!sameShape(value.shape, x.shape)) {
    throw shapeMismatch(
      op,
      `a result of shape ${shapeText(x.shape)}`,
      shapeText(value.shape),
      'An in-place operation keeps the shape: use the one that makes a new tensor, or reshape the argument.',
      { x: [...x.shape], result: [...value.shape] },
    )
  }
  checkStorable(op, value.dtype, x.dtype)
  rawOperations.copy_(x, value)
  x.storage.writer = op
  return x
}

export function refuseBoolInPlace(op: string, x: Tensor | number): void {
  if (typeof x === 'object' && x?.dtype === 'bool') throw dtypeMismatch(op, 'numbers', 'bool', 'Convert with to() first.')
}
