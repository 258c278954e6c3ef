/**
 * Sorting of the wasm backend: each fibre becomes pairs of key and place, of which a stable radix sort takes a byte of the keys at a time, the same order as
 * `js/sort.ts` has. Where few of many are wanted, a buffer keeps the best so far and what may yet be better; a full buffer is sorted and cut.
 */
import { BYTES_PER_ELEMENT } from '../../../values/dtype.js'
import type { Argsort } from '../../table/operands.js'
import { align, type LazyInstance, type WasmInstance } from '../calls/instance.js'
import { always, by, loopsOf, type OwnCells } from '../calls/own.js'
import { workedElements } from '../calls/pause.js'
import { Staged } from '../calls/staged.js'
import { SCRATCH_MAX, SLICE } from '../calls/strided.js'

type Fibre = readonly [n: number, x: number, step: number, first: number, descending: boolean]
type Type = 'u8' | 'i32' | 'f32' | 'f64'
type KeyBits = 32 | 64
/** The parts of a sort; see `assembly/places/sort.ts`. */
interface Parts {
  readonly keys: (...args: [...Fibre, pairs: number]) => void
  readonly better: (...args: [...Fibre, bound: number, room: number, pairs: number, state: number]) => void
  readonly counts: (n: number, pairs: number, counts: number) => void
  readonly pass: (n: number, digit: number, from: number, to: number, starts: number) => void
  readonly few: (n: number, pairs: number) => void
  readonly places: (n: number, pairs: number, out: number, step: number) => void
  readonly starts: (n: number, counts: number) => number
}
declare module '../calls/instance.js' {
  interface KernelExports
    extends Readonly<Record<`sort_keys_${Type}`, Parts['keys']>>,
      Readonly<Record<`sort_better_${Type}`, Parts['better']>>,
      Readonly<Record<`sort_counts_${KeyBits}`, Parts['counts']>>,
      Readonly<Record<`sort_pass_${KeyBits}`, Parts['pass']>>,
      Readonly<Record<`sort_few_${KeyBits}`, Parts['few']>>,
      Readonly<Record<`sort_places_${KeyBits}`, Parts['places']>> {
    readonly sort_starts: Parts['starts']
  }
}

function partsOf({ kernels }: WasmInstance, type: Type, bits: KeyBits): Parts {
  return {
    keys: kernels[`sort_keys_${type}`],
    better: kernels[`sort_better_${type}`],
    counts: kernels[`sort_counts_${bits}`],
    pass: kernels[`sort_pass_${bits}`],
    few: kernels[`sort_few_${bits}`],
    places: kernels[`sort_places_${bits}`],
    starts: kernels.sort_starts,
  }
}

/** Pairs that insertion sorts faster than the counts of a radix sort are cleared. */
const FEW = 48
/** Candidates that a selection gathers at least before it sorts. */
const CANDIDATES_MIN = 128
/** Bytes of the counts of one byte of the keys. */
const COUNTS = 1024

/** The sort of one call: its kernels, and its scratch. */
class Sorter {
  readonly #parts: Parts
  readonly #i32: Int32Array
  /** Bytes of a key, and of a pair. */
  readonly #digits: number
  readonly #pairBytes: number
  /** Two buffers of pairs, one of which holds them. */
  #pairs: number
  #spare: number
  readonly #counts: number

  constructor(parts: Parts, i32: Int32Array, pairBytes: number, pairs: number, spare: number, counts: number) {
    this.#parts = parts
    this.#i32 = i32
    this.#digits = pairBytes / 2
    this.#pairBytes = pairBytes
    this.#pairs = pairs
    this.#spare = spare
    this.#counts = counts
  }

  /** Writes the places of the first `m` of k elements of a fibre in order, `outStep` bytes apart. */
  first(m: number, k: number, x: number, step: number, descending: boolean, out: number, outStep: number): void {
    const room = roomFor(m, k)
    for (let i = 0; i < room; i += SLICE) {
      const n = Math.min(SLICE, room - i)
      this.#parts.keys(n, x + i * step, step, i, descending, this.#pairs + i * this.#pairBytes)
      workedElements(n)
    }
    this.#sort(room)
    if (room < k) this.#select(m, room, k, x, step, descending)
    for (let i = 0; i < m; i += SLICE) {
      const n = Math.min(SLICE, m - i)
      this.#parts.places(n, this.#pairs + i * this.#pairBytes, out + i * outStep, outStep)
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
      this.#parts.better(n, x + i * step, step, i, descending, bound, room, this.#pairs, this.#counts)
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
    const parts = this.#parts
    if (n <= FEW) {
      parts.few(n, this.#pairs)
      workedElements(n)
      return
    }
    const counts = this.#counts
    const digits = this.#digits
    this.#i32.fill(0, counts / 4, (counts + digits * COUNTS) / 4)
    for (let i = 0; i < n; i += SLICE) {
      parts.counts(Math.min(SLICE, n - i), this.#pairs + i * this.#pairBytes, counts)
      workedElements(Math.min(SLICE, n - i))
    }
    for (let digit = 0; digit < digits; digit++) {
      const starts = counts + digit * COUNTS
      if (parts.starts(n, starts) === 0) continue
      for (let i = 0; i < n; i += SLICE) {
        const count = Math.min(SLICE, n - i)
        parts.pass(count, digit, this.#pairs + i * this.#pairBytes, this.#spare, starts)
        workedElements(count)
      }
      const sorted = this.#spare
      this.#spare = this.#pairs
      this.#pairs = sorted
    }
  }
}

/** How many pairs there are at once: all, or those wanted and as many candidates. */
const roomFor = (m: number, k: number): number => Math.min(k, m + Math.max(m, CANDIDATES_MIN))

const argsort = (lazy: LazyInstance, type: Type, loop: Argsort): Argsort => {
  const bits = type === 'f64' ? 64 : 32
  const pairBytes = bits / 4
  let parts: Parts | null = null
  return (x, out, outer, k, m, inner, descending) => {
    if (out.numel === 0) return
    const room = align(roomFor(m, k) * pairBytes)
    if (2 * room > SCRATCH_MAX) {
      loop(x, out, outer, k, m, inner, descending)
      return
    }
    const instance = lazy.get()
    if (parts === null) parts = partsOf(instance, type, bits)
    const [xs, outs] = [new Staged(instance, x, k * inner), new Staged(instance, out, m * inner)]
    const [pairs, spare, counts] = Staged.begin(instance, [xs, outs], room, room, 8 * COUNTS) as [number, number, number]
    const sorter = new Sorter(parts, instance.i32, pairBytes, pairs, spare, counts)
    const size = BYTES_PER_ELEMENT[x.dtype]
    for (let o = 0; o < outer; o++) {
      const [from, to] = [xs.read(o), outs.at(o)]
      for (let i = 0; i < inner; i++) sorter.first(m, k, from + i * size, inner * size, descending, to + i * 4, inner * 4)
      outs.written(o)
    }
  }
}

export function cells(instance: LazyInstance): OwnCells {
  const loops = loopsOf('argsort')
  return {
    argsort: by(always, {
      float32: argsort(instance, 'f32', loops.float32),
      float64: argsort(instance, 'f64', loops.float64),
      int32: argsort(instance, 'i32', loops.int32),
      bool: argsort(instance, 'u8', loops.bool),
    }),
  }
}
