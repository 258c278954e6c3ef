/**
 * Messages to frames and back, in two steps at the sender so that an interceptor can see the tensors in between:
 *
 *     prepare(type, body) ──▶ OutgoingMessage ──interceptors──▶ encode ──▶ Frame ──link──▶ decode ──▶ Message
 *
 *     header:  ┌────────────┬─────────┬──────────────────────────────────────────────────┬─────┬──────────────────┬─────┐
 *              │ length: 24 │ version │ msgpack: [type, requestId, body, context,        │ 0…  │ small tensor     │ 0…  │ …
 *              │ bits       │ 8 bits  │   autogradId, pass, deadlineMs, trace, lineage]  │     │ (at 8·k)         │     │
 *              └────────────┴─────────┴──────────────────────────────────────────────────┴─────┴──────────────────┴─────┘
 *     segments: one per large tensor or typed array
 *
 * An absent field at the end of the envelope is not written, one in the middle is one byte. One codec per worker: it keeps a reader and a writer, and it may be
 * entered again while an extension runs (a fork of an RRef notifies its owner).
 */
import type { WorkerHop } from '@postgrad/base'
import { BYTES_PER_ELEMENT, checkReadable, copyOfElements, readElements } from '@postgrad/tensor/internal'
import type { Frame } from '@postgrad/transport'
import { Packr, RESERVE_START_SPACE } from 'msgpackr/pack'
import { Unpackr } from 'msgpackr/unpack'
import { BLOCK_WORDS, type BlockTransport } from './block-transport.js'
import type { ValueExtension } from './extension.js'
import { HeaderChecker } from './header-checker.js'
import { DEFAULT_LIMITS, HEADER_BYTES_MAX, type WireLimits } from './limits.js'
import { type Message, OutgoingMessage, type Part, ReceivedMessage } from './message.js'
import { type FieldSpec, MESSAGE_TABLE, type MessageSpec, type MessageType, specOf } from './message-type.js'
import { align8, bufferOf, byteLengthOf, INLINE_BYTES_MAX, Views } from './tensor-codec.js'
import { ValueReader } from './value-reader.js'
import { EXTENSION_TAG_MAX, TENSOR_REQUIRES_GRAD, ValueTag } from './value-tag.js'
import { ValueWriter } from './value-writer.js'
import { badField, corrupt, kindOf, tooLarge, unknownType, unsupported, wrongVersion } from './wire-errors.js'

export interface CodecOptions {
  readonly limits?: Partial<WireLimits>
  readonly extensions?: readonly ValueExtension[]
  /** The codec's worker: added to the path of every error that is sent. */
  readonly worker?: WorkerHop
  /** Whether errors say where they arose. Default true. */
  readonly remoteStacks?: boolean
}

/** Of the wire format: other numbers are refused. */
export const WIRE_VERSION = 3
export const PREFIX_BYTES = 4
/** Headers with parts are put together here, one after the other; longer ones have a buffer of their own. */
const ARENA_BYTES = 32_768
const ARENA_HEADER_BYTES_MAX = 8192
/** Packed values up to this length are copied to one kept buffer to be unpacked: msgpackr makes a DataView for every buffer it has not seen. */
const SCRATCH_BYTES = 4096
const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])
const ENVELOPE_MIN = 3
const ENVELOPE_MAX = 9
/** No records, no toJSON, no types beyond msgpack's: what those are for is done in value-writer.ts, for which both ends agree on the limits. */
const PACKER = {
  useRecords: false,
  mapsAsObjects: true,
  useToJSON: false,
  moreTypes: false,
  structuredClone: false,
  copyBuffers: true,
  variableMapSize: true,
} as const

/**
 * Shared by a thread's codecs, since a simulation makes them by the thousand: packing and unpacking run no user code, so nothing is in use twice, and a
 * place in the arena is given out once.
 */
const packr = new Packr(PACKER)
const unpackr = new Unpackr(PACKER)
const scratch: Buffer = Buffer.from(new ArrayBuffer(SCRATCH_BYTES))
/** Given to the unpacker, which reads it at once. */
const range = { start: 0, end: 0 }
let arena: Views | null = null
let arenaUsed = 0

class EncodedFrame implements Frame {
  readonly header: Uint8Array
  readonly segments: readonly Uint8Array[]

  constructor(header: Uint8Array, segments: readonly Uint8Array[]) {
    this.header = header
    this.segments = segments
  }
}

export class Codec {
  private readonly limits: WireLimits
  private readonly checker: HeaderChecker
  private readonly extensions: readonly ValueExtension[]
  private readonly worker: WorkerHop | null
  private readonly remoteStacks: boolean
  /** Null while it is at work; a call that comes in between makes its own. */
  private idleWriter: ValueWriter | null = null
  private idleReader: ValueReader | null = null

