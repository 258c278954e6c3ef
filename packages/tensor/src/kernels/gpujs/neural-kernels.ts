/** Convolutions, pooling and normalisation on gpujs: one thread per element of the result, over `GpuKernels.launch`. Sources: `neural-sources.ts`. */
import { eachRow } from '../elementwise/rows.js'
import type {
  AvgPoolKernel,
  ChannelNormBackwardKernel,
  ChannelNormKernel,
  ConvKernel,
  LayerNormBackwardKernel,
  LayerNormKernel,
  MaxPoolKernel,
} from '../table/neural.js'
import type { Argument, Constants } from './compiler.js'
import { dense, type GpuKernels, real } from './kernels.js'
import { CONV, NORM, POOL } from './neural-sources.js'

type F32 = Float32Array

function convKernel(gpu: GpuKernels, op: keyof typeof CONV): ConvKernel<F32> {
  return {
    run(g, a, ao, b, bo, out, oo) {
      const [x, y] = [g.n * g.c * g.h * g.w, g.n * g.o * g.oh * g.ow]
      const weight = (g.o * g.c * g.kh * g.kw) / g.groups
      const [aSize, bSize, size] = op === 'conv2d' ? [x, weight, y] : op === 'conv2dInput' ? [y, weight, x] : [x, y, weight]
      if (aSize * bSize * size === 0) out.fill(0, oo, oo + size)
      else {
        const constants = { ...g, cg: g.c / g.groups, og: g.o / g.groups }
        const args = [dense(a, ao, aSize), dense(b, bo, bSize)]
        out.set(
          gpu.launch(op, `${op}|${keyOf(g)}`, () => CONV[op], size, constants, args),
          oo,
        )
      }
    },
  }
}

const keyOf = (g: object): string => Object.values(g).join('|')

function maxPoolKernel(gpu: GpuKernels): MaxPoolKernel<F32> {
  return {
    run(g, x, xo, out, oo, indices, io) {
      const size = g.planes * g.oh * g.ow
      if (size === 0) return
      const args = [dense(x, xo, g.planes * g.h * g.w)]
      out.set(
        gpu.launch('maxPool2d', `maxima|${keyOf(g)}`, () => POOL.maxima, size, { ...g }, args),
        oo,
      )
      indices.set(
        gpu.launch('maxPool2d', `places|${keyOf(g)}`, () => POOL.places, size, { ...g }, args),
        io,
      )
    },
  }
}

function avgPoolKernel(gpu: GpuKernels, op: 'avgPool2d' | 'avgPool2dBackward'): AvgPoolKernel<F32> {
  const source = op === 'avgPool2d' ? POOL.means : POOL.spread
  return {
    run(g, x, xo, out, oo) {
      const [plane, pooled] = [g.planes * g.h * g.w, g.planes * g.oh * g.ow]
      const [from, size] = op === 'avgPool2d' ? [plane, pooled] : [pooled, plane]
      if (size > 0)
        out.set(
          gpu.launch(op, `${op}|${keyOf(g)}`, () => source, size, { ...g }, [dense(x, xo, from)]),
          oo,
        )
    },
  }
}

/** Which elements share statistics, and which a weight; see `NORM`. */
interface Grouping extends Constants {
  readonly elements: number
  readonly stats: number
  readonly weights: number
}

const ofRows = (rows: number, d: number): Grouping => ({
  ...{ elements: rows * d, stats: rows, per: d, many: 1, run: d, step: 0, first: d },
  ...{ weights: d, wPer: 1, wMany: rows, wRun: 1, wStep: d, wFirst: 1 },
})

const ofChannels = (outer: number, c: number, inner: number): Grouping => ({
  ...{ elements: outer * c * inner, stats: c, per: inner, many: outer, run: inner, step: c * inner, first: inner },
  ...{ weights: c, wPer: inner, wMany: outer, wRun: inner, wStep: c * inner, wFirst: inner },
})

/** Runs sources of NORM over one grouping. */
function normaliser(gpu: GpuKernels, op: string, g: Grouping) {
  return (name: keyof typeof NORM, threads: number, ...args: Argument[]): F32 =>
    gpu.launch(op, `norm ${name}|${keyOf(g)}`, () => NORM[name], threads, g, args)
}

const vectorOr = (x: F32 | null, offset: number, n: number, value: number): F32 =>
  x === null ? new Float32Array(n).fill(value) : dense(x, offset, n)

