/**
 * Convolutions by the columns of an image (im2col) and products of matrices, a block of output rows at a time, so that the columns stay in the second-level
 * cache. For `conv.ts`: the gradient of the image with a stride. `library.ts` has all three for a library.
 *
 *     input     columns           = weightᵀ [K, o] · grad [o, block], then col2im       of each group, K = c / groups · kh · kw
 */
import type { ConvGeometry } from '../../table/neural.js'
import type { Matrix } from '../calls/external.js'
import { align, type WasmInstance, type Window } from '../calls/instance.js'
import { worked } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { product, productScratch } from './products.js'

/** The image to its columns, or back. */
type Columns = (c: number, ...rest: [...Window, oy0: number, oy1: number, ow: number, x: number, col: number]) => void
declare module '../calls/instance.js' {
  interface KernelExports {
    readonly im2col_f32: Columns
    readonly im2col_f64: Columns
    readonly col2im_f32: Columns
    readonly col2im_f64: Columns
    readonly accumulate_f32: (n: number, x: number, out: number) => void
    readonly accumulate_f64: (n: number, x: number, out: number) => void
  }
}

/** Elements of columns that are made at once: half a megabyte of float32. */
export const COLUMNS = 131_072
/** The work of one of them, for pauses. */
export const WORK_PER_COLUMN_ELEMENT = 8

export function windowOf(g: ConvGeometry): Window {
  return [g.h, g.w, g.kh, g.kw, g.strideH, g.strideW, g.padH, g.padW, g.dilH, g.dilW]
}

/** Rows of about equal blocks, of at most `most` rows each. */
export function equalRows(all: number, most: number): number {
  return Math.ceil(all / Math.ceil(all / Math.max(1, Math.min(all, most))))
}

/** conv2dInput. */
export function inputByColumns(
  instance: WasmInstance,
  bytes: 4 | 8,
  g: ConvGeometry,
  images: Staged,
  weights: Staged,
  grads: Staged,
): void {
  const { kernels } = instance
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  const k = cg * g.kh * g.kw
  const plane = g.oh * g.ow
  const rows = equalRows(g.oh, Math.floor(COLUMNS / (k * g.ow)))
  // Images are independent; none of them may be staged.
  const columnBytes = align(k * rows * g.ow * bytes)
  const [own, work] = [columnBytes + align(productScratch(k, rows * g.ow, og, bytes, bytes)), g.o * k * plane]
  const shares = g.n > 1 && images.isDirect && grads.isDirect && instance.external === null && instance.shares(g.n * work, own)
  const [scratch, zeroAt] = Staged.begin(instance, [images, grads, weights], shares ? instance.threads * own : own, bytes) as [
    number,
    number,
  ]
  const memory = bytes === 4 ? instance.f32 : instance.f64
  const col2im = bytes === 4 ? kernels.col2im_f32 : kernels.col2im_f64
  const move = bytes === 4 ? kernels.move_32 : kernels.move_64
  const window = windowOf(g)
  const weightAt = weights.read(0)
  memory[zeroAt / bytes] = 0
  /** A matrix whose rows and columns lie so many elements apart. */
  const matrix = (pointer: number, row: number, col: number): Matrix => ({ pointer, row: row * bytes, col: col * bytes })

  const one = (n: number, colAt: number): void => {
    const [imageAt, gradAt] = [images.at(n), grads.read(n)]
    move(1, g.c * g.h * g.w, zeroAt, 0, 0, imageAt, 0, bytes)
    for (let group = 0; group < g.groups; group++) {
      const x = imageAt + group * cg * g.h * g.w * bytes
      const y = gradAt + group * og * plane * bytes
      const w = weightAt + group * og * k * bytes
      // From the last block to the first: an element of the image then meets the window's rows in ascending order, whatever the blocks are.
      for (let oy1 = g.oh; oy1 > 0; oy1 -= rows) {
        const oy0 = Math.max(0, oy1 - rows)
        const block = (oy1 - oy0) * g.ow
        const from = y + oy0 * g.ow * bytes
        product(instance, bytes, k, block, og, matrix(w, 1, k), matrix(from, plane, 1), colAt, block * bytes, colAt + columnBytes)
        col2im(cg, ...window, oy0, oy1, g.ow, x, colAt)
        worked(k * block * WORK_PER_COLUMN_ELEMENT)
      }
    }
  }
  if (shares) instance.share(g.n, work, one, scratch, { at: scratch + own, stride: own })
  else
    for (let n = 0; n < g.n; n++) {
      one(n, scratch)
      images.written(n)
    }
}
