/** Steps of optimizers in the wasm backend: one pass of kernels.wasm over a parameter, its gradient and its states, each used where it lies or staged. */
import type { Operand, Step } from '../table/operands.js'
import { CHUNK, ROOM } from './calls/dense.js'
import type { LazyInstance } from './calls/instance.js'
import { always, by, type OwnCells } from './calls/own.js'
import { workedElements } from './calls/pause.js'
import { SLICE, stage, unstage } from './calls/strided.js'

type Name = 'sgd' | 'adam' | 'nadam' | 'adamax' | 'rmsprop' | 'adagrad' | 'adadelta'
type Addresses = readonly [grad: number, first: number, second: number, third: number, p: number]
type StepExport = (n: number, ...rest: [...Addresses, ...numbers: readonly number[]]) => void
declare module './calls/instance.js' {
  interface KernelExports extends Readonly<Record<`${Name}_step_${'f32' | 'f64'}`, StepExport>> {}
}

const step =
  (lazy: LazyInstance, name: `${Name}_step_${'f32' | 'f64'}`): Step =>
  (grad, first, second, third, p, numbers) => {
    const n = p.numel
    if (n === 0) return
    const instance = lazy.get()
    const kernel = instance.kernels[name]
    const operands: readonly (Operand | null)[] = [grad, first, second, third, p]
    const bytes = p.storage.host!.BYTES_PER_ELEMENT
    const scratch = instance.begin(operands.length * ROOM)
    /** 0: not there. */
    const at: [number, number, number, number, number] = [0, 0, 0, 0, 0]
    const staged = [false, false, false, false, false]
    let chunk = SLICE
    for (let k = 0; k < at.length; k++) {
      const x = operands[k]!
      if (x === null) continue
      const direct = instance.direct(x.storage.host!, x.offset)
      at[k] = direct < 0 ? scratch + k * ROOM : direct
      staged[k] = direct < 0
      if (direct < 0) chunk = CHUNK
    }
    for (let i = 0; i < n; i += chunk) {
      const count = Math.min(chunk, n - i)
      for (let k = 0; k < at.length; k++) if (staged[k]) stage(instance, count, operands[k]!, at[k]!, i)
      kernel(count, at[0], at[1], at[2], at[3], at[4], ...numbers)
      for (let k = 0; k < at.length; k++) {
        if (!staged[k]) at[k]! += at[k] === 0 ? 0 : count * bytes
        else if (k > 0) unstage(instance, count, at[k]!, operands[k]!, i)
      }
      workedElements(count)
    }
  }

const both = (instance: LazyInstance, name: Name) =>
  by(always, { float32: step(instance, `${name}_step_f32`), float64: step(instance, `${name}_step_f64`) })

export const cells = (instance: LazyInstance): OwnCells => ({
  sgdStep: both(instance, 'sgd'),
  adamStep: both(instance, 'adam'),
  nadamStep: both(instance, 'nadam'),
  adamaxStep: both(instance, 'adamax'),
  rmspropStep: both(instance, 'rmsprop'),
  adagradStep: both(instance, 'adagrad'),
  adadeltaStep: both(instance, 'adadelta'),
})
