/**
 * Messages to frames and back, in two steps at the sender so that an interceptor can see the tensors in between:
 *
 *     prepare(type, body) ──▶ OutgoingMessage ──interceptors──▶ encode ──▶ Frame ──link──▶ decode ──▶ Message
 *
 *     header:  ┌──────────────────┬─────────────────────────────────────────────┬─────┬──────────────────┬─────┐
 *              │ head (head.ts)   │ body: cells (cells.ts), or                  │ 0…  │ small tensor     │ 0…  │ …
 *              │                  │ msgpack: [body, trace, lineage]             │     │ (at 8·k)         │     │
 *              └──────────────────┴─────────────────────────────────────────────┴─────┴──────────────────┴─────┘
 *     segments: one per large tensor or typed array
 *
 * One codec per worker: it keeps a reader and a writer, and it may be entered again while an extension runs (a fork of an RRef notifies its owner).
 */
import type { WorkerHop } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'
import { checkOpen, checkReadable, isReadable } from '@postgrad/tensor/internal'
import type { Frame } from '@postgrad/transport'
import { Packr } from 'msgpackr/pack'
import { Unpackr } from 'msgpackr/unpack'
import { BLOCK_WORDS, type BlockTransport } from './block-transport.js'
import { CELL_BYTES_MAX, CellReader, Cells } from './cells.js'
import { frameOf, writeCells, writePackedHead } from './frame.js'
import {
  checkLineage,
  HEAD_BYTES_MIN,
  hasTraceIn,
  isFailureIn,
  isPackedIn,
  lengthIn,
  PREFIX_BYTES,
  readHead,
  typeIn,
  WIRE_VERSION,
} from './head.js'
import { HeaderChecker } from './header-checker.js'
import { DEFAULT_LIMITS, HEADER_BYTES_MAX, type WireLimits } from './limits.js'
import { type Message, OutgoingMessage, type Part, ReceivedMessage } from './message.js'
import { type FieldKind, type FieldSpec, type HeadId, MESSAGE_TABLE, type MessageSpec, MessageType, specOf } from './message-type.js'
import { survivesUtf8 } from './strings.js'
import { bufferOf, byteLengthOf, INLINE_BYTES_MAX } from './tensor-codec.js'
import { ValueReader } from './value-reader.js'
import { type DeviceOf, EXTENSION_TAG_MAX, TENSOR_REQUIRES_GRAD, type ValueExtension, ValueTag } from './value-tag.js'
import { ValueWriter } from './value-writer.js'
import { badField, corrupt, kindOf, tooLarge, unknownType, unsupported, wrongVersion } from './wire-errors.js'

export interface CodecOptions {
  readonly limits?: Partial<WireLimits>
  readonly extensions?: readonly ValueExtension[]
  /** Where tensors of devices arrive. Without it they are refused with READ_NOT_SYNCHRONOUS: then the caller of `encode` need not wait for bytes. */
  readonly deviceOf?: DeviceOf
  /** The codec's worker: added to the path of every error that is sent. */
  readonly worker?: WorkerHop
  /** Whether errors say where they arose. Default true. */
  readonly remoteStacks?: boolean
}

/** Heads, and bodies up to this length, are copied to one kept buffer to be read: a view for every buffer is expensive. */
const SCRATCH_BYTES = 4096
const PACKED_MAX = 3
const NOTHING_LATE: Promise<void>[] = []
/** The last field of a failure. */
const [ERROR] = MESSAGE_TABLE[MessageType.PASS_ERROR].fields
const UINT64_MAX = 2n ** 64n - 1n
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
const scratch = new Cells(new ArrayBuffer(SCRATCH_BYTES))
/** Given to the unpacker, which reads it at once. */
const range = { start: 0, end: 0 }

/** Thrown for a frame of `encodeFailure`: its sender could not have the values of the message, whose fields with values are null. */
export class SentFailure {
  readonly message: Message
  readonly error: unknown

  constructor(message: Message, error: unknown) {
    this.message = message
    this.error = error
  }
}

