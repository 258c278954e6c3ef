/**
 * Normalisation of float32 in the wasm backend, along rows and of channels: as many rows at a time as stay in the first-level cache, through kernels.wasm.
 */
import type { ArrayOf } from '../../../values/dtype.js'
import { numelOf } from '../../../values/shape.js'
import { elementsOf, type Norm, type NormBackward, type Operand } from '../../table/operands.js'
import { align, type LazyInstance, type WasmInstance } from '../calls/instance.js'
import { always, by, type OwnCells } from '../calls/own.js'
import { worked } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'

type F32 = ArrayOf['float32']
type Forward = [x: number, weight: number, bias: number, out: number, mean: number, rstd: number, sums: number]
type Backward = [
  ...[grad: number, x: number, mean: number, rstd: number, weight: number, out: number],
  ...[forWeight: number, forBias: number, parts: number, sums: number],
]
/** Rows of k elements; the first is of channel `channel` of c. */
type Channels = [rows: number, channel: number, c: number, k: number]
type Scale = [x: number, high: number, low: number, scale: number, bias: number, out: number]
type Slope = [g: number, x: number, mean: number, first: number, slope: number, scale: number, out: number]
declare module '../calls/instance.js' {
  interface KernelExports {
    readonly layer_norm_f32: (rows: number, d: number, eps: number, ...pointers: Forward) => void
    readonly layer_norm_backward_f32: (rows: number, d: number, ...pointers: Backward) => void
    readonly channel_moments_f32: (...args: [...Channels, x: number, shift: number, sums: number]) => void
    readonly channel_moments_columns_f32: (rows: number, c: number, x: number, shift: number, sums: number) => void
    readonly channel_slopes_f32: (...args: [...Channels, g: number, x: number, mean: number, sums: number]) => void
    readonly channel_slopes_columns_f32: (rows: number, c: number, g: number, x: number, mean: number, sums: number) => void
    readonly channel_scale_f32: (...args: [...Channels, columns: number, ...Scale]) => void
    readonly channel_backward_f32: (...args: [...Channels, columns: number, ...Slope]) => void
  }
}

/** Floats of x that are read at once. */
const CHUNK = 4096
/** The work of an element, for pauses. */
const WORK_PER_ELEMENT = 8
/** The same for the question whether threads share them: some 0.6 ns along rows, and 0.25 in each of the two passes over channels. */
const SHARED_WORK_PER_ELEMENT = 12
const SHARED_WORK_OF_CHANNELS = 5
/** Rows of layerNorm that share their part of the weights' gradients, or that sum would be written for each row. */
const ROWS_MIN = 16
/** `ROWS_IN_FLOAT32` of assembly/rows/norm.ts: rows whose gradients of weights are added in float32. */
const ROWS_IN_FLOAT32 = 32
/** Bytes of the sums of all units up to which threads share layerNorm's derivative. */
const UNIT_SUMS_MAX = 2 ** 24
/** Blocks of channels for each thread. */
const UNITS_PER_THREAD = 4
/** Bytes of two double sums. */
const SUMS = 16

const wanted = (x: Operand | null): F32 | null => (x === null ? null : elementsOf<F32>(x))

/** How many rows of d elements are read at once. */
const rowsAtOnce = (rows: number, d: number, least = 1): number => Math.max(1, Math.min(rows, Math.max(least, Math.floor(CHUNK / d))))

/** The vector, or n times `value` at `scratch`, which changes no bit. */
function vectorOr(instance: WasmInstance, x: Staged | null, n: number, value: number, scratch: number): number {
  if (x !== null) return x.read(0)
  instance.f32.fill(value, scratch / 4, scratch / 4 + n)
  return scratch
}

/** Whether `out` shares none of its n elements with an input, all of them in the memory. In place a unit would read what it writes. */
function isApart(n: number, out: Staged, inputs: readonly Staged[]): boolean {
  return inputs.every((x) => Math.abs(x.at(0) - out.at(0)) >= n * 4)
}

