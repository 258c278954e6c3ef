/**
 * Sorting of the wasm backend: each fibre becomes pairs of key and place, of which a stable radix sort takes a byte of the keys at a time, the same order as
 * `js/sort.ts` has. Where few of many are wanted, a buffer keeps the best so far and what may yet be better; a full buffer is sorted and cut.
 */
import type { DType } from '../../values/dtype.js'
import { BYTES_PER_ELEMENT } from '../../values/dtype.js'
import type { Argsort } from '../table/operands.js'
import { align, type KernelExports, type LazyInstance, type WasmInstance } from './instance.js'
import { always, by, loopsOf, type OwnCells } from './own.js'
import { workedElements } from './pause.js'
import { Staged } from './staged.js'
import { SCRATCH_MAX, SLICE } from './strided.js'

type Fibre = readonly [n: number, x: number, step: number, first: number, descending: boolean]
type KeyBits = 32 | 64
declare module './instance.js' {
  interface KernelExports
    extends Readonly<Record<`sort_keys_${'u8' | 'i32' | 'f32' | 'f64'}`, (...args: [...Fibre, pairs: number]) => void>>,
      Readonly<
        Record<
          `sort_better_${'u8' | 'i32' | 'f32' | 'f64'}`,
          (...args: [...Fibre, bound: number, room: number, pairs: number, state: number]) => void
        >
      >,
      Readonly<Record<`sort_counts_${KeyBits}`, (n: number, pairs: number, counts: number) => void>>,
      Readonly<Record<`sort_pass_${KeyBits}`, (n: number, digit: number, from: number, to: number, starts: number) => void>>,
      Readonly<Record<`sort_few_${KeyBits}`, (n: number, pairs: number) => void>>,
      Readonly<Record<`sort_places_${KeyBits}`, (n: number, pairs: number, out: number, step: number) => void>> {
    readonly sort_starts: (n: number, counts: number) => number
  }
}

const TYPES = { float32: 'f32', float64: 'f64', int32: 'i32', bool: 'u8' } as const satisfies Readonly<Record<DType, string>>

/** Pairs that insertion sorts faster than the counts of a radix sort are cleared. */
const FEW = 48
/** Candidates that a selection gathers at least before it sorts. */
const CANDIDATES_MIN = 128
/** Bytes of the counts of one byte of the keys. */
const COUNTS = 1024

/** The sort of one call: its kernels, and its scratch. */
class Sorter {
  readonly #kernels: KernelExports
  readonly #i32: Int32Array
  readonly #keyBits: KeyBits
  readonly #type: (typeof TYPES)[DType]
  readonly #pairBytes: number
  /** Two buffers of pairs, one of which holds them. */
  #pairs: number
  #spare: number
  readonly #counts: number

  constructor({ kernels, i32 }: WasmInstance, dtype: DType, pairs: number, spare: number, counts: number) {
    this.#kernels = kernels
    this.#i32 = i32
    this.#keyBits = dtype === 'float64' ? 64 : 32
    this.#type = TYPES[dtype]
    this.#pairBytes = pairBytes(dtype)
    this.#pairs = pairs
    this.#spare = spare
    this.#counts = counts
  }

  /** Writes the places of the first `m` of k elements of a fibre in order, `outStep` bytes apart. */
  first(m: number, k: number, x: number, step: number, descending: boolean, out: number, outStep: number): void {
    const room = roomFor(m, k)
    for (let i = 0; i < room; i += SLICE) {
      const n = Math.min(SLICE, room - i)
      this.#kernels[`sort_keys_${this.#type}`](n, x + i * step, step, i, descending, this.#pairs + i * this.#pairBytes)
      workedElements(n)
    }
    this.#sort(room)
    if (room < k) this.#select(m, room, k, x, step, descending)
    for (let i = 0; i < m; i += SLICE) {
      const n = Math.min(SLICE, m - i)
      this.#kernels[`sort_places_${this.#keyBits}`](n, this.#pairs + i * this.#pairBytes, out + i * outStep, outStep)
      workedElements(n)
    }
  }

