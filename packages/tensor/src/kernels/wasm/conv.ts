/**
 * Convolutions of the wasm backend: columns of the image (im2col) through the tiles of the matrix product, a block of output rows at a time, so that
 * the columns stay in the second-level cache. Depthwise convolutions of float32, whose products would have a single row, go plane by plane instead.
 *
 *     conv2d         y [o, block]      = weight [o, K] · columns [K, block]                 K = c / groups · kh · kw
 *     conv2dInput    columns           = weightᵀ [K, o] · grad [o, block], then col2im       of each group
 *     conv2dWeight   weight          += grad [o, block] · columnsᵀ [block, K]
 *
 * Order of summation: KERNELS.md, rule CONV.
 */
import type { ArrayOf } from '../../dtype.js'
import type { ConvGeometry, ConvKernel } from '../neural.js'
import { align, type LazyInstance } from './instance.js'
import { product, productScratch } from './matmul.js'
import { worked } from './pause.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']
type Role = 'conv2d' | 'conv2dInput' | 'conv2dWeight'

/** Elements of columns that are made at once: half a megabyte of float32. */
const COLUMNS = 131_072

export class ConvTiles<A extends Real> implements ConvKernel<A> {
  readonly #instance: LazyInstance
  readonly #role: Role
  readonly #bytes: 4 | 8

  constructor(instance: LazyInstance, dtype: 'float32' | 'float64', role: Role) {
    this.#instance = instance
    this.#role = role
    this.#bytes = dtype === 'float32' ? 4 : 8
  }

  run(g: ConvGeometry, a: A, ao: number, b: A, bo: number, out: A, oo: number): void {
    const role = this.#role
    const sizes = { x: g.n * g.c * g.h * g.w, weight: (g.o * g.c * g.kh * g.kw) / g.groups, y: g.n * g.o * g.oh * g.ow }
    const length = role === 'conv2d' ? sizes.y : role === 'conv2dInput' ? sizes.x : sizes.weight
    if (length === 0) return
    if (sizes.x === 0 || sizes.weight === 0 || sizes.y === 0) {
      out.fill(0, oo, oo + length)
      return
    }
    const depthwise = this.#bytes === 4 && g.groups === g.c && g.c > 1
    if (depthwise) this.#depthwise(g, a as Float32Array, ao, b as Float32Array, bo, out as Float32Array, oo)
    else this.#columns(g, a, ao, b, bo, out, oo)
  }

  #columns(g: ConvGeometry, a: A, ao: number, b: A, bo: number, out: A, oo: number): void {
    const instance = this.#instance.get()
    const { kernels } = instance
    const bytes = this.#bytes
    const role = this.#role
    const [cg, og] = [g.c / g.groups, g.o / g.groups]
    const k = cg * g.kh * g.kw
    const plane = g.oh * g.ow
    const [xSize, ySize, weightSize] = [g.c * g.h * g.w, g.o * plane, g.o * k]
    const rows = Math.min(g.oh, Math.max(1, Math.floor(COLUMNS / (k * g.ow))))
    // A 1 × 1 window that visits every place reads the image itself as columns.
    const isImage = g.kh * g.kw * g.strideH * g.strideW === 1 && g.padH === 0 && g.padW === 0 && g.oh === g.h && g.ow === g.w
    const blockBytes = rows * g.ow * Math.max(k, role === 'conv2d' ? og : 0) * bytes
    const partBytes = (role === 'conv2d' ? og * rows * g.ow : role === 'conv2dWeight' ? og * k : 0) * bytes
    // Of each role's largest product; the strides of b are those of the calls below.
    const scratchBytes =
      role === 'conv2d'
        ? productScratch(og, rows * g.ow, k, bytes, bytes)
        : role === 'conv2dInput'
          ? productScratch(k, rows * g.ow, og, bytes, bytes)
          : productScratch(og, k, rows * g.ow, bytes, bytes * rows * g.ow)
    instance.begin(
      align(xSize * bytes) + align(ySize * bytes) + align(weightSize * bytes) + align(blockBytes) + align(partBytes) + align(scratchBytes),
    )
    const memory = (bytes === 4 ? instance.f32 : instance.f64) as A
    const [xAt, yAt, wAt] = [instance.take(xSize * bytes), instance.take(ySize * bytes), instance.take(weightSize * bytes)]
    const [colAt, partAt, scratch] = [instance.take(blockBytes), instance.take(partBytes), instance.take(scratchBytes)]
    const im2col = bytes === 4 ? kernels.im2col_f32 : kernels.im2col_f64
    const col2im = bytes === 4 ? kernels.col2im_f32 : kernels.col2im_f64
    const multiply = (
      m: number,
      n: number,
      p: number,
      l: number,
      lRow: number,
      lCol: number,
      r: number,
      rRow: number,
      rCol: number,
      to: number,
    ): void => {
      const left = { pointer: l, row: lRow * bytes, col: lCol * bytes }
      const right = { pointer: r, row: rRow * bytes, col: rCol * bytes }
      product(instance, bytes, m, n, p, left, right, to, n * bytes, scratch)
    }
    if (role === 'conv2dWeight') memory.fill(0, wAt / bytes, wAt / bytes + weightSize)
    else memory.set(b.subarray(bo, bo + weightSize) as never, wAt / bytes)