const layerNorm =
  (lazy: LazyInstance): Norm =>
  (x, weight, bias, out, mean, rstd, eps) => {
    const [rows, d] = x.shape as readonly [number, number]
    if (rows === 0) return
    const instance = lazy.get()
    const atOnce = rowsAtOnce(rows, d)
    const w = weight === null ? null : new Staged(instance, weight, d)
    const b = bias === null ? null : new Staged(instance, bias, d)
    const xs = new Staged(instance, x, atOnce * d)
    const outs = new Staged(instance, out, atOnce * d)
    const shares = xs.isDirect && outs.isDirect && isApart(rows * d, outs, [xs]) && instance.shares(rows * d * SHARED_WORK_PER_ELEMENT)
    // Statistics of few rows do not lie in the memory: threads write them side by side, and they are copied at the end.
    const means = new Staged(instance, mean, shares ? rows : atOnce)
    const rstds = new Staged(instance, rstd, shares ? rows : atOnce)
    const own = shares ? instance.threads * SUMS : SUMS
    const [sums, ones, zeros] = Staged.begin(instance, [w, b, xs, outs, means, rstds], own, d * 4, d * 4) as [number, number, number]
    const wAt = vectorOr(instance, w, d, 1, ones)
    const bAt = vectorOr(instance, b, d, -0, zeros)
    if (shares) {
      const [meanAt, rstdAt] = [means.at(0), rstds.at(0)]
      const unit = (part: number, ownSums: number): void => {
        const row = part * atOnce
        const count = Math.min(atOnce, rows - row)
        const statistics = [meanAt + row * 4, rstdAt + row * 4] as const
        instance.kernels.layer_norm_f32(count, d, eps, xs.at(part), wAt, bAt, outs.at(part), ...statistics, ownSums)
        worked(count * d * WORK_PER_ELEMENT)
      }
      const work = atOnce * d * SHARED_WORK_PER_ELEMENT
      instance.share(Math.ceil(rows / atOnce), work, unit, sums, { at: sums + SUMS, stride: SUMS })
      means.written(0)
      rstds.written(0)
      return
    }
    for (let part = 0, row = 0; row < rows; part++, row += atOnce) {
      const count = Math.min(atOnce, rows - row)
      instance.kernels.layer_norm_f32(count, d, eps, xs.read(part), wAt, bAt, outs.at(part), means.at(part), rstds.at(part), sums)
      outs.written(part)
      means.written(part)
      rstds.written(part)
      worked(count * d * WORK_PER_ELEMENT)
    }
  }