  /** The first `room` elements of the fibre are sorted; looks at the others. */
  #select(m: number, room: number, k: number, x: number, step: number, descending: boolean): void {
    const state = this.#counts / 4
    let found = m
    for (let i = room; i < k; ) {
      this.#i32[state] = found
      const bound = this.#pairs + (m - 1) * this.#pairBytes
      const n = Math.min(SLICE, k - i)
      this.#kernels[`sort_better_${this.#type}`](n, x + i * step, step, i, descending, bound, room, this.#pairs, this.#counts)
      found = this.#i32[state]!
      i += this.#i32[state + 1]!
      workedElements(this.#i32[state + 1]!)
      if (found < room) continue
      this.#sort(room)
      found = m
    }
    if (found > m) this.#sort(found)
  }

  /** Sorts the first n pairs. */
  #sort(n: number): void {
    const kernels = this.#kernels
    if (n <= FEW) {
      kernels[`sort_few_${this.#keyBits}`](n, this.#pairs)
      workedElements(n)
      return
    }
    const counts = this.#counts
    const digits = this.#keyBits / 8
    this.#i32.fill(0, counts / 4, (counts + digits * COUNTS) / 4)
    for (let i = 0; i < n; i += SLICE) {
      kernels[`sort_counts_${this.#keyBits}`](Math.min(SLICE, n - i), this.#pairs + i * this.#pairBytes, counts)
      workedElements(Math.min(SLICE, n - i))
    }
    for (let digit = 0; digit < digits; digit++) {
      const starts = counts + digit * COUNTS
      if (kernels.sort_starts(n, starts) === 0) continue
      for (let i = 0; i < n; i += SLICE) {
        const count = Math.min(SLICE, n - i)
        kernels[`sort_pass_${this.#keyBits}`](count, digit, this.#pairs + i * this.#pairBytes, this.#spare, starts)
        workedElements(count)
      }
      const sorted = this.#spare
      this.#spare = this.#pairs
      this.#pairs = sorted
    }
  }
}

const pairBytes = (dtype: DType): number => (dtype === 'float64' ? 16 : 8)

/** How many pairs there are at once: all, or those wanted and as many candidates. */
const roomFor = (m: number, k: number): number => Math.min(k, m + Math.max(m, CANDIDATES_MIN))

const argsort =
  (lazy: LazyInstance, loop: Argsort): Argsort =>
  (x, out, outer, k, m, inner, descending) => {
    if (out.numel === 0) return
    const { dtype } = x
    const room = roomFor(m, k) * pairBytes(dtype)
    if (2 * room > SCRATCH_MAX) {
      loop(x, out, outer, k, m, inner, descending)
      return
    }
    const instance = lazy.get()
    const [xs, outs] = [new Staged(instance, x, k * inner), new Staged(instance, out, m * inner)]
    const [pairs, spare, counts] = Staged.begin(instance, [xs, outs], align(room), align(room), 8 * COUNTS) as [number, number, number]
    const sorter = new Sorter(instance, dtype, pairs, spare, counts)
    const size = BYTES_PER_ELEMENT[dtype]
    for (let o = 0; o < outer; o++) {
      const [from, to] = [xs.read(o), outs.at(o)]
      for (let i = 0; i < inner; i++) sorter.first(m, k, from + i * size, inner * size, descending, to + i * 4, inner * 4)
      outs.written(o)
    }
  }

export function cells(instance: LazyInstance): OwnCells {
  const loops = loopsOf('argsort')
  const kernel = (dtype: DType) => argsort(instance, loops[dtype])
  const kernels = { float32: kernel('float32'), float64: kernel('float64'), int32: kernel('int32'), bool: kernel('bool') }
  return { argsort: by(always, kernels) }
}
