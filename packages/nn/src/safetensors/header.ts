/**
 * Parses and checks the header of a safetensors file. Nothing here touches a file, and no number in the file decides how much is
 * allocated. Format: https://github.com/huggingface/safetensors.
 *
 *     ┌───────────────┬──────────────────────────────────────────────┬─────────────────────────────┐
 *     │ n: uint64 LE  │ n bytes of JSON, padded with spaces          │ the tensors' bytes          │
 *     └───────────────┴──────────────────────────────────────────────┴─────────────────────────────┘
 *       8 bytes         {"__metadata__": {name: text},                 in order of data_offsets,
 *                        name: {"dtype": "F32", "shape": [2, 3],       without holes, overlaps
 *                               "data_offsets": [0, 24]}, …}           or a rest
 *
 * The JSON has a parser of its own. For this form it needs no recursion, so no nesting exhausts the stack, and it sees faults that `JSON.parse`
 * hides: keys that come twice, and numbers that are not integers.
 */

import { PostgradError } from '@postgrad/base'
import { TextDecoder } from '@postgrad/base/internal'

/** The reference implementation's limit, in bytes. */
export const HEADER_BYTES_MAX = 100_000_000
/** PyTorch's limit. */
export const DIMS_MAX = 64
/** In bytes. */
export const PREFIX_BYTES = 8

/** The format's dtypes that are read here, with their sizes in bytes. */
export const ELEMENT_BYTES = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  I16: 2,
  U16: 2,
  F16: 2,
  BF16: 2,
  I32: 4,
  U32: 4,
  F32: 4,
  F64: 8,
  I64: 8,
  U64: 8,
} as const

/** The dtypes that postgrad reads, by their names in the format: 'F32', 'BF16', 'I64', … */
export type SafetensorsDType = keyof typeof ELEMENT_BYTES

/** The description of a tensor in a file. */
export interface SafetensorsInfo {
  /** The dtype in the file. It may be one that postgrad does not read, such as F8_E4M3. */
  readonly dtype: SafetensorsDType | (string & {})
  /** The tensor's shape. */
  readonly shape: readonly number[]
  /** The place of the first byte and the place after the last byte, counted from the end of the header. */
  readonly dataOffsets: readonly [begin: number, end: number]
}

export interface SafetensorsHeader {
  readonly metadata: Readonly<Record<string, string>>
  /** In order of their bytes. */
  readonly tensors: ReadonlyMap<string, SafetensorsInfo>
}

export function invalid(expected: string, got: string, values: Record<string, unknown> = {}): PostgradError {
  return new PostgradError('SAFETENSORS_INVALID', {
    op: 'safetensors',
    expected,
    got,
    remedy: 'The file is damaged, cut off, or not a safetensors file: get it again, or write it with saveSafetensors().',
    values,
  })
}

/** The header's length from the first 8 bytes. @throws SAFETENSORS_INVALID when it exceeds the limit or the file */
export function headerLength(prefix: Uint8Array, fileBytes: number): number {
  if (prefix.length < PREFIX_BYTES || fileBytes < PREFIX_BYTES) {
    throw invalid(`at least ${PREFIX_BYTES} bytes`, `${Math.min(prefix.length, fileBytes)}`, { fileBytes })
  }
  const length = new DataView(prefix.buffer, prefix.byteOffset).getBigUint64(0, true)
  if (length > BigInt(HEADER_BYTES_MAX)) throw invalid(`a header of at most ${HEADER_BYTES_MAX} bytes`, `${length}`, { fileBytes })
  if (Number(length) > fileBytes - PREFIX_BYTES) {
    throw invalid(`a header within the file of ${fileBytes} bytes`, `one of ${length}`, { fileBytes })
  }
  return Number(length)
}

/** @param dataBytes what the file has after its header. @throws SAFETENSORS_INVALID */
export function parseHeader(bytes: Uint8Array, dataBytes: number): SafetensorsHeader {
  const { metadata, tensors } = new HeaderParser(decode(bytes)).header()
  const ordered = [...tensors].sort(([, a], [, b]) => a.dataOffsets[0] - b.dataOffsets[0] || a.dataOffsets[1] - b.dataOffsets[1])
  let at = 0
  for (const [name, info] of ordered) {
    checkSize(name, info)
    const [begin, end] = info.dataOffsets
    if (begin !== at) throw invalid(`'${name}' to begin where the tensor before it ends, at ${at}`, `${begin}`, { name })
    at = end
  }
  if (at !== dataBytes) throw invalid(`tensors that fill the ${dataBytes} bytes after the header`, `${at} bytes`, { dataBytes })
  return { metadata, tensors: new Map(ordered) }
}

/** @throws SAFETENSORS_INVALID unless the byte range is what dtype and shape need */
function checkSize(name: string, { dtype, shape, dataOffsets: [begin, end] }: SafetensorsInfo): void {
  if (!isReadable(dtype)) {
    // How many bits an element has is not known here: the tensor has what its offsets say.
    if (end < begin) throw invalid(`'${name}' to end where it begins, or after`, `data_offsets [${begin}, ${end}]`, { name })
    return
  }
  let bytes: number = ELEMENT_BYTES[dtype]
  for (const extent of shape) {
    bytes *= extent
    if (!Number.isSafeInteger(bytes)) throw invalid(`'${name}' to have a countable size`, `shape [${shape.join(', ')}]`, { name })
  }
  if (end - begin !== bytes) {
    throw invalid(`${bytes} bytes for '${name}', ${dtype} [${shape.join(', ')}]`, `data_offsets [${begin}, ${end}]`, { name })
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw invalid('a header in UTF-8', 'bytes that are not')
  }
}

