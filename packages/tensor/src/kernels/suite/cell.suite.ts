/**
 * One op × dtype of a kernel suite: the kernel under test and the oracle's, inputs with special values for both, and the comparison of
 * all that they wrote. The families in this folder use it, which know each kernel's arguments; `kernel.suite.ts` names them.
 */
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { allocate, DTYPES, type DType, type TypedArray } from '../../values/dtype.js'
import type { Backend, KernelCells } from '../table/backend.js'
import { KERNEL_OPS, type KernelOp } from '../table/table.js'
import { broadcasting, drawnLayout, drawnView, elementsOf, type Layout, layouts } from './layouts.suite.js'
import { observed, wanted } from './traits.suite.js'

export interface KernelSuiteOptions {
  readonly seed: number
  /** Ops of which every bit must agree with the oracle (its arithmetic is correctly rounded), for these dtypes. */
  readonly exact: (op: KernelOp, dtype: DType) => boolean
  /** Cells that the oracle has and this backend has not; default: none. */
  readonly lacks?: (op: KernelOp, dtype: DType) => boolean
  /** The table over which this backend lays its own. Cells that are this table's are not compared again: the suite of its own backend does. Default: none. */
  readonly over?: KernelCells
  /** Special inputs that this backend treats differently, by op, each with its reason; they are left out. */
  readonly leaveOut?: Readonly<Partial<Record<KernelOp, { readonly values: readonly number[]; readonly reason: string }>>>
  /** The largest number of elements that is tried; slow backends take fewer. */
  readonly elementsMax?: number
  /** Shapes of element-wise operations, instead of all of the suite's. */
  readonly shapes?: readonly (readonly number[])[]
  /** The reference, instead of the oracle. */
  readonly expected?: Backend
  /** Each list of sizes, shapes or layouts is replaced by so many drawn ones. Default: the lists of the suite. */
  readonly drawn?: number
}

// In jest's realm a look-up of a global costs more than what the loops below do with it.
const { exp, floor, log, max, min } = Math
const { isNaN: isNan } = Number

/** The type for all dtypes, so that one test function can call them. */
export type Any = TypedArray
export type Block = readonly [number, number, number]
type Run<K> = (kernel: K, out: Any) => void

const SHAPES: readonly (readonly number[])[] = [
  [],
  [1],
  [7],
  [0],
  [3, 0, 2],
  [4, 5],
  [2, 3, 4],
  [2, 1, 3, 2],
  [33],
  [97],
  [3, 130],
  [3, 2, 5, 9],
  [35, 33],
  [5000],
]
const RUBBISH = 77
/** Most elements of a drawn shape: some are more than is staged at once. */
const DRAWN_MAX = 2600
/** Other code begins at these extents, or blocks end there. */
const EDGES = [4, 8, 16, 32, 48, 64, 80, 128, 256, 2048]

export const SPECIAL: Readonly<Record<DType, readonly number[]>> = {
  float32: [
    0,
    -0,
    1,
    -1,
    0.5,
    Number.NaN,
    Infinity,
    -Infinity,
    1e-40,
    -1e-40,
    3.4e38,
    -3.4e38,
    1e-30,
    88.7,
    -88.7,
    -104,
    9.02,
    16777217,
    2147483648,
  ],
  float64: [0, -0, 1, -1, 0.5, Number.NaN, Infinity, -Infinity, 5e-324, 1e308, -1e308, 1e-300, 709, -745, 2 ** 53],
  int32: [0, 1, -1, 2147483647, -2147483648, 65536, -65537, 16777217],
  bool: [0, 1],
}

/** One op × dtype: the kernel under test and the oracle's. */
export class Cell {
  checked = 0
  /** Traits not yet tried with the kernel. */
  readonly missing: Set<string>
  readonly op: KernelOp
  readonly dtype: DType
  readonly #kernel: object
  readonly #reference: object
  readonly #exact: boolean
  readonly #left: readonly number[]
  readonly shapes: readonly (readonly number[])[]
  readonly #elementsMax: number
  readonly #drawn: number
  readonly random: () => number

  constructor(op: KernelOp, dtype: DType, kernel: object, reference: object, options: KernelSuiteOptions, elementsMax: number) {
    this.op = op
    this.dtype = dtype
    this.missing = new Set(wanted(op, dtype))
    this.#kernel = observed(kernel, this.missing)
    this.#reference = reference
    this.#exact = options.exact(op, dtype)
    this.#left = options.leaveOut?.[op]?.values ?? []
    this.#elementsMax = elementsMax
    this.#drawn = options.drawn ?? 0
    const generator = xoroshiro128plus(options.seed + KERNEL_OPS.indexOf(op) * 8 + DTYPES.indexOf(dtype))
    this.random = () => (generator.next() >>> 0) / 2 ** 32
    this.shapes = this.sizes(options.shapes ?? SHAPES, () => this.#shape()).filter((shape) => elementsOf(shape) <= elementsMax)
  }

  // ---- sizes

  /** The sizes that a family tries: its own, or drawn ones. */
  sizes<T>(own: readonly T[], draw: () => T): readonly T[] {
    return this.#drawn === 0 ? own : Array.from({ length: this.#drawn }, draw)
  }

  /** A whole number from 0 on. */
  below(end: number): number {
    return floor(this.random() * end)
  }

  /** One of a list. */
  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }

  /** A drawn extent of at most `most`: small ones more often, and one in six next to a size at which other code begins. */
  extent(most: number, least = 1): number {
    if (least === 0 && this.random() < 0.04) return 0
    const size = this.random() < 1 / 6 ? this.one(EDGES) + this.below(3) - 1 : floor(exp(this.random() * log(most + 1)))
    return max(least, min(most, size))
  }

