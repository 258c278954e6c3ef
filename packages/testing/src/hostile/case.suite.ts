/**
 * A hostile input is a list of byte strings for one of the library's readers, as a peer could send them. A target makes inputs from a generator, and feeds
 * them to its reader; it throws if a promise is broken. `runs.suite.ts` runs many, `corpus.suite.ts` keeps those that once broke one.
 */
import { isPostgradError } from '@postgrad/base'

/** Taken once: under jest each look-up of a global costs more than a multiplication. */
const { imul } = Math

/** mulberry32: small, quick, and good enough to choose cases, of which there are millions. */
export class Random {
  private state: number

  constructor(seed: number) {
    this.state = imul(seed + 1, 0x9e3779b1)
  }

  /** 32 bits. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0
    let t = this.state
    t = imul(t ^ (t >>> 15), t | 1)
    t ^= t + imul(t ^ (t >>> 7), t | 61)
    return (t ^ (t >>> 14)) >>> 0
  }

  /** From 0 to n - 1. */
  below(n: number): number {
    return this.next() % n
  }

  coin(): boolean {
    return this.next() >>> 31 === 1
  }
}

export type Input = readonly Uint8Array[]

/** Whether the reader took it or refused it; what it said is the kind of case, for the report. */
export type Outcome = string

export interface Target {
  readonly name: string
  /** How many of a hundred inputs are for it. */
  readonly share: number
  make(random: Random): Input
  /** Gives the input to the reader, and then something honest, if the reader continues. @throws whatever is not promised */
  feed(input: Input): Outcome | Promise<Outcome>
  /** After many: the reader's state, which was shared by them, still serves. @throws whatever is not promised */
  check?(): void | Promise<void>
}

/** A code that a peer may cause. @throws anything else, as it is */
export function refusedWith(error: unknown, codes: RegExp): Outcome {
  if (!isPostgradError(error) || !codes.test(error.code)) throw error
  return error.code
}

/** @throws Error if not */
export function promised(is: boolean, what: string): void {
  if (!is) throw new Error(`broken: ${what}`)
}

export const pick = <T>(random: Random, list: readonly T[]): T => list[random.below(list.length)] as T

/** Numbers at which readers go wrong. */
export const EDGES = [
  0,
  1,
  2,
  3,
  4,
  7,
  8,
  9,
  15,
  16,
  31,
  32,
  63,
  64,
  127,
  128,
  255,
  256,
  4095,
  4096,
  4097,
  8191,
  8192,
  16_384,
  32_767,
  32_768,
  32_776,
  65_535,
  65_536,
  262_144,
  262_145,
  2 ** 24 - 1,
  2 ** 30,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 8,
  2 ** 32 - 1,
] as const

export function bytesOf(random: Random, length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i += 4) {
    const word = random.next()
    bytes[i] = word
    bytes[i + 1] = word >>> 8
    bytes[i + 2] = word >>> 16
    bytes[i + 3] = word >>> 24
  }
  return bytes
}

/** One change of the bytes, where they are: flips, edges, cuts, pieces that are doubled, moved, taken out or put in from elsewhere. */
export function mutated(random: Random, bytes: Uint8Array, other: Uint8Array = bytes): Uint8Array {
  const { length } = bytes
  if (length === 0) return bytesOf(random, random.below(20))
  const at = random.below(length)
  const count = 1 + random.below(Math.min(length - at, 1 << random.below(7)))
  switch (random.below(10)) {
    case 0:
    case 1: {
      const out = Uint8Array.from(bytes)
      out[at] = (out[at] as number) ^ (1 << random.below(8))
      return out
    }
    case 2: {
      const out = Uint8Array.from(bytes)
      out[at] = pick(random, [0, 1, 0x7f, 0x80, 0xff, random.below(256)])
      return out
    }
    case 3: {
      const out = Uint8Array.from(bytes)
      const width = pick(random, [1, 2, 4, 8])
      const view = new DataView(out.buffer)
      const place = (at >> 2) << 2
      if (place + width > length) return out.subarray(0, at)
      const value = pick(random, EDGES)
      if (width === 1) view.setUint8(place, value)
      else if (width === 2) view.setUint16(place, value, true)
      else if (width === 4) view.setUint32(place, value, true)
      else view.setFloat64(place, pick(random, [value, -1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY]), true)
      return out
    }
    case 4:
      return bytes.slice(0, at)
    case 5:
      return joined([bytes, bytesOf(random, 1 + random.below(20))])
    case 6:
      return joined([bytes.subarray(0, at + count), bytes.subarray(at)])
    case 7:
      return joined([bytes.subarray(0, at), bytes.subarray(at + count)])
    case 8: {
      const from = random.below(Math.max(1, other.length))
      return joined([bytes.subarray(0, at), other.subarray(from, from + count), bytes.subarray(at)])
    }
    default: {
      const from = random.below(Math.max(1, other.length))
      return joined([bytes.subarray(0, at), other.subarray(from)])
    }
  }
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0
  for (const part of parts) length += part.length
  const out = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}

const encoder = new TextEncoder()
export const utf8 = (text: string): Uint8Array => encoder.encode(text)

/** Values as a JSON text may bring them. */
export function jsonValue(random: Random, depth = 0): unknown {
  switch (random.below(depth > 2 ? 9 : 12)) {
    case 0:
      return null
    case 1:
      return random.coin()
    case 2:
    case 3:
      return pick(random, EDGES)
    case 4:
      return pick(random, [-1, 0.5, 1e308, -1e308, 2 ** 53, -(2 ** 53), 1e-320])
    case 5:
      return ''
    case 6:
    case 7:
      return pick(random, [
        'k',
        '__proto__',
        'constructor',
        'toString',
        'worker1',
        'member',
        '\u0000',
        '\ud800',
        '😀',
        'a'.repeat(200),
        ' ',
        '../..',
      ])
    case 8:
      return Array.from({ length: random.below(4) }, () => pick(random, ['k', 'l', '', '__proto__']))
    case 9:
      return Array.from({ length: random.below(4) }, () => jsonValue(random, depth + 1))
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(4) }, () => [
          pick(random, ['a', 'op', '__proto__', 'length', 'n']),
          jsonValue(random, depth + 1),
        ]),
      )
  }
}

/** A JSON text of the fields with some of them wrong: another value, missing, doubled, unknown, in another order. */
export function wrongJson(random: Random, fields: Readonly<Record<string, unknown>>): Uint8Array {
  const entries = Object.entries(fields)
  for (let hits = random.below(3); hits > 0 && entries.length > 0; hits--) {
    const at = random.below(entries.length)
    const [name] = entries[at] as [string, unknown]
    switch (random.below(6)) {
      case 0:
        entries.splice(at, 1)
        break
      case 1:
        entries.push([name, jsonValue(random)])
        break
      case 2:
        entries.push([pick(random, ['more', '__proto__', 'constructor', 'toJSON']), jsonValue(random)])
        break
      case 3:
        entries.push(...entries.splice(at, 1))
        break
      default:
        entries[at] = [name, jsonValue(random)]
    }
  }
  const text = `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`
  if (random.below(12) === 0) return utf8(`${'['.repeat(1 + random.below(500))}${text}`)
  if (random.below(12) === 0) return utf8(text.replace(/\d+/, pick(random, ['1e999', '-0', '1e-400', '00', '1'.repeat(400)])))
  return random.below(6) === 0 ? mutated(random, utf8(text)) : utf8(text)
}
