/** For cases with parameters that live on one worker and that others refer to: makes them, reads them, and gets their gradients. */
import { distAutograd } from '@postgrad/dist-autograd'
import { expose, type RRef } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { leaf, type Plain, plain } from './case.js'

/** To be called by `remote`: the value is the parameter itself. */
export function makeLeaf(values: Plain): Tensor {
  return leaf(values)
}

/** On the owner: the parameter, which then is part of the caller's graph. */
export function parameterOf(ref: RRef<Tensor>): Tensor {
  return ref.localValue()
}

/** On the owner: the parameter's numbers. */
export function readParameter(ref: RRef<Tensor>): Promise<Plain> {
  return plain(ref.localValue())
}

/** On the owner: the parameter's gradient in a context. Throws where it has none. */
export async function readGradient(contextId: bigint, ref: RRef<Tensor>): Promise<Plain> {
  const grad = distAutograd.getGradients(contextId).get(ref.localValue())
  if (grad === undefined) throw new Error('the parameter has no gradient in this context')
  return plain(grad)
}

expose({ makeLeaf, parameterOf, readParameter, readGradient })
