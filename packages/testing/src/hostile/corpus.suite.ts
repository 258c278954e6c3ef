/**
 * Inputs that once broke a promise, and nasty ones made by hand; the unit lane gives each to its target, and checks the outcome. A run prints what it finds
 * as an entry: put it here, with why, before you fix it.
 */
import { SessionKind, sessionFrame } from '@postgrad/transport/internal'
import { WIRE_VERSION } from '@postgrad/wire/internal'
import { type Input, joined, utf8 } from './case.suite.js'

export interface CorpusEntry {
  readonly target: string
  readonly why: string
  /** By hex where a run has found it. */
  readonly input: Input | readonly string[]
  readonly outcome: RegExp
}

const packed = (...bytes: (number | Uint8Array)[]): Uint8Array =>
  joined(bytes.map((one) => (typeof one === 'number' ? Uint8Array.of(one) : one)))
const filled = (length: number, ...pattern: readonly number[]): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => pattern[i % pattern.length] as number)
const u32 = (n: number): Uint8Array => Uint8Array.of((n >>> 24) & 255, (n >>> 16) & 255, (n >>> 8) & 255, n & 255)

/** A CALL whose body is packed, request 5: its head, the packed values, and whether there is a transport that takes bytes alone. */
function message(value: Uint8Array, { parts = new Uint8Array(0), transport = 0, segments = [] as readonly Uint8Array[] } = {}): Input {
  return messageOf(0x20, value, parts, transport, segments)
}
/** The same in cells, which are pairs of words. */
const cells = (...words: readonly number[]): Input =>
  messageOf(0, new Uint8Array(Int32Array.from([6, 1, 0x66, 0, 7, 1, ...words]).buffer), new Uint8Array(0), 0, [])
function messageOf(flags: number, body: Uint8Array, parts: Uint8Array, transport: number, segments: readonly Uint8Array[]): Input {
  const length = 12 + body.length
  const prefix = Uint8Array.of(length & 255, (length >> 8) & 255, (length >> 16) & 255, WIRE_VERSION)
  const requestId = new Uint8Array(Float64Array.of(5).buffer)
  return [Uint8Array.of(transport), packed(prefix, 0x00, flags, 0, 0, requestId, body, parts), ...segments]
}
/** CALL 'f' with one argument. */
const call = (argument: Uint8Array): Uint8Array => packed(0x91, 0x92, 0xa1, 0x66, 0x91, argument)
const special = (tag: number, ...values: readonly (number | Uint8Array)[]): Uint8Array => packed(0x92 + values.length, 0xc0, tag, ...values)
const str32 = (bytes: Uint8Array): Uint8Array => packed(0xdb, u32(bytes.length), bytes)
const float = (n: number): Uint8Array => {
  const bytes = new Uint8Array(9)
  bytes[0] = 0xcb
  new DataView(bytes.buffer).setFloat64(1, n)
  return bytes
}
const head = (kind: SessionKind, seq: number, ack = 0, from = 9, to = 5): Uint8Array =>
  sessionFrame({ kind, from, to, seq, ack }, { header: Uint8Array.of(7), segments: [] }).header

