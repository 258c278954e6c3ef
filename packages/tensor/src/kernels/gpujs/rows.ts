/** Reductions, running sums, sorts and softmax of the gpujs backend, for [outer, k, inner]: one thread for each result, by `kernels.ts`. */
import { eachRow } from '../elementwise/rows.js'
import { type Argsort, elementsOf, type GradRows, type Rows, type Variance } from '../table/operands.js'
import type { GradRowsOp, SoftmaxOp } from '../table/table.js'
import type { KernelCompiler } from './compiler.js'
import { float, floats, into, launch, real } from './kernels.js'
import { DEVIATION, PRODUCT_BACKWARD, RANK, REDUCTION, SCAN, SOFTMAX, SOFTMAX_BACKWARD, VARIANCE } from './sources.js'

type F32 = Float32Array

const reduce =
  (gpu: KernelCompiler, op: keyof typeof REDUCTION): Rows =>
  (x, out, _outer, k, inner) => {
    if (k === 0) elementsOf(out).fill(op === 'prod' ? 1 : 0)
    else into(gpu, out, op, REDUCTION[op], { k, inner }, [floats(x)])
  }

const variance =
  (gpu: KernelCompiler): Variance =>
  (x, out, _outer, k, inner, correction, root) => {
    const [name, source] = root ? ['variance|root', DEVIATION] : ['variance', VARIANCE]
    if (k === 0) elementsOf(out).fill(Number.NaN)
    else into(gpu, out, name, source, { k, inner }, [floats(x), Math.max(0, k - correction)])
  }

/** Ranks by gpu.js; putting each index where its rank says moves data. */
const argsort =
  (gpu: KernelCompiler): Argsort =>
  (x, out, _outer, k, m, inner, descending) => {
    const n = x.numel
    if (n === 0) return
    const ranks = launch(gpu, 'argsort', RANK, n, { k, inner, descending: descending ? 1 : 0 }, [floats(x)])
    for (let i = 0; i < n; i++) {
      const place = Math.floor(i / inner) % k
      const first = out.offset + Math.floor(i / (k * inner)) * m * inner + (i % inner)
      if (ranks[i]! < m) out.storage.host![first + ranks[i]! * inner] = place
    }
  }

const scan =
  (gpu: KernelCompiler, op: keyof typeof SCAN): Rows =>
  (x, out, _outer, k, inner) =>
    into(gpu, out, op, SCAN[op], { k, inner }, [floats(x)])

const productBackward =
  (gpu: KernelCompiler, op: keyof typeof PRODUCT_BACKWARD): GradRows =>
  (grad, x, out, _outer, k, inner) =>
    into(gpu, out, op, PRODUCT_BACKWARD[op], { k, inner }, [floats(grad), floats(x)])

const softmax =
  (gpu: KernelCompiler, op: SoftmaxOp): Rows =>
  (x, out, outer, k, inner) => {
    if (out.numel === 0) return
    const step = (name: string, source: string, threads: number, ...args: F32[]) =>
      launch(gpu, `${op}|${name}`, source, threads, { k, inner }, args)
    const input = floats(x)
    const maxima = step('maxima', REDUCTION.amax, outer * inner, input)
    const exponentials = step('exponentials', SOFTMAX.exponentials, out.numel, input, maxima)
    const sums = step('sums', REDUCTION.sum, outer * inner, exponentials)
    into(gpu, out, op, SOFTMAX[op], { k, inner }, op === 'softmax' ? [exponentials, sums] : [input, maxima, sums])
  }

const softmaxBackward =
  (gpu: KernelCompiler, op: GradRowsOp): GradRows =>
  (g, y, out, outer, k, inner) => {
    if (out.numel === 0) return
    const [source, args] = op === 'softmaxBackward' ? [SOFTMAX_BACKWARD.sums, [floats(g), floats(y)]] : [REDUCTION.sum, [floats(g)]]
    const sums = launch(gpu, `${op}|sums`, source, outer * inner, { k, inner }, args)
    into(gpu, out, op, SOFTMAX_BACKWARD[op], { k, inner }, [floats(g), floats(y), sums])
  }

export function cells(gpu: KernelCompiler) {
  const ofBool = (op: keyof typeof REDUCTION) => ({ ...float(reduce(gpu, op)), bool: reduce(gpu, op) })
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
    softmaxBackward: real(softmaxBackward(gpu, 'softmaxBackward')),
    logSoftmaxBackward: real(softmaxBackward(gpu, 'logSoftmaxBackward')),
    ...eachRow(SCAN, (_, op) => float(scan(gpu, op))),
    ...eachRow(PRODUCT_BACKWARD, (_, op) => real(productBackward(gpu, op))),
  }
}
