/**
 * The row of an element-wise kernel op: its function of numbers, and the names or the texts by which backends compute it. The rows: `unary.ts`,
 * `activations.ts`, `binary.ts` and `compare.ts`. Backends make their cells of them (`rows.ts`), so that no other file names these ops.
 */
import type { ArrayOf } from '../../values/dtype.js'
import type { GradRow, Row2, Row3 } from './loops.js'

/** `p0` and `p1` are the operation's parameters, if it has some. */
export type Scalar1 = (x: number, p0: number, p1: number) => number
export type Scalar2 = (a: number, b: number) => number

/** Why an op has no kernel for a dtype. */
export interface Reason {
  readonly unsupported: string
}

const REAL_ONLY: Reason = { unsupported: 'the function exists for real numbers only; raw operations convert to float32 first' }
export const NOT_ON_BOOL: Reason = { unsupported: 'PyTorch has no such operation on bool' }
export const DIVIDES_REAL: Reason = { unsupported: 'division is true division; raw operations convert to float32 first' }
export const BITS: Reason = { unsupported: 'bits are those of integers; raw operations refuse real numbers' }

/** Dtypes in whose SIMD kernels.wasm computes. */
export type SimdDType = 'float32' | 'float64' | 'int32'
/** Names of exports of kernels.wasm. */
type Export32 = `${string}_f32`
type Export64 = `${string}_f64`
export interface Exports {
  readonly float32?: Export32
  readonly float64?: Export64
  readonly int32?: `${string}_i32`
}
/** The names of exports in a table of rows. */
export type ExportsIn<Rows> = Rows extends unknown ? Named<Rows[keyof Rows]> : never
type Named<Row> =
  | (Row extends { readonly wasm: infer Name } ? Name : never)
  | (Row extends { readonly wasm64: infer Name } ? Name : never)
  | (Row extends { readonly simd: infer Names } ? Names[keyof Names] : never)

/** A function of numbers for each kind of dtype. 'js': the one of real numbers. */
export interface Functions<F> {
  /** For real numbers, in double precision; storing rounds to the dtype. */
  readonly js: F | Reason
  /** For int32, wrapping around at 32 bits (storing does it for sums). Default: none, the function is one of real numbers. */
  readonly int32?: F | 'js' | Reason
  /** Of 0 and 1. Default: none. */
  readonly bool?: F | 'js'
  /** The body of a gpu.js function of `v` (of two: `va`, `vb`), `p0` and `p1`. Default: none, without a function of real numbers. */
  readonly gpujs?: string
  /** The same for bool, whose 0 and 1 are exact in float32. Default: that of float32. */
  readonly gpujsBool?: string
}

/**
 * A cheap op of float32 as instructions on four lanes, in the order of a stack, for chains (`wasm/lanes/`): `a` and `b` are the operands (of a gradient: `a` is the
 * gradient), `p0` and `p1` the parameters, `0` and `1` numbers in all lanes. A bool is a mask of four lanes. The instructions are those of the export.
 */
export interface InLanes {
  readonly lanes?: string
}

export interface UnaryDefinition extends Functions<Scalar1>, InLanes {
  /** Loops compiled for this op alone. Default: one that calls `js`. */
  readonly loops?: { readonly [D in SimdDType]?: Row2<ArrayOf[D], ArrayOf[D]> }
  /** The export of kernels.wasm that computes float32 at every size, because no loop has its bits. */
  readonly wasm?: Export32
  /** The same for float64. */
  readonly wasm64?: Export64
  /** Exports with the bits of the loops, which run for few elements. */
  readonly simd?: Exports
  /** p0 is an exponent: 2 is a product by these exports, ±0.5 are roots by loops (PyTorch's as well). */
  readonly square?: Exports
  /** `lanes`, where p0 is 2. */
  readonly lanesOfSquare?: string
}

export interface BinaryDefinition extends Functions<Scalar2>, InLanes {
  readonly loops?: { readonly [D in SimdDType]?: Row3<ArrayOf[D], ArrayOf[D], ArrayOf[D]> } & { readonly bool?: BoolLoop }
  readonly wasm?: Export32
  readonly simd?: Exports
}

/** The output is bool. */
export interface CompareDefinition extends InLanes {
  readonly js: Scalar2
  readonly loops?: { readonly bool: BoolLoop }
  readonly simd: Exports
  /** The exports take a and b the other way round: a > b is b < a, NaN or not. */
  readonly swapped?: boolean
  readonly gpujs: string
}

type BoolLoop = Row3<Uint8Array, Uint8Array, Uint8Array>

/** A gradient times the slope of an activation. Real numbers alone. */
export interface GradDefinition extends InLanes {
  /** The slope at the activation's result (relu, tanh, sigmoid) or its argument; p0 and p1 are the activation's. */
  readonly slope: Scalar1
  /** Where the slope is 0 so is the gradient, whatever arrived (NaN, too), as PyTorch's. */
  readonly gated?: boolean
  readonly wasm: Export32
  /** A loop with the bits of that export, which runs for few elements. Default: the export runs at every size. */
  readonly loop?: GradRow | null
  /** Computes with the gradient `vg` and with `v`. */
  readonly gpujs: string
}

/** An op's function for each kind of dtype, or why it has none. */
export function functionsOf<F extends object>(row: Functions<F>): Readonly<Record<'real' | 'int32' | 'bool', F | Reason>> {
  const { js, int32 = REAL_ONLY, bool } = row
  const ofInt = int32 === 'js' ? js : int32
  return { real: js, int32: ofInt, bool: bool === 'js' ? js : (bool ?? ('unsupported' in ofInt ? ofInt : NOT_ON_BOOL)) }
}

/** An export for each dtype, named as the others are. */
export function exportsOf<N extends string>(name: N) {
  return { float32: `${name}_f32`, float64: `${name}_f64`, int32: `${name}_i32` } as const
}