  constructor(options: CodecOptions = {}) {
    const limits = { ...DEFAULT_LIMITS, ...options.limits }
    this.limits = { ...limits, headerBytesMax: Math.min(limits.headerBytesMax, HEADER_BYTES_MAX) }
    const extensions = options.extensions ?? []
    checkExtensions(extensions)
    this.checker = new HeaderChecker(this.limits)
    this.extensions = extensions
    this.worker = options.worker ?? null
    this.remoteStacks = options.remoteStacks ?? true
  }

  /**
   * Looks through the body (fields as `MESSAGE_TABLE` names them for the type). `env` goes to the extensions.
   * The body must not change until the message is encoded, which is when everything is copied.
   * @throws WIRE_UNSUPPORTED_VALUE with the path (`args[0].foo`), WIRE_TOO_DEEP, WIRE_TOO_LARGE, READ_NOT_SYNCHRONOUS
   */
  prepare(type: MessageType, body: readonly unknown[], env: unknown = null): OutgoingMessage {
    const message = new OutgoingMessage(type, body)
    const writer = this.idleWriter ?? new ValueWriter(this.limits, this.extensions, this.worker, this.remoteStacks)
    this.idleWriter = null
    writer.begin(env)
    try {
      this.write(message, writer)
    } finally {
      // Lets go of what it found.
      writer.begin(null)
      this.idleWriter = writer
    }
    return message
  }

  private write(message: OutgoingMessage, writer: ValueWriter): void {
    const { body } = message
    const { fields, name }: MessageSpec = MESSAGE_TABLE[message.type]
    if (body.length !== fields.length) throw unsupported(name, `a body of ${body.length} fields`, `It has ${fields.length}.`)
    let packed: unknown[] | null = null
    for (let i = 0; i < body.length; i++) {
      const before = body[i]
      const [field, kind] = fields[i] as FieldSpec
      const after =
        kind.isError === true && !(before === null && kind.check(null)) ? writer.writeError(before) : writer.write(before, field)
      if (after !== before) {
        packed ??= body.slice()
        packed[i] = after
      }
    }
    if (packed !== null) message.packed = packed
    if (writer.parts !== null) message.parts = writer.parts
    if (writer.tensors !== null) {
      // The elements are copied, or reached by the receiver, now.
      for (const tensor of writer.tensors) checkReadable(name, tensor)
      message.tensors = writer.tensors
      message.requiresGrad = writer.requiresGrad as boolean[]
      message.places = writer.places as unknown[][]
    }
  }

  /**
   * Copies everything into a frame, whose bytes are the caller's; but large tensors that the receiver can reach by `blocks` are named.
   * @throws WIRE_TOO_LARGE
   */
  encode(message: OutgoingMessage, env: unknown = null, blocks: BlockTransport | null = null): Frame {
    const { places } = message
    for (let i = 0; i < places.length; i++) {
      const place = places[i] as unknown[]
      const tag = (place[1] as number) & ~TENSOR_REQUIRES_GRAD
      place[1] = message.requiresGrad[i] === true ? tag | TENSOR_REQUIRES_GRAD : tag
    }
    const named: number[] = []
    let packed: Buffer
    try {
      if (blocks !== null) nameBlocks(message, blocks, named)
      packed = packr.pack(this.envelope(message, env), RESERVE_START_SPACE | PREFIX_BYTES)
    } finally {
      // The message stays as it was prepared: it may be encoded again.
      for (const i of named) (places[i] as unknown[]).splice(1, 1 + BLOCK_WORDS, (places[i]![1] as number) - BLOCK_TAG)
    }
    const parts = named.length === 0 ? message.parts : unnamed(message, named)
    const length = packed.length - PREFIX_BYTES
    if (length > this.limits.headerBytesMax) throw tooLarge('encode', 'bytes of header', this.limits.headerBytesMax, length)
    packed[0] = length & 0xff
    packed[1] = (length >> 8) & 0xff
    packed[2] = length >> 16
    packed[3] = WIRE_VERSION
    return parts.length === 0 ? new EncodedFrame(packed, NO_SEGMENTS) : this.withParts(packed, parts, blocks)
  }

