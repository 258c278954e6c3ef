/** The fully connected layer as one operation: one product, whose transpose is a stride, and the bias added where the product lies. */

import type { BinaryKernel, MatmulKernel } from '../../kernels/table/table.js'
import { currentKernels } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import type { TypedArray } from '../../values/dtype.js'
import { dtypeMismatch, shapeMismatch, shapeText } from '../../values/errors.js'
import { contiguous } from '../copy.js'

/** x […, in], weight [out, in], bias [out] → […, out]. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor | null): Tensor {
  checkLinear(x, weight, bias ?? null)
  const [n, k] = weight.shape as readonly [number, number]
  const last = x.shape.length - 1
  // Rows of a matrix may lie at any distance; leading dimensions become rows, and for that they must follow each other.
  const source = last > 1 ? contiguous(x) : x
  const xRow = last === 1 ? source.strides[0]! : last === 0 ? 0 : k
  const shape = x.shape.slice()
  shape[last] = n
  const out = Tensor.uninitialized(x.dtype, shape)
  const m = n === 0 ? 0 : out.numel / n
  const [wRow, wCol] = weight.strides as readonly [number, number]
  const kernels = currentKernels()
  const to = out.storage.host
  const product = kernels.matmul[x.dtype] as MatmulKernel<TypedArray>
  product.run(
    1,
    m,
    n,
    k,
    source.storage.host,
    source.offset,
    0,
    xRow,
    source.strides[last]!,
    weight.storage.host,
    weight.offset,
    0,
    wCol,
    wRow,
    to,
    0,
  )
  if (bias != null) {
    const add = kernels.add[x.dtype] as BinaryKernel<TypedArray, TypedArray>
    const b = bias.storage.host
    if (m === 1 && bias.isContiguous) add.flat(n, to, 0, 1, b, bias.offset, 1, to, 0)
    else add.strided([m, n], to, 0, [n, 1], b, bias.offset, [0, bias.strides[0]!], to, 0, [n, 1])
  }
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
