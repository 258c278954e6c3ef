/**
 * Copies of the wasm backend. Strided moves and conversions of enough elements run in kernels.wasm; dense runs of one dtype are the js backend's bulk
 * copy, and so are conversions to int32, which wrap around as JavaScript's.
 */
import type { DType } from '../../values/dtype.js'
import { copy } from '../js/movement.js'
import type { Copy } from '../table/operands.js'
import { stepOver } from '../table/walk.js'
import { runDense } from './dense.js'
import { type LazyInstance, SIMD_FROM } from './instance.js'
import { by, type OwnCells, type Rule } from './own.js'
import { moveStrided } from './strided.js'

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
      if (name === null) copy(x, out)
      else runDense(lazy.get(), [x, out], (_, n, at) => lazy.get().kernels[name](n, at[0]!, at[1]!))
    } else if (x.dtype !== out.dtype || !moveStrided(lazy.get(), x, out)) copy(x, out)
  }

const copying: Rule = () => 'loop (simd for conversions and strides)'

export function cells(instance: LazyInstance): OwnCells {
  const kernel = copyWith(instance)
  return { copy: by(copying, { float32: kernel, float64: kernel, int32: kernel, bool: kernel }) }
}