  /** Drawn extents with a product of at most `most`. */
  extents(rank: number, most: number, least = 1): number[] {
    const all: number[] = []
    for (let left = most; all.length < rank; left = floor(left / max(1, all.at(-1)!))) all.push(this.extent(max(1, left), least))
    // The first tend to be the largest.
    const turn = this.below(rank)
    return [...all.slice(turn), ...all.slice(0, turn)]
  }

  /** Three drawn extents, as [outer, k, inner]: every second time the last is 1. */
  block(most: number, least = 1): Block {
    const [a, b, c] = this.extents(3, most, least) as [number, number, number]
    return this.random() < 0.5 ? [a, max(least, min(b * c, floor(most / max(1, a)))), 1] : [a, b, c]
  }

  #shape(): number[] {
    return this.extents(this.below(5), DRAWN_MAX, 0)
  }

  layouts(shape: readonly number[], repeated: boolean): readonly Layout[] {
    return this.sizes(this.#drawn === 0 ? layouts(shape, repeated) : [], () => drawnLayout(shape, repeated, this.random))
  }

  /** The layouts of an operand that broadcasts. Always more than one. */
  broadcasting(shape: readonly number[]): readonly Layout[] {
    if (this.#drawn === 0) return broadcasting(shape)
    return [drawnLayout(shape, true, this.random), ...this.sizes([], () => drawnView(shape, this.random))]
  }

  // ---- inputs

  /** Random numbers of a sensible size for the op, and every special value somewhere if it fits. */
  values(length: number, dtype: DType = this.dtype, special = true): Any {
    const out = allocate(dtype, length)
    for (let i = 0; i < length; i++) out[i] = this.#number(dtype)
    if (!special) return out
    const values = SPECIAL[dtype].filter((v) => !this.isLeftOut(v))
    if (length >= values.length) {
      // Each in a place of its own, so that none is lost.
      const [first, step] = [floor(this.random() * length), floor(length / values.length)]
      for (let i = 0; i < values.length; i++) out[(first + i * step) % length] = values[i]!
    }
    if (length > 0 && length < values.length && values.length > 0 && this.random() < 0.5)
      out[0] = values[Math.floor(this.random() * values.length)]!
    return out
  }

  isLeftOut(value: number): boolean {
    return this.#left.some((left) => Object.is(left, value))
  }

  #number(dtype: DType): number {
    const u = this.random()
    if (dtype === 'bool') return u < 0.5 ? 0 : 1
    if (dtype === 'int32') return floor((u - 0.5) * 2000)
    const scale = 10 ** floor(this.random() * 4 - 2)
    return (u - 0.5) * 2 * scale
  }

  indices(n: number, below: number): Int32Array {
    return Int32Array.from({ length: n }, () => Math.floor(this.random() * below))
  }

  /** Backends that compile a kernel per size get fewer and smaller ones. */
  get isSlow(): boolean {
    return this.#elementsMax < 5000
  }

  /** x, and for real numbers copies of it with a NaN and with an infinity (unless `nanAlone`) in the middle. */
  variants(x: Any, nanAlone = false): Any[] {
    if (x.length < 8 || this.dtype === 'int32' || this.dtype === 'bool') return [x]
    return [x, ...(nanAlone ? [Number.NaN] : [Number.NaN, Infinity]).map((value) => x.with(x.length >> 1, value))]
  }

  // ---- comparison

  /** Runs both kernels on equal copies of `out` and compares all of it. */
  compare<K>(what: string, out: Any, terms: number, scale: number, run: Run<K>): void {
    const got = out.slice()
    const want = out.slice()
    run(this.#kernel as K, got)
    run(this.#reference as K, want)
    this.#equal(what, got, want, terms, scale)
    // There was a place after the output, which the oracle left as it was.
    if (out.length > 0 && Object.is(want.at(-1), out.at(-1))) this.missing.delete('guarded')
  }

  #equal(what: string, got: Any, want: Any, terms: number, scale: number): void {
    this.checked++
    for (let i = 0; i < want.length; i++) {
      const g = got[i]!
      const w = want[i]!
      if (g === w ? g !== 0 || 1 / g === 1 / w : isNan(g) && isNan(w)) continue
      if (!this.#exact && close(g, w, got.constructor === Float64Array ? 1e-12 : 1e-5, terms, scale)) continue
      throw new Error(`${this.op} ${this.dtype}, ${what}, element ${i} of ${want.length}: got ${show(g)}, expected ${show(w)}`)
    }
  }

  rubbish(dtype: DType, length: number): Any {
    return allocate(dtype, length).fill(dtype === 'bool' ? 1 : RUBBISH)
  }
}

/** 1e-5 (float64: 1e-12) relative to result or terms, growing with √K for sums of K terms. */
function close(got: number, want: number, tolerance: number, terms: number, scale: number): boolean {
  // A zero has its sign where it is one number's function; the sign of a sum's zero depends on its order.
  if (got === 0 && want === 0 && scale === 0) return false
  // At the edge of the range one side may round to infinity; a denormal result has few digits.
  const atLeast = tolerance === 1e-5 ? 1.2e-38 : 2.3e-308
  return Math.abs(got - want) <= tolerance * (Math.sqrt(terms) * Math.max(Math.abs(want), scale) + atLeast)
}

/** The largest finite absolute value. */
export function maxAbs(x: Any): number {
  // Without globals in the loop: in jest's realm each look-up costs more than the rest.
  let m = 0
  for (let i = 0; i < x.length; i++) {
    const v = x[i]!
    const size = v < 0 ? -v : v
    if (size > m && size - size === 0) m = size
  }
  return m
}

function show(x: number): string {
  return Object.is(x, -0) ? '-0' : String(x)
}
