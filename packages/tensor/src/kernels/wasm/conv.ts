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
import type { ConvGeometry } from '../table/neural.js'
import { type Conv, elementsOf, type Operand } from '../table/operands.js'
import type { LazyInstance, WasmInstance, Window } from './instance.js'
import { by, type OwnCells, type Rule } from './own.js'
import { worked } from './pause.js'
import { product, productScratch } from './products.js'
import { Staged } from './staged.js'

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
/** The work of one of them, for pauses. */
const WORK_PER_COLUMN_ELEMENT = 8

function windowOf(g: ConvGeometry): Window {
  return [g.h, g.w, g.kh, g.kw, g.strideH, g.strideW, g.padH, g.padW, g.dilH, g.dilW]
}

/** The two inputs and the output by what they are. */
type Operands = Readonly<Record<'x' | 'weight' | 'y', Operand>>

function byRole(role: Role, a: Operand, b: Operand, out: Operand): Operands {
  if (role === 'conv2d') return { x: a, weight: b, y: out }
  return role === 'conv2dInput' ? { x: out, weight: b, y: a } : { x: a, weight: out, y: b }
}

const conv =
  (lazy: LazyInstance, role: Role, bytes: 4 | 8): Conv =>
  (a, b, out, g) => {
    if (out.numel === 0) return
    if (a.numel === 0 || b.numel === 0) elementsOf(out).fill(0)
    else if (bytes === 4 && g.groups === g.c && g.c > 1) depthwise(lazy.get(), role, g, byRole(role, a, b, out))
    else columns(lazy.get(), role, bytes, g, byRole(role, a, b, out))
  }

