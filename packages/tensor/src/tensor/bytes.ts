/**
 * The only way in which other packages reach the elements of a tensor as memory: for messages, files, numbers of half precision, and sums in an order that no operation has. All
 * else is an operation. Elements go in and out row by row, whatever the strides are; tensors that are not in the memory of this process are refused.
 *
 * A write here raises no version: the caller writes to a tensor of its own, or calls `wrote`.
 */
import { PostgradError } from '@postgrad/base'
import { CPU } from '../heap/memory.js'
import { byteLength, type TypedArray, viewOn } from '../values/dtype.js'
import { gather } from '../values/read.js'
import type { Tensor } from './tensor.js'

/** Up to this many elements a loop beats making a view and copying by it. */
const LOOP_ELEMENTS_MAX = 64

/** @throws READ_NOT_SYNCHRONOUS if x is on a device with memory of its own */
function hostOf(x: Tensor, op = 'tensor'): TypedArray {
  const { host } = x.storage
  if (host !== null) return host
  const { device } = x
  throw new PostgradError('READ_NOT_SYNCHRONOUS', {
    op,
    message: `it looks at elements that device '${device}' has in a memory of its own`,
    remedy: 'Pass await x.cpu() of that tensor, or make it on the cpu.',
    values: { device: device.spec },
  })
}

/** Whether the host can look at the elements at once. */
export function isReadable({ storage }: Tensor): boolean {
  return storage.memory === CPU
}

/** If `flag`, bool without dimensions on a device with a memory of its own, turns out true, the next read there rejects with `error`. Closes it. */
export function reportIf(flag: Tensor, error: PostgradError): void {
  const { memory, device } = flag.storage
  memory.buffers!.guard(device!.buffer, error)
  flag.close()
}

/** On the cpu a pending tensor is computed now. @throws TENSOR_CLOSED */
export function checkOpen({ storage }: Tensor): void {
  void storage.host
}

/** @throws READ_NOT_SYNCHRONOUS */
export function checkReadable(op: string, x: Tensor): void {
  hostOf(x, op)
}

/** The elements for a caller that reads them at once and does not write: where they lie if x is dense, else a copy. @throws READ_NOT_SYNCHRONOUS */
export function elementsOf(x: Tensor, op?: string): TypedArray {
  const host = hostOf(x, op)
  if (!x.isContiguous) return copyOfElements(x)
  // A view costs as much as reading 100 elements.
  return x.numel === host.length ? host : host.subarray(x.offset, x.offset + x.numel)
}

/** The elements in an array that fills a buffer of its own, which the caller may transfer. @throws READ_NOT_SYNCHRONOUS */
export function copyOfElements(x: Tensor): TypedArray {
  if (x.isContiguous) return hostOf(x).slice(x.offset, x.offset + x.numel)
  // Not by `allocate`, whose small arrays share a buffer.
  const out = viewOn(x.dtype, new ArrayBuffer(byteLength(x.dtype, x.numel)), 0, x.numel)
  readElements(x, out, 0)
  return out
}

/** Copies all elements to into[at …], an array of x's dtype. @throws READ_NOT_SYNCHRONOUS */
export function readElements(x: Tensor, into: TypedArray, at: number): void {
  const { numel, offset } = x
  const host = hostOf(x)
  if (!x.isContiguous) gather(host, x.shape, x.strides, offset, numel, into, at)
  else if (numel <= LOOP_ELEMENTS_MAX) for (let i = 0; i < numel; i++) into[at + i] = host[offset + i]!
  else into.set(host.subarray(offset, offset + numel), at)
}

/** Writes from[start …], an array of x's dtype, over `count` elements of a dense x from the element `at` on; of bool, what is not 0 becomes 1. @throws READ_NOT_SYNCHRONOUS */
export function writeElements(x: Tensor, from: TypedArray, start = 0, count = from.length - start, at = 0): void {
  x.storage.prepareWrite()
  const host = hostOf(x)
  const to = x.offset + at
  if (x.dtype === 'bool') for (let i = 0; i < count; i++) host[to + i] = from[start + i] === 0 ? 0 : 1
  else if (count <= LOOP_ELEMENTS_MAX) for (let i = 0; i < count; i++) host[to + i] = from[start + i]!
  else host.set(from.subarray(start, start + count), to)
}
