/**
 * The wasm backend's cells of the element-wise ops, by what their rows name: an export that runs at every size, and exports with the bits of loops, which
 * run for few elements. Below: `elementwise.ts`, `exact.ts`, `functions.ts`, `gradients.ts` and `select.ts`, the kernels.
 */
import type { ArrayOf } from '../../values/dtype.js'
import type { BinaryDefinition, CompareDefinition, Exports, GradDefinition, SimdDType, UnaryDefinition } from '../elementwise/definition.js'
import type { Row2, Row3 } from '../elementwise/loops.js'
import { cellsOfRows, type ElementwiseOp } from '../elementwise/rows.js'
import type { BinaryKernel, UnaryKernel } from '../table/table.js'
import { BinaryArithmetic, UnaryArithmetic, UnaryPolynomial } from './elementwise.js'
import { powKernel, UnaryExact } from './exact.js'
import { BinaryPolynomial, powF32 } from './functions.js'
import { FusedGradient } from './gradients.js'
import { type BinaryExport, type GradientExport, type LazyInstance, SIMD_FROM, type UnaryExport } from './instance.js'
import { always, by, bySize, loopsOf, type OwnCells, type Rule } from './own.js'
import { compareKernel } from './select.js'

const oneLane: Rule = () => 'wasm'
const bySquare: Rule = (elements) => (elements < SIMD_FROM ? 'loop' : 'simd (loop but for exponent 2)')
const byExponent: Rule = () => 'simd (loop for the exponents 0.5 and -0.5, and for few squares)'

/** A kernel for each dtype that has an export. */
function bySizes(exports: Exports, kernelOf: (dtype: SimdDType, name: never) => object) {
  const made = Object.entries(exports).map(([dtype, name]) => [dtype, kernelOf(dtype as SimdDType, name as never)])
  return by(bySize, Object.fromEntries(made))
}

export function cells(instance: LazyInstance): OwnCells {
  function unary(row: UnaryDefinition, op: ElementwiseOp) {
    const js = loopsOf(op) as object as { readonly [D in SimdDType]: UnaryKernel<ArrayOf[D]> }
    const own = bySizes(row.simd ?? {}, <D extends SimdDType>(dtype: D, name: UnaryExport) => {
      const loop = row.loops?.[dtype] as Row2<ArrayOf[D], ArrayOf[D]> | undefined
      return loop ? new UnaryArithmetic(instance, dtype, name, loop) : new UnaryExact(instance, dtype, name, js[dtype])
    })
    if (row.wasm === undefined) return own
    const function32 = new UnaryPolynomial(instance, row.wasm as UnaryExport)
    if (row.square === undefined) return { ...own, ...by(row.oneLane ? oneLane : always, { float32: function32 }) }
    const squareOf = <D extends 'float32' | 'float64'>(dtype: D) =>
      powKernel<D>(instance, dtype, row.square![dtype] as BinaryExport, js[dtype])
    return {
      ...by(byExponent, { float32: powF32(function32, squareOf('float32')) }),
      ...by(bySquare, { float64: squareOf('float64') }),
    }
  }
  function binary(row: BinaryDefinition) {
    const own = bySizes(row.simd ?? {}, <D extends SimdDType>(dtype: D, name: BinaryExport) => {
      return new BinaryArithmetic(instance, dtype, name, row.loops![dtype] as Row3<ArrayOf[D], ArrayOf[D], ArrayOf[D]>)
    })
    return row.wasm === undefined ? own : by(always, { float32: new BinaryPolynomial(instance, row.wasm as BinaryExport) })
  }
  function compare({ simd, swapped = false }: CompareDefinition, op: ElementwiseOp) {
    const js = loopsOf(op) as object as { readonly [D in SimdDType]: BinaryKernel<ArrayOf[D], Uint8Array> }
    return bySizes(simd, (dtype, name: BinaryExport) => compareKernel(instance, dtype, name, swapped, js[dtype]))
  }
  function grad({ wasm, loop = null }: GradDefinition) {
    return by(loop ? bySize : always, { float32: new FusedGradient(instance, wasm as GradientExport, loop) })
  }
  return cellsOfRows({ unary, binary, compare, grad })
}
