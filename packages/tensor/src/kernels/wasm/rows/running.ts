/**
 * Running sums and products of the wasm backend and the derivatives of products, for float32 [outer, k, inner]: each has two forms with the same bits,
 * kernels.wasm and the js backend's loop, which runs for few elements and for very long fibres, of which kernels.wasm would need a copy. `rows.ts` has sums and products.
 */
import type { GradRows, Operand, Rows } from '../../table/operands.js'
import { type LazyInstance, SIMD_FROM } from '../calls/instance.js'
import { by, byInput, loopsOf, type OwnCells } from '../calls/own.js'
import { workedElements } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { SLICE } from '../calls/strided.js'
import { runFibres } from './probabilities.js'
import { CHUNK, type RowsExport } from './rows.js'

type Scan = 'cumsum' | 'cumprod' | 'reverse_cumsum'
type BackwardExport = (rows: number, k: number, g: number, x: number, out: number, left: number) => void
declare module '../calls/instance.js' {
  interface KernelExports
    extends Readonly<Record<`${Scan}_rows_f32`, RowsExport>>,
      Readonly<Record<`${Scan}_piece_f32`, (n: number, x: number, out: number, total: number) => void>>,
      Readonly<Record<`${'prod' | 'cumprod'}_backward_rows_f32`, BackwardExport>> {}
}

/** Elements from which on a scan's call costs less than it saves (measured: of one row both take 1.5 µs at 1000, of ten rows at 100 each). */
const SCAN_FROM = 2048
/** Elements of a row up to which kernels.wasm has the derivatives: its scratch is 8 bytes for each, and this many take about 2 ms. */
const DERIVED_MAX = 2 ** 20

const scan = (lazy: LazyInstance, op: 'cumsum' | 'cumprod' | 'reverseCumsum', name: Scan): Rows => {
  const loop = loopsOf(op).float32 as Rows
  return (x, out, outer, k, inner) => {
    if (outer * k * inner < SCAN_FROM || (inner > 1 && k > SLICE)) loop(x, out, outer, k, inner)
    else if (k > SLICE) longRows(lazy, name, x, out, outer, k)
    else runFibres(lazy, [x, out], [outer, k, inner], ({ kernels }, rows, at) => kernels[`${name}_rows_f32`](rows, k, at[0]!, at[1]!))
  }
}

/** Piece after piece, each row by itself; the last piece of a row first if it runs from the end. */
function longRows(lazy: LazyInstance, name: Scan, x: Operand, out: Operand, outer: number, k: number): void {
  const instance = lazy.get()
  const kernel = instance.kernels[`${name}_piece_f32`]
  const pieces = Math.ceil(k / SLICE)
  for (let o = 0; o < outer; o++) {
    const [xs, outs] = [rowOf(x, o, k), rowOf(out, o, k)].map((row) => new Staged(instance, row, SLICE)) as [Staged, Staged]
    const [total] = Staged.begin(instance, [xs, outs], 8) as [number]
    instance.f64[total / 8] = name === 'cumprod' ? 1 : 0
    for (let i = 0; i < pieces; i++) {
      const part = name === 'reverse_cumsum' ? pieces - 1 - i : i
      const n = Math.min(SLICE, k - part * SLICE)
      kernel(n, xs.read(part), outs.at(part), total)
      outs.written(part)
      workedElements(n)
    }
  }
}

/** Row `o` of dense [rows, k]. */
function rowOf(x: Operand, o: number, k: number): Operand {
  return { storage: x.storage, offset: x.offset + o * k, shape: [k], strides: [1], numel: k, dtype: x.dtype, isContiguous: true }
}

/** Along rows, in kernels.wasm; down columns, for few elements and for very long rows, by the loop, with the same bits. */
const productBackward = (lazy: LazyInstance, op: 'prodBackward' | 'cumprodBackward'): GradRows => {
  const loop = loopsOf(op).float32 as GradRows
  const name = op === 'prodBackward' ? 'prod_backward_rows_f32' : 'cumprod_backward_rows_f32'
  return (g, x, out, outer, k, inner) => {
    if (inner > 1 || outer * k < SIMD_FROM || k > DERIVED_MAX) {
      loop(g, x, out, outer, k, inner)
      return
    }
    const instance = lazy.get()
    // Four rows go side by side, but for long ones, whose scratch would be large.
    const side = k <= SLICE && outer >= 4 ? 4 : 1
    const atOnce = Math.min(outer, Math.max(side, Math.floor(CHUNK / k / 4) * 4))
    const grads = new Staged(instance, g, op === 'prodBackward' ? atOnce : atOnce * k)
    const [xs, outs] = [new Staged(instance, x, atOnce * k), new Staged(instance, out, atOnce * k)]
    const [left] = Staged.begin(instance, [grads, xs, outs], side * k * 8) as [number]
    for (let part = 0, row = 0; row < outer; part++, row += atOnce) {
      const rows = Math.min(atOnce, outer - row)
      instance.kernels[name](rows, k, grads.read(part), xs.read(part), outs.at(part), left)
      outs.written(part)
      workedElements(rows * k)
    }
  }
}

export const cells = (instance: LazyInstance): OwnCells => ({
  cumsum: by(byInput, { float32: scan(instance, 'cumsum', 'cumsum') }),
  cumprod: by(byInput, { float32: scan(instance, 'cumprod', 'cumprod') }),
  reverseCumsum: by(byInput, { float32: scan(instance, 'reverseCumsum', 'reverse_cumsum') }),
  prodBackward: by(byInput, { float32: productBackward(instance, 'prodBackward') }),
  cumprodBackward: by(byInput, { float32: productBackward(instance, 'cumprodBackward') }),
})
