/**
 * Values as cells of 8 bytes, in the machine's order, for the usual messages: numbers, strings, bigints, tensors, lists of them. It is faster than msgpack, since
 * nothing is searched for or sized. `codec.ts` packs a body that does not fit by msgpack. Both forms hold what `value-writer.ts` has made of the body.
 *
 *     cell:  ┌──────────────┬──────────────┬───────────────┐
 *            │ kind: 8 bits │ tag: 24 bits │ n: 32 bits    │   then, by the kind (see `CellKind`): a float64, a word of 64 bits, a text or further values
 *            └──────────────┴──────────────┴───────────────┘
 *
 * Cells are few (`CELL_BYTES_MAX`), so a reader that trusts nothing needs neither time nor memory beyond a frame's bytes.
 */
import type { WireLimits } from './limits.js'
import { corrupt, tooDeep, tooLarge } from './wire-errors.js'

/** Numbers of the wire format. `n` is the second half of the cell. */
export const CellKind = {
  null: 0,
  false: 1,
  true: 2,
  /** An integer of 32 bits, which is n. */
  int: 3,
  /** Any other number, in the next cell. */
  float: 4,
  /** An integer from 0 to 2^64 - 1, in the next cell. */
  bigint: 5,
  /** n bytes of UTF-8, filled up to whole cells. */
  text: 6,
  /** n values follow. */
  list: 7,
  /** A list that begins with null and the tag (see `value-tag.ts`); n values follow. */
  special: 8,
} as const

/** The cells of a message, its head included, if they are not followed by packed values. */
export const CELL_BYTES_MAX = 2048
const TAG_SHIFT = 8
const KIND_MASK = 0xff
/** The bytes of UTF-8 for a unit of UTF-16, at most. */
const UTF8_BYTES_MAX = 3
const UINT64_MAX = 2n ** 64n - 1n

/** One buffer as everything that a cell may hold. */
export class Cells {
  readonly bytes: Buffer
  readonly words: Int32Array
  readonly floats: Float64Array
  readonly bigints: BigUint64Array

  constructor(buffer: ArrayBuffer) {
    this.bytes = Buffer.from(buffer)
    this.words = new Int32Array(buffer)
    this.floats = new Float64Array(buffer)
    this.bigints = new BigUint64Array(buffer)
  }
}

/** Writes values one after the other. A method that returns false has met a value that does not fit; then the cells are of no use. */
export class CellWriter {
  /** The next cell. */
  at = 0
  private end = 0
  private cells: Cells = new Cells(new ArrayBuffer(0))

  /** From the cell `at` on there is room for `CELL_BYTES_MAX`. */
  begin(cells: Cells, at: number): void {
    this.cells = cells
    this.at = at
    this.end = at + CELL_BYTES_MAX / 8
  }

  float(value: number): boolean {
    if (this.at >= this.end) return false
    this.cells.floats[this.at++] = value
    return true
  }

  /** An integer from 0 to 2^64 - 1. */
  bigint(value: bigint): boolean {
    if (this.at >= this.end) return false
    this.cells.bigints[this.at++] = value
    return true
  }

  /** All of them; false also if one is not a number. */
  numbers(values: readonly number[]): boolean {
    const { length } = values
    if (!Array.isArray(values) || length > this.end - this.at) return false
    const { floats } = this.cells
    for (let i = 0; i < length; i++) {
      const value = values[i] as number
      if (typeof value !== 'number') return false
      floats[this.at++] = value
    }
    return true
  }

  /** Two words of 32 bits in the cell `at`. */
  pair(at: number, low: number, high: number): void {
    const { words } = this.cells
    words[2 * at] = low
    words[2 * at + 1] = high
  }

  /** The first of the two words. */
  low(at: number, word: number): void {
    this.cells.words[2 * at] = word
  }

  /** A packable value, as `value-writer.ts` makes them. */
  value(value: unknown): boolean {
    switch (typeof value) {
      case 'number':
        if ((value | 0) === value) return this.cell(CellKind.int, value)
        return this.cell(CellKind.float, 0) && this.float(value)
      case 'bigint':
        return value >= 0n && value <= UINT64_MAX && this.cell(CellKind.bigint, 0) && this.bigint(value)
      case 'string':
        return this.text(value)
      case 'boolean':
        return this.cell(value ? CellKind.true : CellKind.false, 0)
      case 'object':
        if (value === null) return this.cell(CellKind.null, 0)
        return Array.isArray(value) && this.list(value)
      default:
        return false
    }
  }

