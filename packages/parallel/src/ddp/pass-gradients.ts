/**
 * Where a backward pass has the gradients of parameters, and how the reducer above puts means in their place: in the context of a distributed pass, else in
 * `.grad`. A reduction that no pass carries (null) has them in `.grad`, too.
 */
import type { GraphTask } from '@postgrad/autograd/internal'
import { DistPass } from '@postgrad/dist-autograd/internal'
import type { SparseTensor, Tensor } from '@postgrad/tensor'
import { isSparse, raw, toDense } from '@postgrad/tensor/internal'
import { isSame } from './bucket.js'

/** Whether gradients are in a distributed context. */
export const isInContext = (task: GraphTask | null): boolean => task?.sink instanceof DistPass

/** What the pass has put there for a parameter. */
export function gradOf(task: GraphTask | null, parameter: Tensor): Tensor | null {
  return task?.sink instanceof DistPass ? (task.sink.gradients.get(parameter) ?? null) : parameter.grad
}

function setGrad(task: GraphTask | null, parameter: Tensor, grad: Tensor): void {
  if (task?.sink instanceof DistPass) task.sink.gradients.set(parameter, grad)
  else parameter.grad = grad
}

/** The mean of a parameter whose gradients are sparse. */
export function writeSparse(task: GraphTask | null, parameter: Tensor, rows: SparseTensor): void {
  const grad = gradOf(task, parameter)
  setGrad(task, parameter, grad !== null && !isSparse(grad) ? toDense(rows) : rows)
}

/** The mean of one whose gradients are dense. `isView`: it lies in a bucket, where it stays if `keepsViews` and the pass is in no context. */
export function writeMean(task: GraphTask | null, parameter: Tensor, mean: Tensor, isView: boolean, keepsViews: boolean): void {
  // A context keeps the gradients of each pass, while the next one writes to the bucket.
  if (isView && keepsViews && !isInContext(task)) {
    if (parameter.grad === null || !isSame(parameter.grad, mean)) parameter.grad = mean
    return
  }
  const grad = gradOf(task, parameter)
  if (grad === null || isSparse(grad)) setGrad(task, parameter, isView ? raw.clone(mean) : mean)
  else if (!isSame(grad, mean)) raw.copy_(grad, mean)
}
