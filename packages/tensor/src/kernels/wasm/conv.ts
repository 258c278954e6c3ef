/**
 * Convolutions of the wasm backend: columns of the image (im2col) through the tiles of the matrix product, a block of output rows at a time, so that
 * the columns stay in the second-level cache. Depthwise convolutions of float32, whose products would have a single row, go plane by plane instead.
 *
 *     conv2d         y [o, block]      = weight [o, K] · columns [K, block]                 K = c / groups · kh · kw
 *     conv2dInput    columns           = weightᵀ [K, o] · grad [o, block], then col2im       of each group
 *     conv2dWeight   weightᵀ [K, o]  += columns [K, block] · gradᵀ [block, o]
 *
 * Order of summation: KERNELS.md, rule CONV.
 */
import type { ArrayOf } from '../../values/dtype.js'
import type { ConvGeometry, ConvKernel } from '../table/neural.js'
import { align, type LazyInstance, SINGLE_BELOW, type Window } from './instance.js'
import { by, type OwnCells, type Rule } from './own.js'
import { worked } from './pause.js'
import { product, productScratch } from './products.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']
/** The image to its columns, or back. */
type Columns = (c: number, ...rest: [...Window, oy0: number, oy1: number, ow: number, x: number, col: number]) => void
type Depthwise = (...rest: [...Window, oh: number, ow: number, a: number, b: number, out: number]) => void
declare module './instance.js' {
  interface KernelExports {
    readonly im2col_f32: Columns
    readonly im2col_f64: Columns
    readonly col2im_f32: Columns
    readonly col2im_f64: Columns
    readonly accumulate_f32: (n: number, x: number, out: number) => void
    readonly accumulate_f64: (n: number, x: number, out: number) => void
    readonly depthwise_f32: Depthwise
    readonly depthwise_input_f32: Depthwise
    readonly depthwise_weight_f32: Depthwise
  }
}

type Role = 'conv2d' | 'conv2dInput' | 'conv2dWeight'

/** Elements of columns that are made at once: half a megabyte of float32. */
const COLUMNS = 131_072
/** What one of them counts between two pauses. */
const WORK_PER_COLUMN_ELEMENT = 8

class ConvTiles<A extends Real> implements ConvKernel<A> {
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
    // A 1 × 1 window that visits every place reads (and writes) the image itself as columns.
    const isImage = g.kh * g.kw * g.strideH * g.strideW === 1 && g.padH === 0 && g.padW === 0 && g.oh === g.h && g.ow === g.w
    // What lies in the memory is used there, an image of anything else is staged when its turn comes.
    const direct = (array: A, offset: number): number => (array.length < SINGLE_BELOW ? -1 : instance.direct(array, offset))
    const xDirect = role === 'conv2dInput' ? direct(out, oo) : direct(a, ao)
    const yDirect = role === 'conv2d' ? direct(out, oo) : role === 'conv2dInput' ? direct(a, ao) : direct(b, bo)
    const wDirect = role === 'conv2dWeight' ? direct(out, oo) : direct(b, bo)
    const staged = [xDirect < 0 ? xSize * bytes : 0, yDirect < 0 ? ySize * bytes : 0, wDirect < 0 ? weightSize * bytes : 0] as const
    const columnBytes = isImage ? 0 : k * rows * g.ow * bytes
    const [sumBytes, partBytes] = role === 'conv2dWeight' ? [weightSize * bytes, og * k * bytes] : [0, 0]
    // Of each role's largest product; the strides of b are those of the calls below.
    const scratchBytes =
      role === 'conv2d'
        ? productScratch(og, rows * g.ow, k, bytes, bytes)
        : role === 'conv2dInput'
          ? productScratch(k, rows * g.ow, og, bytes, bytes)
          : productScratch(k, og, rows * g.ow, bytes, bytes * plane)
    instance.begin([...staged, columnBytes, sumBytes, partBytes, scratchBytes].reduce((sum, size) => sum + align(size), 0))
    const memory = (bytes === 4 ? instance.f32 : instance.f64) as A
    const [xStaged, yStaged, wStaged] = [instance.take(staged[0]), instance.take(staged[1]), instance.take(staged[2])]
    const [colAt, sumAt, partAt, scratch] = [
      instance.take(columnBytes),
      instance.take(sumBytes),
      instance.take(partBytes),
      instance.take(scratchBytes),
    ]
    const im2col = bytes === 4 ? kernels.im2col_f32 : kernels.im2col_f64
    const col2im = bytes === 4 ? kernels.col2im_f32 : kernels.col2im_f64
    const stage = (array: A, from: number, to: number, size: number): void =>
      memory.set(array.subarray(from, from + size) as never, to / bytes)
    const unstage = (at: number, to: number, size: number): void => out.set(memory.subarray(at / bytes, at / bytes + size) as never, to)
    // Strides in elements.
    const matrix = (pointer: number, row: number, col: number) => ({ pointer, row: row * bytes, col: col * bytes })
    if (role !== 'conv2dWeight' && wDirect < 0) stage(b, bo, wStaged, weightSize)
    const wAt = wDirect < 0 ? wStaged : wDirect

