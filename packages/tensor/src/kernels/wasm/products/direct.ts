/**
 * Convolutions whose columns (im2col) are never written: the kernels of `assembly/products/direct.ts` read the window's elements out of a padded copy of the image, by a
 * table of offsets. For `conv.ts`.
 *
 *     conv2d         y [o, places]     = weight [o, K] · x at the offsets          K = (c / groups, ky, kx)
 *     conv2dInput    x [c, places]     = weight [c, K] · gradient at the offsets   K = (o / groups, ky, kx), for strides of 1
 *     conv2dWeight   weightᵀ [K, o]   += x at the offsets · gradientᵀ [places, o]  image by image
 *
 * Order of summation: KERNELS.md, rule CONV. Places, channels and window elements can be cut at will: a cut shows in no bit.
 */
import type { ConvGeometry } from '../../table/neural.js'
import { align, type WasmInstance } from '../calls/instance.js'
import { rowsAtOnce, worked } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { depthOf, PANEL_BYTES, TILE_BYTES } from './products.js'

type Planes = (
  ...args: [c: number, h: number, w: number, top: number, left: number, rows: number, phases: number, length: number, x: number, to: number]
) => void
type Image = readonly [offsets: number, image: number, imageRow: number, rows: number, cols: number]
type Direct = (
  ...args: [m: number, k: number, b: number, ...Image, out: number, plane: number, bias: number, first: number, tile: number, part: number]
) => void
type Lines = (
  ...args: [m: number, k: number, w: number, wRow: number, ...Image, out: number, plane: number, bias: number, first: number]
) => void
type DirectWeight = (...args: [k: number, n: number, ...Image, b: number, out: number, outRow: number, first: number, tile: number]) => void
declare module '../calls/instance.js' {
  interface KernelExports {
    readonly planes_f32: Planes
    readonly planes_f64: Planes
    readonly direct_f32: Direct
    readonly direct_f64: Direct
    readonly lines_f32: Lines
    readonly lines_f64: Lines
    readonly direct_weight_f32: DirectWeight
    readonly direct_weight_f64: DirectWeight
  }
}

/** Places of the result that are computed at once: a panel of as many gradients stays in the first-level cache. */
const PLACES = 640
/** Bytes of the sums of all images up to which threads share them. */
const SUMS_MAX = 2 ** 26
/** The work of an element that is copied, for pauses. */
const WORK_PER_COPY = 8

/** The padded copy of one group of an image, and the places that windows have there. */
interface Copy {
  readonly channels: number
  readonly h: number
  readonly w: number
  /** Rows and columns of padding; below 0, as many are left out. */
  readonly top: number
  readonly left: number
  /** Each channel has so many rows, each row `phases` parts of `length` elements. */
  readonly rows: number
  readonly phases: number
  readonly length: number
  /** Extents of the result, and rows of the copy from one of its rows to the next. */
  readonly outRows: number
  readonly outCols: number
  readonly step: number
}

/** The copy of the image, for conv2d and conv2dWeight. */
function imageCopy(g: ConvGeometry): Copy {
  return {
    channels: g.c / g.groups,
    h: g.h,
    w: g.w,
    top: g.padH,
    left: g.padW,
    rows: (g.oh - 1) * g.strideH + (g.kh - 1) * g.dilH + 1,
    phases: g.strideW,
    length: g.ow + Math.floor(((g.kw - 1) * g.dilW) / g.strideW),
    outRows: g.oh,
    outCols: g.ow,
    step: g.strideH,
  }
}

/** The copy of the gradient, over which the turned window moves, for conv2dInput. */
function gradientCopy(g: ConvGeometry): Copy {
  const high = (g.kh - 1) * g.dilH
  const wide = (g.kw - 1) * g.dilW
  return {
    channels: g.o / g.groups,
    h: g.oh,
    w: g.ow,
    top: high - g.padH,
    left: wide - g.padW,
    rows: g.h + high,
    phases: 1,
    length: g.w + wide,
    outRows: g.h,
    outCols: g.w,
    step: 1,
  }
}

const elementsOf = ({ channels, rows, phases, length }: Copy): number => channels * rows * phases * length

/** Makes the copy of the group at `x`, and returns where it lies: at `to`, or at x if nothing is padded. */
function place(instance: WasmInstance, bytes: 4 | 8, copy: Copy, x: number, to: number): number {
  const { channels, h, w, top, left, rows, phases, length } = copy
  if (top === 0 && left === 0 && phases === 1 && rows === h && length === w) return x
  const { planes_f32, planes_f64 } = instance.kernels
  ;(bytes === 4 ? planes_f32 : planes_f64)(channels, h, w, top, left, rows, phases, length, x, to)
  worked(elementsOf(copy) * WORK_PER_COPY)
  return to
}

