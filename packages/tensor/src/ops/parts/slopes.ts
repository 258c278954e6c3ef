/**
 * Derivatives with a kernel of their own, which is faster or safer than a composition. Under createGraph they are compositions of recorded operations instead,
 * which can be differentiated again, and hold more in memory. g is the gradient of an operation's result, v its argument or its result.
 */
import { chainsFrom, recorded, records } from '../../chains/record.js'
import type { GradOp, GradRowsOp } from '../../kernels/table/table.js'
import { contiguous } from '../../raw/copy.js'
import { kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { type Ops, rawOperations } from '../define/define.js'
import type { Formula } from '../define/formula.js'
import { fibresAlong, fibresOver } from './fibres.js'

/** @param reads whether v is the operation's argument or its result */
export function slope<Attrs>(
  reads: 'a' | 'result',
  kernel: (g: Tensor, v: Tensor, attrs: Attrs) => Tensor,
  again: (g: Tensor, v: Tensor, ops: Ops, attrs: Attrs) => Tensor,
): Formula<Attrs> {
  return {
    reads: [reads],
    grad: (g, s, ops) => (ops === rawOperations ? kernel(g, s[reads] as Tensor, s.attrs) : again(g, s[reads] as Tensor, ops, s.attrs)),
  }
}

/** Of logSoftmax, y its result: g − eʸ Σ g. */
export function logSoftmaxSlope(g: Tensor, y: Tensor, dim: number, ops: Ops): Tensor {
  if (ops === rawOperations) return gradientRows('logSoftmaxBackward', g, y, dim)
  return ops.sub(g, ops.mul(ops.exp(y), ops.sum(g, dim, true)))
}

/** g times the slope at v, element by element. g is one element repeated, or as v. */
export function gradient(op: GradOp, g: Tensor, v: Tensor, p0: number, p1: number): Tensor {
  const dense = contiguous(v)
  const repeated = !g.isContiguous && g.strides.every((s, d) => s === 0 || g.shape[d] === 1)
  const grad = repeated ? g : contiguous(g)
  const single = v.dtype === 'float32'
  const first = single ? Math.fround(p0) : p0
  const second = single ? Math.fround(p1) : p1
  if (records && v.numel >= chainsFrom) {
    const step = recorded('grad', op, v.dtype, v.dtype, v.shape, [grad, dense], first, second)
    if (step !== null) return step
  }
  const out = Tensor.uninitialized(v.dtype, v.shape, v.storage.memory)
  kernelsFor(v)[op][v.dtype](grad, dense, out, first, second)
  return out
}

/** If it mixes elements along `dim`, or all. */
export function gradientRows(op: GradRowsOp | 'prodBackward' | 'cumprodBackward', g: Tensor, v: Tensor, dim: number | undefined): Tensor {
  const grad = contiguous(g)
  const { dense, outer, k, inner } = dim === undefined ? fibresOver(v, null) : fibresAlong(op, v, dim)
  const out = Tensor.uninitialized(v.dtype, v.shape, v.storage.memory)
  kernelsFor(v)[op][v.dtype](grad, dense, out, outer, k, inner)
  return out
}
