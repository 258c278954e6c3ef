/**
 * Values as cells of 8 bytes, in the machine's order, for the usual messages: numbers, strings, bigints, tensors, lists and objects of them. It is faster than msgpack, since
 * nothing is searched for or sized. `codec.ts` packs a body that does not fit by msgpack. Both forms hold what `value-writer.ts` has made of the body.
 *
 *     cell:  ┌──────────────┬──────────────┬───────────────┐
 *            │ kind: 8 bits │ tag: 24 bits │ n: 32 bits    │   then, by the kind (see `CellKind`): a float64, a word of 64 bits, a text or further values
 *            └──────────────┴──────────────┴───────────────┘
 *
 * Cells are few (`CELL_BYTES_MAX`), so a reader that trusts nothing needs neither time nor memory beyond a frame's bytes.
 */
import type { WireLimits } from './limits.js'
import { EXTENSION_TAG_MAX } from './value-tag.js'
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
  /** An object: n keys, each a text, each followed by its value. */
  object: 9,
} as const

/** The bytes of a message's cells, its head included. A message of more is packed. */
export const CELL_BYTES_MAX = 2048
const TAG_SHIFT = 8
const KIND_MASK = 0xff
/** The bytes of UTF-8 for a unit of UTF-16, at most. */
const UTF8_BYTES_MAX = 3
const UINT64_MAX = 2n ** 64n - 1n
const ASCII_MAX = 0x7f
/** Below this length a loop is faster than Node's call. */
const SHORT_TEXT_BYTES = 32
const SHORT_TEXT_WORDS = SHORT_TEXT_BYTES / 4
/** A power of 2. */
const SLOTS = 256

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

const NO_CELLS = new Cells(new ArrayBuffer(0))

/** Writes lists of packable values, as `value-writer.ts` makes them. One call writes all of a list: a call for each value would cost more than the value. */
export class CellWriter {
  /** The next cell. */
  at = 0
  private end = 0
  private cells = NO_CELLS

  begin(cells: Cells, at: number, end: number): void {
    this.cells = cells
    this.at = at
    this.end = end
  }

  /** The values of the list, from its element `from` on. False: one of them does not fit, and the cells are of no use. */
  values(list: readonly unknown[], from: number): boolean {
    const { end } = this
    const { words, floats, bigints } = this.cells
    let { at } = this
    for (let i = from; i < list.length; i++) {
      if (at >= end) return false
      const value = list[i]
      let kind: number = CellKind.null
      let n = 0
      let inner: readonly unknown[] | null = null
      let first = 0
      switch (typeof value) {
        case 'number':
          n = value | 0
          if (n === value) kind = CellKind.int
          else {
            n = 0
            kind = CellKind.float
            if (at + 1 >= end) return false
            floats[at + 1] = value
          }
          break
        case 'boolean':
          kind = value ? CellKind.true : CellKind.false
          break
        case 'bigint':
          if (at + 1 >= end || value < 0n || value > UINT64_MAX) return false
          kind = CellKind.bigint
          bigints[at + 1] = value
          break
        case 'string':
          n = this.text(value, at + 1)
          if (n < 0) return false
          kind = CellKind.text
          break
        case 'object':
          if (value === null) break
          if (Array.isArray(value)) {
            inner = value
            n = value.length
            kind = CellKind.list
            if (n > 1 && value[0] === null && isTag(value[1])) {
              kind = CellKind.special | (value[1] << TAG_SHIFT)
              n -= 2
              first = 2
            }
          } else {
            inner = entriesOf(value as Record<string, unknown>)
            n = inner.length >> 1
            kind = CellKind.object
          }
          break
        default:
          return false
      }
      words[2 * at] = kind
      words[2 * at + 1] = n
      at++
      if (kind < CellKind.float) continue
      if (kind < CellKind.text) at++
      else if (inner === null) at += (n + 7) >> 3
      else {
        this.at = at
        if (!this.values(inner, first)) return false
        at = this.at
      }
    }
    this.at = at
    return true
  }

  /** How many bytes it has; -1: too many. */
  private text(text: string, at: number): number {
    const { length } = text
    const from = 8 * at
    if (UTF8_BYTES_MAX * length > 8 * this.end - from) return -1
    const { bytes } = this.cells
    let size = 0
    if (length <= SHORT_TEXT_BYTES) {
      for (; size < length; size++) {
        const code = text.charCodeAt(size)
        if (code > ASCII_MAX) break
        bytes[from + size] = code
      }
    }
    if (size < length) size = bytes.write(text, from, 'utf8')
    // A message that did not fit may have been here.
    for (let i = from + size; (i & 7) !== 0; i++) bytes[i] = 0
    return size
  }
}

