/** Convolutions, pooling and normalisation on gpujs: one thread per element of the result, by `launch`. Sources: `neural-sources.ts`. */
import { numelOf } from '../../values/shape.js'
import { eachRow } from '../elementwise/rows.js'
import { addBias } from '../js/conv.js'
import { type AvgPool, type Conv, elementsOf, type MaxPool, type Norm, type NormBackward, type Operand } from '../table/operands.js'
import type { Argument, Constants, KernelCompiler } from './compiler.js'
import { floats, into, launch, real } from './kernels.js'
import { CONV, NORM, POOL } from './neural-sources.js'

type F32 = Float32Array

const conv =
  (gpu: KernelCompiler, op: keyof typeof CONV): Conv =>
  (a, b, bias, out, g) => {
    if (a.numel * b.numel === 0) elementsOf(out).fill(0)
    else into(gpu, out, op, CONV[op], { ...g, cg: g.c / g.groups, og: g.o / g.groups }, [floats(a), floats(b)])
    if (bias !== null) addBias(bias, out)
  }

const maxPool =
  (gpu: KernelCompiler): MaxPool =>
  (x, out, indices, g) => {
    into(gpu, out, 'maxPool2d', POOL.maxima, { ...g }, [floats(x)])
    into(gpu, indices, 'maxPool2d|places', POOL.places, { ...g }, [floats(x)])
  }

const avgPool =
  (gpu: KernelCompiler, op: 'avgPool2d' | 'avgPool2dBackward', source: string): AvgPool =>
  (x, out, g) =>
    into(gpu, out, op, source, { ...g }, [floats(x)])

/** Which elements share statistics, and which a weight; see `NORM`. */
interface Grouping extends Constants {
  readonly elements: number
  readonly stats: number
  readonly weights: number
}

function ofRows({ shape }: Operand): Grouping {
  const [rows, d] = shape as readonly [number, number]
  return {
    ...{ elements: rows * d, stats: rows, per: d, many: 1, run: d, step: 0, first: d },
    ...{ weights: d, wPer: 1, wMany: rows, wRun: 1, wStep: d, wFirst: 1 },
  }
}

function ofChannels({ shape, numel }: Operand): Grouping {
  const [outer, c] = shape as readonly [number, number]
  const inner = numelOf(shape.slice(2))
  return {
    ...{ elements: numel, stats: c, per: inner, many: outer, run: inner, step: c * inner, first: inner },
    ...{ weights: c, wPer: inner, wMany: outer, wRun: inner, wStep: c * inner, wFirst: inner },
  }
}

/** Runs sources of NORM over one grouping. */
function normaliser(gpu: KernelCompiler, op: string, g: Grouping) {
  return (name: keyof typeof NORM, threads: number, ...args: Argument[]): F32 => launch(gpu, `${op}|${name}`, NORM[name], threads, g, args)
}

const vectorOr = (x: Operand | null, n: number, value: number): F32 => (x === null ? new Float32Array(n).fill(value) : floats(x))

/** The output `spread`: layers' 1 / √(variance + eps), channels' variance. */
type Spread = 'rstd' | 'variance'

const norm =
  (gpu: KernelCompiler, op: string, grouping: (x: Operand) => Grouping, spread: Spread): Norm =>
  (input, weight, bias, out, means, spreads, eps) => {
    if (input.numel === 0) return
    const g = grouping(input)
    const run = normaliser(gpu, op, g)
    const x = floats(input)
    const mean = run('mean', g.stats, x)
    const variance = run('variance', g.stats, x, mean)
    const rstd = run('rstd', g.stats, variance, eps)
    elementsOf(out).set(run('apply', g.elements, x, mean, rstd, vectorOr(weight, g.weights, 1), vectorOr(bias, g.weights, 0)))
    elementsOf(means).set(mean)
    elementsOf(spreads).set(spread === 'rstd' ? rstd : variance)
  }

const normBackward =
  (gpu: KernelCompiler, op: string, grouping: (x: Operand) => Grouping, spread: Spread): NormBackward =>
  (gradient, input, means, spreads, weight, out, weightGrad, biasGrad, eps) => {
    const g = grouping(input)
    const results = [weightGrad, biasGrad].map((x) => (x === null ? null : elementsOf(x)))
    if (g.elements === 0) {
      for (const result of results) result?.fill(0)
      return
    }
    const run = normaliser(gpu, op, g)
    const [grad, x, mean, saved] = [gradient, input, means, spreads].map(floats) as [F32, F32, F32, F32]
    const rstd = spread === 'rstd' ? saved : run('rstd', g.stats, saved, eps)
    const w = vectorOr(weight, g.weights, 1)
    const first = run('first', g.stats, grad, w)
    const second = run('second', g.stats, grad, w, x, mean, rstd)
    elementsOf(out).set(run('backward', g.elements, grad, w, x, mean, rstd, first, second))
    results[0]?.set(run('weight', g.weights, grad, x, mean, rstd))
    results[1]?.set(run('bias', g.weights, grad))
  }

export const cells = (gpu: KernelCompiler) => ({
  ...eachRow(CONV, (_, op) => real(conv(gpu, op))),
  maxPool2d: real(maxPool(gpu)),
  avgPool2d: real(avgPool(gpu, 'avgPool2d', POOL.means)),
  avgPool2dBackward: real(avgPool(gpu, 'avgPool2dBackward', POOL.spread)),
  layerNorm: real(norm(gpu, 'layerNorm', ofRows, 'rstd')),
  layerNormBackward: real(normBackward(gpu, 'layerNormBackward', ofRows, 'rstd')),
  channelNorm: real(norm(gpu, 'channelNorm', ofChannels, 'variance')),
  channelNormBackward: real(normBackward(gpu, 'channelNormBackward', ofChannels, 'variance')),
})
