/**
 * Movement by indices and sums at indices of the wasm backend. Operands outside of the memory are staged whole. A few elements, and a few that are picked from
 * a large operand outside, go through the loops of `js/indexed.ts`, with the same bits.
 */
import { BYTES_PER_ELEMENT, type DType } from '../../../values/dtype.js'
import type { FirstOutside, Indexed, Operand } from '../../table/operands.js'
import type { IndexOp } from '../../table/table.js'
import { align, type LazyInstance, SIMD_FROM, type WasmInstance } from '../calls/instance.js'
import { by, bySize, loopsOf, type OwnCells } from '../calls/own.js'
import { workedElements } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { SLICE, SPAN_FACTOR_MAX, scratchMax, stage, unstage } from '../calls/strided.js'

type Kernel = (outer: number, rows: number, n: number, inner: number, x: number, index: number, out: number) => void
type IndexExport = `${'index_select' | 'gather' | 'scatter'}_${8 | 32 | 64}` | `${'index_add' | 'scatter_add'}_${'f32' | 'f64' | 'i32'}`
declare module '../calls/instance.js' {
  interface KernelExports extends Readonly<Record<IndexExport, Kernel>> {
    readonly first_outside: (n: number, index: number, extent: number) => number
  }
}

const indexed = (lazy: LazyInstance, op: IndexOp, name: IndexExport, loop: Indexed): Indexed => {
  const reads = op === 'indexSelect' || op === 'gather'
  const isWide = op !== 'indexSelect' && op !== 'indexAdd'
  return (x, index, out, outer, rows, n, inner) => {
    const each = n * inner
    if (outer * each < SIMD_FROM) {
      loop(x, index, out, outer, rows, n, inner)
      return
    }
    const instance = lazy.get()
    const size = BYTES_PER_ELEMENT[x.dtype]
    let xAt = instance.direct(x.storage.host!, x.offset)
    let indexAt = instance.direct(index.storage.host!, index.offset)
    let outAt = instance.direct(out.storage.host!, out.offset)
    const isInside = outAt >= 0
    const bytes = bytesOf(x, xAt) + bytesOf(index, indexAt) + bytesOf(out, outAt)
    if (bytes > scratchMax(instance) || bytes > SPAN_FACTOR_MAX * outer * each * size) {
      loop(x, index, out, outer, rows, n, inner)
      return
    }
    if (bytes > 0) instance.begin(bytes)
    if (xAt < 0) xAt = staged(instance, x, true)
    if (indexAt < 0) indexAt = staged(instance, index, true)
    if (outAt < 0) outAt = staged(instance, out, !reads)
    const kernel = instance.kernels[name]
    // Several of `outer` at once, or parts of one.
    const atOnce = Math.max(1, Math.floor(SLICE / each))
    const part = Math.max(1, Math.floor(SLICE / inner))
    for (let o = 0; o < outer; o += atOnce) {
      const several = Math.min(atOnce, outer - o)
      for (let i = 0; i < n; i += part) {
        const count = Math.min(part, n - i)
        const table = o * rows * inner * size
        const others = (o * each + i * inner) * size
        const at = indexAt + (isWide ? o * each + i * inner : i) * 4
        kernel(several, rows, count, inner, xAt + (reads ? table : others), at, outAt + (reads ? others : table))
        workedElements(several * count * inner)
      }
    }
    if (!isInside) unstage(instance, out.numel, outAt, out)
  }
}

const firstOutside =
  (lazy: LazyInstance, loop: FirstOutside): FirstOutside =>
  (x, out, extent) => {
    if (x.numel < SIMD_FROM) {
      loop(x, out, extent)
      return
    }
    const instance = lazy.get()
    const indices = new Staged(instance, x, SLICE)
    Staged.begin(instance, [indices])
    let first = 0
    for (let part = 0; first === part * SLICE && first < x.numel; part++) {
      const n = Math.min(SLICE, x.numel - first)
      first += instance.kernels.first_outside(n, indices.read(part), extent)
      workedElements(n)
    }
    out.storage.host![out.offset] = first
  }

/** Bytes of scratch for an operand that lies at `at`, or elsewhere (−1). */
const bytesOf = ({ numel, dtype }: Operand, at: number): number => (at < 0 ? align(numel * BYTES_PER_ELEMENT[dtype]) : 0)

/** Room for an operand in scratch, and a copy there if it is read. */
function staged(instance: WasmInstance, x: Operand, isRead: boolean): number {
  const at = instance.take(x.numel * BYTES_PER_ELEMENT[x.dtype])
  if (isRead) stage(instance, x.numel, x, at)
  return at
}

export function cells(instance: LazyInstance): OwnCells {
  const cell = (op: IndexOp, name: IndexExport, dtype: DType) => indexed(instance, op, name, loopsOf(op)[dtype])
  const moves = (op: 'indexSelect' | 'gather' | 'scatter', name: 'index_select' | 'gather' | 'scatter') =>
    by(bySize, {
      float32: cell(op, `${name}_32`, 'float32'),
      float64: cell(op, `${name}_64`, 'float64'),
      int32: cell(op, `${name}_32`, 'int32'),
      bool: cell(op, `${name}_8`, 'bool'),
    })
  const sums = (op: 'indexAdd' | 'scatterAdd', name: 'index_add' | 'scatter_add') =>
    by(bySize, {
      float32: cell(op, `${name}_f32`, 'float32'),
      float64: cell(op, `${name}_f64`, 'float64'),
      int32: cell(op, `${name}_i32`, 'int32'),
    })
  return {
    firstOutside: by(bySize, { int32: firstOutside(instance, loopsOf('firstOutside').int32) }),
    indexSelect: moves('indexSelect', 'index_select'),
    gather: moves('gather', 'gather'),
    scatter: moves('scatter', 'scatter'),
    indexAdd: sums('indexAdd', 'index_add'),
    scatterAdd: sums('scatterAdd', 'scatter_add'),
  }
}
