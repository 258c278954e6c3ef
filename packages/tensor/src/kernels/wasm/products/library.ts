/**
 * Convolutions where a library computes the products: by columns of the image (im2col), a block of output rows at a time. Where the window moves down row by row, the
 * columns have one row of the window alone, and each of its rows, a tap, finds its columns `dilH` rows further down in them: a product for each tap, added up. For `conv.ts`.
 *
 *     forward   y [o, block]       = Σ weight of the tap [o, K] · columns of the tap [K, block]          K = c / groups · rows of a tap · kw
 *     input     columns of the tap += weight of the tap ᵀ [K, o] · grad [o, block], then col2im           of each group
 *     weight    weight of the tap ᵀ [K, o] += columns of the tap [K, block] · gradᵀ [block, o]
 */
import assert from 'node:assert'
import type { ConvGeometry } from '../../table/neural.js'
import { CALL_FROM, type ExternalProduct, type Matrix } from '../calls/external.js'
import type { WasmInstance, Window } from '../calls/instance.js'
import { worked } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { COLUMNS, equalRows, WORK_PER_COLUMN_ELEMENT } from './columns.js'

/** Forward, and the gradients of the image and of the weight. */
export type Role = 'forward' | 'input' | 'weight'

/** Multiplications up to which OpenBLAS copies neither operand of a product: two thirds of the time, where one side is short. */
const SMALL_PRODUCT = 1_000_000
/** Elements of a tap below which the columns have the whole window. */
const TAP_MIN = 16

/** How the window is cut, and the block of output rows. */
interface Form {
  readonly cg: number
  readonly og: number
  readonly taps: number
  /** Rows of the window in a tap, and elements of a tap. */
  readonly high: number
  readonly k: number
  /** Rows of the columns beyond a block's own. */
  readonly more: number
  readonly rows: number
}

/** By taps, unless the blocks' further rows make these columns more than those of the whole window: taps that lie farther apart than a block has rows. */
function formOf(g: ConvGeometry): Form {
  if (g.strideH === 1 && (g.c / g.groups) * g.kw >= TAP_MIN) {
    const byTaps = cut(g, g.kh)
    if (Math.ceil(g.oh / byTaps.rows) * g.dilH <= g.oh) return byTaps
  }
  return cut(g, 1)
}

function cut(g: ConvGeometry, taps: number): Form {
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  const high = g.kh / taps
  const k = cg * high * g.kw
  const more = (taps - 1) * g.dilH
  const row = k * g.ow
  // With the further rows, the columns may be twice as many.
  const fitting = Math.min(Math.floor(COLUMNS / row), Math.floor((2 * COLUMNS) / row) - more)
  const small = Math.floor(SMALL_PRODUCT / (row * og))
  return { cg, og, taps, high, k, more, rows: equalRows(g.oh, small === 0 ? fitting : Math.min(small, fitting)) }
}

/** Whether the library's calls would be large enough. */
export function paysByLibrary(g: ConvGeometry): boolean {
  const { k, og, rows } = formOf(g)
  return k * og * rows * g.ow >= CALL_FROM
}

