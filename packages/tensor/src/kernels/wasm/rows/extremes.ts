/** Extremes of the wasm backend and their places, for [outer, k, inner]; any and all of bool are extremes as well. An extreme has the same bits in any order. */
import { firstBest, greater, less } from '../../js/reduce.js'
import type { Operand, Rows } from '../../table/operands.js'
import { type LazyInstance, SIMD_FROM, type WasmInstance } from '../calls/instance.js'
import { by, byInput, loopsOf, type OwnCells } from '../calls/own.js'
import { unstage } from '../calls/strided.js'
import {
  CHUNK,
  type ColumnsExport,
  columnsAtOnce,
  overRows,
  piecesOfRow,
  ROOM,
  type RowsExport,
  reduceColumns,
  reduceLongRows,
  reduceRows,
} from './rows.js'

type PlacesOfColumns = (first: number, rows: number, n: number, x: number, row: number, held: number, places: number) => void
type Extreme = 'amax' | 'amin'
type Place = 'argmax' | 'argmin'
type Suffix = 'f32' | 'f64' | 'i32'
declare module '../calls/instance.js' {
  interface KernelExports
    extends Readonly<Record<`${Extreme}_rows_${Suffix}`, RowsExport>>,
      Readonly<Record<`${'some' | 'every'}_rows_u8`, RowsExport>>,
      Readonly<Record<`${Place}_rows_${Suffix}`, RowsExport>>,
      Readonly<Record<`${Extreme}_columns_${Suffix | 'u8'}`, ColumnsExport>>,
      Readonly<Record<`${Place}_columns_${'f32' | 'i32'}`, PlacesOfColumns>> {}
}

const SUFFIX = { float32: 'f32', float64: 'f64', int32: 'i32', bool: 'u8' } as const
type DTypes = keyof typeof SUFFIX

/** The least and the greatest that there is. */
const ENDS = { float32: [-Infinity, Infinity], float64: [-Infinity, Infinity], int32: [-(2 ** 31), 2 ** 31 - 1], bool: [0, 1] } as const

const extreme = (lazy: LazyInstance, op: Extreme, dtype: DTypes): Rows => {
  const loop = loopsOf(op)[dtype] as Rows
  const suffix = SUFFIX[dtype]
  const rowsOf = suffix === 'u8' ? (`${op === 'amax' ? 'some' : 'every'}_rows_u8` as const) : (`${op}_rows_${suffix}` as const)
  const columnsOf = `${op}_columns_${suffix}` as const
  const start = ENDS[dtype][op === 'amax' ? 0 : 1]
  return (x, out, outer, k, inner) => {
    if (outer * k * inner < SIMD_FROM) {
      loop(x, out, outer, k, inner)
      return
    }
    const instance = lazy.get()
    if (inner > 1) reduceColumns(instance, instance.kernels[columnsOf], start, dtype, x, out, k, inner)
    else if (k <= CHUNK) reduceRows(instance, instance.kernels[rowsOf], outer, k, x, 0, out, 0)
    else reduceLongRows(instance, instance.kernels[rowsOf], outer, k, x, out)
  }
}

const places = (lazy: LazyInstance, op: Place, dtype: 'float32' | 'float64' | 'int32'): Rows => {
  const loop = loopsOf(op)[dtype] as Rows
  const suffix = SUFFIX[dtype]
  const [alongRows, extremesOf] = [`${op}_rows_${suffix}`, `${op === 'argmax' ? 'amax' : 'amin'}_rows_${suffix}`] as const
  const downColumns = suffix === 'f64' ? null : (`${op}_columns_${suffix}` as const)
  return (x, out, outer, k, inner) => {
    if (k === 1) {
      out.storage.host!.fill(0, out.offset, out.offset + outer * inner)
      return
    }
    if (outer * k * inner < SIMD_FROM || (inner > 1 && downColumns === null)) {
      loop(x, out, outer, k, inner)
      return
    }
    const instance = lazy.get()
    const { kernels } = instance
    if (downColumns !== null && inner > 1) placesOfColumns(instance, kernels[downColumns], x, out, k, inner)
    else if (k <= CHUNK) reduceRows(instance, kernels[alongRows], outer, k, x, 0, out, 0)
    else {
      const better = op === 'argmax' ? greater : less
      for (let o = 0; o < outer; o++) {
        // Only the piece that has the extreme is searched for its place.
        const found = piecesOfRow(instance, kernels[extremesOf], k, x, o * k).storage.host!
        const from = firstBest(better, found, 0, found.length, 1) * CHUNK
        const length = Math.min(CHUNK, k - from)
        out.storage.host![out.offset + o] = from + firstBest(better, x.storage.host!, x.offset + o * k + from, length, 1)
      }
    }
  }
}

function placesOfColumns(instance: WasmInstance, kernel: PlacesOfColumns, x: Operand, out: Operand, k: number, inner: number): void {
  const staged = instance.begin(3 * ROOM)
  const held = staged + ROOM
  const found = held + ROOM
  const tile = columnsAtOnce(instance, x)
  for (let first = 0; first < x.numel; first += k * inner) {
    for (let i = 0; i < inner; i += tile) {
      const width = Math.min(tile, inner - i)
      overRows(instance, x, first + i, width, k, inner, staged, (rows, r, from, row) => kernel(r, rows, width, from, row, held, found))
      unstage(instance, width, found, out, first / k + i)
    }
  }
}

const extremes = (instance: LazyInstance, op: Extreme) =>
  by(byInput, {
    float32: extreme(instance, op, 'float32'),
    float64: extreme(instance, op, 'float64'),
    int32: extreme(instance, op, 'int32'),
    bool: extreme(instance, op, 'bool'),
  })
const placesOf = (instance: LazyInstance, op: Place) =>
  by(byInput, {
    float32: places(instance, op, 'float32'),
    float64: places(instance, op, 'float64'),
    int32: places(instance, op, 'int32'),
  })

export const cells = (instance: LazyInstance): OwnCells => ({
  amax: extremes(instance, 'amax'),
  amin: extremes(instance, 'amin'),
  argmax: placesOf(instance, 'argmax'),
  argmin: placesOf(instance, 'argmin'),
})
