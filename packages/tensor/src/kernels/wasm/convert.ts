/**
 * Copies of the wasm backend. Strided moves and conversions of enough elements run in kernels.wasm; dense runs of one dtype are the js backend's bulk
 * copy, and so are conversions to int32, which wrap around as JavaScript's.
 */
import type { TypedArray } from '../../values/dtype.js'
import type { CopyKernel } from '../table/table.js'
import { CHUNK, elementsOf } from './elementwise.js'
import { copyRun, type LazyInstance, SIMD_FROM } from './instance.js'
import { by, loopsOf, type OwnCells, type Rule } from './own.js'
import { workedElements } from './pause.js'
import { moveStrided, SLICE, viewOf } from './strided.js'

/** `loops` does the rest. */
function copyWith<A extends TypedArray>(lazy: LazyInstance, loops: CopyKernel<A>): CopyKernel<A> {
  return {
    flat(n, x, xo, out, oo) {
      const name = n < SIMD_FROM ? null : conversionOf(x, out)
      if (name === null) loops.flat(n, x, xo, out, oo)
      else convert(lazy, name, n, x, xo, out, oo)
    },
    strided(shape, x, xo, xStrides, out, oo, outStrides) {
      const ran =
        x.constructor === out.constructor &&
        elementsOf(shape) >= SIMD_FROM &&
        moveStrided(lazy.get(), shape, { array: x, offset: xo, strides: xStrides }, { array: out, offset: oo, strides: outStrides })
      if (!ran) loops.strided(shape, x, xo, xStrides, out, oo, outStrides)
    },
  }
}

type Convert = (n: number, x: number, out: number) => void
/** The pairs for which kernels.wasm has a conversion. */
type ConvertExport =
  | `convert_${'u8' | 'i32'}_${'f32' | 'f64'}`
  | `convert_${'i32' | 'f32' | 'f64'}_u8`
  | 'convert_u8_i32'
  | 'convert_f32_f64'
  | 'convert_f64_f32'
declare module './instance.js' {
  interface KernelExports extends Readonly<Record<ConvertExport, Convert>> {}
}

type Suffix = 'f32' | 'f64' | 'i32' | 'u8'

function suffixOf(x: TypedArray): Suffix {
  const size = x.BYTES_PER_ELEMENT
  return size === 1 ? 'u8' : size === 8 ? 'f64' : x.constructor === Int32Array ? 'i32' : 'f32'
}

/** The kernel that converts, or null. */
const CONVERSIONS: Readonly<Record<Suffix, Readonly<Record<Suffix, ConvertExport | null>>>> = {
  u8: { u8: null, i32: 'convert_u8_i32', f32: 'convert_u8_f32', f64: 'convert_u8_f64' },
  i32: { u8: 'convert_i32_u8', i32: null, f32: 'convert_i32_f32', f64: 'convert_i32_f64' },
  f32: { u8: 'convert_f32_u8', i32: null, f32: null, f64: 'convert_f32_f64' },
  f64: { u8: 'convert_f64_u8', i32: null, f32: 'convert_f64_f32', f64: null },
}

function conversionOf(x: TypedArray, out: TypedArray): ConvertExport | null {
  return CONVERSIONS[suffixOf(x)][suffixOf(out)]
}

/** At least SIMD_FROM elements. */
function convert(lazy: LazyInstance, name: ConvertExport, n: number, x: TypedArray, xo: number, out: TypedArray, oo: number): void {
  const instance = lazy.get()
  const kernel = instance.kernels[name]
  const [xBytes, outBytes] = [x.BYTES_PER_ELEMENT, out.BYTES_PER_ELEMENT]
  const staged = instance.begin((xBytes + outBytes) * CHUNK)
  const stagedOut = staged + CHUNK * xBytes
  const xAt = instance.direct(x, xo)
  const outAt = instance.direct(out, oo)
  const chunk = xAt < 0 || outAt < 0 ? CHUNK : SLICE
  for (let i = 0; i < n; i += chunk) {
    const count = Math.min(chunk, n - i)
    if (xAt < 0) copyRun(count, x, xo + i, viewOf(instance, x), staged / xBytes)
    kernel(count, xAt < 0 ? staged : xAt + i * xBytes, outAt < 0 ? stagedOut : outAt + i * outBytes)
    if (outAt < 0) copyRun(count, viewOf(instance, out), stagedOut / outBytes, out, oo + i)
    workedElements(count)
  }
}

const copying: Rule = () => 'loop (simd for conversions and strides)'

export function cells(instance: LazyInstance): OwnCells {
  const { float32, float64, int32, bool } = loopsOf('copy')
  return {
    copy: by(copying, {
      float32: copyWith(instance, float32),
      float64: copyWith(instance, float64),
      int32: copyWith(instance, int32),
      bool: copyWith(instance, bool),
    }),
  }
}
