/** A part of `slice`, and operations that users have only as methods. */
import { checkWritable } from '../../raw/inplace.js'
import { arange } from '../../tensor/create.js'
import { Tensor } from '../../tensor/tensor.js'
import { checkHolds, invalidArgument } from '../../values/errors.js'
import type { IndexSpec } from '../../values/options.js'
import { composite, type Functional, primitive } from '../define/define.js'
import { formula } from '../define/formula.js'
import { cut, wrap } from '../parts/dims.js'
import { indexBy } from '../parts/indexed.js'

/** Elements 0, step, 2 · step, … of a dimension; step ≥ 1. Users have slice(). */
export const everyNth: Functional<(x: Tensor, dim: number, step: number) => Tensor> = primitive('everyNth', {
  raw: (x, dim, step) => {
    const [d, extent] = cut('everyNth', x, dim)
    if (!Number.isSafeInteger(step) || step < 1) throw invalidArgument('everyNth', 'an integer step ≥ 1', step)
    return Tensor.view(x, x.shape.with(d, Math.ceil(extent / step)), x.strides.with(d, x.strides[d]! * step), x.offset)
  },
  // g at every step-th place, zeros between
  grad: formula([], (g, s, ops) => {
    const [dim, step] = s.attrs
    const places = arange(0, s.shapeA[wrap(dim, g.ndim)]!, step, { dtype: 'int32', device: g.device })
    return ops.indexAdd(Tensor.empty(g.dtype, s.shapeA, g.storage.memory), dim, places, g)
  }),
})

/**
 * A view of x in the shape of `other`. PyTorch: `Tensor.view_as`.
 * @throws SHAPE_MISMATCH if `other` has another number of elements; VIEW_NOT_CONTIGUOUS if a view of x cannot have that shape
 * @example zeros([6]).viewAs(zeros([2, 3])) // shape [2, 3]
 */
export const viewAs: (x: Tensor, other: Tensor) => Tensor = composite('viewAs', {
  args: ['tensor', 'tensor'],
  of: (ops) => (x, other) => ops.view(x, other.shape),
})

/**
 * A view of x expanded to the shape of `other`. PyTorch: `Tensor.expand_as`.
 * @throws SHAPE_MISMATCH if x does not broadcast to that shape
 * @example tensor([1, 2]).expandAs(zeros([2, 2])) // [[1, 2], [1, 2]]
 */
export const expandAs: (x: Tensor, other: Tensor) => Tensor = composite('expandAs', {
  args: ['tensor', 'tensor'],
  of: (ops) => (x, other) => ops.expand(x, other.shape),
})

/**
 * x[specs] = values, or += with accumulate; see index().
 * @example const x = zeros([2, 3]); x.indexPut_(['...', 0], 7); x // [[7, 0, 0], [7, 0, 0]]
 */
export const indexPut_: (
  x: Tensor,
  specs: readonly IndexSpec<Tensor>[],
  values: Tensor | number | boolean,
  accumulate?: boolean,
) => Tensor = composite('indexPut_', {
  args: ['tensor', 'list', 'filling', 'boolean?'],
  looseNumbers: true,
  of:
    (ops) =>
    (x, specs, values, accumulate = false) => {
      const view = indexBy(ops, x, specs)
      // A tensor among the specs made a copy of the elements.
      if (view.storage !== x.storage || accumulate) {
        checkWritable('indexPut_', x)
        return ops.copy_(x, ops.indexPut(x, specs, values, accumulate))
      }
      if (typeof values === 'object') {
        checkWritable('indexPut_', view)
        ops.copy_(view, values)
      } else {
        checkHolds('indexPut_', x.dtype, Number(values))
        ops.fill_(view, values)
      }
      return x
    },
})