/** A list within an error may begin with null and anything else. */
function isTag(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= EXTENSION_TAG_MAX && Number.isInteger(value)
}

/** Keys and values in turn. */
function entriesOf(object: Readonly<Record<string, unknown>>): unknown[] {
  const entries: unknown[] = []
  for (const key of Object.keys(object)) entries.push(key, object[key])
  return entries
}

/** Reads what a `CellWriter` wrote, or bytes that say so. */
export class CellReader {
  /** The next cell. */
  at = 0
  private end = 0
  private items = 0
  private cells = NO_CELLS
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

  /** Adds the next values to the list. `depth`: lists around them, and the message. @throws WIRE_CORRUPT, WIRE_TOO_LARGE, WIRE_TOO_DEEP */
  values(list: unknown[], count: number, depth: number): unknown[] {
    const { end, limits } = this
    const { words, floats, bigints } = this.cells
    // Each of them has a cell at least.
    if (count < 0 || count > end - this.at) throw corrupt('more elements than bytes')
    this.items += count
    if (this.items > limits.itemsMax) throw tooLarge('decode', 'elements in one message', limits.itemsMax, this.items)
    if (depth > limits.depthMax) throw tooDeep('decode', limits.depthMax)
    for (let i = 0; i < count; i++) {
      const at = this.at++
      // One of them has taken the cells of those after it.
      if (at >= end) throw corrupt('it ends too early')
      const word = words[2 * at] as number
      const n = words[2 * at + 1] as number
      const kind = word & KIND_MASK
      let value: unknown = null
      switch (kind) {
        case CellKind.int:
          value = n
          break
        case CellKind.null:
          break
        case CellKind.special:
          value = this.values([null, word >>> TAG_SHIFT], n, depth + 1)
          break
        case CellKind.list:
          value = this.values([], n, depth + 1)
          break
        case CellKind.object:
          value = objectOf(this.values([], 2 * n, depth + 1))
          break
        case CellKind.float:
        case CellKind.bigint:
          if (this.at >= end) throw corrupt('it ends too early')
          value = kind === CellKind.float ? floats[this.at++] : bigints[this.at++]
          break
        case CellKind.text:
          value = this.text(n)
          break
        case CellKind.true:
        case CellKind.false:
          value = kind === CellKind.true
          break
        default:
          throw corrupt('a cell of no kind')
      }
      list.push(value)
    }
    return list
  }

  private text(length: number): string {
    const { at } = this
    if (length < 0 || length > 8 * (this.end - at)) throw corrupt('a string ends too late')
    this.at = at + ((length + 7) >> 3)
    return length <= SHORT_TEXT_BYTES ? texts.at(this.cells, at, length) : textAt(this.cells, at, length)
  }
}

function textAt({ bytes }: Cells, at: number, length: number): string {
  return bytes.toString('utf8', 8 * at, 8 * at + length)
}

function objectOf(entries: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (let i = 0; i < entries.length; i += 2) {
    const key = entries[i]
    // The writer sends an object with such a key in another way.
    if (typeof key !== 'string' || key === '__proto__') throw corrupt('a key that is not a string, or not plain')
    object[key] = entries[i + 1]
  }
  return object
}

/** Short texts that were read lately: names of functions and keys come again and again, and the making of a string costs more than all else of it. */
class Texts {
  private readonly texts: string[] = new Array<string>(SLOTS).fill('')
  private readonly lengths = new Uint8Array(SLOTS)
  private readonly words = new Int32Array(SLOTS * SHORT_TEXT_WORDS)

  at(cells: Cells, at: number, length: number): string {
    if (length === 0) return ''
    const { words, lengths } = this
    const from = 2 * at
    const count = 2 * ((length + 7) >> 3)
    let hash = length
    for (let i = 0; i < count; i++) hash = (hash * 31 + (cells.words[from + i] as number)) | 0
    const slot = (hash ^ (hash >>> 16)) & (SLOTS - 1)
    const own = slot * SHORT_TEXT_WORDS
    let same = lengths[slot] === length
    for (let i = 0; same && i < count; i++) same = words[own + i] === cells.words[from + i]
    if (same) return this.texts[slot] as string
    const text = textAt(cells, at, length)
    this.texts[slot] = text
    lengths[slot] = length
    for (let i = 0; i < count; i++) words[own + i] = cells.words[from + i] as number
    return text
  }
}

const texts = new Texts()
