/**
 * Normalisation of the js backend, in double precision. Order of summation: along rows four sums side by
 * side (element i to sum i mod 4, joined as (s0 + s1) + (s2 + s3)); over channels and for weights one element after the other.
 */
import type { ArrayOf } from '../../values/dtype.js'
import { numelOf } from '../../values/shape.js'
import { elementsOf, type Norm, type NormBackward, type Operand } from '../table/operands.js'
import { realEach } from './cells.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']

const wanted = <A extends Real>(x: Operand | null): A | null => (x === null ? null : elementsOf<A>(x))

function layerNorm<A extends Real>(): Norm {
  return (input, weight, bias, output, mean, rstd, eps) => {
    const d = input.shape[1]!
    const [x, w, b, out] = [elementsOf<A>(input), wanted<A>(weight), wanted<A>(bias), elementsOf<A>(output)]
    const [means, rstds] = [elementsOf<A>(mean), elementsOf<A>(rstd)]
    for (let row = 0, from = 0; row < means.length; row++, from += d) {
      const [m, variance] = momentsOf(d, x, from)
      const r = 1 / Math.sqrt(variance + eps)
      for (let i = 0; i < d; i++) {
        const y = w === null ? (x[from + i]! - m) * r : (x[from + i]! - m) * r * w[i]!
        out[from + i] = b === null ? y : y + b[i]!
      }
      means[row] = m
      rstds[row] = r
    }
  }
}

/** Mean and biased variance. */
function momentsOf(n: number, x: Real, from: number): readonly [mean: number, variance: number] {
  const groups = n - (n % 4)
  let [s0, s1, s2, s3] = [0, 0, 0, 0]
  for (let i = from; i < from + groups; i += 4) {
    s0 += x[i]!
    s1 += x[i + 1]!
    s2 += x[i + 2]!
    s3 += x[i + 3]!
  }
  for (let i = from + groups; i < from + n; i++) s0 += x[i]!
  const mean = (s0 + s1 + (s2 + s3)) / n
  let [v0, v1, v2, v3] = [0, 0, 0, 0]
  for (let i = from; i < from + groups; i += 4) {
    const [a, b, c, d] = [x[i]! - mean, x[i + 1]! - mean, x[i + 2]! - mean, x[i + 3]! - mean]
    v0 += a * a
    v1 += b * b
    v2 += c * c
    v3 += d * d
  }
  for (let i = from + groups; i < from + n; i++) v0 += (x[i]! - mean) * (x[i]! - mean)
  return [mean, (v0 + v1 + (v2 + v3)) / n]
}

function layerNormBackward<A extends Real>(): NormBackward {
  return (gradient, input, mean, rstd, weight, output, weightGrad, biasGrad) => {
    const d = input.shape[1]!
    const [grad, x, w, out] = [elementsOf<A>(gradient), elementsOf<A>(input), wanted<A>(weight), elementsOf<A>(output)]
    const [means, rstds] = [elementsOf<A>(mean), elementsOf<A>(rstd)]
    const forWeight = weightGrad === null ? null : new Float64Array(d)
    const forBias = biasGrad === null ? null : new Float64Array(d)
    for (let row = 0, from = 0; row < means.length; row++, from += d) {
      const m = means[row]!
      const r = rstds[row]!
      let first = 0
      let second = 0
      for (let i = 0; i < d; i++) {
        const gw = w === null ? grad[from + i]! : grad[from + i]! * w[i]!
        first += gw
        second += gw * (x[from + i]! - m)
      }
      first /= d
      second = (second * r * r) / d
      for (let i = 0; i < d; i++) {
        const [g, centred] = [grad[from + i]!, x[from + i]! - m]
        out[from + i] = r * ((w === null ? g : g * w[i]!) - first - centred * second)
        if (forWeight !== null) forWeight[i]! += g * centred * r
        if (forBias !== null) forBias[i]! += g
      }
    }
    wanted(weightGrad)?.set(forWeight!)
    wanted(biasGrad)?.set(forBias!)
  }
}

/** x [outer, c, inner], of which each channel has a weight. */
function channelsOf(x: Operand) {
  const [outer, c] = x.shape as readonly [number, number]
  const inner = numelOf(x.shape.slice(2))
  return { c, inner, count: outer * inner, step: c * inner, end: x.numel }
}

function channelNorm<A extends Real>(): Norm {
  return (input, weight, bias, output, mean, variance, eps) => {
    const { c, inner, count, step, end } = channelsOf(input)
    const [x, w, b, out] = [elementsOf<A>(input), wanted<A>(weight), wanted<A>(bias), elementsOf<A>(output)]
    const [means, variances] = [elementsOf<A>(mean), elementsOf<A>(variance)]
    for (let channel = 0; channel < c; channel++) {
      const first = channel * inner
      let sum = 0
      for (let from = first; from < end; from += step) for (let i = from; i < from + inner; i++) sum += x[i]!
      const m = sum / count
      let squares = 0
      for (let from = first; from < end; from += step) for (let i = from; i < from + inner; i++) squares += (x[i]! - m) * (x[i]! - m)
      const scale = (w === null ? 1 : w[channel]!) / Math.sqrt(squares / count + eps)
      const shift = b === null ? 0 : b[channel]!
      for (let from = first; from < end; from += step) for (let i = from; i < from + inner; i++) out[i] = (x[i]! - m) * scale + shift
      means[channel] = m
      variances[channel] = squares / count
    }
  }
}

function channelNormBackward<A extends Real>(): NormBackward {
  return (gradient, input, mean, variance, weight, output, weightGrad, biasGrad, eps) => {
    const { c, inner, count, step, end } = channelsOf(input)
    const [grad, x, w, out] = [elementsOf<A>(gradient), elementsOf<A>(input), wanted<A>(weight), elementsOf<A>(output)]
    const [means, variances] = [elementsOf<A>(mean), elementsOf<A>(variance)]
    const [forWeight, forBias] = [wanted<A>(weightGrad), wanted<A>(biasGrad)]
    for (let channel = 0; channel < c; channel++) {
      const begin = channel * inner
      const m = means[channel]!
      const r = 1 / Math.sqrt(variances[channel]! + eps)
      let first = 0
      let second = 0
      for (let from = begin; from < end; from += step) {
        for (let i = from; i < from + inner; i++) {
          first += grad[i]!
          second += grad[i]! * (x[i]! - m)
        }
      }
      const scale = r * (w === null ? 1 : w[channel]!)
      const slope = (second * r * r) / count
      for (let from = begin; from < end; from += step) {
        for (let i = from; i < from + inner; i++) out[i] = scale * (grad[i]! - first / count - (x[i]! - m) * slope)
      }
      if (forWeight !== null) forWeight[channel] = second * r
      if (forBias !== null) forBias[channel] = first
    }
  }
}

export const cells = {
  layerNorm: realEach(layerNorm),
  layerNormBackward: realEach(layerNormBackward),
  channelNorm: realEach(channelNorm),
  channelNormBackward: realEach(channelNormBackward),
}