    for (let n = 0; n < g.n; n++) {
      if (role === 'conv2dInput') {
        memory.set(a.subarray(ao + n * ySize, ao + (n + 1) * ySize) as never, yAt / bytes)
        memory.fill(0, xAt / bytes, xAt / bytes + xSize)
      } else {
        memory.set(a.subarray(ao + n * xSize, ao + (n + 1) * xSize) as never, xAt / bytes)
        if (role === 'conv2dWeight') memory.set(b.subarray(bo + n * ySize, bo + (n + 1) * ySize) as never, yAt / bytes)
      }
      for (let group = 0; group < g.groups; group++) {
        const x = xAt + group * cg * g.h * g.w * bytes
        const y = yAt + group * og * plane * bytes
        const w = wAt + group * og * k * bytes
        for (let oy0 = 0; oy0 < g.oh; oy0 += rows) {
          const oy1 = Math.min(g.oh, oy0 + rows)
          const block = (oy1 - oy0) * g.ow
          const at = oy0 * g.ow * bytes
          const columns = (rowStep: number, colStep: number): void =>
            im2col(
              cg,
              g.h,
              g.w,
              g.kh,
              g.kw,
              g.strideH,
              g.strideW,
              g.padH,
              g.padW,
              g.dilH,
              g.dilW,
              oy0,
              oy1,
              g.ow,
              x,
              colAt,
              rowStep,
              colStep,
            )
          if (role === 'conv2d') {
            if (isImage) multiply(og, block, k, w, k, 1, x + at, plane, 1, partAt)
            else {
              columns(block, 1)
              multiply(og, block, k, w, k, 1, colAt, block, 1, partAt)
            }
            const to = oo + n * ySize + group * og * plane + oy0 * g.ow
            for (let o = 0; o < og; o++) {
              const from = partAt / bytes + o * block
              out.set(memory.subarray(from, from + block) as never, to + o * plane)
            }
          } else if (role === 'conv2dInput') {
            multiply(k, block, og, w, 1, k, y + at, plane, 1, colAt)
            col2im(cg, g.h, g.w, g.kh, g.kw, g.strideH, g.strideW, g.padH, g.padW, g.dilH, g.dilW, oy0, oy1, g.ow, x, colAt)
          } else {
            columns(block, 1)
            multiply(og, k, block, y + at, plane, 1, colAt, 1, block, partAt)
            if (bytes === 4) kernels.accumulate_f32(og * k, partAt, w)
            else kernels.accumulate_f64(og * k, partAt, w)
          }
        }
      }
      if (role === 'conv2dInput') out.set(memory.subarray(xAt / bytes, xAt / bytes + xSize) as never, oo + n * xSize)
    }
    if (role === 'conv2dWeight') out.set(memory.subarray(wAt / bytes, wAt / bytes + weightSize) as never, oo)
  }

  /** Output channel o reads input channel o / multiplier, with a weight [kh, kw] of its own. */
  #depthwise(g: ConvGeometry, a: Float32Array, ao: number, b: Float32Array, bo: number, out: Float32Array, oo: number): void {
    const instance = this.#instance.get()
    const { kernels } = instance
    const role = this.#role
    const multiplier = g.o / g.c
    const [xPlane, yPlane, window] = [g.h * g.w, g.oh * g.ow, g.kh * g.kw]
    instance.begin(align(xPlane * 4) + align(yPlane * 4) + align(g.o * window * 4))
    const { f32 } = instance
    const [x, y, weight] = [instance.take(xPlane * 4), instance.take(yPlane * 4), instance.take(g.o * window * 4)]
    if (role === 'conv2dWeight') f32.fill(0, weight / 4, weight / 4 + g.o * window)
    else f32.set(b.subarray(bo, bo + g.o * window), weight / 4)
    for (let n = 0; n < g.n; n++) {
      for (let c = 0; c < g.c; c++) {
        const xFrom = (n * g.c + c) * xPlane
        if (role === 'conv2dInput') f32.fill(0, x / 4, x / 4 + xPlane)
        else f32.set(a.subarray(ao + xFrom, ao + xFrom + xPlane), x / 4)
        for (let o = c * multiplier; o < (c + 1) * multiplier; o++) {
          const yFrom = (n * g.o + o) * yPlane
          const w = weight + o * window * 4
          if (role === 'conv2dInput') f32.set(a.subarray(ao + yFrom, ao + yFrom + yPlane), y / 4)
          else if (role === 'conv2dWeight') f32.set(b.subarray(bo + yFrom, bo + yFrom + yPlane), y / 4)
          const [from, by, to] = role === 'conv2d' ? [x, w, y] : role === 'conv2dInput' ? [y, w, x] : [x, y, w]
          kernels[DEPTHWISE[role]](g.h, g.w, g.kh, g.kw, g.strideH, g.strideW, g.padH, g.padW, g.dilH, g.dilW, g.oh, g.ow, from, by, to)
          worked(yPlane * window)
          if (role === 'conv2d') out.set(f32.subarray(y / 4, y / 4 + yPlane), oo + yFrom)
        }
        if (role === 'conv2dInput') out.set(f32.subarray(x / 4, x / 4 + xPlane), oo + xFrom)
      }
    }
    if (role === 'conv2dWeight') out.set(f32.subarray(weight / 4, weight / 4 + g.o * window), oo)
  }
}

const DEPTHWISE = { conv2d: 'depthwise_f32', conv2dInput: 'depthwise_input_f32', conv2dWeight: 'depthwise_weight_f32' } as const
