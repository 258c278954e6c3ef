/**
 * Convolutions of the wasm backend. `direct.ts` has all forms but two: the gradient of the image with a stride, by columns of the image that are added
 * to it (col2im), and depthwise convolutions of float32, plane by plane, since their products would have a single row.
 *
 * Order of summation: KERNELS.md, rule CONV.
 */
import { addBias } from '../js/conv.js'
import type { ConvGeometry } from '../table/neural.js'
import { type Conv, elementsOf, type Operand } from '../table/operands.js'
import { byColumns, type Role, windowOf } from './columns.js'
import { direct, directWeight } from './direct.js'
import type { LazyInstance, WasmInstance, Window } from './instance.js'
import { by, type OwnCells, type Rule } from './own.js'
import { worked } from './pause.js'
import { Staged } from './staged.js'

type Depthwise = (...rest: [...Window, oh: number, ow: number, a: number, b: number, out: number]) => void
declare module './instance.js' {
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
  (a, b, out, g, bias = null) => {
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
      if (instance.external !== null || (role === 'input' && isStrided)) {
        byColumns(instance, role, bytes, g, images, weights, biases, results)
      } else if (role === 'weight') directWeight(instance, bytes, g, images, weights, results)
      else if (role === 'forward') direct(instance, false, bytes, g, images, weights, biases, results)
      else direct(instance, true, bytes, g, results, weights, null, images)
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