const layerNormBackward =
  (lazy: LazyInstance): NormBackward =>
  (grad, x, mean, rstd, weight, out, weightGrad, biasGrad) => {
    const [rows, d] = x.shape as readonly [number, number]
    const instance = lazy.get()
    const { f64, kernels } = instance
    const isAffine = weightGrad !== null || biasGrad !== null
    const most = rowsAtOnce(rows, d, ROWS_MIN)
    const fits = most <= ROWS_IN_FLOAT32 || most % ROWS_IN_FLOAT32 === 0
    const mayShare = fits && instance.shares(rows * d * SHARED_WORK_PER_ELEMENT)
    // A unit has one sum in float32, so that sums of doubles have the order of one thread.
    const atOnce = mayShare ? Math.min(most, ROWS_IN_FLOAT32) : most
    const parts = Math.ceil(rows / atOnce)
    const w = weight === null ? null : new Staged(instance, weight, d)
    const [grads, xs, outs] = [
      new Staged(instance, grad, atOnce * d),
      new Staged(instance, x, atOnce * d),
      new Staged(instance, out, atOnce * d),
    ]
    const isDirect = grads.isDirect && xs.isDirect && outs.isDirect
    const shares = mayShare && isDirect && parts * d * 16 <= UNIT_SUMS_MAX && isApart(rows * d, outs, [grads, xs])
    const statistics = shares ? rows : atOnce
    const [means, rstds] = [new Staged(instance, mean, statistics), new Staged(instance, rstd, statistics)]
    const own = align(SUMS) + align(2 * d * 4)
    const scratch = Staged.begin(
      instance,
      [w, grads, xs, outs, means, rstds],
      shares ? instance.threads * own : own,
      (shares ? parts + 1 : 1) * 2 * d * 8,
      d * 4,
      8,
    )
    const [sums, totals, ones, zeroAt] = scratch as [number, number, number, number]
    f64[zeroAt / 8] = 0
    f64.fill(0, totals / 8, totals / 8 + 2 * d)
    const wAt = vectorOr(instance, w, d, 1, ones)
    const [forWeight, forBias] = isAffine ? [totals, totals + d * 8] : [0, 0]
    if (shares) {
      const [m, r] = [means.read(0), rstds.read(0)]
      const ofUnits = totals + 2 * d * 8
      const unit = (part: number, ownSums: number): void => {
        const row = part * atOnce
        const count = Math.min(atOnce, rows - row)
        const to = ofUnits + part * 2 * d * 8
        if (isAffine) kernels.move_64(1, 2 * d, zeroAt, 0, 0, to, 0, 8)
        const operands = [grads.at(part), xs.at(part), m + row * 4, r + row * 4, wAt, outs.at(part)] as const
        const ofUnit = isAffine ? ([to, to + d * 8] as const) : ([0, 0] as const)
        kernels.layer_norm_backward_f32(count, d, ...operands, ...ofUnit, ownSums + align(SUMS), ownSums)
        worked(count * d * 2 * WORK_PER_ELEMENT)
      }
      instance.share(parts, atOnce * d * SHARED_WORK_PER_ELEMENT, unit, sums, { at: sums + own, stride: own })
      if (isAffine) for (let part = 0; part < parts; part++) kernels.accumulate_f64(2 * d, ofUnits + part * 2 * d * 8, totals)
    } else {
      for (let part = 0, row = 0; row < rows; part++, row += atOnce) {
        const count = Math.min(atOnce, rows - row)
        const [g, at, m, r] = [grads.read(part), xs.read(part), means.read(part), rstds.read(part)]
        kernels.layer_norm_backward_f32(count, d, g, at, m, r, wAt, outs.at(part), forWeight, forBias, sums + align(SUMS), sums)
        outs.written(part)
        worked(count * d * 2 * WORK_PER_ELEMENT)
      }
    }
    if (weightGrad !== null) elementsOf(weightGrad).set(f64.subarray(totals / 8, totals / 8 + d))
    if (biasGrad !== null) elementsOf(biasGrad).set(f64.subarray(totals / 8 + d, totals / 8 + 2 * d))
  }

/** x [outer, c, inner] as rows of k elements: of one channel each, or, where inner is 1, of all channels side by side. */
class ChannelRows {
  readonly c: number
  readonly k: number
  readonly rows: number
  readonly inner: number
  /** Elements of a channel. */
  readonly count: number
  /** 1 where each column is a channel; a kernel then takes every row for one of the same channel. */
  readonly columns: 0 | 1
  readonly atOnce: number

  constructor({ shape }: Operand) {
    const [outer, c] = shape as readonly [number, number]
    const inner = numelOf(shape.slice(2))
    this.c = c
    this.inner = inner
    this.count = outer * inner
    this.columns = inner === 1 ? 1 : 0
    this.k = inner === 1 ? c : inner
    this.rows = inner === 1 ? outer : outer * c
    this.atOnce = rowsAtOnce(this.rows, this.k)
  }

  /** Elements of a part. */
  get size(): number {
    return this.atOnce * this.k
  }

  /**
   * By all threads: calls `f` for a block of channels, for each of its runs of rows. The first element of the run, how many rows it has, and the first one's channel. A channel's
   * runs are one unit, so its sums have the order of one thread. `begin` is called first: a unit must not read what it writes.
   */
  share(
    instance: WasmInstance,
    work: number,
    begin: (channel: number, channels: number) => void,
    f: (at: number, rows: number, channel: number) => void,
  ): void {
    const [outer, { c, k }] = [this.rows / this.c, this]
    const channels = Math.ceil(c / (instance.threads * UNITS_PER_THREAD))
    const unit = (part: number): void => {
      const channel = part * channels
      const count = Math.min(channels, c - channel)
      begin(channel, count)
      for (let o = 0; o < outer; o++) f((o * c + channel) * k, count, channel)
      worked(outer * count * k * work)
    }
    instance.share(Math.ceil(c / channels), outer * channels * k * SHARED_WORK_OF_CHANNELS, unit)
  }

