/**
 * Composite operations: each written once, over other operations. Over the raw ones they compute; over autograd's they record what they are
 * made of, so none of them needs a derivative. Beside: `raw/`, the operations that have kernels.
 */
import type { CompositeOps, Ops, PrimitiveOps } from '../ops/ops.js'
import { inPlaceForms, type MakeInPlace } from '../ops/ops-in-place.js'
import type { Tensor } from '../tensor/tensor.js'
import { activationComposites } from './activation.js'
import { arithmeticComposites } from './arithmetic.js'
import { arrangeComposites } from './arrange.js'
import { contractionComposites } from './contraction.js'
import { logicComposites } from './logic.js'
import { lookupComposites } from './lookup.js'
import { neuralComposites } from './neural.js'
import { reduceComposites } from './reduce.js'
import { shapeComposites } from './shape.js'

/** `primitives` and, over them, all composites; and the in-place forms of both, as `inPlace` makes them. */
export function withComposites(primitives: PrimitiveOps<Tensor>, inPlace: MakeInPlace<Tensor>): Ops<Tensor> {
  // Filled below: a composite may call another, so they all get the whole.
  const ops = { ...primitives } as Ops<Tensor>
  const composites: CompositeOps<Tensor> = {
    ...shapeComposites(ops),
    ...activationComposites(ops),
    ...logicComposites(ops),
    ...arithmeticComposites(ops),
    ...neuralComposites(ops, primitives),
    ...reduceComposites(ops),
    ...arrangeComposites(ops),
    ...lookupComposites(ops),
    ...contractionComposites(ops),
  }
  Object.assign(ops, composites)
  return Object.assign(ops, inPlaceForms(ops, inPlace))
}