export function byLibrary(
  instance: WasmInstance,
  library: ExternalProduct,
  role: Role,
  bytes: 4 | 8,
  g: ConvGeometry,
  images: Staged,
  weights: Staged,
  bias: Staged | null,
  results: Staged,
): void {
  const { kernels } = instance
  const { cg, og, taps, high, k, more, rows } = formOf(g)
  const plane = g.oh * g.ow
  const [tapSize, isWeight] = [g.o * k, role === 'weight']
  const [colAt, tapsAt, turned, zeroAt] = Staged.begin(
    instance,
    [images, results, weights, bias],
    k * (rows + more) * g.ow * bytes,
    taps > 1 || isWeight ? taps * tapSize * bytes : 0,
    isWeight ? og * rows * g.ow * bytes : 0,
    bytes,
  ) as [number, number, number, number]
  const memory = bytes === 4 ? instance.f32 : instance.f64
  const [im2col, col2im] = bytes === 4 ? [kernels.im2col_f32, kernels.col2im_f32] : [kernels.im2col_f64, kernels.col2im_f64]
  const [move, axpy] = bytes === 4 ? [kernels.move_32, kernels.axpy_f32] : [kernels.move_64, kernels.axpy_f64]
  const window: Window = [g.h, g.w, high, g.kw, g.strideH, g.strideW, g.padH, g.padW, g.dilH, g.dilW]
  memory[zeroAt / bytes] = 0
  /** A matrix whose rows and columns lie so many elements apart. */
  const matrix = (pointer: number, row: number, col: number): Matrix => ({ pointer, row: row * bytes, col: col * bytes })
  const weightAt = isWeight ? weights.at(0) : weights.read(0)
  const biasAt = bias === null ? 0 : bias.read(0)
  // The weight [o, c, kh, kw] as [tap, o, c, rows of a tap, kw].
  const [part, whole] = [high * g.kw * bytes, g.kh * g.kw * bytes]
  const tapsOf = taps === 1 ? weightAt : tapsAt
  if (taps > 1 && !isWeight) {
    for (let t = 0; t < taps; t++)
      move(g.o * cg, part / bytes, weightAt + t * part, whole, bytes, tapsAt + t * tapSize * bytes, part, bytes)
  }

  for (let n = 0; n < g.n; n++) {
    const imageAt = role === 'input' ? images.at(n) : images.read(n)
    const resultAt = role === 'forward' ? results.at(n) : results.read(n)
    if (role === 'input') memory.fill(0, imageAt / bytes, imageAt / bytes + g.c * g.h * g.w)
    for (let group = 0; group < g.groups; group++) {
      const x = imageAt + group * cg * g.h * g.w * bytes
      for (let oy0 = 0; oy0 < g.oh; oy0 += rows) {
        const oy1 = Math.min(g.oh, oy0 + rows)
        const block = (oy1 - oy0) * g.ow
        const width = block + more * g.ow
        const y = resultAt + (group * og * plane + oy0 * g.ow) * bytes
        // The first tap writes the block's own rows.
        if (role === 'input') move(k, width - block, zeroAt, 0, 0, colAt + block * bytes, width * bytes, bytes)
        else im2col(cg, ...window, oy0, oy1 + more, g.ow, x, colAt)
        if (isWeight) move(block, og, y, bytes, plane * bytes, turned, og * bytes, bytes)
        for (let t = 0; t < taps; t++) {
          const columns = matrix(colAt + t * g.dilH * g.ow * bytes, width, 1)
          const w = (isWeight ? tapsAt : tapsOf) + (t * tapSize + group * og * k) * bytes
          const isComputed =
            role === 'forward'
              ? library(bytes, og, block, k, matrix(w, k, 1), columns, y, plane * bytes, t > 0)
              : role === 'input'
                ? library(bytes, k, block, og, matrix(w, 1, k), matrix(y, plane, 1), columns.pointer, columns.row, t > 0)
                : library(bytes, k, og, block, columns, matrix(turned, og, 1), w, og * bytes, n > 0 || oy0 > 0)
          assert(isComputed, 'a library refused a product of dense rows')
        }
        if (role === 'input') col2im(cg, ...window, oy0, oy1 + more, g.ow, x, colAt)
        worked(k * width * WORK_PER_COLUMN_ELEMENT)
      }
    }
    if (role === 'forward') {
      if (biasAt > 0) axpy(g.o, plane, 1, biasAt, bytes, 0, resultAt, plane * bytes)
      results.written(n)
    } else if (role === 'input') images.written(n)
  }
  if (!isWeight) return
  // The sums [tap, group, c, rows of a tap, kw, o] as the weight [o, c, kh, kw].
  for (let t = 0; t < taps; t++) {
    for (let group = 0; group < g.groups; group++) {
      const [from, to] = [tapsAt + (t * tapSize + group * og * k) * bytes, weightAt + group * og * cg * whole + t * part]
      for (let i = 0; i < high * g.kw; i++) move(og, cg, from + i * og * bytes, bytes, part * og, to + i * bytes, cg * whole, whole)
    }
  }
  weights.written(0)
}