/** Writes the offset in bytes of each (channel, ky, kx). `isTurned`: the window's last element comes first. */
function writeOffsets({ i32 }: WasmInstance, at: number, copy: Copy, g: ConvGeometry, isTurned: boolean, bytes: number): void {
  const { channels, rows, phases, length } = copy
  let i = at >>> 2
  for (let c = 0; c < channels; c++) {
    for (let ky = 0; ky < g.kh; ky++) {
      for (let kx = 0; kx < g.kw; kx++) {
        const y = (isTurned ? g.kh - 1 - ky : ky) * g.dilH
        const x = (isTurned ? g.kw - 1 - kx : kx) * g.dilW
        i32[i++] = (((c * rows + y) * phases + (x % phases)) * length + Math.floor(x / phases)) * bytes
      }
    }
  }
}

/** A part of the result's places: `rows` whole rows, or a part of one row. */
type Part = (y: number, x: number, rows: number, cols: number) => void

/** In ascending order. */
function eachPart({ outRows, outCols }: Copy, part: Part): void {
  const atOnce = Math.max(1, Math.floor(PLACES / outCols))
  for (let y = 0; y < outRows; y += atOnce) {
    const rows = Math.min(atOnce, outRows - y)
    for (let x = 0; x < outCols; x += PLACES) part(y, x, rows, Math.min(PLACES, outCols - x))
  }
}

/** conv2d, or conv2dInput with strides of 1, which has no bias: `from` is x or the gradient, `out` is y or x. */
export function direct(
  instance: WasmInstance,
  isInput: boolean,
  bytes: 4 | 8,
  g: ConvGeometry,
  from: Staged,
  weight: Staged,
  bias: Staged | null,
  out: Staged,
): void {
  const { kernels } = instance
  const { packB } = instance.products[bytes]
  const tiles = bytes === 4 ? kernels.direct_f32 : kernels.direct_f64
  const lines = bytes === 4 ? kernels.lines_f32 : kernels.lines_f64
  const copy = isInput ? gradientCopy(g) : imageCopy(g)
  const { channels, outCols } = copy
  const m = (isInput ? g.c : g.o) / g.groups
  const k = channels * g.kh * g.kw
  const depth = depthOf(k, bytes)
  const imageRow = copy.step * copy.phases * copy.length * bytes
  const plane = copy.outRows * outCols * bytes
  const width = PANEL_BYTES / bytes
  const panels = Math.ceil(m / width) * PANEL_BYTES
  // A tile would compute twice as many channels as there are, or more.
  const isNarrow = 2 * m <= width
  const work = g.groups * m * k * copy.outRows * outCols
  // Images are independent; none of them may be staged.
  const copyBytes = align(elementsOf(copy) * bytes)
  const own = copyBytes + align(2 * TILE_BYTES) + align((PLACES + 3) * PANEL_BYTES)
  const shares = g.n > 1 && from.isDirect && out.isDirect && instance.shares(g.n * work, own)
  const [scratch, offsets, packed, biases, turned] = Staged.begin(
    instance,
    [from, weight, bias, out],
    shares ? instance.threads * own : own,
    k * 4,
    isNarrow ? 0 : g.groups * k * panels,
    g.groups * panels,
    isInput ? g.groups * m * k * bytes : 0,
  ) as [number, number, number, number, number]
  writeOffsets(instance, offsets, copy, g, isInput, bytes)
  const weights = weight.read(0)
  if (isInput) turnWeights(instance, bytes, g, weights, turned)
  const matrices = isInput ? turned : weights
  for (let group = 0; group < g.groups && !isNarrow; group++) {
    for (let p = 0; p < k; p += depth) {
      packB(Math.min(depth, k - p), m, matrices + (group * m * k + p) * bytes, bytes, k * bytes, packed + (group * k + p) * panels)
    }
    worked(m * k)
  }
  if (bias !== null) copyBiases(instance, bytes, g, bias.read(0), biases, panels)

  const one = (n: number, copyAt: number): void => {
    const tile = copyAt + copyBytes
    const part = tile + align(2 * TILE_BYTES)
    const [source, result] = [from.read(n), out.at(n)]
    for (let group = 0; group < g.groups; group++) {
      const image = place(instance, bytes, copy, source + group * channels * copy.h * copy.w * bytes, copyAt)
      eachPart(copy, (y, x, rows, cols) => {
        const at = image + y * imageRow + x * bytes
        const to = result + group * m * plane + (y * outCols + x) * bytes
        for (let p = 0; p < k; p += depth) {
          const kc = Math.min(depth, k - p)
          const atOnce = Math.max(width, Math.floor(rowsAtOnce(kc * rows * cols) / width) * width)
          for (let i = 0; i < m; i += atOnce) {
            const mc = Math.min(atOnce, m - i)
            const added = bias !== null && p + kc === k ? biases + group * panels + i * bytes : 0
            const first = p === 0 ? 1 : 0
            if (isNarrow) {
              const w = matrices + (group * m * k + p) * bytes
              lines(mc, kc, w, k * bytes, offsets + p * 4, at, imageRow, rows, cols, to, plane, added, first)
            } else {
              const b = packed + (group * k + p) * panels + i * kc * bytes
              tiles(mc, kc, b, offsets + p * 4, at, imageRow, rows, cols, to + i * plane, plane, added, first, tile, part)
            }
            worked(mc * kc * rows * cols)
          }
        }
      })
    }
  }
  if (shares) {
    instance.share(g.n, work, one, scratch, { at: scratch + own, stride: own })
    return
  }
  for (let n = 0; n < g.n; n++) {
    one(n, scratch)
    out.written(n)
  }
}

