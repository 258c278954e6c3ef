/** Products of matrices, losses and sums at indices of the gpujs backend, by `kernels.ts`. */
import { eachRow } from '../elementwise/rows.js'
import { type Factor, matmulOf } from '../table/matmul.js'
import type { ClassLoss, ClassLossBackward, Indexed, Nll, NllBackward } from '../table/operands.js'
import type { KernelCompiler } from './compiler.js'
import { float, floats, into, real } from './kernels.js'
import { CLASS_LOSS, CLASS_LOSS_BACKWARD, MATMUL, NLL, NLL_BACKWARD, SUM_AT_INDICES } from './sources.js'

type F32 = Float32Array

/** Transposes are strides. */
const matmul = (gpu: KernelCompiler) =>
  matmulOf((m, n, k, a, b, out, at) => {
    const constants = { k, aRow: a.row, aCol: a.col, bRow: b.row, bCol: b.col }
    // Two dimensions are a third faster than one here; the result is an array of rows.
    const rows = gpu.run('matmul', MATMUL, [n, m], constants, [spanOf(a, m, k), spanOf(b, k, n)]) as readonly F32[]
    for (let i = 0; i < m; i++) out.set(rows[i]!, at + i * n)
  })

/** The elements from the first to the last, with both. */
function spanOf({ host, at, row, col }: Factor, rows: number, cols: number): F32 {
  return host.subarray(at, at + (rows - 1) * row + (cols - 1) * col + 1) as F32
}

const nll =
  (gpu: KernelCompiler): Nll =>
  (x, target, out) =>
    into(gpu, out, 'nll', NLL, { classes: x.shape[1]! }, [floats(x), floats(target)])

const nllBackward =
  (gpu: KernelCompiler): NllBackward =>
  (grad, target, out) => {
    const constants = { classes: out.shape[1]!, gradStep: grad.numel === 1 ? 0 : 1 }
    into(gpu, out, 'nllBackward', NLL_BACKWARD, constants, [floats(grad), floats(target)])
  }

const classLoss =
  (gpu: KernelCompiler): ClassLoss =>
  (x, target, out) =>
    into(gpu, out, 'classLoss', CLASS_LOSS, { classes: x.shape[1]! }, [floats(x), floats(target)])

const classLossBackward =
  (gpu: KernelCompiler): ClassLossBackward =>
  (grad, x, target, out) => {
    const constants = { classes: out.shape[1]!, gradStep: grad.numel === 1 ? 0 : 1 }
    into(gpu, out, 'classLossBackward', CLASS_LOSS_BACKWARD, constants, [floats(grad), floats(x), floats(target)])
  }

const sumAtIndices =
  (gpu: KernelCompiler, op: keyof typeof SUM_AT_INDICES): Indexed =>
  (x, index, out, _outer, rows, n, inner) => {
    if (x.numel > 0) into(gpu, out, op, SUM_AT_INDICES[op], { rows, n, inner }, [floats(out), floats(x), floats(index)])
  }

export const cells = (gpu: KernelCompiler) => ({
  matmul: float(matmul(gpu)),
  nll: real(nll(gpu)),
  nllBackward: real(nllBackward(gpu)),
  classLoss: real(classLoss(gpu)),
  classLossBackward: real(classLossBackward(gpu)),
  ...eachRow(SUM_AT_INDICES, (_, op) => float(sumAtIndices(gpu, op))),
})
