/** How tensors of devices with a memory of their own travel: their bytes are read for the message, and its receiver puts them on one of its devices. */
import { upload } from '../tensor/create.js'
import { memoryDevice } from '../tensor/device.js'
import type { Tensor } from '../tensor/tensor.js'
import { byteLength } from '../values/dtype.js'
import { contiguous } from './copy.js'

/**
 * Copies the elements of x as they are now, row by row, to `into` as soon as its device has computed them; what is written to x later changes nothing. Rejects with
 * the first error of a queued kernel that no read has reported.
 */
export async function readLater(x: Tensor, into: Uint8Array): Promise<void> {
  const { dtype, numel } = x
  if (numel === 0) return
  const dense = contiguous(x)
  const { memory, device } = dense.storage
  const read = memory.buffers!.read(device!.buffer, byteLength(dtype, dense.offset), byteLength(dtype, numel))
  // The read is queued before.
  if (dense !== x) dense.close()
  into.set(await read)
}

/** The elements of x, which came in a message, on a device of this thread. Closes x. @throws DEVICE_UNKNOWN */
export function putOn(x: Tensor, spec: string): Tensor {
  const put = upload(x, memoryDevice('receive', spec).home)
  x.close()
  return put
}
