/** Views that are no functions of users: a part of `slice`, and methods. */
import * as views from '../../raw/views.js'
import { arange } from '../../tensor/create.js'
import { Tensor } from '../../tensor/tensor.js'
import { composite, type Functional, primitive } from '../define/define.js'
import { formula } from '../define/formula.js'
import { wrap } from '../parts/dims.js'

/** Elements 0, step, 2 · step, … of a dimension; step ≥ 1. Users have slice(). */
export const everyNth: Functional<(x: Tensor, dim: number, step: number) => Tensor> = primitive('everyNth', {
  isFunctional: true,
  raw: views.everyNth,
  // g at every step-th place, zeros between
  grad: formula([], (g, s, ops) => {
    const [dim, step] = s.attrs
    const places = arange(0, s.shapeA[wrap(dim, g.ndim)]!, step, { dtype: 'int32', device: g.device })
    return ops.indexAdd(Tensor.empty(g.dtype, s.shapeA, g.storage.memory), dim, places, g)
  }),
})

/** A view of the other tensor's shape. PyTorch: `Tensor.view_as`. @throws SHAPE_MISMATCH, VIEW_NOT_CONTIGUOUS */
export const viewAs: (x: Tensor, other: Tensor) => Tensor = composite('viewAs', {
  args: ['tensor', 'tensor'],
  of: (ops) => (x, other) => ops.view(x, other.shape),
})

/** A view expanded to the other tensor's shape. PyTorch: `Tensor.expand_as`. @throws SHAPE_MISMATCH */
export const expandAs: (x: Tensor, other: Tensor) => Tensor = composite('expandAs', {
  args: ['tensor', 'tensor'],
  of: (ops) => (x, other) => ops.expand(x, other.shape),
})