class HeaderParser {
  private readonly text: string
  private at = 0

  constructor(text: string) {
    this.text = text
  }

  header(): { metadata: Record<string, string>; tensors: Map<string, SafetensorsInfo> } {
    // The format wants the brace first, without a space before it.
    if (this.text[0] !== '{') throw this.unexpected("'{'")
    let metadata: Map<string, string> | null = null
    const tensors = new Map<string, SafetensorsInfo>()
    this.object((name) => {
      if (name === METADATA) {
        if (metadata !== null) throw this.twice(name)
        metadata = this.texts()
      } else {
        if (tensors.has(name)) throw this.twice(name)
        tensors.set(name, this.info(name))
      }
    })
    this.space()
    if (this.at !== this.text.length) throw this.unexpected('the end of the header')
    return { metadata: Object.fromEntries(metadata ?? []), tensors }
  }

  private info(name: string): SafetensorsInfo {
    const found: { dtype?: string; shape?: number[]; data_offsets?: number[] } = {}
    this.object((key) => {
      if (key !== 'dtype' && key !== 'shape' && key !== 'data_offsets') {
        throw invalid(`dtype, shape and data_offsets for '${name}'`, quoted(key), { name })
      }
      if (found[key] !== undefined) throw this.twice(key)
      if (key === 'dtype') found.dtype = this.string()
      else found[key] = this.integers(key === 'shape' ? DIMS_MAX : 2)
    })
    const { dtype, shape, data_offsets: offsets } = found
    if (dtype === undefined || shape === undefined || offsets?.length !== 2) {
      throw invalid(`dtype, shape and two data_offsets for '${name}'`, Object.keys(found).join(', ') || 'none', { name })
    }
    return { dtype, shape, dataOffsets: [offsets[0]!, offsets[1]!] }
  }

  private texts(): Map<string, string> {
    const found = new Map<string, string>()
    this.object((key) => {
      if (found.has(key)) throw this.twice(key)
      found.set(key, this.string())
    })
    return found
  }

  /** { key: … }, where `value` reads the value after each colon. */
  private object(value: (key: string) => void): void {
    this.expect('{')
    if (this.skip('}')) return
    do {
      const key = this.string()
      this.expect(':')
      value(key)
    } while (this.skip(','))
    this.expect('}')
  }

  private integers(most: number): number[] {
    const found: number[] = []
    this.expect('[')
    if (this.skip(']')) return found
    do {
      if (found.length === most) throw this.unexpected(`at most ${most} numbers`)
      found.push(this.integer())
    } while (this.skip(','))
    this.expect(']')
    return found
  }

  private integer(): number {
    this.space()
    const pattern = /(?:0|[1-9][0-9]*)(?![0-9.eE])/y
    pattern.lastIndex = this.at
    const digits = pattern.exec(this.text)?.[0]
    if (digits === undefined || digits.length > 16 || !Number.isSafeInteger(Number(digits))) {
      throw this.unexpected('an integer from 0 to 2⁵³ − 1')
    }
    this.at += digits.length
    return Number(digits)
  }

  private string(): string {
    this.space()
    if (this.text[this.at] !== '"') throw this.unexpected('a string')
    let end = this.at + 1
    while (end < this.text.length && this.text[end] !== '"') end += this.text[end] === '\\' ? 2 : 1
    const token = this.text.slice(this.at, end + 1)
    let found: string
    try {
      found = JSON.parse(token) as string
    } catch {
      throw this.unexpected('a string of JSON')
    }
    if (LONE_SURROGATE.test(found)) throw this.unexpected('a string of whole characters')
    this.at = end + 1
    return found
  }

  private expect(character: string): void {
    if (!this.skip(character)) throw this.unexpected(`'${character}'`)
  }

  private skip(character: string): boolean {
    this.space()
    if (this.text[this.at] !== character) return false
    this.at++
    return true
  }

  private space(): void {
    while (this.at < this.text.length && ' \t\n\r'.includes(this.text[this.at]!)) this.at++
  }

  private unexpected(expected: string): PostgradError {
    const got = this.at >= this.text.length ? 'its end' : quoted(this.text.slice(this.at, this.at + 20))
    return invalid(`${expected} in the header's JSON`, `${got} at character ${this.at}`)
  }

  private twice(key: string): PostgradError {
    return invalid('each name once in the header', `${quoted(key)} again`, { name: key.slice(0, 100) })
  }
}

/** The key of the metadata. */
export const METADATA = '__metadata__'
/** Half a character: UTF-8 has no bytes for it. */
export const LONE_SURROGATE = /\p{Surrogate}/u

/** At most as much as an error message bears. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}

/** Whether elements of this dtype are read here. */
export function isReadable(dtype: string): dtype is SafetensorsDType {
  return Object.hasOwn(ELEMENT_BYTES, dtype)
}

export function unsupportedDType(name: string, dtype: string): PostgradError {
  return new PostgradError('SAFETENSORS_UNSUPPORTED', {
    op: 'safetensors',
    expected: `one of the dtypes ${Object.keys(ELEMENT_BYTES).join(', ')} for '${name}'`,
    got: quoted(dtype),
    remedy: 'Convert the tensor before it is saved, for example to float32, or leave it out by { names }.',
    values: { name, dtype: dtype.slice(0, 100) },
  })
}
