/**
 * Operations that write their result into an existing tensor: for nodes with many steps that know the tensors of all of them, such as the layers
 * of recurrent networks. A fresh tensor for every small result costs more than the result. They do not check users' mistakes: shapes and
 * dtypes are the caller's own. Nothing is recorded, no version raised: `out` is the node's own until it is done.
 */
import assert from 'node:assert'
import type { BinaryOp, GradOp, UnaryOp } from '../kernels/table/table.js'
import { kernelsFor } from '../tensor/device.js'
import type { Tensor } from '../tensor/tensor.js'
import { scalarTensor } from './elementwise.js'

/** out dense, of x's shape; may be x itself. */
export function unaryInto(op: UnaryOp, x: Tensor, out: Tensor): void {
  assert(out.isContiguous && out.numel === x.numel && out.dtype === x.dtype)
  kernelsFor(x)[op][x.dtype](x, out, 0, 0)
}

/** a, b and out of one shape, of any strides; out may be a or b itself. */
export function binaryInto(op: BinaryOp, a: Tensor, b: Tensor, out: Tensor): void {
  assert(a.numel === out.numel && b.numel === out.numel && a.dtype === out.dtype && b.dtype === out.dtype)
  kernelsFor(a)[op][a.dtype](a, b, out)
}

/** a and out dense, of one shape; out may be a itself. */
export function binaryScalarInto(op: BinaryOp, a: Tensor, scalar: number, out: Tensor): void {
  assert(a.isContiguous && out.isContiguous && a.numel === out.numel && a.dtype === out.dtype)
  kernelsFor(a)[op][a.dtype](a, scalarTensor(scalar, a.dtype, a.storage.memory), out)
}

/** Both dense, of one dtype and number of elements, apart from each other. */
export function copyInto(x: Tensor, out: Tensor): void {
  assert(x.isContiguous && out.isContiguous && x.numel === out.numel && x.dtype === out.dtype)
  kernelsFor(out).copy[out.dtype](x, out)
}

/** out = g times the slope where the result was y; all dense, of one shape; out may be g itself. */
export function gradInto(op: GradOp, g: Tensor, y: Tensor, out: Tensor): void {
  assert(g.isContiguous && y.isContiguous && out.isContiguous && g.numel === out.numel && y.numel === out.numel)
  kernelsFor(y)[op][y.dtype](g, y, out, 0, 0)
}

/** a [m, k], b [k, n] of any strides, out [m, n] dense and neither of them. */
export function matmulInto(a: Tensor, b: Tensor, out: Tensor): void {
  const [m, k] = a.shape as readonly [number, number]
  const n = b.shape[1]!
  assert(b.shape[0] === k && out.isContiguous && out.numel === m * n && a.dtype === b.dtype && out.dtype === a.dtype)
  kernelsFor(a).matmul[a.dtype](a, b, out)
}
