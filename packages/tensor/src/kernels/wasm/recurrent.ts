/**
 * Steps of LSTM and GRU in the wasm backend, for float32: kernels.wasm does in one pass what some ten element-wise operations would do. Operands that do
 * not lie in its memory are staged whole.
 */
import type { Shape } from '../../values/shape.js'
import type { GruCell, GruCellBackward, LstmCell, LstmCellBackward, Operand } from '../table/operands.js'
import { align, type LazyInstance, type WasmInstance } from './instance.js'
import { always, by, type OwnCells } from './own.js'
import { workedElements } from './pause.js'
import { SLICE, stage, unstage } from './strided.js'

type Cell = (rows: number, width: number, from: number, to: number, ...addresses: readonly number[]) => void
declare module './instance.js' {
  interface KernelExports {
    readonly lstm_cell_f32: Cell
    readonly lstm_cell_backward_f32: Cell
    readonly gru_cell_f32: Cell
    readonly gru_cell_backward_f32: Cell
  }
}

/** The work of an element of h, in elements of one operation. */
const PARTS = 10

/** Runs `kernel` on `rows` rows of `width`: it reads the operands before `from`, writes those after `to`, and both those in between. */
function run(instance: WasmInstance, kernel: Cell, shape: Shape, from: number, to: number, operands: readonly Operand[]): void {
  const [rows, width] = shape as readonly [number, number]
  if (rows * width === 0) return
  let bytes = 0
  for (const x of operands) bytes += instance.direct(x.storage.host!, x.offset) < 0 ? align(x.numel * 4) : 0
  let next = instance.begin(bytes)
  const at: number[] = []
  for (const [i, x] of operands.entries()) {
    const direct = instance.direct(x.storage.host!, x.offset)
    at.push(direct < 0 ? next : direct)
    if (direct >= 0) continue
    if (i < to) stage(instance, x.numel, x, next)
    next += align(x.numel * 4)
  }
  const atOnce = Math.max(1, Math.floor(SLICE / (width * PARTS)))
  for (let r = 0; r < rows; r += atOnce) {
    const end = Math.min(rows, r + atOnce)
    kernel(rows, width, r, end, ...at)
    workedElements((end - r) * width * PARTS)
  }
  for (let i = from; i < operands.length; i++) {
    const x = operands[i]!
    if (instance.direct(x.storage.host!, x.offset) < 0) unstage(instance, x.numel, at[i]!, x)
  }
}

const lstmCell =
  (lazy: LazyInstance): LstmCell =>
  (...operands) =>
    run(lazy.get(), lazy.get().kernels.lstm_cell_f32, operands[5].shape, 3, 3, operands)

const lstmCellBackward =
  (lazy: LazyInstance): LstmCellBackward =>
  (...operands) =>
    run(lazy.get(), lazy.get().kernels.lstm_cell_backward_f32, operands[4].shape, 4, 5, operands)

const gruCell =
  (lazy: LazyInstance): GruCell =>
  (...operands) =>
    run(lazy.get(), lazy.get().kernels.gru_cell_f32, operands[5].shape, 4, 4, operands)

const gruCellBackward =
  (lazy: LazyInstance): GruCellBackward =>
  (...operands) =>
    run(lazy.get(), lazy.get().kernels.gru_cell_backward_f32, operands[6].shape, 4, 4, operands)

export const cells = (instance: LazyInstance): OwnCells => ({
  lstmCell: by(always, { float32: lstmCell(instance) }),
  lstmCellBackward: by(always, { float32: lstmCellBackward(instance) }),
  gruCell: by(always, { float32: gruCell(instance) }),
  gruCellBackward: by(always, { float32: gruCellBackward(instance) }),
})