export class Codec {
  private readonly limits: WireLimits
  private readonly checker: HeaderChecker
  private readonly cellReader: CellReader
  private readonly extensions: readonly ValueExtension[]
  private readonly deviceOf: DeviceOf | null
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
    this.cellReader = new CellReader(this.limits)
    this.extensions = extensions
    this.deviceOf = options.deviceOf ?? null
    this.worker = options.worker ?? null
    this.remoteStacks = options.remoteStacks ?? true
  }

  /**
   * Looks through the body (fields as `MESSAGE_TABLE` names them for the type). `env` goes to the extensions.
   * The body must not change until the message is encoded, which is when everything is copied.
   * @throws WIRE_UNSUPPORTED_VALUE with the path (`args[0].foo`), WIRE_TOO_DEEP, WIRE_TOO_LARGE, and what `deviceOf` throws, or READ_NOT_SYNCHRONOUS
   */
  prepare(type: MessageType, body: readonly unknown[], env: unknown = null): OutgoingMessage {
    const message = new OutgoingMessage(type, body)
    const { fields, name }: MessageSpec = MESSAGE_TABLE[type]
    if (body.length !== fields.length) throw unsupported(name, `a body of ${body.length} fields`, `It has ${fields.length}.`)
    for (let i = 0; i < body.length; i++) {
      if (isPlain(body[i], (fields[i] as FieldSpec)[1])) continue
      this.look(message, fields, name, i, env)
      break
    }
    return message
  }

  /** From the field `from` on. */
  private look(message: OutgoingMessage, fields: readonly FieldSpec[], name: string, from: number, env: unknown): void {
    const writer = this.takeWriter(env)
    try {
      const { body } = message
      let packed: unknown[] | null = null
      for (let i = from; i < body.length; i++) {
        const before = body[i]
        const [field, kind] = fields[i] as FieldSpec
        if (i > from && isPlain(before, kind)) continue
        const after = kind.isError === true ? writer.writeError(before) : writer.write(before, field)
        if (after !== before) {
          packed ??= body.slice()
          packed[i] = after
        }
      }
      if (packed !== null) message.packed = packed
      const { parts, tensors } = writer
      if (parts !== null) message.parts = parts
      if (tensors !== null) {
        for (let i = 0; i < tensors.length; i++) {
          if (this.deviceOf === null) checkReadable(name, tensors[i] as Tensor)
          else checkOpen(tensors[i] as Tensor)
        }
        message.tensors = tensors
        message.requiresGrad = writer.requiresGrad as boolean[]
        message.places = writer.places as unknown[][]
      }
    } finally {
      this.giveBack(writer)
    }
  }

  /**
   * Copies everything into a frame, whose bytes are the caller's; but large tensors that the receiver can reach by `blocks` are named. Bytes of a device's tensors
   * are those of now, and are in the frame when `message.late` has settled: it rejects with what a queued kernel has thrown.
   * @throws WIRE_TOO_LARGE
   */
  encode(message: OutgoingMessage, env: unknown = null, blocks: BlockTransport | null = null): Frame {
    const { places, lineage } = message
    for (let i = 0; i < places.length; i++) {
      const place = places[i] as unknown[]
      const tag = (place[1] as number) & ~TENSOR_REQUIRES_GRAD
      place[1] = message.requiresGrad[i] === true ? tag | TENSOR_REQUIRES_GRAD : tag
    }
    // The receiver counts them among the header's items.
    if (lineage !== null && lineage.length >= this.limits.itemsMax) {
      throw tooLarge('encode', 'numbers of lineage', this.limits.itemsMax, lineage.length)
    }
    const trace = message.trace === null ? null : this.plain(message.trace, 'trace', env)
    const named: number[] | null = blocks === null || places.length === 0 ? null : []
    let packed: Uint8Array | null = null
    let bytes: number
    try {
      if (named !== null) nameBlocks(message, blocks as BlockTransport, named)
      bytes = writeCells(message, trace)
      if (bytes === 0) {
        const { packed: body } = message
        packed = packr.pack(lineage === null ? (trace === null ? [body] : [body, trace]) : [body, trace, lineage])
        bytes = writePackedHead(message)
      }
    } finally {
      // The message stays as it was prepared: it may be encoded again.
      if (named !== null) for (const i of named) (places[i] as unknown[]).splice(1, 1 + BLOCK_WORDS, (places[i]![1] as number) - BLOCK_TAG)
    }
    const length = bytes + (packed?.length ?? 0) - PREFIX_BYTES
    if (length > this.limits.headerBytesMax) throw tooLarge('encode', 'bytes of header', this.limits.headerBytesMax, length)
    const parts = named === null || named.length === 0 ? message.parts : unnamed(message, named)
    // Most messages have none.
    const late: Promise<void>[] = parts.length === 0 ? NOTHING_LATE : []
    const frame = frameOf(bytes, packed, parts, blocks, late)
    if (late.length > 0) {
      message.late = Promise.all(late)
      // A message that is not sent after all has no reader of the error.
      message.late.catch(() => {})
    }
    return frame
  }

  /** A frame in place of the message's own, whose values cannot be had: they are null, and the error follows as one more field. */
  encodeFailure(message: OutgoingMessage, error: unknown): Frame {
    const { type, packed, requestId, context, autogradId, pass, lineage } = message
    const { fields }: MessageSpec = MESSAGE_TABLE[type]
    const writer = this.takeWriter(null)
    let written: unknown
    try {
      // It has no parts: the codec of errors makes text of tensors.
      written = writer.writeError(error)
    } finally {
      this.giveBack(writer)
    }
    const failure = new OutgoingMessage(type, [
      ...packed.map((field, i) => (fields[i]![1].carriesTensors === true ? null : field)),
      written,
    ])
    return this.encode(Object.assign(failure, { isFailure: true, requestId, context, autogradId, pass, lineage }))
  }

  /**
   * The message of a frame. Large tensors keep the memory of their segment; nothing else of the frame is kept.
   * @throws WIRE_CORRUPT, WIRE_VERSION, WIRE_UNKNOWN_TYPE, WIRE_BAD_FIELD, WIRE_UNKNOWN_VALUE, WIRE_TOO_LARGE, WIRE_TOO_DEEP, HEAP_BLOCK_STALE, DEVICE_UNKNOWN, and
   * a `SentFailure`
   */
  decode(frame: Frame, env: unknown = null, blocks: BlockTransport | null = null): Message {
    let { header } = frame
    if (header.byteOffset % 8 !== 0) header = new Uint8Array(bufferOf(header))
    if (header.length < PREFIX_BYTES) throw corrupt('it ends too early')
    if (header[3] !== WIRE_VERSION) throw wrongVersion(header[3] as number, WIRE_VERSION)
    if (header.length < HEAD_BYTES_MIN) throw corrupt('it ends too early')
    // Nothing of these bytes is needed when the values are made, which may decode another message.
    scratch.bytes.set(header.length <= SCRATCH_BYTES ? header : header.subarray(0, SCRATCH_BYTES))
    const { words } = scratch
    const end = lengthIn(words[0] as number)
    const word = words[1] as number
    const { headerBytesMax } = this.limits
    if (end - PREFIX_BYTES > headerBytesMax) throw tooLarge('decode', 'bytes of header', headerBytesMax, end - PREFIX_BYTES)
    if (end > header.length || end < HEAD_BYTES_MIN) throw corrupt('it ends too early')
    const type = typeIn(word)
    const spec = specOf(type)
    if (spec === undefined) throw unknownType(type)
    const message = new ReceivedMessage(type as MessageType)
    const cellsEnd = Math.min(end, CELL_BYTES_MAX) >> 3
    const bodyAt = readHead(scratch, cellsEnd, message)
    const isFailure = isFailureIn(word)
    if (isFailure && !spec.fields.some(([, kind]) => kind.carriesTensors)) throw corrupt('a failure of a message that has no tensors')
    const fields = isFailure ? [...spec.fields, ERROR] : spec.fields
    let trace: unknown = null
    let body: unknown[]
    if (isPackedIn(word)) [body, trace] = this.unpack(header, 8 * bodyAt, end, message, spec.name, fields)
    else {
      const { cellReader } = this
      const hasTrace = hasTraceIn(word)
      cellReader.begin(scratch, bodyAt, cellsEnd)
      body = cellReader.values([], hasTrace ? fields.length + 1 : fields.length, 1)
      if (hasTrace) trace = body.pop()
      if (8 * cellReader.at !== end) throw corrupt('bytes after the message')
    }
    const reader = this.idleReader ?? new ValueReader(this.extensions)
    this.idleReader = null
    reader.begin(header, end, frame.segments, env, blocks)
    try {
      this.read(message, spec, fields, body, trace, reader, isFailure)
      if (isFailure) throw new SentFailure(message, body.pop())
    } catch (error) {
      // Nobody has them.
      for (const tensor of reader.tensors ?? []) if (!isReadable(tensor)) tensor.close()
      throw error
    } finally {
      reader.release()
      this.idleReader = reader
    }
    return message
  }

  /** The body and the trace as they were packed. */
  private unpack(
    header: Uint8Array,
    from: number,
    end: number,
    message: ReceivedMessage,
    name: string,
    fields: readonly FieldSpec[],
  ): [unknown[], unknown] {
    this.checker.check(header, from, end)
    range.start = from
    range.end = end
    let packed: unknown
    try {
      packed = unpackr.unpack(end <= SCRATCH_BYTES ? scratch.bytes : Buffer.from(header.buffer, header.byteOffset, end), range)
    } catch (error) {
      throw corrupt('it cannot be unpacked', error)
    }
    if (!Array.isArray(packed) || packed.length === 0 || packed.length > PACKED_MAX) throw corrupt('no body')
    const [body, trace = null, lineage = null]: unknown[] = packed
    if (!Array.isArray(body) || body.length !== fields.length) throw badField(name, 'body', `${fields.length} fields`, body)
    if (lineage !== null) {
      if (!Array.isArray(lineage)) throw badField(name, 'lineage', 'an array of integers ≥ 0 or null', lineage)
      checkLineage(message, lineage)
      message.lineage = lineage
    }
    return [body, trace]
  }

  private read(
    message: ReceivedMessage,
    { name, ids }: MessageSpec,
    fields: readonly FieldSpec[],
    body: unknown[],
    trace: unknown,
    reader: ValueReader,
    isFailure: boolean,
  ): void {
    for (let i = 0; i < fields.length; i++) {
      const [field, kind] = fields[i] as FieldSpec
      const packed = body[i]
      const value = typeof packed === 'object' && packed !== null ? reader.read(packed) : packed
      if (isFailure && kind.carriesTensors === true) {
        if (value !== null) throw badField(name, field, 'null in a failure', value)
      } else if (!kind.check(value)) throw badField(name, field, kind.expected, value)
      body[i] = value
    }
    message.body = body
    const { tensors, requiresGrad } = reader
    const tensorCount = tensors?.length ?? 0
    if (tensors !== null) message.tensors = tensors
    if (requiresGrad !== null) message.requiresGrad = requiresGrad
    if (trace !== null) {
      message.trace = reader.read(trace)
      if ((reader.tensors?.length ?? 0) !== tensorCount) throw badField(name, 'trace', 'values without tensors', 'tensors')
    }
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i] as HeadId
      if (message[id] === null) throw badField(name, id, 'an id of 64 bits', null)
    }
    reader.end()
  }

  /** @throws WIRE_UNSUPPORTED_VALUE, also for tensors and typed arrays */
  private plain(value: unknown, name: string, env: unknown): unknown {
    const writer = this.takeWriter(env)
    try {
      const packed = writer.write(value, name)
      if (writer.parts !== null) throw unsupported(name, `${kindOf(value)} with tensors or typed arrays`, 'Send them in the body.')
      return packed
    } finally {
      this.giveBack(writer)
    }
  }

  private takeWriter(env: unknown): ValueWriter {
    const writer = this.idleWriter ?? new ValueWriter(this.limits, this.extensions, this.deviceOf, this.worker, this.remoteStacks)
    this.idleWriter = null
    writer.begin(env)
    return writer
  }

  /** The writer lets go of what it found. */
  private giveBack(writer: ValueWriter): void {
    writer.begin(null)
    this.idleWriter = writer
  }
}

/** Added to the tag of a tensor that is named instead of written. */
const BLOCK_TAG = ValueTag.block - ValueTag.tensor

/** Puts the names of blocks into the places of the tensors that have one, and their numbers into `named`. */
function nameBlocks({ tensors, places }: OutgoingMessage, blocks: BlockTransport, named: number[]): void {
  for (let i = 0; i < tensors.length; i++) {
    const tensor = tensors[i] as Tensor
    const name = byteLengthOf(tensor) > INLINE_BYTES_MAX && isReadable(tensor) ? blocks.give(tensor) : null
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

/** Whether a field needs no look: it is packed as it is. */
function isPlain(value: unknown, kind: FieldKind): boolean {
  if (kind.isError === true) return value === null && kind.check(null)
  switch (typeof value) {
    case 'number':
      return value !== 0 || 1 / value > 0
    case 'bigint':
      return value >= 0n && value <= UINT64_MAX
    case 'string':
      return survivesUtf8(value)
    case 'boolean':
      return true
    default:
      return value === null || (Array.isArray(value) && value.length === 0)
  }
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
