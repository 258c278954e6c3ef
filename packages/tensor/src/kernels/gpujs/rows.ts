/** Reductions, running sums, sorts and softmax of the gpujs backend, for [outer, k, inner]: one thread for each result. Below: `kernels.ts`. */
import type { TypedArray } from '../../values/dtype.js'
import { eachRow } from '../elementwise/rows.js'
import type { ArgsortKernel, GradRowsKernel, GradRowsOp, ReduceKernel, ScanKernel, SoftmaxOp, VarianceKernel } from '../table/table.js'
import { dense, float, type GpuKernels, real } from './kernels.js'
import { DEVIATION, PRODUCT_BACKWARD, RANK, REDUCTION, SCAN, SOFTMAX, SOFTMAX_BACKWARD, VARIANCE } from './sources.js'

type F32 = Float32Array
type ReduceOp = keyof typeof REDUCTION

function reduced(gpu: GpuKernels, op: ReduceOp, outer: number, k: number, inner: number, x: F32): F32 {
  return gpu.launch(op, `${op}|${outer}|${k}|${inner}`, () => REDUCTION[op], outer * inner, { k, inner }, [x])
}

function reduce<A extends TypedArray, O extends TypedArray>(gpu: GpuKernels, op: ReduceOp): ReduceKernel<A, O> {
  return {
    run: (outer, k, inner, x, xo, out, oo) => {
      if (outer * inner === 0) return
      if (k === 0) out.fill(op === 'prod' ? 1 : 0, oo, oo + outer * inner)
      else out.set(reduced(gpu, op, outer, k, inner, dense(x, xo, outer * k * inner)), oo)
    },
  }
}

function variance(gpu: GpuKernels): VarianceKernel<F32> {
  return {
    run: (outer, k, inner, x, xo, out, oo, correction, root) => {
      if (outer * inner === 0) return
      if (k === 0) {
        out.fill(Number.NaN, oo, oo + outer * inner)
        return
      }
      const args = [dense(x, xo, outer * k * inner), Math.max(0, k - correction)]
      out.set(
        gpu.launch(
          'variance',
          `variance|${root}|${outer}|${k}|${inner}`,
          () => (root ? DEVIATION : VARIANCE),
          outer * inner,
          { k, inner },
          args,
        ),
        oo,
      )
    },
  }
}

/** Ranks by gpu.js; putting each index where its rank says moves data. */
function argsort<A extends TypedArray>(gpu: GpuKernels): ArgsortKernel<A> {
  return {
    run: (outer, k, inner, x, xo, out, oo, descending) => {
      const n = outer * k * inner
      if (n === 0) return
      const constants = { k, inner, descending: descending ? 1 : 0 }
      const ranks = gpu.launch('argsort', `argsort|${outer}|${k}|${inner}|${descending}`, () => RANK, n, constants, [dense(x, xo, n)])
      for (let i = 0; i < n; i++) {
        const place = Math.floor(i / inner) % k
        out[oo + i + (ranks[i]! - place) * inner] = place
      }
    },
  }
}

function gradientRows(gpu: GpuKernels, op: GradRowsOp): GradRowsKernel<F32> {
  return {
    run: (outer, k, inner, g, go, y, yo, out, oo) => {
      const n = outer * k * inner
      if (n === 0) return
      const size = `${outer}|${k}|${inner}`
      const constants = { k, inner }
      const grad = dense(g, go, n)
      const result = dense(y, yo, n)
      const sums =
        op === 'logSoftmaxBackward'
          ? reduced(gpu, 'sum', outer, k, inner, grad)
          : gpu.launch(op, `softmaxSums|${size}`, () => SOFTMAX_BACKWARD.softmaxSums, outer * inner, constants, [grad, result])
      out.set(
        gpu.launch(op, `${op}|${size}`, () => SOFTMAX_BACKWARD[op], n, constants, [grad, result, sums]),
        oo,
      )
    },
  }
}

function scan(gpu: GpuKernels, op: keyof typeof SCAN): ScanKernel<F32> {
  return {
    run: (outer, k, inner, x, xo, out, oo) => {
      const n = outer * k * inner
      if (n === 0) return
      out.set(
        gpu.launch(op, `${op}|${outer}|${k}|${inner}`, () => SCAN[op], n, { k, inner }, [dense(x, xo, n)]),
        oo,
      )
    },
  }
}

function productBackward(gpu: GpuKernels, op: keyof typeof PRODUCT_BACKWARD): GradRowsKernel<F32> {
  return {
    run: (outer, k, inner, grad, go, x, xo, out, oo) => {
      const n = outer * k * inner
      if (n === 0) return
      const args = [dense(grad, go, op === 'prodBackward' ? outer * inner : n), dense(x, xo, n)]
      out.set(
        gpu.launch(op, `${op}|${outer}|${k}|${inner}`, () => PRODUCT_BACKWARD[op], n, { k, inner }, args),
        oo,
      )
    },
  }
}

function softmax(gpu: GpuKernels, op: SoftmaxOp): ScanKernel<F32> {
  return {
    run: (outer, k, inner, x, xo, out, oo) => {
      const n = outer * k * inner
      if (n === 0) return
      const input = dense(x, xo, n)
      const size = `${outer}|${k}|${inner}`
      const constants = { k, inner }
      const maxima = reduced(gpu, 'amax', outer, k, inner, input)
      const exponentials = gpu.launch(op, `exponentials|${size}`, () => SOFTMAX.exponentials, n, constants, [input, maxima])
      const sums = reduced(gpu, 'sum', outer, k, inner, exponentials)
      const args = op === 'softmax' ? [exponentials, sums] : [input, maxima, sums]
      out.set(
        gpu.launch(op, `${op}|${size}`, () => SOFTMAX[op], n, constants, args),
        oo,
      )
    },
  }
}

export function cells(gpu: GpuKernels) {
  const ofBool = (op: ReduceOp) => ({ ...float(reduce(gpu, op)), bool: reduce(gpu, op) })
  return {
    sum: float(reduce(gpu, 'sum')),
    prod: float(reduce(gpu, 'prod')),
    amax: ofBool('amax'),
    amin: ofBool('amin'),
    argmax: ofBool('argmax'),
    argmin: ofBool('argmin'),
    argsort: { ...float(argsort(gpu)), bool: argsort(gpu) },
    variance: real(variance(gpu)),
    softmax: real(softmax(gpu, 'softmax')),
    logSoftmax: real(softmax(gpu, 'logSoftmax')),
    softmaxBackward: real(gradientRows(gpu, 'softmaxBackward')),
    logSoftmaxBackward: real(gradientRows(gpu, 'logSoftmaxBackward')),
    ...eachRow(SCAN, (_, op) => float(scan(gpu, op))),
    ...eachRow(PRODUCT_BACKWARD, (_, op) => real(productBackward(gpu, op))),
  }
}
