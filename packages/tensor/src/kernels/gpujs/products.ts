/** Products of matrices, losses and sums at indices of the gpujs backend. Below: `kernels.ts`. */
import { eachRow } from '../elementwise/rows.js'
import type { IndexKernel, MatmulKernel, NllBackwardKernel, NllKernel } from '../table/table.js'
import { checkIndexable, dense, float, type GpuKernels, real } from './kernels.js'
import { MATMUL, NLL, NLL_BACKWARD, SUM_AT_INDICES } from './sources.js'

type F32 = Float32Array

/** One kernel run per batch entry; transposes are strides. */
function matmul(gpu: GpuKernels): MatmulKernel<F32> {
  return {
    run: (batch, m, n, k, a, ao, aBatch, aRow, aCol, b, bo, bBatch, bRow, bCol, out, oo) => {
      if (batch * m * n === 0) return
      if (k === 0) {
        out.fill(0, oo, oo + batch * m * n)
        return
      }
      const aSpan = (m - 1) * aRow + (k - 1) * aCol + 1
      const bSpan = (k - 1) * bRow + (n - 1) * bCol + 1
      for (const elements of [aSpan, bSpan, m * n]) checkIndexable('matmul', 'gpujs', elements)
      const key = `matmul|${m}|${n}|${k}|${aRow}|${aCol}|${bRow}|${bCol}`
      const constants = { k, aRow, aCol, bRow, bCol }
      for (let t = 0; t < batch; t++) {
        const args = [dense(a, ao + t * aBatch, aSpan), dense(b, bo + t * bBatch, bSpan)]
        // Two dimensions are a third faster than one here; the result is an array of rows.
        const rows = gpu.compiler.run(key, () => MATMUL, [n, m], constants, args) as readonly F32[]
        const to = oo + t * m * n
        for (let i = 0; i < m; i++) out.set(rows[i]!, to + i * n)
      }
    },
  }
}

function nll(gpu: GpuKernels): NllKernel<F32> {
  return {
    run: (n, classes, x, xo, target, to, out, oo) => {
      if (n === 0) return
      const args = [dense(x, xo, n * classes), dense(target, to, n)]
      out.set(
        gpu.launch('nll', `nll|${n}|${classes}`, () => NLL, n, { classes }, args),
        oo,
      )
    },
  }
}

function nllBackward(gpu: GpuKernels): NllBackwardKernel<F32> {
  return {
    run: (n, classes, grad, go, gradStep, target, to, out, oo) => {
      if (n * classes === 0) return
      const args = [dense(grad, go, gradStep === 0 ? 1 : n), dense(target, to, n)]
      const key = `nllBackward|${n}|${classes}|${gradStep}`
      out.set(
        gpu.launch('nllBackward', key, () => NLL_BACKWARD, n * classes, { classes, gradStep }, args),
        oo,
      )
    },
  }
}

function sumAtIndices(gpu: GpuKernels, op: keyof typeof SUM_AT_INDICES): IndexKernel<F32> {
  return {
    run: (outer, rows, n, inner, x, xo, index, io, out, oo) => {
      const elements = outer * n * inner
      if (elements === 0) return
      const total = outer * rows * inner
      const args = [dense(out, oo, total), dense(x, xo, elements), dense(index, io, op === 'indexAdd' ? n : elements)]
      const constants = { rows, n, inner }
      out.set(
        gpu.launch(op, `${op}|${outer}|${rows}|${n}|${inner}`, () => SUM_AT_INDICES[op], total, constants, args),
        oo,
      )
    },
  }
}

export const cells = (gpu: GpuKernels) => ({
  matmul: float(matmul(gpu)),
  nll: real(nll(gpu)),
  nllBackward: real(nllBackward(gpu)),
  ...eachRow(SUM_AT_INDICES, (_, op) => float(sumAtIndices(gpu, op))),
})
