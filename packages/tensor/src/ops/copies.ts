/** Copies and conversions, and writing whole tensors. */

import * as copy from '../raw/copy.js'
import { apart, checkBroadcast, checkWritable, wrote } from '../raw/inplace.js'
import { kernelsFor } from '../tensor/device.js'
import { isTensor, type Tensor } from '../tensor/tensor.js'
import type { DType } from '../values/dtype.js'
import { checkHolds, invalidArgument } from '../values/errors.js'
import { composite, inPlace, primitive, rawOperations } from './define/define.js'
import { formula } from './define/formula.js'

/**
 * A contiguous copy. Gradients pass through it to x. PyTorch: `torch.clone`.
 * @example const x = tensor([1, 2]); const y = x.clone(); x.zero_(); y // [1, 2]: a copy of its own
 */
export const clone: (x: Tensor) => Tensor = primitive('clone', {
  args: ['tensor'],
  raw: copy.clone,
  grad: formula([], (g) => g),
})

/**
 * x itself if its elements are in row-major order, else a copy in which they are. PyTorch: `Tensor.contiguous`.
 * @example tensor([[1, 2], [3, 4]]).T.contiguous().view([4]) // [1, 3, 2, 4]
 */
export const contiguous: (x: Tensor) => Tensor = primitive('contiguous', {
  args: ['tensor'],
  raw: copy.contiguous,
  grad: formula([], (g) => g),
})

/**
 * x in another dtype, on another device, or both; x itself if it has that dtype and is on that device. Conversion to int32 rounds towards 0. To copy a tensor
 * from a device back to this process, call `await x.cpu()`. PyTorch: `Tensor.to`.
 * @throws DTYPE_MISMATCH if the dtype is unknown; DEVICE_UNKNOWN if the device is unknown; READ_NOT_SYNCHRONOUS if the device of x computes asynchronously
 * @example tensor([1.7, -1.7]).to('int32') // [1, -1]: towards 0
 */
export const to: (x: Tensor, target: copy.Target, dtype?: DType) => Tensor = composite('to', {
  args: ['tensor', 'target', 'string?'],
  betweenDevices: true,
  // The formula asks where x was. A target tensor is only read here, else the graph would keep its elements.
  of: (ops) => (x, target, dtype) =>
    isTensor(target) ? ops.toFrom(x, target.device, dtype ?? target.dtype, x.device) : ops.toFrom(x, target, dtype, x.device),
  raw: copy.to,
})

/**
 * Writes the elements of `src` over those of x, in place, and returns x. `src` broadcasts to the shape of x and is converted to its dtype. PyTorch:
 * `Tensor.copy_`.
 * @throws SHAPE_MISMATCH if `src` does not broadcast to x; INPLACE_OVERLAP if x is an expanded view; INPLACE_ON_LEAF if x is a leaf that requires grad and grad
 * mode is on
 * @example zeros([2, 2]).copy_(tensor([1, 2])) // [[1, 2], [1, 2]]
 */
export const copy_: (x: Tensor, src: Tensor) => Tensor = inPlace('copy_', {
  args: ['tensor', 'tensor'],
  betweenDevices: true,
  raw: (x, src) => {
    checkWritable('copy_', x)
    checkBroadcast('copy_', x, src)
    kernelsFor(x).copy[x.dtype](apart(x, src.storage.memory === x.storage.memory ? src : copy.to(src, x.device)), x)
    wrote('copy_', x)
    return x
  },
  // From another device by `to`, so that the gradient goes back there.
  value: (ops) => (x, src) => ops.copied(x, src.storage.memory === x.storage.memory ? src : ops.to(src, x.device)),
  isBlind: true,
})

/**
 * Writes one number or boolean into every element, in place, and returns x, which may be an expanded view. PyTorch: `Tensor.fill_`.
 * @throws INVALID_ARGUMENT if x is int32 and the number is NaN or outside of 32 bits; INPLACE_ON_LEAF if x is a leaf that requires grad and grad mode is on
 * @example zeros([2, 2]).fill_(7) // [[7, 7], [7, 7]]
 */
export const fill_: (x: Tensor, value: number | boolean) => Tensor = inPlace('fill_', {
  args: ['tensor', 'number or boolean'],
  raw: (x, given) => {
    const value = typeof given === 'boolean' ? Number(given) : given
    if (typeof value !== 'number') throw invalidArgument('fill_', 'a number or a boolean', typeof value)
    checkHolds('fill_', x.dtype, value)
    x.storage.prepareWrite()
    kernelsFor(x).fill[x.dtype](value, x)
    wrote('fill_', x)
    return x
  },
  value: (ops) => ops.filled,
  isBlind: true,
})

/**
 * Writes 0 into every element, in place, and returns x. PyTorch: `Tensor.zero_`.
 * @throws INPLACE_ON_LEAF if x is a leaf that requires grad and grad mode is on
 * @example const x = tensor([1, 2, 3]); x.narrow(0, 0, 2).zero_(); x // [0, 0, 3]: the view writes into x
 */
export const zero_: (x: Tensor) => Tensor = inPlace('zero_', {
  args: ['tensor'],
  raw: (x) => {
    rawOperations.fill_(x, 0)
    x.storage.writer = 'zero_'
    return x
  },
  value: (ops) => ops.zeroed,
  isBlind: true,
})
