/** Writing and adding at indices along one dimension, for `gather.ts` and for gradients. */
import type { IndexOp } from '../../kernels/table/table.js'
import { clone, contiguous } from '../../raw/copy.js'
import { checkedIndices, wholeIndices } from '../../raw/indices.js'
import { checkWritable, overwrite, wrote } from '../../raw/inplace.js'
import { kernelsFor } from '../../tensor/device.js'
import type { Tensor } from '../../tensor/tensor.js'
import { dtypeMismatch, shapeMismatch, shapeText } from '../../values/errors.js'
import { normalizeDim, type Shape, sameShape } from '../../values/shape.js'
import { rawOperations } from '../define/define.js'
import { fibres } from './fibres.js'

/**
 * Written to is a copy of x, x itself, which is dense, or the zeros of a gradient, which only the caller holds: then the forward pass has checked the index.
 */
type Target = 'copy' | 'itself' | 'gradient'

function indicesFor(op: IndexOp, index: Tensor, extent: number, target: Target): Tensor {
  return target === 'gradient' ? contiguous(wholeIndices(op, index)) : checkedIndices(op, index, extent)
}

/** The in-place form `op`, of which `write` writes to x itself, or makes a copy of an x that is not dense. @throws INPLACE_OVERLAP, as `write` */
export function writtenAt(
  op: string,
  x: Tensor,
  index: Tensor,
  src: Tensor,
  write: (index: Tensor, src: Tensor, target: Target) => Tensor,
): Tensor {
  if (!x.isContiguous) return overwrite(op, x, write(index, src, 'copy'))
  checkWritable(op, x)
  const apart = (y: Tensor) => (y.storage === x.storage ? clone(y) : y)
  write(apart(index), apart(src), 'itself')
  wrote(op, x)
  return x
}

/** Around dimension `d` of the dense table, whose extent the indices point into: x, index and out as the kernel takes them. */
export function runAt(op: IndexOp, table: Tensor, d: number, n: number, x: Tensor, index: Tensor, out: Tensor): void {
  const { outer, k, inner } = fibres(table, d, d)
  kernelsFor(x)[op][x.dtype](x, index, out, outer, k, n, inner)
}

/** @throws SHAPE_MISMATCH unless index has x's dimensions, none longer than x's except `d` */
export function checkIndexShape(op: string, x: Tensor, d: number, index: Tensor): void {
  if (index.shape.length === x.shape.length && index.shape.every((n, i) => i === d || n <= x.shape[i]!)) return
  throw shapeMismatch(
    op,
    `an index of ${x.shape.length} dimensions, none but dimension ${d} longer than in ${shapeText(x.shape)}`,
    shapeText(index.shape),
    'expand() or narrow() the index, or use indexSelect(), whose index is a vector.',
    { x: [...x.shape], index: [...index.shape] },
  )
}

/** The first elements of x along every dimension (but `except`), as many as `shape` has. */
export function corner(x: Tensor, shape: Shape, except: number): Tensor {
  let part = x
  for (let d = 0; d < shape.length; d++) if (d !== except && shape[d] !== part.shape[d]) part = rawOperations.narrow(part, d, 0, shape[d]!)
  return part
}

/** The slices of `src` along `dim`, added at index [n]. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE */
export function addSlices(x: Tensor, dim: number, index: Tensor, src: Tensor, target: Target = 'copy'): Tensor {
  const d = normalizeDim('indexAdd', dim, x.shape.length)
  checkSource('indexAdd', x, src)
  const expected = x.shape.length === 0 ? x.shape : x.shape.with(d, index.numel)
  if (index.shape.length > 1 || !sameShape(src.shape, expected)) {
    throw shapeMismatch(
      'indexAdd',
      `an index [n] and a source ${shapeText(expected)}`,
      `${shapeText(index.shape)} and ${shapeText(src.shape)}`,
      'The source has one slice for each index.',
      { x: [...x.shape], index: [...index.shape], src: [...src.shape] },
    )
  }
  const at = indicesFor('indexAdd', index, x.shape[d] ?? 1, target)
  const out = target === 'copy' ? clone(x) : x
  runAt('indexAdd', out, d, at.numel, contiguous(src), at, out)
  return out
}

/** Elements of `src`, written or added along `dim` at an index of as many. @throws the same */
export function scattered(
  op: 'scatter' | 'scatterAdd',
  x: Tensor,
  dim: number,
  index: Tensor,
  src: Tensor,
  target: Target = 'copy',
): Tensor {
  const d = normalizeDim(op, dim, x.shape.length)
  checkSource(op, x, src)
  checkIndexShape(op, x, d, index)
  if (src.shape.length !== index.shape.length || index.shape.some((n, i) => n > src.shape[i]!)) {
    throw shapeMismatch(
      op,
      `a source of at least the index's shape ${shapeText(index.shape)}`,
      shapeText(src.shape),
      'Make the source as large as the index, or narrow() the index.',
      { index: [...index.shape], src: [...src.shape] },
    )
  }
  const at = indicesFor(op, index, x.shape[d] ?? 1, target)
  const out = target === 'copy' ? clone(x) : x
  const part = corner(out, index.shape, d)
  const table = contiguous(part)
  runAt(op, table, d, index.shape[d] ?? 1, contiguous(corner(src, index.shape, -1)), at, table)
  // Not by copy_: that would be a second write.
  if (table !== part) kernelsFor(part).copy[part.dtype](table, part)
  return out
}

function checkSource(op: 'scatter' | 'scatterAdd' | 'indexAdd', x: Tensor, src: Tensor): void {
  if (src.dtype !== x.dtype) throw dtypeMismatch(op, `a source of ${x.dtype}`, src.dtype, `Convert it with to('${x.dtype}').`)
  if (op !== 'scatter' && x.dtype === 'bool') throw dtypeMismatch(op, 'numbers', 'bool', "Convert with to('int32') first.")
}
