/**
 * Copies and fills of the wasm backend, also copies of reversed rows and of triangles. Strided moves and conversions of enough elements run in kernels.wasm, and
 * so do dense copies within the memory: the host copies shared memory a byte at a time where words lie askew. Other copies are the js backend's, and so are
 * conversions to int32, which wrap around as JavaScript's.
 */
import { BYTES_PER_ELEMENT, type DType } from '../../values/dtype.js'
import { copy } from '../js/movement.js'
import type { Copy, Fill, Operand, Rows, Triangle } from '../table/operands.js'
import { stepOver } from '../table/walk.js'
import { runDense } from './calls/dense.js'
import { type LazyInstance, SIMD_FROM, type WasmInstance } from './calls/instance.js'
import { by, bySize, loopsOf, type OwnCells, type Rule } from './calls/own.js'
import { workedElements } from './calls/pause.js'
import { Staged } from './calls/staged.js'
import { moveStrided, SLICE, scratchMax } from './calls/strided.js'

type Convert = (n: number, x: number, out: number) => void
type Bits = 8 | 32 | 64
type Flip = (k: number, inner: number, xEnd: number, out: number) => void
type Repeat = (n: number, out: number) => void
type Cut = (first: number, rows: number, columns: number, diagonal: number, upper: number, x: number, out: number) => void
/** The pairs for which kernels.wasm has a conversion. */
type ConvertExport =
  | `convert_${'u8' | 'i32'}_${'f32' | 'f64'}`
  | `convert_${'i32' | 'f32' | 'f64'}_u8`
  | 'convert_u8_i32'
  | 'convert_f32_f64'
  | 'convert_f64_f32'
declare module './calls/instance.js' {
  interface KernelExports
    extends Readonly<Record<ConvertExport, Convert>>,
      Readonly<Record<`flip_${Bits}`, Flip>>,
      Readonly<Record<`repeat_${Bits}`, Repeat>>,
      Readonly<Record<`triangle_${Bits}`, Cut>> {}
}

/** The kernel that converts x's dtype to out's, or null. */
const CONVERSIONS: Readonly<Record<DType, Readonly<Record<DType, ConvertExport | null>>>> = {
  bool: { bool: null, int32: 'convert_u8_i32', float32: 'convert_u8_f32', float64: 'convert_u8_f64' },
  int32: { bool: 'convert_i32_u8', int32: null, float32: 'convert_i32_f32', float64: 'convert_i32_f64' },
  float32: { bool: 'convert_f32_u8', int32: null, float32: null, float64: 'convert_f32_f64' },
  float64: { bool: 'convert_f64_u8', int32: null, float32: 'convert_f64_f32', float64: null },
}

const copyWith =
  (lazy: LazyInstance): Copy =>
  (x, out) => {
    if (out.numel < SIMD_FROM) copy(x, out)
    else if (out.isContiguous && stepOver(x, out) === 1) {
      const name = CONVERSIONS[x.dtype][out.dtype]
      if (name === null) {
        if (x.dtype !== out.dtype || !copyDense(lazy.get(), x, out)) copy(x, out)
      } else runDense(lazy.get(), [x, out], (_, n, at) => lazy.get().kernels[name](n, at[0]!, at[1]!))
    } else if (x.dtype !== out.dtype || !moveStrided(lazy.get(), x, out)) copy(x, out)
  }

/** Where both lie in the memory. Returns false, having done nothing, where they do not. */
function copyDense(instance: WasmInstance, x: Operand, out: Operand): boolean {
  const from = instance.direct(x.storage.host!, x.offset)
  const to = instance.direct(out.storage.host!, out.offset)
  if (from < 0 || to < 0) return false
  const size = BYTES_PER_ELEMENT[out.dtype]
  const move = size === 4 ? instance.kernels.move_32 : size === 8 ? instance.kernels.move_64 : instance.kernels.move_8
  for (let i = 0; i < out.numel; i += SLICE) {
    const n = Math.min(SLICE, out.numel - i)
    move(1, n, from + i * size, 0, size, to + i * size, 0, size)
    workedElements(n)
  }
  return true
}