function columns(instance: WasmInstance, role: Role, bytes: 4 | 8, g: ConvGeometry, { x, weight, y }: Operands): void {
  const { kernels } = instance
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  const k = cg * g.kh * g.kw
  const plane = g.oh * g.ow
  const rows = Math.min(g.oh, Math.max(1, Math.floor(COLUMNS / (k * g.ow))))
  // A 1 × 1 window that visits every place reads (and writes) the image itself as columns.
  const isImage = g.kh * g.kw * g.strideH * g.strideW === 1 && g.padH === 0 && g.padW === 0 && g.oh === g.h && g.ow === g.w
  // Operands in the memory are used there; of others each image is staged when its turn comes.
  const [xs, ys] = [new Staged(instance, x, g.c * g.h * g.w), new Staged(instance, y, g.o * plane)]
  const weights = new Staged(instance, weight, g.o * k)
  const output = { conv2d: ys, conv2dInput: xs, conv2dWeight: weights }[role]
  const address = (operand: Staged, i: number): number => (operand === output ? operand.at(i) : operand.read(i))
  const sums = role === 'conv2dWeight'
  // Of each role's largest product; the strides of b are those of the calls below.
  const scratchBytes =
    role === 'conv2d'
      ? productScratch(og, rows * g.ow, k, bytes, bytes)
      : role === 'conv2dInput'
        ? productScratch(k, rows * g.ow, og, bytes, bytes)
        : productScratch(k, og, rows * g.ow, bytes, bytes * plane)
  const [colAt, sumAt, partAt, scratch] = Staged.begin(
    instance,
    [xs, ys, weights],
    isImage ? 0 : k * rows * g.ow * bytes,
    sums ? g.o * k * bytes : 0,
    sums ? og * k * bytes : 0,
    scratchBytes,
  ) as [number, number, number, number]
  const memory = bytes === 4 ? instance.f32 : instance.f64
  const [im2col, col2im] = bytes === 4 ? [kernels.im2col_f32, kernels.col2im_f32] : [kernels.im2col_f64, kernels.col2im_f64]
  // The image to its columns, or back.
  const turn = (role === 'conv2dInput' ? col2im : im2col).bind(null, cg, ...windowOf(g))
  // Strides in elements.
  const matrix = (pointer: number, row: number, col: number) => ({ pointer, row: row * bytes, col: col * bytes })
  const wAt = address(weights, 0)

  for (let n = 0; n < g.n; n++) {
    const [xAt, yAt] = [address(xs, n), address(ys, n)]
    if (role === 'conv2dInput' && !isImage) memory.fill(0, xAt / bytes, xAt / bytes + g.c * g.h * g.w)
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
          turn(oy0, oy1, g.ow, x, colAt)
          worked(k * block * WORK_PER_COLUMN_ELEMENT)
        }
        if (role === 'conv2d') {
          product(instance, bytes, og, block, k, matrix(w, k, 1), columns, y + at, plane * bytes, scratch)
        } else if (role === 'conv2dInput') {
          product(instance, bytes, k, block, og, matrix(w, 1, k), matrix(y + at, plane, 1), columns.pointer, columns.row, scratch)
          if (!isImage) {
            turn(oy0, oy1, g.ow, x, colAt)
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
    if (!sums) output.written(n)
  }
  if (!sums) return
  const move = bytes === 4 ? kernels.move_32 : kernels.move_64
  for (let group = 0; group < g.groups; group++) {
    const part = group * og * k * bytes
    move(og, k, sumAt + part, bytes, og * bytes, wAt + part, k * bytes, bytes)
    worked(og * k * WORK_PER_COLUMN_ELEMENT)
  }
  output.written(0)
}

/** float32, plane by plane: output channel o reads input channel o / multiplier, with a weight [kh, kw] of its own. */
function depthwise(instance: WasmInstance, role: Role, g: ConvGeometry, { x, weight, y }: Operands): void {
  const { f32 } = instance
  const kernel = instance.kernels[DEPTHWISE[role]].bind(null, ...windowOf(g), g.oh, g.ow)
  const multiplier = g.o / g.c
  const [xPlane, yPlane, window] = [g.h * g.w, g.oh * g.ow, g.kh * g.kw]
  const [xs, ys, weights] = [new Staged(instance, x, xPlane), new Staged(instance, y, yPlane), new Staged(instance, weight, weight.numel)]
  Staged.begin(instance, [xs, ys, weights])
  const weightAt = role === 'conv2dWeight' ? weights.at(0) : weights.read(0)
  if (role === 'conv2dWeight') f32.fill(0, weightAt / 4, weightAt / 4 + weight.numel)
  for (let c = 0; c < g.n * g.c; c++) {
    const xAt = role === 'conv2dInput' ? xs.at(c) : xs.read(c)
    if (role === 'conv2dInput') f32.fill(0, xAt / 4, xAt / 4 + xPlane)
    for (let o = c * multiplier; o < (c + 1) * multiplier; o++) {
      const w = weightAt + (o % g.o) * window * 4
      const yAt = role === 'conv2d' ? ys.at(o) : ys.read(o)
      const [from, by, to] = role === 'conv2d' ? [xAt, w, yAt] : role === 'conv2dInput' ? [yAt, w, xAt] : [xAt, yAt, w]
      kernel(from, by, to)
      worked(yPlane * window)
      if (role === 'conv2d') ys.written(o)
    }
    if (role === 'conv2dInput') xs.written(c)
  }
  if (role === 'conv2dWeight') weights.written(0)
}

const DEPTHWISE = { conv2d: 'depthwise_f32', conv2dInput: 'depthwise_input_f32', conv2dWeight: 'depthwise_weight_f32' } as const

const tiles =
  ({ external }: LazyInstance): Rule =>
  () =>
    external === null ? 'simd tiles' : `${external.name} (for large products), simd tiles`

export function cells(instance: LazyInstance): OwnCells {
  const cell = (role: Role) => by(tiles(instance), { float32: conv(instance, role, 4), float64: conv(instance, role, 8) })
  return { conv2d: cell('conv2d'), conv2dInput: cell('conv2dInput'), conv2dWeight: cell('conv2dWeight') }
}
