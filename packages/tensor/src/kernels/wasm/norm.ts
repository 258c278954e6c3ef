/** Layer normalisation of float32 in the wasm backend: as many rows at a time as stay in the first-level cache, through kernels.wasm. */
import { elementsOf, type Norm, type NormBackward } from '../table/operands.js'
import type { LazyInstance } from './instance.js'
import { always, by, type OwnCells } from './own.js'
import { worked } from './pause.js'
import { Staged } from './staged.js'

type Forward = [x: number, weight: number, bias: number, out: number, mean: number, rstd: number]
type Backward = [grad: number, x: number, mean: number, rstd: number, weight: number, out: number, forWeight: number, forBias: number]
declare module './instance.js' {
  interface KernelExports {
    readonly layer_norm_f32: (rows: number, d: number, eps: number, ...pointers: Forward) => void
    readonly layer_norm_backward_f32: (rows: number, d: number, ...pointers: Backward) => void
  }
}

/** Floats of x that are read at once. */
const CHUNK = 4096
/** The work of an element, for pauses. */
const WORK_PER_ELEMENT = 8

/** How many rows of d elements are read at once. */
const rowsAtOnce = (rows: number, d: number): number => Math.max(1, Math.min(rows, Math.floor(CHUNK / d)))

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
    const means = new Staged(instance, mean, atOnce)
    const rstds = new Staged(instance, rstd, atOnce)
    Staged.begin(instance, [w, b, xs, outs, means, rstds])
    const wAt = w === null ? 0 : w.read(0)
    const bAt = b === null ? 0 : b.read(0)
    for (let part = 0, row = 0; row < rows; part++, row += atOnce) {
      const count = Math.min(atOnce, rows - row)
      instance.kernels.layer_norm_f32(count, d, eps, xs.read(part), wAt, bAt, outs.at(part), means.at(part), rstds.at(part))
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
    const atOnce = rowsAtOnce(rows, d)
    const w = weight === null ? null : new Staged(instance, weight, d)
    const [grads, xs, outs] = [
      new Staged(instance, grad, atOnce * d),
      new Staged(instance, x, atOnce * d),
      new Staged(instance, out, atOnce * d),
    ]
    const [means, rstds] = [new Staged(instance, mean, atOnce), new Staged(instance, rstd, atOnce)]
    const [forWeight, forBias] = Staged.begin(instance, [w, grads, xs, outs, means, rstds], d * 8, d * 8) as [number, number]
    for (const sums of [forWeight, forBias]) f64.fill(0, sums / 8, sums / 8 + d)
    const wAt = w?.read(0) ?? 0
    for (let part = 0, row = 0; row < rows; part++, row += atOnce) {
      const count = Math.min(atOnce, rows - row)
      const saved = [means.read(part), rstds.read(part)] as const
      kernels.layer_norm_backward_f32(count, d, grads.read(part), xs.read(part), ...saved, wAt, outs.at(part), forWeight, forBias)
      outs.written(part)
      worked(count * d * 2 * WORK_PER_ELEMENT)
    }
    if (weightGrad !== null) elementsOf(weightGrad).set(f64.subarray(forWeight / 8, forWeight / 8 + d))
    if (biasGrad !== null) elementsOf(biasGrad).set(f64.subarray(forBias / 8, forBias / 8 + d))
  }

export const cells = (instance: LazyInstance): OwnCells => ({
  layerNorm: by(always, { float32: layerNorm(instance) }),
  layerNormBackward: by(always, { float32: layerNormBackward(instance) }),
})
