/**
 * Normalisation of the js backend, in double precision. Order of summation: along rows four sums side by
 * side (element i to sum i mod 4, joined as (s0 + s1) + (s2 + s3)); over channels and for weights one element after the other.
 */
import type { ArrayOf } from '../../values/dtype.js'
import type { ChannelNormBackwardKernel, ChannelNormKernel, LayerNormBackwardKernel, LayerNormKernel } from '../table/neural.js'
import { realEach } from './cells.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']

function layerNorm<A extends Real>(): LayerNormKernel<A> {
  return {
    run(rows, d, eps, x, xo, w, wo, b, bo, out, mean, rstd) {
      for (let row = 0, from = xo, to = 0; row < rows; row++, from += d, to += d) {
        const [m, variance] = momentsOf(d, x, from)
        const r = 1 / Math.sqrt(variance + eps)
        if (w !== null && b !== null) for (let i = 0; i < d; i++) out[to + i] = (x[from + i]! - m) * r * w[wo + i]! + b[bo + i]!
        else if (w !== null) for (let i = 0; i < d; i++) out[to + i] = (x[from + i]! - m) * r * w[wo + i]!
        else if (b !== null) for (let i = 0; i < d; i++) out[to + i] = (x[from + i]! - m) * r + b[bo + i]!
        else for (let i = 0; i < d; i++) out[to + i] = (x[from + i]! - m) * r
        mean[row] = m
        rstd[row] = r
      }
    },
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

function layerNormBackward<A extends Real>(): LayerNormBackwardKernel<A> {
  return {
    run(rows, d, grad, go, x, xo, mean, rstd, w, wo, out, weightGrad, biasGrad) {
      const forWeight = weightGrad === null ? null : new Float64Array(d)
      const forBias = biasGrad === null ? null : new Float64Array(d)
      for (let row = 0, g = go, from = xo, to = 0; row < rows; row++, g += d, from += d, to += d) {
        const m = mean[row]!
        const r = rstd[row]!
        let first = 0
        let second = 0
        for (let i = 0; i < d; i++) {
          const gw = w === null ? grad[g + i]! : grad[g + i]! * w[wo + i]!
          first += gw
          second += gw * (x[from + i]! - m)
        }
        first /= d
        second = (second * r * r) / d
        for (let i = 0; i < d; i++) {
          const gw = w === null ? grad[g + i]! : grad[g + i]! * w[wo + i]!
          out[to + i] = r * (gw - first - (x[from + i]! - m) * second)
        }
        if (forWeight !== null) for (let i = 0; i < d; i++) forWeight[i]! += grad[g + i]! * (x[from + i]! - m) * r
        if (forBias !== null) for (let i = 0; i < d; i++) forBias[i]! += grad[g + i]!
      }
      if (forWeight !== null) weightGrad!.set(forWeight)
      if (forBias !== null) biasGrad!.set(forBias)
    },
  }
}

function channelNorm<A extends Real>(): ChannelNormKernel<A> {
  return {
    run(outer, c, inner, eps, x, xo, w, wo, b, bo, out, mean, variance) {
      const count = outer * inner
      for (let channel = 0; channel < c; channel++) {
        let sum = 0
        for (let o = 0, from = xo + channel * inner; o < outer; o++, from += c * inner) for (let i = 0; i < inner; i++) sum += x[from + i]!
        const m = sum / count
        let squares = 0
        for (let o = 0, from = xo + channel * inner; o < outer; o++, from += c * inner) {
          for (let i = 0; i < inner; i++) squares += (x[from + i]! - m) * (x[from + i]! - m)
        }
        const scale = (w === null ? 1 : w[wo + channel]!) / Math.sqrt(squares / count + eps)
        const shift = b === null ? 0 : b[bo + channel]!
        for (let o = 0, at = channel * inner; o < outer; o++, at += c * inner) {
          for (let i = 0; i < inner; i++) out[at + i] = (x[xo + at + i]! - m) * scale + shift
        }
        mean[channel] = m
        variance[channel] = squares / count
      }
    },
  }
}

function channelNormBackward<A extends Real>(): ChannelNormBackwardKernel<A> {
  return {
    run(outer, c, inner, eps, grad, go, x, xo, mean, variance, w, wo, out, weightGrad, biasGrad) {
      const count = outer * inner
      for (let channel = 0; channel < c; channel++) {
        const m = mean[channel]!
        const r = 1 / Math.sqrt(variance[channel]! + eps)
        let first = 0
        let second = 0
        for (let o = 0, at = channel * inner; o < outer; o++, at += c * inner) {
          for (let i = 0; i < inner; i++) {
            first += grad[go + at + i]!
            second += grad[go + at + i]! * (x[xo + at + i]! - m)
          }
        }
        const scale = r * (w === null ? 1 : w[wo + channel]!)
        const slope = (second * r * r) / count
        for (let o = 0, at = channel * inner; o < outer; o++, at += c * inner) {
          for (let i = 0; i < inner; i++) out[at + i] = scale * (grad[go + at + i]! - first / count - (x[xo + at + i]! - m) * slope)
        }
        if (weightGrad !== null) weightGrad[channel] = second * r
        if (biasGrad !== null) biasGrad[channel] = first
      }
    },
  }
}

export const cells = {
  layerNorm: realEach(layerNorm),
  layerNormBackward: realEach(layerNormBackward),
  channelNorm: realEach(channelNorm),
  channelNormBackward: realEach(channelNormBackward),
}