  /** Whether threads share it, with these operands. */
  shares(instance: WasmInstance, out: Staged, inputs: readonly Staged[]): boolean {
    const all = this.rows * this.k
    if (this.columns === 1 || !out.isDirect || !inputs.every((x) => x.isDirect) || !isApart(all, out, inputs)) return false
    return this.c > 1 && instance.shares(all * SHARED_WORK_OF_CHANNELS)
  }

  /** Calls `f` for each part: its number, how many rows it has, and the first one's channel. */
  each(work: number, f: (part: number, rows: number, channel: number) => void): void {
    for (let part = 0, row = 0; row < this.rows; part++, row += this.atOnce) {
      const rows = Math.min(this.atOnce, this.rows - row)
      f(part, rows, this.columns === 1 ? 0 : row % this.c)
      worked(rows * this.k * work)
    }
  }
}

const nothing = (): void => {}
/** Sums of a block of channels become the zero that is at `zeroAt`. */
const zeroSums = (instance: WasmInstance, zeroAt: number, sums: number) => (channel: number, channels: number) =>
  instance.kernels.move_64(1, 2 * channels, zeroAt, 0, 0, sums + channel * SUMS, 0, 8)

const channelNorm =
  (lazy: LazyInstance): Norm =>
  (x, weight, bias, out, mean, variance, eps) => {
    const form = new ChannelRows(x)
    const { c, k, columns, count, inner } = form
    if (x.numel === 0) {
      elementsOf(mean).fill(Number.NaN)
      elementsOf(variance).fill(Number.NaN)
      return
    }
    const instance = lazy.get()
    const { f32, f64, kernels } = instance
    const [xs, outs] = [new Staged(instance, x, form.size), new Staged(instance, out, form.size)]
    const vector = align(c * 4)
    const [sums, shift, zeroAt] = Staged.begin(instance, [xs, outs], c * SUMS, 5 * vector, 8) as [number, number, number]
    const shares = form.shares(instance, outs, [xs])
    const [high, low, scale, zeros] = [shift + vector, shift + 2 * vector, shift + 3 * vector, shift + 4 * vector]
    const host = x.storage.host as F32
    f64.fill(0, sums / 8, sums / 8 + 2 * c)
    f64[zeroAt / 8] = 0
    // A channel's first element is a shift that is near its mean; with a shift of 0 an infinite one has an infinite mean.
    for (let i = 0; i < c; i++) {
      const element = host[x.offset + i * inner]!
      f32[shift / 4 + i] = Number.isFinite(element) ? element : 0
    }
    if (shares)
      form.share(instance, WORK_PER_ELEMENT / 2, zeroSums(instance, zeroAt, sums), (at, rows, channel) =>
        kernels.channel_moments_f32(rows, channel, c, k, xs.at(0) + at * 4, shift, sums),
      )
    else
      form.each(WORK_PER_ELEMENT / 2, (part, rows, channel) => {
        if (columns === 1) kernels.channel_moments_columns_f32(rows, c, xs.read(part), shift, sums)
        else kernels.channel_moments_f32(rows, channel, c, k, xs.read(part), shift, sums)
      })
    const [w, b] = [wanted(weight), wanted(bias)]
    const [means, variances] = [elementsOf<F32>(mean), elementsOf<F32>(variance)]
    for (let i = 0; i < c; i++) {
      const distance = f64[sums / 8 + 2 * i]! / count
      const m = f32[shift / 4 + i]! + distance
      const v = Math.max(0, f64[sums / 8 + 2 * i + 1]! / count - distance * distance)
      means[i] = m
      variances[i] = v
      f32[high / 4 + i] = m
      f32[low / 4 + i] = m - Math.fround(m)
      f32[scale / 4 + i] = (w === null ? 1 : w[i]!) / Math.sqrt(v + eps)
      f32[zeros / 4 + i] = b === null ? -0 : b[i]!
    }
    if (shares)
      form.share(instance, WORK_PER_ELEMENT / 2, nothing, (at, rows, channel) =>
        kernels.channel_scale_f32(rows, channel, c, k, 0, xs.at(0) + at * 4, high, low, scale, zeros, outs.at(0) + at * 4),
      )
    else
      form.each(WORK_PER_ELEMENT / 2, (part, rows, channel) => {
        // Staged parts are read again: the scratch holds one of them.
        const at = xs.read(part)
        kernels.channel_scale_f32(rows, channel, columns === 1 ? 1 : c, k, columns, at, high, low, scale, zeros, outs.at(part))
        outs.written(part)
      })
  }