function normKernel(
  gpu: GpuKernels,
  op: string,
  g: Grouping,
  eps: number,
  x: F32,
  w: F32,
  b: F32,
): { out: F32; mean: F32; variance: F32; rstd: F32 } {
  const run = normaliser(gpu, op, g)
  const mean = run('mean', g.stats, x)
  const variance = run('variance', g.stats, x, mean)
  const rstd = run('rstd', g.stats, variance, eps)
  return { out: run('apply', g.elements, x, mean, rstd, w, b), mean, variance, rstd }
}

function normBackward(
  gpu: GpuKernels,
  op: string,
  g: Grouping,
  grad: F32,
  x: F32,
  mean: F32,
  rstd: F32,
  w: F32,
  out: F32,
  weightGrad: F32 | null,
  biasGrad: F32 | null,
): void {
  const run = normaliser(gpu, op, g)
  const first = run('first', g.stats, grad, w)
  const second = run('second', g.stats, grad, w, x, mean, rstd)
  out.set(run('backward', g.elements, grad, w, x, mean, rstd, first, second))
  weightGrad?.set(run('weight', g.weights, grad, x, mean, rstd))
  biasGrad?.set(run('bias', g.weights, grad))
}

function layerNormKernel(gpu: GpuKernels): LayerNormKernel<F32> {
  return {
    run(rows, d, eps, x, xo, w, wo, b, bo, out, mean, rstd) {
      if (rows * d === 0) return
      const found = normKernel(gpu, 'layerNorm', ofRows(rows, d), eps, dense(x, xo, rows * d), vectorOr(w, wo, d, 1), vectorOr(b, bo, d, 0))
      out.set(found.out)
      mean.set(found.mean)
      rstd.set(found.rstd)
    },
  }
}

function layerNormBackwardKernel(gpu: GpuKernels): LayerNormBackwardKernel<F32> {
  return {
    run(rows, d, grad, go, x, xo, mean, rstd, w, wo, out, weightGrad, biasGrad) {
      const n = rows * d
      if (n === 0) {
        weightGrad?.fill(0, 0, d)
        biasGrad?.fill(0, 0, d)
        return
      }
      const [m, r] = [dense(mean, 0, rows), dense(rstd, 0, rows)]
      const weight = vectorOr(w, wo, d, 1)
      normBackward(gpu, 'layerNormBackward', ofRows(rows, d), dense(grad, go, n), dense(x, xo, n), m, r, weight, out, weightGrad, biasGrad)
    },
  }
}

function channelNormKernel(gpu: GpuKernels): ChannelNormKernel<F32> {
  return {
    run(outer, c, inner, eps, x, xo, w, wo, b, bo, out, mean, variance) {
      const n = outer * c * inner
      if (n === 0) return
      const found = normKernel(
        gpu,
        'channelNorm',
        ofChannels(outer, c, inner),
        eps,
        dense(x, xo, n),
        vectorOr(w, wo, c, 1),
        vectorOr(b, bo, c, 0),
      )
      out.set(found.out)
      mean.set(found.mean)
      variance.set(found.variance)
    },
  }
}

function channelNormBackwardKernel(gpu: GpuKernels): ChannelNormBackwardKernel<F32> {
  return {
    run(outer, c, inner, eps, grad, go, x, xo, mean, variance, w, wo, out, weightGrad, biasGrad) {
      const n = outer * c * inner
      if (n === 0) return
      const g = ofChannels(outer, c, inner)
      const rstd = normaliser(gpu, 'channelNormBackward', g)('rstd', c, dense(variance, 0, c), eps)
      const weight = vectorOr(w, wo, c, 1)
      normBackward(
        gpu,
        'channelNormBackward',
        g,
        dense(grad, go, n),
        dense(x, xo, n),
        dense(mean, 0, c),
        rstd,
        weight,
        out,
        weightGrad,
        biasGrad,
      )
    },
  }
}

export const cells = (gpu: GpuKernels) => ({
  ...eachRow(CONV, (_, op) => real(convKernel(gpu, op))),
  maxPool2d: real(maxPoolKernel(gpu)),
  avgPool2d: real(avgPoolKernel(gpu, 'avgPool2d')),
  avgPool2dBackward: real(avgPoolKernel(gpu, 'avgPool2dBackward')),
  layerNorm: real(layerNormKernel(gpu)),
  layerNormBackward: real(layerNormBackwardKernel(gpu)),
  channelNorm: real(channelNormKernel(gpu)),
  channelNormBackward: real(channelNormBackwardKernel(gpu)),
})
