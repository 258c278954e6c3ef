/** Matrix products by PyTorch's rules, from vectors to broadcast batches. Transposes reach the kernel as strides, without a copy. */

import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { type DType, promote } from '../values/dtype.js'
import { dtypeMismatch, shapeMismatch, shapeText } from '../values/errors.js'
import { broadcastShapes } from '../values/shape.js'

/**
 * [k]·[k] → [], [m,k]·[k] → [m], [k]·[k,n] → [n], [m,k]·[k,n] → [m,n], and with leading batch dimensions that broadcast.
 * @throws SHAPE_MISMATCH, DTYPE_MISMATCH
 */
export function matmul(a: Tensor, b: Tensor): Tensor {
  const aDims = a.shape.length
  const bDims = b.shape.length
  if (aDims === 0 || bDims === 0) {
    throw shapeMismatch(
      'matmul',
      'tensors with at least one dimension',
      `${shapeText(a.shape)} and ${shapeText(b.shape)}`,
      'Use mul for 0-d tensors.',
    )
  }
  if (a.dtype !== b.dtype) throw dtypeMismatch('matmul', 'one dtype', `${a.dtype} and ${b.dtype}`, conversion(a.dtype, b.dtype))
  if (a.dtype === 'bool') throw dtypeMismatch('matmul', 'numbers', 'bool', "Convert with to('int32') or to('float32') first.")
  const m = aDims === 1 ? 1 : a.shape[aDims - 2]!
  const k = a.shape[aDims - 1]!
  const n = bDims === 1 ? 1 : b.shape[bDims - 1]!
  if (k !== (bDims === 1 ? b.shape[0] : b.shape[bDims - 2])) {
    throw shapeMismatch(
      'matmul',
      'the last extent of a to equal the second to last of b',
      `${shapeText(a.shape)} and ${shapeText(b.shape)}`,
      'Transpose one of them: matmul(a, b.T).',
      { a: [...a.shape], b: [...b.shape] },
    )
  }
  const tail = aDims === 1 ? (bDims === 1 ? [] : [n]) : bDims === 1 ? [m] : [m, n]
  const shape =
    aDims <= 2 && bDims <= 2
      ? tail
      : [...broadcastShapes('matmul', a.shape.slice(0, Math.max(aDims - 2, 0)), b.shape.slice(0, Math.max(bDims - 2, 0))), ...tail]
  const out = Tensor.uninitialized(a.dtype, shape, a.storage.memory)
  kernelsFor(a).matmul[a.dtype](a, b, out)
  return out
}

/** [batch, m, k]·[batch, k, n] without broadcasting. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export function bmm(a: Tensor, b: Tensor): Tensor {
  if (a.shape.length !== 3 || b.shape.length !== 3 || a.shape[0] !== b.shape[0]) {
    throw shapeMismatch(
      'bmm',
      '[batch, m, k] and [batch, k, n]',
      `${shapeText(a.shape)} and ${shapeText(b.shape)}`,
      'Use matmul() for other ranks and for broadcasting.',
    )
  }
  return matmul(a, b)
}

/** To the wider of the two: the other way would lose digits. */
function conversion(a: DType, b: DType): string {
  const wide = promote(a, b)
  return `Convert the ${a === wide ? 'second' : 'first'} one with to('${wide}').`
}