/** The host fills shared memory an element at a time. Without pauses: messages that are read in one fill fresh tensors, too. */
const fill =
  (lazy: LazyInstance, name: `repeat_${Bits}`, loop: Fill): Fill =>
  (value, out) => {
    const at = out.numel >= SIMD_FROM && out.isContiguous ? lazy.get().direct(out.storage.host!, out.offset) : -1
    if (at < 0) loop(value, out)
    else {
      // The host converts to the dtype of the output.
      loop(value, { ...out, shape: [1], strides: [1], numel: 1 })
      lazy.get().kernels[name](out.numel, at)
    }
  }

const copying: Rule = () => 'loop (simd for conversions, strides and within the heap)'

/**
 * Calls `run` for parts of x [outer, rows, columns] of at most a slice: the first row and how many, and where plane and result begin. Returns false, having done
 * nothing, for few elements, and for planes too large to be staged.
 */
function inParts(
  lazy: LazyInstance,
  x: Operand,
  out: Operand,
  [outer, rows, columns]: readonly [number, number, number],
  run: (instance: WasmInstance, first: number, n: number, from: number, to: number) => void,
): boolean {
  const plane = rows * columns
  if (out.numel < SIMD_FROM) return false
  const instance = lazy.get()
  if (2 * plane * BYTES_PER_ELEMENT[x.dtype] > scratchMax(instance)) return false
  const [xs, outs] = [new Staged(instance, x, plane), new Staged(instance, out, plane)]
  Staged.begin(instance, [xs, outs])
  const part = Math.max(1, Math.floor(SLICE / columns))
  for (let o = 0; o < outer; o++) {
    const [from, to] = [xs.read(o), outs.at(o)]
    for (let i = 0; i < rows; i += part) {
      const n = Math.min(part, rows - i)
      run(instance, i, n, from, to)
      workedElements(n * columns)
    }
    outs.written(o)
  }
  return true
}

const flip =
  (lazy: LazyInstance, name: `flip_${Bits}`, loop: Rows): Rows =>
  (x, out, outer, k, inner) => {
    const row = inner * BYTES_PER_ELEMENT[x.dtype]
    const done = inParts(lazy, x, out, [outer, k, inner], ({ kernels }, first, n, from, to) =>
      kernels[name](n, inner, from + (k - first) * row, to + first * row),
    )
    if (!done) loop(x, out, outer, k, inner)
  }

const triangle =
  (lazy: LazyInstance, name: `triangle_${Bits}`, upper: boolean, loop: Triangle): Triangle =>
  (x, out, outer, rows, columns, diagonal) => {
    const row = columns * BYTES_PER_ELEMENT[x.dtype]
    const done = inParts(lazy, x, out, [outer, rows, columns], ({ kernels }, first, n, from, to) =>
      kernels[name](first, n, columns, diagonal, upper ? 1 : 0, from + first * row, to + first * row),
    )
    if (!done) loop(x, out, outer, rows, columns, diagonal)
  }

export function cells(instance: LazyInstance): OwnCells {
  const kernel = copyWith(instance)
  /** A kernel for each dtype, by the bits of an element. */
  function each<K extends object>(make: (dtype: DType, bits: Bits) => K) {
    return by(bySize, { float32: make('float32', 32), float64: make('float64', 64), int32: make('int32', 32), bool: make('bool', 8) })
  }
  const triangles = (op: 'tril' | 'triu') =>
    each((dtype, bits) => triangle(instance, `triangle_${bits}`, op === 'triu', loopsOf(op)[dtype]))
  return {
    copy: by(copying, { float32: kernel, float64: kernel, int32: kernel, bool: kernel }),
    fill: each((dtype, bits) => fill(instance, `repeat_${bits}`, loopsOf('fill')[dtype])),
    flip: each((dtype, bits) => flip(instance, `flip_${bits}`, loopsOf('flip')[dtype])),
    tril: triangles('tril'),
    triu: triangles('triu'),
  }
}