  /**
   * The message of a frame. Large tensors keep the memory of their segment; nothing else of the frame is kept.
   * @throws WIRE_CORRUPT, WIRE_VERSION, WIRE_UNKNOWN_TYPE, WIRE_BAD_FIELD, WIRE_UNKNOWN_VALUE, WIRE_TOO_LARGE, WIRE_TOO_DEEP, HEAP_BLOCK_STALE
   */
  decode(frame: Frame, env: unknown = null, blocks: BlockTransport | null = null): Message {
    let { header } = frame
    if (header.byteOffset % 8 !== 0) header = new Uint8Array(bufferOf(header))
    if (header.length < PREFIX_BYTES) throw corrupt('it ends too early')
    if (header[3] !== WIRE_VERSION) throw wrongVersion(header[3] as number, WIRE_VERSION)
    const length = (header[0] as number) | ((header[1] as number) << 8) | ((header[2] as number) << 16)
    if (length > this.limits.headerBytesMax) throw tooLarge('decode', 'bytes of header', this.limits.headerBytesMax, length)
    const end = PREFIX_BYTES + length
    if (end > header.length) throw corrupt('it ends too early')
    this.checker.check(header, PREFIX_BYTES, end)
    const envelope = this.unpack(header, end)
    const reader = this.idleReader ?? new ValueReader(this.extensions)
    this.idleReader = null
    reader.begin(header, end, frame.segments, env, blocks)
    try {
      return this.read(envelope, reader)
    } finally {
      reader.release()
      this.idleReader = reader
    }
  }

  private unpack(header: Uint8Array, end: number): unknown {
    let source: Buffer
    if (header.length <= SCRATCH_BYTES) {
      source = scratch
      source.set(header)
    } else if (end <= SCRATCH_BYTES) {
      source = scratch
      source.set(header.subarray(0, end))
    } else {
      source = Buffer.from(header.buffer, header.byteOffset, end)
    }
    range.start = PREFIX_BYTES
    range.end = end
    try {
      return unpackr.unpack(source, range)
    } catch (error) {
      throw corrupt('it cannot be unpacked', error)
    }
  }

  private read(envelope: unknown, reader: ValueReader): Message {
    if (!Array.isArray(envelope) || envelope.length < ENVELOPE_MIN || envelope.length > ENVELOPE_MAX) throw corrupt('no envelope')
    const type: unknown = envelope[0]
    const spec = specOf(type)
    if (spec === undefined) throw unknownType(type)
    const { name, fields, ids } = spec
    const requestId: unknown = envelope[1]
    if (typeof requestId !== 'number' || !Number.isSafeInteger(requestId) || requestId < 0) {
      throw badField(name, 'requestId', 'an integer ≥ 0', requestId)
    }
    const body: unknown = envelope[2]
    if (!Array.isArray(body) || body.length !== fields.length) throw badField(name, 'body', `${fields.length} fields`, body)
    for (let i = 0; i < fields.length; i++) {
      const [field, kind] = fields[i] as FieldSpec
      const value = reader.read(body[i])
      if (!kind.check(value)) throw badField(name, field, kind.expected, value)
      body[i] = value
    }
    const { tensors, requiresGrad } = reader
    const tensorCount = tensors?.length ?? 0
    const message = new ReceivedMessage(type as MessageType, requestId, body, tensors, requiresGrad)
    if (envelope.length > ENVELOPE_MIN) {
      message.context = idOrNull(name, 'context', envelope[3])
      message.autogradId = idOrNull(name, 'autogradId', envelope[4])
      message.pass = idOrNull(name, 'pass', envelope[5])
      message.deadlineMs = msOrNull(name, envelope[6])
      message.trace = reader.read(envelope[7] ?? null)
      message.lineage = numbersOrNull(name, envelope[8])
      if ((reader.tensors?.length ?? 0) !== tensorCount) throw badField(name, 'trace', 'values without tensors', 'tensors')
    }
    for (const id of ids) if (message[id] === null) throw badField(name, id, 'an id of 64 bits', null)
    reader.end()
    return message
  }

  private envelope(message: OutgoingMessage, env: unknown): unknown[] {
    const { type, requestId, packed, context, autogradId, pass, deadlineMs, trace, lineage } = message
    if (trace !== null || lineage !== null) {
      return [
        type,
        requestId,
        packed,
        context,
        autogradId,
        pass,
        deadlineMs,
        trace === null ? null : this.plain(trace, 'trace', env),
        lineage === null ? null : this.numbers(lineage, 'lineage'),
      ]
    }
    if (deadlineMs !== null) return [type, requestId, packed, context, autogradId, pass, deadlineMs]
    if (pass !== null) return [type, requestId, packed, context, autogradId, pass]
    if (autogradId !== null) return [type, requestId, packed, context, autogradId]
    if (context !== null) return [type, requestId, packed, context]
    return [type, requestId, packed]
  }

  private plain(value: unknown, name: string, env: unknown): unknown {
    const writer = new ValueWriter(this.limits, this.extensions, this.worker, this.remoteStacks)
    writer.begin(env)
    const packed = writer.write(value, name)
    if (writer.parts !== null) throw unsupported(name, `${kindOf(value)} with tensors or typed arrays`, 'Send them in the body.')
    return packed
  }