    for (let n = 0; n < g.n; n++) {
      const xAt = xDirect < 0 ? xStaged : xDirect + n * xSize * bytes
      const yAt = yDirect < 0 ? yStaged : yDirect + n * ySize * bytes
      if (xDirect < 0 && role !== 'conv2dInput') stage(a, ao + n * xSize, xAt, xSize)
      if (yDirect < 0 && role === 'conv2dInput') stage(a, ao + n * ySize, yAt, ySize)
      if (yDirect < 0 && role === 'conv2dWeight') stage(b, bo + n * ySize, yAt, ySize)
      if (role === 'conv2dInput' && !isImage) memory.fill(0, xAt / bytes, xAt / bytes + xSize)
      for (let group = 0; group < g.groups; group++) {
        const x = xAt + group * cg * g.h * g.w * bytes
        const y = yAt + group * og * plane * bytes
        const w = wAt + group * og * k * bytes
        for (let oy0 = 0; oy0 < g.oh; oy0 += rows) {
          const oy1 = Math.min(g.oh, oy0 + rows)
          const block = (oy1 - oy0) * g.ow
          const at = oy0 * g.ow * bytes
          const columns = isImage ? matrix(x + at, plane, 1) : matrix(colAt, block, 1)
          if (role !== 'conv2dInput' && !isImage) {
            im2col(cg, g.h, g.w, g.kh, g.kw, g.strideH, g.strideW, g.padH, g.padW, g.dilH, g.dilW, oy0, oy1, g.ow, x, colAt)
            worked(k * block * WORK_PER_COLUMN_ELEMENT)
          }
          if (role === 'conv2d') {
            product(instance, bytes, og, block, k, matrix(w, k, 1), columns, y + at, plane * bytes, scratch)
          } else if (role === 'conv2dInput') {
            product(instance, bytes, k, block, og, matrix(w, 1, k), matrix(y + at, plane, 1), columns.pointer, columns.row, scratch)
            if (!isImage) {
              col2im(cg, g.h, g.w, g.kh, g.kw, g.strideH, g.strideW, g.padH, g.padW, g.dilH, g.dilW, oy0, oy1, g.ow, x, colAt)
              worked(k * block * WORK_PER_COLUMN_ELEMENT)
            }
          } else {
            // Transposed, [k, og]: what must be packed is the gradient, which is smaller than the columns. The first one needs no sum.
            const sum = sumAt + group * og * k * bytes
            const isFirst = n === 0 && oy0 === 0
            product(instance, bytes, k, og, block, columns, matrix(y + at, 1, plane), isFirst ? sum : partAt, og * bytes, scratch)
            if (!isFirst) (bytes === 4 ? kernels.accumulate_f32 : kernels.accumulate_f64)(og * k, partAt, sum)
          }
        }
      }
      if (role === 'conv2d' && yDirect < 0) unstage(yAt, oo + n * ySize, ySize)
      if (role === 'conv2dInput' && xDirect < 0) unstage(xAt, oo + n * xSize, xSize)
    }
    if (role !== 'conv2dWeight') return
    const move = bytes === 4 ? kernels.move_32 : kernels.move_64
    for (let group = 0; group < g.groups; group++) {
      const part = group * og * k * bytes
      move(og, k, sumAt + part, bytes, og * bytes, wAt + part, k * bytes, bytes)
      worked(og * k * WORK_PER_COLUMN_ELEMENT)
    }
    if (wDirect < 0) unstage(wAt, oo, weightSize)
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

const tiles: Rule = () => 'simd tiles'

export function cells(instance: LazyInstance): OwnCells {
  const conv = (role: Role) =>
    by(tiles, {
      float32: new ConvTiles<ArrayOf['float32']>(instance, 'float32', role),
      float64: new ConvTiles<ArrayOf['float64']>(instance, 'float64', role),
    })
  return { conv2d: conv('conv2d'), conv2dInput: conv('conv2dInput'), conv2dWeight: conv('conv2dWeight') }
}