  private cell(kind: number, n: number): boolean {
    const { at } = this
    if (at >= this.end) return false
    this.pair(at, kind, n)
    this.at = at + 1
    return true
  }

  private text(text: string): boolean {
    const { length } = text
    const from = 8 * (this.at + 1)
    if (UTF8_BYTES_MAX * length > 8 * this.end - from) return false
    const { bytes } = this.cells
    const size = length === 0 ? 0 : bytes.write(text, from, 'utf8')
    this.cell(CellKind.text, size)
    this.at += (size + 7) >> 3
    // A message that did not fit may have been here.
    for (let i = from + size; i < 8 * this.at; i++) bytes[i] = 0
    return true
  }

  private list(list: readonly unknown[]): boolean {
    const { length } = list
    let from = 0
    if (length > 1 && list[0] === null) {
      if (!this.cell(CellKind.special | ((list[1] as number) << TAG_SHIFT), length - 2)) return false
      from = 2
    } else if (!this.cell(CellKind.list, length)) return false
    for (let i = from; i < length; i++) if (!this.value(list[i])) return false
    return true
  }
}

/** Reads what a `CellWriter` wrote, or bytes that say so. */
export class CellReader {
  /** The next cell. */
  at = 0
  private end = 0
  private items = 0
  private cells: Cells = new Cells(new ArrayBuffer(0))
  private readonly limits: WireLimits

  constructor(limits: WireLimits) {
    this.limits = limits
  }

  begin(cells: Cells, at: number, end: number): void {
    this.cells = cells
    this.at = at
    this.end = end
    this.items = 0
  }

  /** @throws WIRE_CORRUPT */
  float(): number {
    return whole(this.cells.floats[this.next()] as number)
  }

  /** @throws WIRE_CORRUPT */
  bigint(): bigint {
    return this.cells.bigints[this.next()] as bigint
  }

  /** So many numbers. @throws WIRE_CORRUPT, WIRE_TOO_LARGE */
  numbers(count: number): number[] {
    this.count(count)
    const numbers: number[] = []
    for (let i = 0; i < count; i++) numbers.push(this.float())
    return numbers
  }

  /** The packable form of the next value. @throws WIRE_CORRUPT, WIRE_TOO_LARGE, WIRE_TOO_DEEP */
  value(depth: number): unknown {
    const at = this.next()
    const { words } = this.cells
    const kind = words[2 * at] as number
    const n = words[2 * at + 1] as number
    switch (kind & KIND_MASK) {
      case CellKind.null:
        return null
      case CellKind.false:
        return false
      case CellKind.true:
        return true
      case CellKind.int:
        return n
      case CellKind.float:
        return this.cells.floats[this.next()]
      case CellKind.bigint:
        return this.bigint()
      case CellKind.text:
        return this.text(n)
      case CellKind.list:
        return this.list([], n, depth)
      case CellKind.special:
        return this.list([null, kind >>> TAG_SHIFT], n, depth)
      default:
        throw corrupt('a cell of no kind')
    }
  }

  /** Every cell must belong to a value. @throws WIRE_CORRUPT */
  finish(): void {
    if (this.at !== this.end) throw corrupt('bytes after the message')
  }

  private next(): number {
    if (this.at >= this.end) throw corrupt('it ends too early')
    return this.at++
  }

  private text(length: number): string {
    const { at } = this
    if (length < 0 || length > 8 * (this.end - at)) throw corrupt('a string ends too late')
    this.at = at + ((length + 7) >> 3)
    return this.cells.bytes.toString('utf8', 8 * at, 8 * at + length)
  }

  private list(list: unknown[], length: number, depth: number): unknown[] {
    this.count(length)
    if (depth >= this.limits.depthMax) throw tooDeep('decode', this.limits.depthMax)
    const { words } = this.cells
    for (let i = 0; i < length; i++) {
      const { at } = this
      // The extents of a shape, and most other elements.
      if (at < this.end && words[2 * at] === CellKind.int) {
        list.push(words[2 * at + 1])
        this.at = at + 1
      } else list.push(this.value(depth + 1))
    }
    return list
  }

  /** Each of them has a cell at least. */
  private count(length: number): void {
    if (length < 0 || length > this.end - this.at) throw corrupt('more elements than bytes')
    this.items += length
    const { itemsMax } = this.limits
    if (this.items > itemsMax) throw tooLarge('decode', 'elements in one message', itemsMax, this.items)
  }
}

/** The same number, as a small integer where it is one: V8 keeps those apart, and what they reach stays fast. */
function whole(value: number): number {
  const small = value | 0
  return small === value ? small : value
}
