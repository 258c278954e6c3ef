/**
 * Convolutions of the wasm backend. `direct.ts` has all forms but three: windows of one place, which are plain products; the gradient of the image with a
 * stride, by columns of the image that are added to it (col2im); depthwise convolutions of float32, plane by plane, since their products would have a single row.
 *
 * Order of summation: KERNELS.md, rule CONV.
 */
import { addBias } from '../../js/conv.js'
import type { ConvGeometry } from '../../table/neural.js'
import { type Conv, elementsOf, type Operand } from '../../table/operands.js'
import type { LazyInstance, WasmInstance, Window } from '../calls/instance.js'
import { by, type OwnCells, type Rule } from '../calls/own.js'
import { worked } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { inputByColumns, windowOf } from './columns.js'
import { direct, directWeight } from './direct.js'
import { byLibrary, paysByLibrary, type Role } from './library.js'
import { PANEL_BYTES, product, productScratch } from './products.js'

type Depthwise = (...rest: [...Window, oh: number, ow: number, a: number, b: number, out: number]) => void
declare module '../calls/instance.js' {
  interface KernelExports {
    readonly depthwise_f32: Depthwise
    readonly depthwise_input_f32: Depthwise
    readonly depthwise_weight_f32: Depthwise
  }
}

/** The two inputs and the output by what they are. */
type Operands = Readonly<Record<'x' | 'weight' | 'y', Operand>>

function byRole(role: Role, a: Operand, b: Operand, out: Operand): Operands {
  if (role === 'forward') return { x: a, weight: b, y: out }
  return role === 'input' ? { x: out, weight: b, y: a } : { x: a, weight: out, y: b }
}

const conv =
  (lazy: LazyInstance, role: Role, bytes: 4 | 8): Conv =>
  (a, b, bias, out, g) => {
    if (out.numel === 0) return
    if (a.numel === 0 || b.numel === 0) {
      elementsOf(out).fill(0)
      if (bias !== null) addBias(bias, out)
    } else if (bytes === 4 && g.groups === g.c && g.c > 1) {
      depthwise(lazy.get(), role, g, byRole(role, a, b, out), bias)
    } else {
      const instance = lazy.get()
      const { x, weight, y } = byRole(role, a, b, out)
      // Operands in the memory are used there; of others each image is staged when its turn comes.
      const images = new Staged(instance, x, g.c * g.h * g.w)
      const results = new Staged(instance, y, g.o * g.oh * g.ow)
      const weights = new Staged(instance, weight, weight.numel)
      const biases = bias && new Staged(instance, bias, g.o)
      const isStrided = g.strideH * g.strideW > 1
      if (role !== 'weight' && isPointwise(g, bytes)) pointwise(instance, role, bytes, g, images, weights, biases, results)
      else if (instance.external !== null && paysByLibrary(g)) {
        byLibrary(instance, instance.external, role, bytes, g, images, weights, biases, results)
      } else if (role === 'input' && isStrided) inputByColumns(instance, bytes, g, images, weights, results)
      else if (role === 'weight') directWeight(instance, bytes, g, images, weights, results)
      else if (role === 'forward') direct(instance, false, bytes, g, images, weights, biases, results)
      else direct(instance, true, bytes, g, results, weights, null, images)
    }
  }

/** Whether a window of one place visits every place, and these fill a tile: the channels of the image are the rows of a product. */
function isPointwise(g: ConvGeometry, bytes: number): boolean {
  if (g.kh * g.kw * g.strideH * g.strideW > 1 || g.padH !== 0 || g.padW !== 0) return false
  return g.oh === g.h && g.ow === g.w && g.h * g.w >= PANEL_BYTES / bytes
}

