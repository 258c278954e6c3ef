/** Parts of `to`, `copy_`, `fill_` and `zero_` that are recorded. */

import { type Target, to } from '../../raw/copy.js'
import type { Device } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import type { DType } from '../../values/dtype.js'
import { type Functional, primitive, rawOperations } from '../define/define.js'
import { constant } from '../define/elementwise.js'
import { formula } from '../define/formula.js'
import { sumToShape } from '../parts/dims.js'

/** `from`: where x is. */
export const toFrom: Functional<(x: Tensor, target: Target, dtype: DType | undefined, from: Device) => Tensor> = primitive('toFrom', {
  node: 'to',
  raw: (x, target, dtype) => to(x, target, dtype),
  // Back to where it came from.
  grad: formula([], (g, s, ops) => ops.to(g, s.attrs[2], s.dtypeA)),
})

/** `elements`, which were read from x's device `from`, as x in this process. */
export const arrived: Functional<(x: Tensor, elements: Tensor, from: Device) => Tensor> = primitive('arrived', {
  node: 'to',
  raw: (_x, elements) => elements,
  grad: { reads: [[], null], grads: ([g], s, ops) => [ops.to(g!, s.attrs[0]), null] },
})

/** `fill_`'s value, as a new tensor: nothing of x is left, so its gradient is 0; as of the next two. */
export const filled: Functional<(x: Tensor, value: number | boolean) => Tensor> = primitive('filled', {
  node: 'fill',
  raw: (x, value) => rawOperations.fill_(Tensor.empty(x.dtype, x.shape, x.storage.memory), value),
  grad: constant,
})

export const zeroed: Functional<(x: Tensor) => Tensor> = primitive('zeroed', {
  node: 'zero',
  raw: (x) => Tensor.empty(x.dtype, x.shape, x.storage.memory),
  grad: constant,
})

export const copied: Functional<(x: Tensor, src: Tensor) => Tensor> = primitive('copied', {
  node: 'copy',
  raw: (x, src) => rawOperations.copy_(Tensor.empty(x.dtype, x.shape, x.storage.memory), src),
  grad: { a: constant, b: formula([], (g, s) => sumToShape(g, s.shapeB)) },
})