  /** The receiver counts them among the header's items. */
  private numbers(value: readonly number[], name: string): readonly number[] {
    if (value.length >= this.limits.itemsMax) throw tooLarge('encode', `numbers of ${name}`, this.limits.itemsMax, value.length)
    return value
  }

  private withParts(packed: Buffer, parts: readonly Part[], blocks: BlockTransport | null): Frame {
    let end = packed.length
    for (const part of parts) {
      const bytes = lengthOf(part)
      if (bytes <= INLINE_BYTES_MAX) end = align8(align8(end) + bytes)
    }
    const views = this.room(end)
    const start = views === arena ? arenaUsed : 0
    if (views === arena) arenaUsed = align8(start + end)
    const header = new Uint8Array(views.buffer, start, end)
    header.set(packed)
    let at = packed.length
    let segments: Uint8Array[] | null = null
    for (const part of parts) {
      const bytes = lengthOf(part)
      if (bytes > INLINE_BYTES_MAX) {
        segments ??= []
        segments.push((ArrayBuffer.isView(part) ? null : blocks?.lend?.(part)) ?? ownBytes(part))
        continue
      }
      at = align8(at)
      if (ArrayBuffer.isView(part)) header.set(part, at)
      else readElements(part, views.of(part.dtype), (start + at) / BYTES_PER_ELEMENT[part.dtype])
      at = align8(at + bytes)
    }
    return new EncodedFrame(header, segments ?? NO_SEGMENTS)
  }

  /** Zeroed memory for a header of `bytes`. A place in the arena is given out once: frames own their bytes. */
  private room(bytes: number): Views {
    if (bytes > ARENA_HEADER_BYTES_MAX) return new Views(new ArrayBuffer(align8(bytes)))
    if (arena === null || arenaUsed + bytes > ARENA_BYTES) {
      arena = new Views(new ArrayBuffer(ARENA_BYTES))
      arenaUsed = 0
    }
    return arena
  }
}

/** Added to the tag of a tensor that is named instead of written. */
const BLOCK_TAG = ValueTag.block - ValueTag.tensor

/** Puts the names of blocks into the places of the tensors that have one, and their numbers into `named`. */
function nameBlocks({ tensors, places }: OutgoingMessage, blocks: BlockTransport, named: number[]): void {
  for (const [i, tensor] of tensors.entries()) {
    const name = byteLengthOf(tensor) > INLINE_BYTES_MAX ? blocks.give(tensor) : null
    if (name === null) continue
    const place = places[i] as unknown[]
    place.splice(1, 1, (place[1] as number) + BLOCK_TAG, ...name)
    named.push(i)
  }
}

/** The parts without the tensors that were named. Both lists are in order of appearance; a tensor that appears twice is there twice. */
function unnamed({ parts, tensors }: OutgoingMessage, named: readonly number[]): readonly Part[] {
  let tensor = 0
  let next = 0
  return parts.filter((part) => {
    if (part !== tensors[tensor]) return true
    const isNamed = named[next] === tensor++
    if (isNamed) next++
    return !isNamed
  })
}

function lengthOf(part: Part): number {
  return ArrayBuffer.isView(part) ? part.byteLength : byteLengthOf(part)
}

/** A copy that fills its buffer, so that a link can move it. */
function ownBytes(part: Part): Uint8Array {
  if (ArrayBuffer.isView(part)) {
    return new Uint8Array(bufferOf(part))
  }
  return new Uint8Array(copyOfElements(part).buffer as ArrayBuffer)
}

function idOrNull(message: string, field: string, value: unknown): bigint | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'bigint' || value < 0n) throw badField(message, field, 'an id of 64 bits or null', value)
  return value
}

function msOrNull(message: string, value: unknown): number | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'number' || !(value >= 0 && value < Number.POSITIVE_INFINITY)) {
    throw badField(message, 'deadlineMs', 'milliseconds ≥ 0 or null', value)
  }
  return value
}

function numbersOrNull(message: string, value: unknown): readonly number[] | null {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value) || !value.every(isCount)) throw badField(message, 'lineage', 'an array of integers ≥ 0 or null', value)
  return value
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function checkExtensions(extensions: readonly ValueExtension[]): void {
  const tags = new Set<number>()
  for (const { tag } of extensions) {
    if (!Number.isInteger(tag) || tag < ValueTag.extension || tag > EXTENSION_TAG_MAX || tags.has(tag)) {
      throw unsupported('extensions', `a tag (${tag}) that is taken or not from 0x20 to 0x3f`, 'Give each extension a tag of its own.')
    }
    tags.add(tag)
  }
}
