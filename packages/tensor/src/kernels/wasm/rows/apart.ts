/**
 * Sums over the first and the last axis of [parts, outer, part], as the gradient of a convolution's bias is: each total goes through its parts where they lie. A part is whole
 * groups of rule SUM (KERNELS.md), so the bits are those of a dense copy [outer, parts · part].
 */
import { join } from '../../js/sum.js'
import type { SumApart } from '../../table/operands.js'
import type { LazyInstance } from '../calls/instance.js'
import { always, by, type OwnCells } from '../calls/own.js'
import { workedElements } from '../calls/pause.js'
import { SLICE, stage } from '../calls/strided.js'
import { CHUNK, ROOM, SHARED_WORK_PER_ELEMENT, SUMS } from './rows.js'

/** Pieces of a total's row lie `step` bytes apart, each of n elements, a multiple of 64. */
type PiecesExport = (pieces: number, n: number, x: number, step: number, accumulators: number) => void
declare module '../calls/instance.js' {
  interface KernelExports extends Readonly<Record<`sum_pieces_${'f32' | 'f64'}`, PiecesExport>> {}
}

const sumApart =
  (lazy: LazyInstance, suffix: 'f32' | 'f64'): SumApart =>
  (x, out, parts, outer, part) => {
    const instance = lazy.get()
    const { f64 } = instance
    const { move_64: move, [`sum_pieces_${suffix}` as const]: sum } = instance.kernels
    const host = x.storage.host!
    const size = host.BYTES_PER_ELEMENT
    const xAt = instance.direct(host, x.offset)
    const room = xAt < 0 ? ROOM : 0
    const staged = instance.begin(room + SUMS + outer * SUMS)
    const zeroAt = staged + room
    const sumsAt = zeroAt + SUMS
    f64[zeroAt / 8] = 0
    // Several parts at once, or a piece of one.
    const width = Math.min(part, xAt < 0 ? CHUNK : SLICE)
    const atOnce = xAt < 0 ? 1 : Math.max(1, Math.floor(SLICE / part))
    const unit = (o: number): void => {
      const sums = sumsAt + o * SUMS
      move(1, 8, zeroAt, 0, 0, sums, 0, 8)
      for (let p = 0; p < parts; p += atOnce) {
        const pieces = Math.min(atOnce, parts - p)
        for (let i = 0; i < part; i += width) {
          const count = Math.min(width, part - i)
          const from = (p * outer + o) * part + i
          if (xAt < 0) stage(instance, count, x, staged, from)
          sum(pieces, count, xAt < 0 ? staged : xAt + from * size, outer * part * size, sums)
          workedElements(pieces * count)
        }
      }
    }
    const work = parts * part * SHARED_WORK_PER_ELEMENT
    if (xAt >= 0 && outer > 1 && instance.shares(outer * work)) instance.share(outer, work, unit)
    else for (let o = 0; o < outer; o++) unit(o)
    const to = out.storage.host!
    for (let o = 0, s = sumsAt / 8; o < outer; o++, s += 8)
      to[out.offset + o] = join(f64[s]!, f64[s + 1]!, f64[s + 2]!, f64[s + 3]!, f64[s + 4]!, f64[s + 5]!, f64[s + 6]!, f64[s + 7]!)
  }

export const cells = (instance: LazyInstance): OwnCells => ({
  sumApart: by(always, { float32: sumApart(instance, 'f32'), float64: sumApart(instance, 'f64') }),
})