/** The biases of each group at a multiple of `panels`: tiles read those of whole panels. */
function copyBiases(instance: WasmInstance, bytes: 4 | 8, g: ConvGeometry, from: number, to: number, panels: number): void {
  const { u8 } = instance
  const size = (g.o / g.groups) * bytes
  for (let group = 0; group < g.groups; group++) u8.copyWithin(to + group * panels, from + group * size, from + (group + 1) * size)
}

/** The weight [o, c, window] of each group as [c, o, window]: rows of conv2dInput's products are input channels. */
function turnWeights(instance: WasmInstance, bytes: 4 | 8, g: ConvGeometry, weights: number, to: number): void {
  const move = bytes === 4 ? instance.kernels.move_32 : instance.kernels.move_64
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  const window = g.kh * g.kw * bytes
  for (let o = 0; o < g.o; o++) {
    const group = Math.floor(o / og)
    move(cg, g.kh * g.kw, weights + o * cg * window, window, bytes, to + (group * cg * og + (o % og)) * window, og * window, bytes)
  }
}

/** conv2dWeight. */
export function directWeight(instance: WasmInstance, bytes: 4 | 8, g: ConvGeometry, x: Staged, weight: Staged, grad: Staged): void {
  const { kernels } = instance
  const { packB } = instance.products[bytes]
  const tiles = bytes === 4 ? kernels.direct_weight_f32 : kernels.direct_weight_f64
  const accumulate = bytes === 4 ? kernels.accumulate_f32 : kernels.accumulate_f64
  const move = bytes === 4 ? kernels.move_32 : kernels.move_64
  const copy = imageCopy(g)
  const { channels, outCols } = copy
  const og = g.o / g.groups
  const k = channels * g.kh * g.kw
  const imageRow = copy.step * copy.phases * copy.length * bytes
  const plane = copy.outRows * outCols * bytes
  const width = PANEL_BYTES / bytes
  const size = g.o * k * bytes
  const work = g.o * k * copy.outRows * outCols
  // Each image has a sum of its own then. They are added in order, as by one thread.
  const copyBytes = align(elementsOf(copy) * bytes)
  const own = copyBytes + PLACES * PANEL_BYTES + TILE_BYTES
  const shares = g.n > 1 && x.isDirect && grad.isDirect && g.n * size <= SUMS_MAX && instance.shares(g.n * work, own)
  const [scratch, offsets, sums] = Staged.begin(
    instance,
    [x, weight, grad],
    shares ? instance.threads * own : own,
    k * 4,
    (shares ? g.n : 2) * size,
  ) as [number, number, number]
  writeOffsets(instance, offsets, copy, g, false, bytes)

  const one = (n: number, copyAt: number, to: number): void => {
    const panel = copyAt + copyBytes
    const tile = panel + PLACES * PANEL_BYTES
    const [source, gradients] = [x.read(n), grad.read(n)]
    for (let group = 0; group < g.groups; group++) {
      const image = place(instance, bytes, copy, source + group * channels * g.h * g.w * bytes, copyAt)
      for (let o = 0; o < og; o += width) {
        const nc = Math.min(width, og - o)
        const from = gradients + (group * og + o) * plane
        eachPart(copy, (y, x0, rows, cols) => {
          packB(rows * cols, nc, from + (y * outCols + x0) * bytes, bytes, plane, panel)
          const at = image + y * imageRow + x0 * bytes
          const isFirst = y === 0 && x0 === 0 ? 1 : 0
          const atOnce = rowsAtOnce(width * rows * cols)
          for (let i = 0; i < k; i += atOnce) {
            const kc = Math.min(atOnce, k - i)
            const out = to + ((group * k + i) * og + o) * bytes
            tiles(kc, nc, offsets + i * 4, at, imageRow, rows, cols, panel, out, og * bytes, isFirst, tile)
            worked(kc * width * rows * cols)
          }
        })
      }
    }
  }
  if (shares) instance.share(g.n, work, (n, ownScratch) => one(n, ownScratch, sums + n * size), scratch, { at: scratch + own, stride: own })
  for (let n = 0; n < g.n; n++) {
    const part = shares ? sums + n * size : sums + Math.min(n, 1) * size
    if (!shares) one(n, scratch, part)
    if (n > 0) accumulate(g.o * k, part, sums)
  }
  for (let group = 0; group < g.groups; group++) {
    const from = group * og * k * bytes
    move(og, k, sums + from, bytes, og * bytes, weight.at(0) + from, k * bytes, bytes)
    worked(og * k * WORK_PER_COPY)
  }
  weight.written(0)
}
