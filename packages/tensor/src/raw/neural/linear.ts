/** The fully connected layer as one operation: one product, whose transpose is a stride, and the bias added where the product lies. */

import { currentKernels } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { dtypeMismatch, shapeMismatch, shapeText } from '../../values/errors.js'
import { numelOf } from '../../values/shape.js'
import { contiguous } from '../copy.js'
import { view } from '../views.js'

/** x […, in], weight [out, in], bias [out] → […, out]. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor | null): Tensor {
  checkLinear(x, weight, bias ?? null)
  const [n, k] = weight.shape as readonly [number, number]
  const last = x.shape.length - 1
  const shape = x.shape.slice()
  shape[last] = n
  // Leading dimensions become rows, and for that they must follow each other; rows of a matrix may lie at any distance.
  const isMatrix = last < 2
  const m = isMatrix ? 0 : numelOf(x.shape.slice(0, last))
  const out = Tensor.uninitialized(x.dtype, isMatrix ? shape : [m, n])
  const [wRow, wCol] = weight.strides as readonly [number, number]
  const kernels = currentKernels()
  const transposed = Tensor.view(weight, [k, n], [wCol, wRow], weight.offset)
  kernels.matmul[x.dtype](isMatrix ? x : view(contiguous(x), [m, k]), transposed, out)
  if (bias != null) kernels.add[x.dtype](out, bias, out)
  return isMatrix ? out : view(out, shape)
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
