/**
 * Convolutions by the columns of an image (im2col) and products of matrices, a block of output rows at a time, so that the columns stay in the second-level
 * cache: all three where a library computes the products, else the gradient of the image with a stride alone. For `conv.ts`.
 *
 *     forward   y [o, block]      = weight [o, K] · columns [K, block]                 K = c / groups · kh · kw
 *     input     columns           = weightᵀ [K, o] · grad [o, block], then col2im       of each group
 *     weight    weight [o, K]   += grad [o, block] · columnsᵀ [block, K]
 */
import type { ConvGeometry } from '../../table/neural.js'
import type { Matrix } from '../calls/external.js'
import type { WasmInstance, Window } from '../calls/instance.js'
import { worked } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { product, productScratch } from './products.js'

/** Forward, and the gradients of the image and of the weight. */
export type Role = 'forward' | 'input' | 'weight'

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
const COLUMNS = 131_072
/** The work of one of them, for pauses. */
const WORK_PER_COLUMN_ELEMENT = 8

export function windowOf(g: ConvGeometry): Window {
  return [g.h, g.w, g.kh, g.kw, g.strideH, g.strideW, g.padH, g.padW, g.dilH, g.dilW]
}

export function byColumns(
  instance: WasmInstance,
  role: Role,
  bytes: 4 | 8,
  g: ConvGeometry,
  images: Staged,
  weights: Staged,
  bias: Staged | null,
  results: Staged,
): void {
  const { kernels } = instance
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  const k = cg * g.kh * g.kw
  const plane = g.oh * g.ow
  const rows = Math.min(g.oh, Math.max(1, Math.floor(COLUMNS / (k * g.ow))))
  const sums = role === 'weight'
  const scratchBytes =
    role === 'forward'
      ? productScratch(og, rows * g.ow, k, bytes, bytes)
      : role === 'input'
        ? productScratch(k, rows * g.ow, og, bytes, bytes)
        : productScratch(og, k, rows * g.ow, bytes, bytes * rows * g.ow)
  const [colAt, partAt, scratch] = Staged.begin(
    instance,
    [images, results, weights, bias],
    k * rows * g.ow * bytes,
    sums ? og * k * bytes : 0,
    scratchBytes,
  ) as [number, number, number]
  const memory = bytes === 4 ? instance.f32 : instance.f64
  const [im2col, col2im] = bytes === 4 ? [kernels.im2col_f32, kernels.col2im_f32] : [kernels.im2col_f64, kernels.col2im_f64]
  const [accumulate, axpy] = bytes === 4 ? [kernels.accumulate_f32, kernels.axpy_f32] : [kernels.accumulate_f64, kernels.axpy_f64]
  const window = windowOf(g)
  const at = (operand: Staged, i: number, isOutput: boolean): number => (isOutput ? operand.at(i) : operand.read(i))
  const weightAt = at(weights, 0, sums)
  const biasAt = bias === null ? 0 : bias.read(0)
  /** A matrix whose rows and columns lie so many elements apart. */
  const matrix = (pointer: number, row: number, col: number): Matrix => ({ pointer, row: row * bytes, col: col * bytes })

  for (let n = 0; n < g.n; n++) {
    const [imageAt, resultAt] = [at(images, n, role === 'input'), at(results, n, role === 'forward')]
    if (role === 'input') memory.fill(0, imageAt / bytes, imageAt / bytes + g.c * g.h * g.w)
    for (let group = 0; group < g.groups; group++) {
      const x = imageAt + group * cg * g.h * g.w * bytes
      const y = resultAt + group * og * plane * bytes
      const w = weightAt + group * og * k * bytes
      // From the last block to the first: an element of the image then meets the window's rows in ascending order, whatever the blocks are.
      for (let oy1 = g.oh; oy1 > 0; oy1 -= rows) {
        const oy0 = Math.max(0, oy1 - rows)
        const block = (oy1 - oy0) * g.ow
        const from = oy0 * g.ow * bytes
        const columns = matrix(colAt, block, 1)
        if (role !== 'input') {
          im2col(cg, ...window, oy0, oy1, g.ow, x, colAt)
          worked(k * block * WORK_PER_COLUMN_ELEMENT)
        }
        if (role === 'forward') {
          product(instance, bytes, og, block, k, matrix(w, k, 1), columns, y + from, plane * bytes, scratch)
        } else if (role === 'input') {
          product(instance, bytes, k, block, og, matrix(w, 1, k), matrix(y + from, plane, 1), columns.pointer, columns.row, scratch)
          col2im(cg, ...window, oy0, oy1, g.ow, x, colAt)
          worked(k * block * WORK_PER_COLUMN_ELEMENT)
        } else {
          const isFirst = n === 0 && oy1 === g.oh
          const turned = matrix(columns.pointer, 1, columns.row / bytes)
          product(instance, bytes, og, k, block, matrix(y + from, plane, 1), turned, isFirst ? w : partAt, k * bytes, scratch)
          if (!isFirst) accumulate(og * k, partAt, w)
        }
      }
    }
    if (role === 'forward') {
      if (biasAt > 0) axpy(g.o, plane, 1, biasAt, bytes, 0, resultAt, plane * bytes)
      results.written(n)
    } else if (role === 'input') images.written(n)
  }
  if (sums) weights.written(0)
}
