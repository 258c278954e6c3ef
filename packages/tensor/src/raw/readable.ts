/**
 * Reads by operations themselves, of indices, targets and masks: on a device that computes asynchronously the elements may not be there yet.
 * Reads by users: `tensor.ts`.
 */
import { PostgradError } from '@postgrad/base'
import { currentDevice } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { snapshot } from '../values/read.js'

/** Whether the host sees what kernels wrote to x. Always so on a device that computes synchronously. */
export function isReadable(x: Tensor): boolean {
  return currentDevice().implementation.isSettled(x.storage.host)
}

/** For who reads elements of x at once. @throws READ_NOT_SYNCHRONOUS */
export function checkReadable(op: string, x: Tensor): void {
  if (!isReadable(x)) {
    throw new PostgradError('READ_NOT_SYNCHRONOUS', {
      op,
      message: `it looks at elements that device '${currentDevice().spec}' has yet to compute`,
      remedy: 'Await data() of that tensor first, or make it on the CPU.',
    })
  }
}

/** x with dense elements that the host may look at now; no kernel runs. @throws READ_NOT_SYNCHRONOUS */
export function readable(op: string, x: Tensor): Tensor {
  checkReadable(op, x)
  if (x.isContiguous) return x
  return Tensor.over(x.dtype, x.shape, snapshot(x.storage.host, x.shape, x.strides, x.offset, x.numel, false))
}
