/**
 * The wasm backend's cells of the element-wise ops, by their rows: an export that runs at every size, or exports with the bits of loops, which run for
 * few elements. The kernels are in `elementwise.ts`.
 */
import type { BinaryDefinition, CompareDefinition, Exports, GradDefinition, UnaryDefinition } from '../elementwise/definition.js'
import type { GradRow } from '../elementwise/loops.js'
import { cellsOfRows, type ElementwiseOp } from '../elementwise/rows.js'
import type { Binary, Grad, Unary } from '../table/operands.js'
import { type BinaryExport, type GradientExport, type LazyInstance, SIMD_FROM, type UnaryExport } from './calls/instance.js'
import { always, by, bySize, loopsOf, type OwnCells, type Rule } from './calls/own.js'
import { binaryBySize, binaryPolynomial, gradient, powBySize, powF32, unaryBySize, unaryPolynomial } from './elementwise.js'

const bySquare: Rule = (elements) => (elements < SIMD_FROM ? 'loop' : 'simd (loop but for exponent 2)')
const byExponent: Rule = () => 'simd (loop for the exponents 0.5 and -0.5, and for few squares)'

export function cells(instance: LazyInstance): OwnCells {
  /** A kernel for each dtype that has an export, made of it and of the js backend's. */
  function bySizes<K extends object>(exports: Exports, op: ElementwiseOp, kernelOf: (name: never, loops: K) => K) {
    const loops = loopsOf(op) as Readonly<Record<string, object>>
    const made = Object.entries(exports).map(([dtype, name]) => [dtype, kernelOf(name as never, loops[dtype] as K)])
    return by(bySize, Object.fromEntries(made) as Readonly<Record<string, K>>)
  }
  function unary(row: UnaryDefinition, op: ElementwiseOp) {
    const own = bySizes<Unary>(row.simd ?? {}, op, (name: UnaryExport, loops) => unaryBySize(instance, name, loops))
    if (row.wasm === undefined) return own
    const function32 = unaryPolynomial(instance, row.wasm as UnaryExport)
    if (row.square === undefined) {
      const function64 = row.wasm64 === undefined ? {} : { float64: unaryPolynomial(instance, row.wasm64 as UnaryExport) }
      return { ...own, ...by(always, { float32: function32, ...function64 }) }
    }
    const squares = bySizes<Unary>(row.square, op, (name: BinaryExport, loops) => powBySize(instance, name, loops))
    return {
      ...by(byExponent, { float32: powF32(function32, squares.float32!.kernel) }),
      ...by(bySquare, { float64: squares.float64!.kernel }),
    }
  }
  function binary(row: BinaryDefinition, op: ElementwiseOp) {
    if (row.wasm !== undefined) return by(always, { float32: binaryPolynomial(instance, row.wasm as BinaryExport) })
    return bySizes<Binary>(row.simd ?? {}, op, (name: BinaryExport, loops) => binaryBySize(instance, name, loops))
  }
  function compare({ simd, swapped }: CompareDefinition, op: ElementwiseOp) {
    return bySizes<Binary>(simd, op, (name: BinaryExport, loops) => binaryBySize(instance, name, loops, swapped))
  }
  function grad({ wasm, loop = null }: GradDefinition) {
    return by(loop ? bySize : always, { float32: gradient(instance, wasm as GradientExport, loop && loopOver(loop)) })
  }
  return cellsOfRows({ unary, binary, compare, grad })
}

const loopOver =
  (row: GradRow): Grad =>
  (g, x, out) => {
    const [grad, from, to] = [g.storage.host as Float32Array, x.storage.host as Float32Array, out.storage.host as Float32Array]
    row(out.numel, grad, g.offset, g.isContiguous ? 1 : 0, from, x.offset, to, out.offset)
  }
