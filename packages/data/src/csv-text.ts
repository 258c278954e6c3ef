/**
 * Decodes the pieces of a CSV file for `csv.ts`, which finds rows and fields in the text. Bytes are UTF-8, or UTF-16 if the mark at their beginning says
 * so. Bytes that are neither end the reading: csv-parse would replace them with U+FFFD, and so give other values than the file's.
 */
import { TextDecoder } from '@postgrad/base/internal'

type Decoder = InstanceType<typeof TextDecoder>

/** @param fail makes the error for a line whose bytes are not text */
export async function* textOf(
  pieces: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  fail: (line: number) => Error,
): AsyncGenerator<string, void, undefined> {
  const reader = new TextReader(fail)
  for await (const piece of pieces) yield typeof piece === 'string' ? reader.readText(piece) : reader.readBytes(piece)
  yield reader.end()
}

class TextReader {
  private readonly fail: (line: number) => Error
  /** Null until the first bytes have said which one. */
  private decoder: Decoder | null = null
  /** The first byte, where the second decides what it means. */
  private begin: Uint8Array<ArrayBufferLike> = new Uint8Array(0)
  /** The first half of a surrogate pair at the end of a piece of text. */
  private half = ''
  private lines = 0

  constructor(fail: (line: number) => Error) {
    this.fail = fail
  }

  readText(piece: string): string {
    const text = this.half + piece
    const end = /[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length
    this.half = text.slice(end)
    return this.counted(text.slice(0, end))
  }

  readBytes(piece: Uint8Array): string {
    if (this.decoder !== null) return this.decode(this.decoder, piece)
    const bytes = this.begin.length === 0 ? piece : Uint8Array.of(...this.begin, ...piece)
    this.begin = bytes
    if (bytes.length === 0 || (bytes.length === 1 && bytes[0] === 0xff)) return ''
    this.decoder = new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : 'utf-8', { fatal: true })
    return this.decode(this.decoder, bytes)
  }

  end(): string {
    if (this.decoder === null && this.begin.length > 0) throw this.fail(1)
    return this.half + (this.decoder === null ? '' : this.decode(this.decoder, null))
  }

  /** @param bytes null at the end, where half a character is none */
  private decode(decoder: Decoder, bytes: Uint8Array | null): string {
    try {
      return this.counted(bytes === null ? decoder.decode() : decoder.decode(bytes, { stream: true }))
    } catch {
      throw this.fail(1 + this.lines + (bytes === null ? 0 : linesBefore(bytes)))
    }
  }

  private counted(text: string): string {
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.lines++
    return text
  }
}

/** The number of lines that end before the first byte that is not UTF-8. The piece may begin in the middle of a character. */
function linesBefore(bytes: Uint8Array): number {
  const from = bytes.findIndex((byte) => (byte & 0xc0) !== 0x80)
  const text = new TextDecoder().decode(bytes.subarray(Math.max(from, 0)))
  return text.slice(0, Math.max(text.indexOf('\ufffd'), 0)).split('\n').length - 1
}