export const CORPUS: readonly CorpusEntry[] = [
  // Messages.
  {
    target: 'messages',
    why: '4 billion elements in 12 bytes',
    input: message(call(packed(0xdd, u32(0xffffffff)))),
    outcome: /^WIRE_CORRUPT$/,
  },
  {
    target: 'messages',
    why: 'a million empty lists',
    input: message(call(packed(0xdd, u32(1_100_000), filled(1_100_000, 0x90)))),
    outcome: /^WIRE_TOO_LARGE$/,
  },
  { target: 'messages', why: 'nested 5,000,000 deep', input: message(filled(5_000_000, 0x91)), outcome: /^WIRE_TOO_DEEP$/ },
  {
    target: 'messages',
    why: '300,000 maps of the wire: as many objects as elements allow',
    input: message(call(packed(0xdd, u32(300_000), filled(900_000, 0x92, 0xc0, 0x08)))),
    outcome: /^taken$/,
  },
  {
    target: 'messages',
    why: 'a regular expression of 4,000,000 open groups',
    input: message(call(special(0x07, str32(filled(4_000_000, 0x28)), 0xa0))),
    outcome: /^WIRE_CORRUPT$/,
  },
  {
    target: 'messages',
    why: 'a regular expression of 1,000,000 groups in each other',
    input: message(call(special(0x07, str32(packed(filled(1_000_000, 0x28), filled(1_000_000, 0x29))), 0xa0))),
    outcome: /^(WIRE_CORRUPT|taken)$/,
  },
  {
    target: 'messages',
    why: 'an integer of 4,000,000 digits',
    input: message(call(special(0x04, str32(filled(4_000_000, 0x66))))),
    outcome: /^taken$/,
  },
  {
    target: 'messages',
    why: 'a tensor of 2^53 × 0 elements',
    input: message(call(special(0x10, float(2 ** 53 - 1), 0x00))),
    outcome: /^(taken|WIRE_CORRUPT)$/,
  },
  {
    target: 'messages',
    why: 'a tensor of 2^106 elements',
    input: message(call(special(0x10, float(2 ** 53 - 1), float(2 ** 53 - 1)))),
    outcome: /^WIRE_CORRUPT$/,
  },
  {
    target: 'messages',
    why: 'a tensor of 2^52 elements whose bytes did not come',
    input: message(call(special(0x10, float(2 ** 50)))),
    outcome: /^WIRE_CORRUPT$/,
  },
  {
    target: 'messages',
    why: 'a typed array of 2^53 - 1 bytes',
    input: message(call(special(0x0b, 0x01, float(2 ** 53 - 1)))),
    outcome: /^WIRE_CORRUPT$/,
  },
  {
    target: 'messages',
    why: 'a block of a heap, where there is none',
    input: message(call(special(0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01))),
    outcome: /^WIRE_CORRUPT$/,
  },
  {
    target: 'messages',
    why: 'a block of a heap that is not shared',
    input: message(call(special(0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01)), { transport: 1 }),
    outcome: /^HEAP_NOT_SHARED$/,
  },
  {
    target: 'messages',
    why: 'a sparse tensor whose index is beyond its shape',
    input: message(call(special(0x0c, 0xc2, special(0x12, 0x01), special(0x10, 0x01, 0x01), 0x02, 0x01)), {
      parts: Uint8Array.of(...[0, 0], 99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    }),
    outcome: /^WIRE_CORRUPT$/,
  },
  {
    target: 'messages',
    why: '__proto__ as a key, of a map and of an object',
    input: message(call(packed(0x81, 0xa9, utf8('__proto__'), 0x81, 0xa1, 0x78, 0x01))),
    outcome: /^taken$/,
  },
  {
    target: 'messages',
    why: 'a name that every object has',
    input: message(packed(0x91, 0x92, 0xab, utf8('constructor'), 0x90)),
    outcome: /^taken$/,
  },
  { target: 'messages', why: 'cells: a number', input: cells(3, 7), outcome: /^taken$/ },
  { target: 'messages', why: 'cells: 4 billion elements', input: cells(7, -1), outcome: /^WIRE_CORRUPT$/ },
  { target: 'messages', why: 'cells: a text of 2 GB', input: cells(6, 0x7fffffff, 0, 0), outcome: /^WIRE_CORRUPT$/ },
  {
    target: 'messages',
    why: 'cells: nested 200 deep',
    input: cells(...Array.from({ length: 200 }, () => [7, 1]).flat(), 0, 0),
    outcome: /^WIRE_TOO_DEEP$/,
  },
  {
    target: 'messages',
    why: 'cells: more of them than may be',
    input: cells(...new Array<number>(10_000).fill(0)),
    outcome: /^WIRE_CORRUPT$/,
  },
  {
    target: 'messages',
    why: 'cells: a block of a heap, where there is none',
    input: cells(8 | (0x18 << 8), 6, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 1),
    outcome: /^WIRE_CORRUPT$/,
  },
  // Chunks. The first byte: the other end is known.
  { target: 'chunks', why: 'nothing', input: [Uint8Array.of(1, 0), new Uint8Array(0)], outcome: /^more$/ },
  {
    target: 'chunks',
    why: 'what a browser says',
    input: [Uint8Array.of(0, 0), utf8('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    outcome: /^CHUNK_INVALID$/,
  },
  {
    target: 'chunks',
    why: 'what TLS says',
    input: [Uint8Array.of(0, 1), Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, ...filled(40, 9))],
    outcome: /^CHUNK_INVALID$/,
  },
  // Sessions. A window of frames ahead of their turn was kept, whatever their size.
  { target: 'session heads', why: 'ahead of its turn by one', input: [head(SessionKind.DATA, 2)], outcome: /^refused$/ },
  {
    target: 'session heads',
    why: 'a window ahead',
    input: [head(SessionKind.DATA, 1024), head(SessionKind.DATA, 1023), head(SessionKind.DATA, 3)],
    outcome: /^refused$/,
  },
  {
    target: 'session heads',
    why: 'an acknowledgement of what was never sent',
    input: [head(SessionKind.ACK, 0, 2 ** 53 - 1), head(SessionKind.DATA, 1, 3)],
    outcome: /^refused$/,
  },
  {
    target: 'session heads',
    why: 'the end, and more behind it',
    input: [head(SessionKind.END, 1), head(SessionKind.DATA, 2), head(SessionKind.END, 1)],
    outcome: /^refused$/,
  },
  // Stores. The first byte: requests; the second: greeted.
  {
    target: 'store requests',
    why: 'a wait for ever, by a number that is none',
    input: [Uint8Array.of(0, 1), Uint8Array.of(0), utf8('{"op":"get","n":1,"key":"k","timeoutMs":1e999}')],
    outcome: /./,
  },
  {
    target: 'store requests',
    why: 'nested 100,000 deep',
    input: [Uint8Array.of(0, 1), Uint8Array.of(0), filled(100_000, 0x5b)],
    outcome: /^STORE_FRAME_INVALID$/,
  },
  {
    target: 'store requests',
    why: 'a header beyond its bound',
    input: [Uint8Array.of(0, 1), Uint8Array.of(0), filled(2 ** 18 + 1, 0x20)],
    outcome: /^STORE_FRAME_INVALID$/,
  },
  {
    target: 'store requests',
    why: 'a sum beyond 2^53',
    input: [
      Uint8Array.of(0, 1),
      ...[1, 2, 3].flatMap((n) => [Uint8Array.of(0), utf8(`{"op":"add","n":${n},"done":1,"key":"sum","amount":9007199254740991}`)]),
    ],
    outcome: /./,
  },
  // A group's log: each of these ended or stopped its reader.
  {
    target: 'texts',
    why: 'an arrival under an id that is none',
    input: [Uint8Array.of(0), utf8('{"what":"joined","id":70000,"name":"w","rank":0,"worldSize":1,"addresses":[]}')],
    outcome: /^GROUP_LOG_INVALID$/,
  },
  {
    target: 'texts',
    why: 'an arrival whose name is none',
    input: [Uint8Array.of(0), utf8('{"what":"joined","id":7,"name":"a b","rank":0,"worldSize":1,"addresses":[]}')],
    outcome: /^GROUP_LOG_INVALID$/,
  },
  {
    target: 'texts',
    why: 'an arrival at a rank beyond the world',
    input: [Uint8Array.of(0), utf8('{"what":"joined","id":7,"name":"w","rank":9,"worldSize":1,"addresses":[]}')],
    outcome: /^GROUP_LOG_INVALID$/,
  },
  {
    target: 'texts',
    why: 'a certificate of two workers',
    input: [Uint8Array.of(2), utf8('URI:postgrad:c/w1?role=member, URI:postgrad:c/w2?role=member')],
    outcome: /^AUTH_FAILED$/,
  },
  {
    target: 'texts',
    why: 'a certificate whose other name has a comma in it',
    input: [Uint8Array.of(2), utf8('DNS:"a, URI:postgrad:c/w1?role=member"')],
    outcome: /^AUTH_FAILED$/,
  },
]

export const inputOf = ({ input }: CorpusEntry): Input => input.map((one) => (typeof one === 'string' ? Buffer.from(one, 'hex') : one))
