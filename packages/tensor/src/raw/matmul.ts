/** Matrix products by PyTorch's rules, from vectors to broadcast batches. Transposes reach the kernel as strides, without a copy. */

import type { MatmulKernel } from '../kernels/table/table.js'
import { currentKernels } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { type DType, promote, type TypedArray } from '../values/dtype.js'
import { dtypeMismatch, shapeMismatch, shapeText } from '../values/errors.js'
import { broadcastShapes, broadcastStrides, numelOf, type Shape } from '../values/shape.js'

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
  const aRow = aDims === 1 ? 0 : a.strides[aDims - 2]!
  const aCol = a.strides[aDims - 1]!
  const bRow = bDims === 1 ? b.strides[0]! : b.strides[bDims - 2]!
  const bCol = bDims === 1 ? 0 : b.strides[bDims - 1]!
  const kernel = currentKernels().matmul[a.dtype] as MatmulKernel<TypedArray>
  if (aDims <= 2 && bDims <= 2) {
    const out = Tensor.uninitialized(a.dtype, aDims === 1 ? (bDims === 1 ? [] : [n]) : bDims === 1 ? [m] : [m, n])
    kernel.run(1, m, n, k, a.storage.host, a.offset, 0, aRow, aCol, b.storage.host, b.offset, 0, bRow, bCol, out.storage.host, 0)
    return out
  }

  const aBatchShape = a.shape.slice(0, Math.max(aDims - 2, 0))
  const bBatchShape = b.shape.slice(0, Math.max(bDims - 2, 0))
  const batchShape = broadcastShapes('matmul', aBatchShape, bBatchShape)
  const batch = numelOf(batchShape)
  const tail = aDims === 1 ? (bDims === 1 ? [] : [n]) : bDims === 1 ? [m] : [m, n]
  const out = Tensor.uninitialized(a.dtype, [...batchShape, ...tail])
  const aStrides = broadcastStrides(aBatchShape, a.strides.slice(0, aBatchShape.length), batchShape)
  const bStrides = broadcastStrides(bBatchShape, b.strides.slice(0, bBatchShape.length), batchShape)
  const aBatch = mergedStride(batchShape, aStrides)
  const bBatch = mergedStride(batchShape, bStrides)
  const x = a.storage.host
  const y = b.storage.host
  const z = out.storage.host
  if (bBatch === 0 && aDims > 1 && aBatch === m * aRow) {
    // One matrix b for all batches, and the rows of a follow each other through them: a single product of batch · m rows.
    kernel.run(1, batch * m, n, k, x, a.offset, 0, aRow, aCol, y, b.offset, 0, bRow, bCol, z, 0)
  } else if (aBatch !== null && bBatch !== null) {
    kernel.run(batch, m, n, k, x, a.offset, aBatch, aRow, aCol, y, b.offset, bBatch, bRow, bCol, z, 0)
  } else {
    const index = new Array<number>(batchShape.length).fill(0)
    let ao = a.offset
    let bo = b.offset
    for (let t = 0; t < batch; t++) {
      kernel.run(1, m, n, k, x, ao, 0, aRow, aCol, y, bo, 0, bRow, bCol, z, t * m * n)
      for (let d = batchShape.length - 1; d >= 0; d--) {
        ao += aStrides[d]!
        bo += bStrides[d]!
        if (++index[d]! < batchShape[d]!) break
        ao -= aStrides[d]! * batchShape[d]!
        bo -= bStrides[d]! * batchShape[d]!
        index[d] = 0
      }
    }
  }
  return out
}

/** The one stride that walks all batch dimensions in row-major order, or null if there is none. */
function mergedStride(shape: Shape, strides: Shape): number | null {
  let merged = 0
  let next = -1
  for (let d = shape.length - 1; d >= 0; d--) {
    if (shape[d] === 1) continue
    if (next < 0) merged = strides[d]!
    else if (strides[d] !== next) return null
    next = strides[d]! * shape[d]!
  }
  return merged
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