/** y [o, places] = weight [o, c] · x [c, places] of each group, and its adjoint x [c, places] = weightᵀ [c, o] · y [o, places]. */
function pointwise(
  instance: WasmInstance,
  role: Role,
  bytes: 4 | 8,
  g: ConvGeometry,
  images: Staged,
  weight: Staged,
  bias: Staged | null,
  results: Staged,
): void {
  const { add_f32, add_f64 } = instance.kernels
  const isInput = role === 'input'
  const [from, out] = isInput ? [results, images] : [images, results]
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  const [m, k] = isInput ? [cg, og] : [og, cg]
  const places = g.h * g.w
  const plane = places * bytes
  const [scratch] = Staged.begin(instance, [from, weight, bias, out], productScratch(m, places, k, bytes, bytes)) as [number]
  const weights = weight.read(0)
  const biases = bias === null ? 0 : bias.read(0)
  for (let n = 0; n < g.n; n++) {
    const [source, result] = [from.read(n), out.at(n)]
    for (let group = 0; group < g.groups; group++) {
      const w = weights + group * og * cg * bytes
      const a = isInput ? { pointer: w, row: bytes, col: cg * bytes } : { pointer: w, row: cg * bytes, col: bytes }
      const b = { pointer: source + group * k * plane, row: plane, col: bytes }
      product(instance, bytes, m, places, k, a, b, result + group * m * plane, plane, scratch)
    }
    if (biases > 0) (bytes === 4 ? add_f32 : add_f64)(g.o, places, result, plane, 1, biases, bytes, 0, result, plane)
    out.written(n)
  }
}

/** float32, plane by plane: output channel o reads input channel o / multiplier, with a weight [kh, kw] of its own. */
function depthwise(instance: WasmInstance, role: Role, g: ConvGeometry, { x, weight, y }: Operands, bias: Operand | null): void {
  const { f32 } = instance
  const kernel = instance.kernels[DEPTHWISE[role]].bind(null, ...windowOf(g), g.oh, g.ow)
  const multiplier = g.o / g.c
  const [xPlane, yPlane, window] = [g.h * g.w, g.oh * g.ow, g.kh * g.kw]
  const [xs, ys, weights] = [new Staged(instance, x, xPlane), new Staged(instance, y, yPlane), new Staged(instance, weight, weight.numel)]
  const biases = bias && new Staged(instance, bias, g.o)
  Staged.begin(instance, [xs, ys, weights, biases])
  const weightAt = role === 'weight' ? weights.at(0) : weights.read(0)
  const biasAt = biases === null ? 0 : biases.read(0)
  if (role === 'weight') f32.fill(0, weightAt / 4, weightAt / 4 + weight.numel)
  for (let c = 0; c < g.n * g.c; c++) {
    const xAt = role === 'input' ? xs.at(c) : xs.read(c)
    if (role === 'input') f32.fill(0, xAt / 4, xAt / 4 + xPlane)
    for (let o = c * multiplier; o < (c + 1) * multiplier; o++) {
      const w = weightAt + (o % g.o) * window * 4
      const yAt = role === 'forward' ? ys.at(o) : ys.read(o)
      const [from, by, to] = role === 'forward' ? [xAt, w, yAt] : role === 'input' ? [yAt, w, xAt] : [xAt, yAt, w]
      kernel(from, by, to)
      if (biasAt > 0) instance.kernels.add_f32(1, yPlane, yAt, 0, 1, biasAt + (o % g.o) * 4, 0, 0, yAt, 0)
      worked(yPlane * window)
      if (role === 'forward') ys.written(o)
    }
    if (role === 'input') xs.written(c)
  }
  if (role === 'weight') weights.written(0)
}

const DEPTHWISE = { forward: 'depthwise_f32', input: 'depthwise_input_f32', weight: 'depthwise_weight_f32' } as const

const tiles =
  ({ external }: LazyInstance): Rule =>
  () =>
    external === null ? 'simd tiles' : `${external.name} (for large products), simd tiles`

export function cells(instance: LazyInstance): OwnCells {
  const cell = (role: Role) => by(tiles(instance), { float32: conv(instance, role, 4), float64: conv(instance, role, 8) })
  return { conv2d: cell('forward'), conv2dInput: cell('input'), conv2dWeight: cell('weight') }
}
