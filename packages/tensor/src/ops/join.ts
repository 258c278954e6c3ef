/** Joining tensors. */

import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { type DType, promote } from '../values/dtype.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { normalizeDim, type Shape, sameShape } from '../values/shape.js'
import { composite, type Functional, primitive, rawOperations } from './define/define.js'
import { wrap } from './parts/dims.js'

/**
 * The tensors joined along `dim` (default 0). All other dimensions have equal extents; dtypes promote; tensors of shape [0] are skipped. PyTorch: `torch.cat`.
 * @throws SHAPE_MISMATCH if another extent differs; DIM_OUT_OF_RANGE if the tensors do not have `dim`; INVALID_ARGUMENT if the list is empty
 * @example cat([tensor([[1, 2]]), tensor([[3]])], 1) // [[1, 2, 3]]
 */
export const cat: Functional<(tensors: readonly Tensor[], dim?: number) => Tensor> = primitive('cat', {
  args: ['tensors', 'number?'],
  isFunctional: true,
  raw: (tensors, dim = 0) => {
    if (tensors.length === 0) throw invalidArgument('cat', 'at least one tensor', 'none')
    let dtype: DType = tensors[0]!.dtype
    for (const t of tensors) dtype = promote(dtype, t.dtype)
    const parts = tensors.filter((t) => !(t.shape.length === 1 && t.numel === 0))
    if (parts.length === 0) return Tensor.uninitialized(dtype, [0], tensors[0]!.storage.memory)
    const first = parts[0]!
    if (first.shape.length === 0) throw shapeMismatch('cat', 'tensors with at least one dimension', '[]', 'Use stack() for 0-d tensors.')
    const d = normalizeDim('cat', dim, first.shape.length)
    let extent = 0
    for (const t of parts) {
      if (!differOnlyIn(d, t.shape, first.shape)) {
        throw shapeMismatch(
          'cat',
          `shapes that are equal except in dimension ${d}`,
          `${shapeText(first.shape)} and ${shapeText(t.shape)}`,
          'Reshape or narrow the one that differs.',
        )
      }
      extent += t.shape[d]!
    }
    const out = Tensor.uninitialized(dtype, first.shape.with(d, extent), first.storage.memory)
    const copy = kernelsFor(first).copy[dtype]
    // Where nothing but extents of 1 lies before the dimension each part is one run of elements.
    const isDense = out.strides[d]! * extent === out.numel
    let at = 0
    for (const t of parts) {
      copy(t, new Tensor(out.storage, t.shape, out.strides, at * out.strides[d]!, t.numel, isDense))
      at += t.shape[d]!
    }
    return out
  },
  grad: {
    each: (g, i, shapes, dim, ops) => {
      const d = wrap(dim, g.ndim)
      // A one-dimensional empty tensor joins anything (PyTorch's legacy rule) and has no extent there.
      let start = 0
      for (let j = 0; j < i; j++) start += shapes[j]![d] ?? 0
      const shape = shapes[i]!
      return shape.length === g.ndim ? ops.narrow(g, d, start, shape[d]!) : Tensor.empty(g.dtype, shape, g.storage.memory)
    },
  },
})

/**
 * Tensors of one shape joined along a new dimension `dim` (default 0); dtypes promote. PyTorch: `torch.stack`.
 * @throws SHAPE_MISMATCH if the shapes differ; DIM_OUT_OF_RANGE if the result does not have `dim`; INVALID_ARGUMENT if the list is empty
 * @example stack([tensor([1, 2]), tensor([3, 4])], 1) // [[1, 3], [2, 4]]
 */
export const stack: Functional<(tensors: readonly Tensor[], dim?: number) => Tensor> = primitive('stack', {
  args: ['tensors', 'number?'],
  isFunctional: true,
  raw: (tensors, dim = 0) => {
    if (tensors.length === 0) throw invalidArgument('stack', 'at least one tensor', 'none')
    const first = tensors[0]!
    const other = tensors.find((t) => !sameShape(t.shape, first.shape))
    if (other !== undefined) {
      const got = `${shapeText(first.shape)} and ${shapeText(other.shape)}`
      throw shapeMismatch('stack', 'equal shapes', got, 'Use cat() to join along a dimension that differs.')
    }
    const d = normalizeDim('stack', dim, first.shape.length + 1, 'result')
    const parts = tensors.map((t) => rawOperations.unsqueeze(t, d))
    return rawOperations.cat(parts, d)
  },
  grad: { each: (g, i, _, dim, ops) => ops.select(g, wrap(dim, g.ndim), i) },
})

/**
 * The tensors joined along dimension 1, or along dimension 0 if they are vectors. PyTorch: `torch.hstack`.
 * @throws SHAPE_MISMATCH if another extent differs; INVALID_ARGUMENT if the list is empty
 * @example hstack([tensor([1, 2]), tensor([3])]) // [1, 2, 3]
 */
export const hstack: Functional<(tensors: readonly Tensor[]) => Tensor> = composite('hstack', {
  args: ['tensors'],
  isFunctional: true,
  of: (ops) => (tensors) => {
    const parts = tensors.map((t) => (t.ndim === 0 ? ops.reshape(t, [1]) : t))
    return ops.cat(parts, (parts[0]?.ndim ?? 1) === 1 ? 0 : 1)
  },
})

/**
 * The tensors joined along dimension 0; a vector becomes a row. PyTorch: `torch.vstack`.
 * @throws SHAPE_MISMATCH if another extent differs; INVALID_ARGUMENT if the list is empty
 * @example vstack([tensor([1, 2]), tensor([[3, 4], [5, 6]])]) // [[1, 2], [3, 4], [5, 6]]
 */
export const vstack: Functional<(tensors: readonly Tensor[]) => Tensor> = composite('vstack', {
  args: ['tensors'],
  isFunctional: true,
  of: (ops) => (tensors) => {
    const parts = tensors.map((t) => (t.ndim < 2 ? ops.reshape(t, [1, t.numel]) : t))
    return ops.cat(parts, 0)
  },
})

function differOnlyIn(d: number, a: Shape, b: Shape): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (i !== d && a[i] !== b[i]) return false
  return true
}
