/** The fully connected layer as one operation: one product, whose transpose is a stride, and the bias added where the product lies. */

import { kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { dtypeMismatch, shapeMismatch, shapeText } from '../../values/errors.js'
import { contiguous } from '../copy.js'

/** x […, in], weight [out, in], bias [out] → […, out]. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor | null): Tensor {
  checkLinear(x, weight, bias ?? null)
  const last = x.shape.length - 1
  const shape = x.shape.with(last, weight.shape[0]!)
  const out = Tensor.uninitialized(x.dtype, shape, x.storage.memory)
  const kernels = kernelsFor(x)
  // Leading dimensions become rows, and for that they must follow each other; rows of a matrix may lie at any distance.
  kernels.matmul[x.dtype](last > 1 ? contiguous(x) : x, weight, out, true)
  if (bias != null) kernels.add[x.dtype](out, bias, out)
  return out
}

function checkLinear(x: Tensor, weight: Tensor, bias: Tensor | null): void {
  if (weight.shape.length !== 2 || x.shape.length === 0 || x.shape[x.shape.length - 1] !== weight.shape[1]) {
    throw shapeMismatch(
      'linear',
      'x […, in] and a weight [out, in]',
      `${shapeText(x.shape)} and ${shapeText(weight.shape)}`,
      'The last extent of x must be the last one of the weight: reshape x, or transpose the weight.',
      { x: [...x.shape], weight: [...weight.shape] },
    )
  }
  if (bias !== null && (bias.shape.length !== 1 || bias.shape[0] !== weight.shape[0])) {
    throw shapeMismatch('linear', `a bias [${weight.shape[0]}]`, shapeText(bias.shape), 'There is one bias for each row of the weight.', {
      bias: [...bias.shape],
    })
  }
  if (x.dtype !== weight.dtype || (bias !== null && bias.dtype !== x.dtype)) {
    const got = bias === null ? `${x.dtype} and ${weight.dtype}` : `${x.dtype}, ${weight.dtype} and ${bias.dtype}`
    throw dtypeMismatch('linear', 'one dtype for all tensors', got, `Convert with to('${weight.dtype}').`)
  }
  if (x.dtype === 'bool') throw dtypeMismatch('linear', 'numbers', 'bool', "Convert with to('float32') first.")
}
