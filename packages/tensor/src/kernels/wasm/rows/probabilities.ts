/** Softmax of the wasm backend, its derivatives and the loss of classes, for float32: always kernels.wasm, because their exponentials are its polynomial. */
import type { ArrayOf } from '../../../values/dtype.js'
import type { ClassLoss, ClassLossBackward, GradRows, Operand, Rows } from '../../table/operands.js'
import { align, type LazyInstance, type WasmInstance } from '../calls/instance.js'
import { always, by, type OwnCells } from '../calls/own.js'
import { workedElements } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { SLICE, stage, unstage } from '../calls/strided.js'
import { CHUNK, type RowsExport } from './rows.js'

type F32 = ArrayOf['float32']
type GradRowsExport = (rows: number, k: number, g: number, y: number, out: number) => void
declare module '../calls/instance.js' {
  interface KernelExports {
    readonly softmax_rows_f32: RowsExport
    readonly log_softmax_rows_f32: RowsExport
    readonly softmax_backward_rows_f32: GradRowsExport
    readonly log_softmax_backward_rows_f32: GradRowsExport
    readonly class_loss_rows_f32: (rows: number, k: number, x: number, target: number, out: number) => void
    readonly class_loss_backward_rows_f32: (
      rows: number,
      k: number,
      g: number,
      gRow: number,
      x: number,
      target: number,
      out: number,
    ) => void
  }
}

/** The work of an element in multiplications, and the elements of a unit, for the question whether threads share them. */
const WORK_PER_ELEMENT = 24
const UNIT = 16_384

/**
 * Runs `kernel` on the fibres of dense operands [outer, k, inner] as rows, the last operand being the output: where they lie if that is possible,
 * otherwise staged, gathered if need be.
 */
export function runFibres(
  lazy: LazyInstance,
  operands: readonly Operand[],
  [outer, k, inner]: readonly [number, number, number],
  kernel: (instance: WasmInstance, rows: number, at: readonly number[]) => void,
): void {
  if (outer * k * inner === 0) return
  const instance = lazy.get()
  const last = operands.length - 1
  const all = outer * inner
  // Of columns at least sixteen, since a line of the cache has as many side by side; fewer where they are very long.
  const least = inner === 1 ? 1 : Math.min(16, Math.floor(SLICE / k))
  const chunk = Math.min(all, Math.max(1, least, Math.floor(CHUNK / k)))
  const bytes = align(chunk * k * 4)
  const staged = instance.begin((last + 1) * bytes)
  const direct = [-1, -1, -1]
  let isDirect = true
  for (let i = last; i >= 0; i--) {
    const { storage, offset } = operands[i]!
    direct[i] = inner === 1 ? instance.direct(storage.host!, offset) : -1
    isDirect &&= direct[i]! >= 0
  }
  const at = [0, 0, 0]
  // In place a unit would read what it writes.
  const isApart = direct.every((pointer, i) => i >= last || Math.abs(pointer - direct[last]!) >= all * k * 4)
  if (isDirect && isApart && instance.shares(all * k * WORK_PER_ELEMENT)) {
    const rows = Math.max(1, Math.floor(UNIT / k))
    const unit = (part: number): void => {
      const count = Math.min(rows, all - part * rows)
      for (let i = 0; i <= last; i++) at[i] = direct[i]! + part * rows * k * 4
      kernel(instance, count, at)
      workedElements(count * k)
    }
    instance.share(Math.ceil(all / rows), rows * k * WORK_PER_ELEMENT, unit)
    return
  }
  const atOnce = isDirect ? Math.max(1, Math.floor(SLICE / k)) : chunk
  for (let r = 0; r < all; r += atOnce) {
    const count = Math.min(atOnce, all - r)
    for (let i = 0; i <= last; i++) {
      at[i] = direct[i]! < 0 ? staged + i * bytes : direct[i]! + r * k * 4
      if (i < last && direct[i]! < 0) fibres(instance, count, r, k, inner, operands[i]!, at[i]!, true)
    }
    kernel(instance, count, at)
    workedElements(count * k)
    if (direct[last]! < 0) fibres(instance, count, r, k, inner, operands[last]!, at[last]!, false)
  }
}