const channelNormBackward =
  (lazy: LazyInstance): NormBackward =>
  (grad, x, mean, variance, weight, out, weightGrad, biasGrad, eps) => {
    const form = new ChannelRows(x)
    const { c, k, columns, count } = form
    const instance = lazy.get()
    const { f32, f64, kernels } = instance
    const [grads, xs, outs] = [
      new Staged(instance, grad, form.size),
      new Staged(instance, x, form.size),
      new Staged(instance, out, form.size),
    ]
    const vector = align(c * 4)
    const [sums, centre, zeroAt] = Staged.begin(instance, [grads, xs, outs], c * SUMS, 4 * vector, 8) as [number, number, number]
    const shares = form.shares(instance, outs, [grads, xs])
    const [first, slope, scale] = [centre + vector, centre + 2 * vector, centre + 3 * vector]
    f64.fill(0, sums / 8, sums / 8 + 2 * c)
    f64[zeroAt / 8] = 0
    f32.set(elementsOf<F32>(mean), centre / 4)
    if (shares)
      form.share(instance, WORK_PER_ELEMENT, zeroSums(instance, zeroAt, sums), (at, rows, channel) =>
        kernels.channel_slopes_f32(rows, channel, c, k, grads.at(0) + at * 4, xs.at(0) + at * 4, centre, sums),
      )
    else
      form.each(WORK_PER_ELEMENT, (part, rows, channel) => {
        const [g, at] = [grads.read(part), xs.read(part)]
        if (columns === 1) kernels.channel_slopes_columns_f32(rows, c, g, at, centre, sums)
        else kernels.channel_slopes_f32(rows, channel, c, k, g, at, centre, sums)
      })
    const w = wanted(weight)
    const variances = elementsOf<F32>(variance)
    const forWeight = wanted(weightGrad)
    const forBias = wanted(biasGrad)
    for (let i = 0; i < c; i++) {
      const [sum, product] = [f64[sums / 8 + 2 * i]!, f64[sums / 8 + 2 * i + 1]!]
      const r = 1 / Math.sqrt(variances[i]! + eps)
      f32[first / 4 + i] = sum / count
      f32[slope / 4 + i] = (product * r * r) / count
      f32[scale / 4 + i] = r * (w === null ? 1 : w[i]!)
      if (forWeight !== null) forWeight[i] = product * r
      if (forBias !== null) forBias[i] = sum
    }
    if (shares)
      form.share(instance, WORK_PER_ELEMENT, nothing, (at, rows, channel) => {
        const operands = [grads.at(0) + at * 4, xs.at(0) + at * 4, centre, first, slope, scale, outs.at(0) + at * 4] as const
        kernels.channel_backward_f32(rows, channel, c, k, 0, ...operands)
      })
    else
      form.each(WORK_PER_ELEMENT, (part, rows, channel) => {
        const [g, at] = [grads.read(part), xs.read(part)]
        kernels.channel_backward_f32(rows, channel, columns === 1 ? 1 : c, k, columns, g, at, centre, first, slope, scale, outs.at(part))
        outs.written(part)
      })
  }

export const cells = (instance: LazyInstance): OwnCells => ({
  layerNorm: by(always, { float32: layerNorm(instance) }),
  layerNormBackward: by(always, { float32: layerNormBackward(instance) }),
  channelNorm: by(always, { float32: channelNorm(instance) }),
  channelNormBackward: by(always, { float32: channelNormBackward(instance) }),
})
