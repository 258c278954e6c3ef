/**
 * Operations that write their result into a tensor that is there already: for nodes that go through many steps and know what all of them will need, such as
 * the layers of recurrent networks. A fresh tensor for every small result costs more than the result. They check nothing that a caller could have
 * from a user: shapes and dtypes are the caller's own. Nothing is recorded, no version raised: `out` is the node's own until it is done.
 */
import assert from 'node:assert'
import type { BinaryKernel, BinaryOp, CopyKernel, GradKernel, GradOp, MatmulKernel, UnaryKernel, UnaryOp } from '../kernels/table/table.js'
import { currentKernels } from '../tensor/device.js'
import type { Tensor } from '../tensor/tensor.js'
import { allocate, type TypedArray } from '../values/dtype.js'

/** out dense, of x's shape; may be x itself. */
export function unaryInto(op: UnaryOp, x: Tensor, out: Tensor): void {
  assert(out.isContiguous && out.numel === x.numel && out.dtype === x.dtype)
  const kernel = currentKernels()[op][x.dtype] as UnaryKernel<TypedArray>
  if (x.isContiguous) kernel.flat(x.numel, x.storage.host, x.offset, out.storage.host, out.offset, 0, 0)
  else kernel.strided(x.shape, x.storage.host, x.offset, x.strides, out.storage.host, out.offset, 0, 0)
}

/** a, b and out of one shape, of any strides; out may be a or b itself. */
export function binaryInto(op: BinaryOp, a: Tensor, b: Tensor, out: Tensor): void {
  assert(a.numel === out.numel && b.numel === out.numel && a.dtype === out.dtype && b.dtype === out.dtype)
  const kernel = currentKernels()[op][a.dtype] as BinaryKernel<TypedArray, TypedArray>
  const [x, y, z] = [a.storage.host, b.storage.host, out.storage.host]
  if (a.isContiguous && b.isContiguous && out.isContiguous) kernel.flat(out.numel, x, a.offset, 1, y, b.offset, 1, z, out.offset)
  else kernel.strided(out.shape, x, a.offset, a.strides, y, b.offset, b.strides, z, out.offset, out.strides)
}

/** a and out dense, of one shape; out may be a itself. */
export function binaryScalarInto(op: BinaryOp, a: Tensor, scalar: number, out: Tensor): void {
  assert(a.isContiguous && out.isContiguous && a.numel === out.numel && a.dtype === out.dtype)
  const kernel = currentKernels()[op][a.dtype] as BinaryKernel<TypedArray, TypedArray>
  const one = allocate(a.dtype, 1)
  one[0] = scalar
  kernel.flat(out.numel, a.storage.host, a.offset, 1, one, 0, 0, out.storage.host, out.offset)
}

/** Both dense, of one dtype and number of elements, apart from each other. */
export function copyInto(x: Tensor, out: Tensor): void {
  assert(x.isContiguous && out.isContiguous && x.numel === out.numel && x.dtype === out.dtype)
  const kernel = currentKernels().copy[out.dtype] as CopyKernel<TypedArray>
  kernel.flat(out.numel, x.storage.host, x.offset, out.storage.host, out.offset)
}

/** out = g times the slope where the result was y; all dense, of one shape; out may be g itself. */
export function gradInto(op: GradOp, g: Tensor, y: Tensor, out: Tensor): void {
  assert(g.isContiguous && y.isContiguous && out.isContiguous && g.numel === out.numel && y.numel === out.numel)
  const kernel = currentKernels()[op][y.dtype] as GradKernel<TypedArray>
  kernel.flat(out.numel, g.storage.host, g.offset, 1, y.storage.host, y.offset, out.storage.host, out.offset, 0, 0)
}

/** a [m, k], b [k, n] of any strides, out [m, n] dense and neither of them. */
export function matmulInto(a: Tensor, b: Tensor, out: Tensor): void {
  const [m, k] = a.shape as readonly [number, number]
  const n = b.shape[1]!
  assert(b.shape[0] === k && out.isContiguous && out.numel === m * n && a.dtype === b.dtype && out.dtype === a.dtype)
  const kernel = currentKernels().matmul[a.dtype] as MatmulKernel<TypedArray>
  const [aRow, aCol] = a.strides as readonly [number, number]
  const [bRow, bCol] = b.strides as readonly [number, number]
  kernel.run(1, m, n, k, a.storage.host, a.offset, 0, aRow, aCol, b.storage.host, b.offset, 0, bRow, bCol, out.storage.host, out.offset)
}