/** Copies `count` of the [outer · inner] fibres of x, from r on, to the rows at address `to`, or (`reads` false) back. */
function fibres(instance: WasmInstance, count: number, r: number, k: number, inner: number, x: Operand, to: number, reads: boolean): void {
  if (inner === 1) {
    if (reads) stage(instance, count * k, x, to, r * k)
    else unstage(instance, count * k, to, x, r * k)
    return
  }
  const { f32, kernels } = instance
  const host = x.storage.host as F32
  const direct = instance.direct(host, x.offset)
  for (let f = r; f < r + count; ) {
    // Those of one block lie side by side: a transpose.
    const first = f % inner
    const width = Math.min(inner - first, r + count - f)
    const from = (f - first) * k + first
    if (direct < 0) columns(f32, to / 4, width, k, host, x.offset + from, inner, reads)
    else if (reads) kernels.move_32(width, k, direct + from * 4, 4, inner * 4, to, k * 4, 4)
    else kernels.move_32(k, width, to, 4, k * 4, direct + from * 4, inner * 4, 4)
    f += width
    to += width * k * 4
  }
}

/** The same for `width` columns of an array outside of the memory. */
function columns(rows: F32, to: number, width: number, k: number, host: F32, from: number, inner: number, reads: boolean): void {
  for (let i = 0; i < width; i++, to += k, from++) {
    if (reads) for (let j = 0; j < k; j++) rows[to + j] = host[from + j * inner]!
    else for (let j = 0; j < k; j++) host[from + j * inner] = rows[to + j]!
  }
}

const softmax =
  (lazy: LazyInstance, name: 'softmax_rows_f32' | 'log_softmax_rows_f32'): Rows =>
  (x, out, outer, k, inner) =>
    runFibres(lazy, [x, out], [outer, k, inner], ({ kernels }, rows, at) => kernels[name](rows, k, at[0]!, at[1]!))

/** softmaxBackward and logSoftmaxBackward. */
const softmaxBackward =
  (lazy: LazyInstance, name: 'softmax_backward_rows_f32' | 'log_softmax_backward_rows_f32'): GradRows =>
  (g, y, out, outer, k, inner) =>
    runFibres(lazy, [g, y, out], [outer, k, inner], ({ kernels }, rows, at) => kernels[name](rows, k, at[0]!, at[1]!, at[2]!))

/** How many rows of k elements go through the kernel at once. */
const rowsAtOnce = (rows: number, k: number): number => Math.max(1, Math.min(rows, Math.floor(CHUNK / k)))

const classLoss =
  (lazy: LazyInstance): ClassLoss =>
  (x, target, out) => {
    const [rows, k] = x.shape as readonly [number, number]
    if (rows === 0) return
    const instance = lazy.get()
    const atOnce = rowsAtOnce(rows, k)
    const [xs, targets, outs] = [
      new Staged(instance, x, atOnce * k),
      new Staged(instance, target, atOnce),
      new Staged(instance, out, atOnce),
    ]
    Staged.begin(instance, [xs, targets, outs])
    for (let part = 0, row = 0; row < rows; part++, row += atOnce) {
      const count = Math.min(atOnce, rows - row)
      instance.kernels.class_loss_rows_f32(count, k, xs.read(part), targets.read(part), outs.at(part))
      outs.written(part)
      workedElements(count * k)
    }
  }

const classLossBackward =
  (lazy: LazyInstance): ClassLossBackward =>
  (grad, x, target, out) => {
    const [rows, k] = x.shape as readonly [number, number]
    if (rows === 0) return
    const instance = lazy.get()
    const atOnce = rowsAtOnce(rows, k)
    const step = grad.numel === 1 ? 0 : 1
    const grads = new Staged(instance, grad, step === 0 ? 1 : atOnce)
    const [xs, targets, outs] = [
      new Staged(instance, x, atOnce * k),
      new Staged(instance, target, atOnce),
      new Staged(instance, out, atOnce * k),
    ]
    Staged.begin(instance, [grads, xs, targets, outs])
    for (let part = 0, row = 0; row < rows; part++, row += atOnce) {
      const count = Math.min(atOnce, rows - row)
      const g = grads.read(part * step)
      instance.kernels.class_loss_backward_rows_f32(count, k, g, step * 4, xs.read(part), targets.read(part), outs.at(part))
      outs.written(part)
      workedElements(count * k)
    }
  }

export const cells = (instance: LazyInstance): OwnCells => ({
  softmax: by(always, { float32: softmax(instance, 'softmax_rows_f32') }),
  logSoftmax: by(always, { float32: softmax(instance, 'log_softmax_rows_f32') }),
  softmaxBackward: by(always, { float32: softmaxBackward(instance, 'softmax_backward_rows_f32') }),
  logSoftmaxBackward: by(always, { float32: softmaxBackward(instance, 'log_softmax_backward_rows_f32') }),
  classLoss: by(always, { float32: classLoss(instance) }),
  classLossBackward: by(always, { float32: classLossBackward(instance) }),
})
