/**
 * Where a backward pass has the gradients of parameters, and where `reducer.ts` puts the means: in the context of a distributed pass, else in
 * `.grad`. A reduction without a pass (null) has them in `.grad`, too.
 */
import type { GraphTask } from '@postgrad/autograd/internal'
import type { SparseTensor, Tensor } from '@postgrad/tensor'
import { isSparse, raw, toDense } from '@postgrad/tensor/internal'
import { isSame } from './bucket.js'

/** The distributed context that gradients are in; null: they are in `.grad`. */
export const contextOf = (task: GraphTask | null): bigint | null => task?.sink.awaitable?.contextId ?? null

/** A parameter's gradient in the pass. */
export function gradOf(task: GraphTask | null, parameter: Tensor): Tensor | null {
  const pass = task?.sink.awaitable
  return pass === undefined ? parameter.grad : pass.gradOf(parameter)
}

function setGrad(task: GraphTask | null, parameter: Tensor, grad: Tensor): void {
  const pass = task?.sink.awaitable
  if (pass === undefined) parameter.grad = grad
  else pass.setGrad(parameter, grad)
}

/** The mean of a parameter whose gradients are sparse. */
export function writeSparse(task: GraphTask | null, parameter: Tensor, rows: SparseTensor): void {
  const grad = gradOf(task, parameter)
  setGrad(task, parameter, grad !== null && !isSparse(grad) ? toDense(rows) : rows)
}

/** The mean of one whose gradients are dense. `isView`: it lies in a bucket, where it stays if `keepsViews` and the pass is in no context. */
export function writeMean(task: GraphTask | null, parameter: Tensor, mean: Tensor, isView: boolean, keepsViews: boolean): void {
  // A context keeps the gradients of each pass, while the next one writes to the bucket.
  if (isView && keepsViews && contextOf(task) === null) {
    if (parameter.grad === null || !isSame(parameter.grad, mean)) parameter.grad = mean
    return
  }
  const grad = gradOf(task, parameter)
  if (grad === null || isSparse(grad)) setGrad(task, parameter, isView ? raw.clone(mean) : mean)
  else if (!isSame(grad, mean)) raw.copy_(grad, mean)
}
