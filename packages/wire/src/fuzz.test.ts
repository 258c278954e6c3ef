/** Random values survive the way there and back; random damage gives a typed error or a valid message. Test names contain the seeds. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { type Tensor, zeros } from '@postgrad/tensor'
import { isTensor } from '@postgrad/tensor/internal'
import type { Frame } from '@postgrad/transport'
import { Codec, SentFailure } from './codec.js'
import { BODIES } from './golden.suite.js'
import { WIRE_VERSION } from './head.js'
import type { OutgoingMessage } from './message.js'
import { MESSAGE_TABLE, MessageType } from './message-type.js'

/** POSTGRAD_FUZZ_SEED repeats one seed or begins elsewhere, POSTGRAD_FUZZ_ROUNDS makes it longer. */
const FIRST_SEED = Number(process.env.POSTGRAD_FUZZ_SEED ?? 1)
const SEEDS = Array.from({ length: 4 }, (_, i) => FIRST_SEED + i)
const ROUNDS = Number(process.env.POSTGRAD_FUZZ_ROUNDS ?? 200)

/** Taken once: under jest each look-up of a global costs more than a multiplication. */
const { imul } = Math

/** mulberry32: small, and good enough to choose test cases. */
class Random {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** From 0 to n - 1. */
  below(n: number): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let t = this.state
    t = imul(t ^ (t >>> 15), t | 1)
    t ^= t + imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) % n
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }
}

function stringOf(random: Random): string {
  const length = random.pick([0, 1, 2, 5, 15, 16, 31, 32, 33, 63, 64, 65, 130, 300])
  const alphabet = random.pick(['abcXYZ09', 'aäöé', 'a漢字', '😀a', '\ud800\udc00a', '\ufeffab', '\u0000\u007f\u0080\u07ff\u0800\uffff'])
  let text = ''
  while (text.length < length) text += alphabet[random.below(alphabet.length)]
  return text
}

function bytesOf(random: Random, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.below(256))
}

function tensorOf(random: Random): Tensor {
  const dtype = random.pick(['float32', 'float64', 'int32', 'bool'] as const)
  const shape = Array.from({ length: random.below(4) }, () => random.pick([0, 1, 2, 3, 5, 12]))
  const x = zeros(random.below(40) === 0 ? [2000] : shape, { dtype })
  for (let i = 0; i < x.numel; i++) x.storage.host![i] = dtype === 'bool' ? random.below(2) : random.below(1000) - 500
  return x.ndim >= 2 && random.below(2) === 0 ? x.transpose(0, 1) : x
}

function randomValue(random: Random, depth: number): unknown {
  const kinds = depth > 3 ? 12 : 20
  switch (random.below(kinds)) {
    case 0:
      return null
    case 1:
      return undefined
    case 2:
      return random.below(2) === 0
    case 3:
      return random.pick([
        0,
        -0,
        1,
        -1,
        31,
        32,
        127,
        128,
        -32,
        -33,
        -128,
        -129,
        255,
        256,
        65535,
        65536,
        -32768,
        -32769,
        2 ** 31,
        -(2 ** 31),
        2 ** 32,
        2 ** 60,
      ])
    case 4:
      return random.pick([0.1, -1e-310, 1e308, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, random.below(1e9) / 7])
    case 5:
      return random.pick([0n, -1n, 2n ** 63n, -(2n ** 63n), 2n ** 64n - 1n, 2n ** 64n, -(2n ** 100n), BigInt(random.below(1e9)) ** 3n])
    case 6:
    case 7:
      return stringOf(random)
    case 8:
      return new Date(random.pick([0, -1, 1e12, Number.NaN]))
    case 9:
      return tensorOf(random)
    case 10:
      return typedOf(random)
    case 11:
      return random.pick([/a/, /\//g, /[^\]]*$/imsuy])
    case 12:
    case 13:
    case 14:
      return Array.from({ length: random.pick([0, 1, 2, 3, depth < 2 ? 16 : 4]) }, () => randomValue(random, depth + 1))
    case 15:
      return new Map(Array.from({ length: random.below(4) }, () => [randomValue(random, depth + 2), randomValue(random, depth + 1)]))
    case 16:
      return new Set(Array.from({ length: random.below(4) }, () => randomValue(random, depth + 1)))
    default: {
      const object: Record<string, unknown> = {}
      const keys = random.pick([0, 1, 2, 3, depth < 2 ? 17 : 4])
      for (let i = 0; i < keys; i++) {
        const key = random.below(20) === 0 ? '__proto__' : random.below(5) === 0 ? String(random.below(9)) : stringOf(random)
        Object.defineProperty(object, key, { value: randomValue(random, depth + 1), enumerable: true, writable: true, configurable: true })
      }
      return object
    }
  }
}

function typedOf(random: Random): unknown {
  const bytes = bytesOf(random, random.pick([0, 8, 16, 64, 4096, 4104, 9000]))
  switch (random.below(6)) {
    case 0:
      return bytes
    case 1:
      return bytes.buffer
    case 2:
      return new Int16Array(bytes.buffer)
    case 3:
      return new BigUint64Array(bytes.buffer)
    case 4:
      return new DataView(bytes.buffer)
    default:
      return bytes.length === 0 ? bytes : new Uint32Array(bytes.buffer, 4, 1)
  }
}

/** A text that is equal for equal values, of any kind. */
function fingerprint(value: unknown): string {
  if (isTensor(value)) return `tensor ${value.dtype} [${value.shape}] ${[...value.dataSync()]}`
  if (ArrayBuffer.isView(value)) {
    const hex = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')
    return `${Object.prototype.toString.call(value)} ${hex}`
  }
  switch (typeof value) {
    case 'number':
      return Object.is(value, -0) ? 'number -0' : `number ${value}`
    case 'object':
      break
    default:
      return `${typeof value} ${String(value)}`
  }
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${Array.from(value, fingerprint).join()}]`
  const tag = Object.prototype.toString.call(value)
  switch (tag) {
    case '[object Date]':
      return `date ${Number(value)}`
    case '[object RegExp]':
      return `regexp ${String(value)}`
    case '[object ArrayBuffer]':
      return `buffer ${Buffer.from(value as ArrayBuffer).toString('hex')}`
    case '[object Map]':
      return `map ${[...(value as Map<unknown, unknown>)].map(fingerprint)}`
    case '[object Set]':
      return `set ${[...(value as Set<unknown>)].map(fingerprint)}`
  }
  return `{${Object.keys(value).map((key) => `${JSON.stringify(key)}: ${fingerprint((value as Record<string, unknown>)[key])}`)}}`
}

const copyOf = (bytes: Uint8Array): Uint8Array => {
  const copy = new Uint8Array(bytes.length)
  copy.set(bytes)
  return copy
}

function callOf(codec: Codec, random: Random): OutgoingMessage {
  return codec.prepare(MessageType.CALL, ['f', [randomValue(random, 0), randomValue(random, 2)]])
}

/** Of any type, with a head of its own: mostly cells. */
function messageOf(codec: Codec, random: Random): OutgoingMessage {
  const type = random.pick(Object.values(MessageType))
  const message = codec.prepare(type, BODIES[type])
  message.requestId = random.pick([0, 5, 2 ** 31, 2 ** 53 - 1])
  for (const id of ['context', 'autogradId', 'pass'] as const) {
    if (random.below(2) === 0 || MESSAGE_TABLE[type].ids.includes(id)) message[id] = random.pick([0n, 1n << 48n, 2n ** 64n - 1n])
  }
  if (random.below(3) === 0) message.deadlineMs = random.pick([0, 0.5, 1e9])
  if (random.below(3) === 0) message.trace = random.pick<unknown>([[5n, { id: 'x' }], 'x', { a: [undefined, -0] }])
  if (random.below(3) === 0)
    message.lineage = Array.from({ length: random.pick([0, 1, 5, 100, 300]) }, () =>
      random.pick([0, 7, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 40, 2 ** 53 - 1]),
    )
  return message
}

/** The same, packed by msgpack: cells have no room for such a lineage. */
function packedOf(codec: Codec, { type, body, ...head }: OutgoingMessage): OutgoingMessage {
  const { requestId, context, autogradId, pass, deadlineMs, trace, requiresGrad } = head
  const lineage = new Array<number>(2100).fill(1)
  return Object.assign(codec.prepare(type, body), { requestId, context, autogradId, pass, deadlineMs, trace, lineage, requiresGrad })
}

/** Bytes of a peer may end in a typed error, or in the error of a failure. */
const isRefusal = (error: unknown): boolean =>
  error instanceof SentFailure || (isPostgradError(error) && (error.code.startsWith('WIRE_') || error.code === 'DEVICE_UNKNOWN'))

const isPacked = ({ header }: Frame): boolean => ((header[5] as number) & 0x20) !== 0

describe('fuzz', () => {
  test.each(SEEDS)('seed %i: cells and packed values are the same message', (seed) => {
    const random = new Random(seed ^ 0xce11)
    const codec = new Codec()
    let inCells = 0
    for (let round = 0; round < ROUNDS; round++) {
      const message = random.below(2) === 0 ? callOf(codec, random) : messageOf(codec, random)
      const frame = codec.encode(message)
      const packed = codec.encode(packedOf(codec, message))
      expect(isPacked(packed)).toBe(true)
      if (isPacked(frame)) continue
      inCells++
      const about = `seed ${seed}, round ${round}`
      const [one, other] = [codec.decode(frame), codec.decode(packed)]
      expect([about, fingerprint(one.body)]).toEqual([about, fingerprint(other.body)])
      const { requestId, context, autogradId, pass, deadlineMs, trace, requiresGrad, type } = other
      const { lineage } = message
      expect([about, { ...one }]).toMatchObject([
        about,
        { type, requestId, context, autogradId, pass, deadlineMs, trace, lineage, requiresGrad },
      ])
    }
    expect(inCells).toBeGreaterThan(ROUNDS / 4)
  })

  test.each(SEEDS)('seed %i: random values arrive equal', (seed) => {
    const random = new Random(seed)
    const [sender, receiver] = [new Codec(), new Codec()]
    for (let round = 0; round < ROUNDS; round++) {
      const args = Array.from({ length: random.below(5) }, () => randomValue(random, 0))
      const outgoing = sender.prepare(MessageType.CALL, [stringOf(random), args])
      outgoing.requestId = random.below(2 ** 31)
      if (random.below(2) === 0) outgoing.context = BigInt(random.below(2 ** 31)) << 33n
      if (random.below(3) === 0) outgoing.pass = BigInt(random.below(2 ** 31))
      const { header, segments } = sender.encode(outgoing)
      const message = receiver.decode({ header: copyOf(header), segments: segments.map(copyOf) })
      const about = `seed ${seed}, round ${round}`
      expect([about, fingerprint(message.body)]).toEqual([about, fingerprint(outgoing.body)])
      expect([about, message.requestId, message.context, message.pass]).toEqual([
        about,
        outgoing.requestId,
        outgoing.context,
        outgoing.pass,
      ])
      expect([about, message.tensors.map(fingerprint)]).toEqual([about, outgoing.tensors.map(fingerprint)])
    }
  })

  test.each(SEEDS)('seed %i: damaged frames give a WIRE error or a valid message', (seed) => {
    const random = new Random(seed ^ 0x5eed)
    const codec = new Codec()
    let refused = 0
    let valid = 0
    for (let round = 0; round < ROUNDS; round++) {
      const types = Object.values(MessageType)
      const frame = codec.encode(random.below(2) === 0 ? callOf(codec, random) : messageOf(codec, random))
      for (let variant = 0; variant < 10; variant++) {
        let header = copyOf(frame.header)
        let segments = frame.segments.map(copyOf)
        const hits = 1 + random.below(4)
        for (let i = 0; i < hits; i++) {
          switch (random.below(6)) {
            case 0:
              header = copyOf(header.subarray(0, random.below(header.length + 1)))
              break
            case 1:
              segments = segments.slice(1)
              break
            case 2:
              if (header.length > 4) header[4] = random.pick(types)
              break
            case 3: {
              const longer = new Uint8Array(header.length + random.below(20))
              longer.set(header)
              header = longer
              break
            }
            default:
              if (header.length > 0)
                header[random.below(random.below(2) === 0 ? Math.min(header.length, 40) : header.length)] = random.below(256)
          }
        }
        const about = `seed ${seed}, round ${round}, variant ${variant}`
        try {
          const message = codec.decode({ header, segments })
          valid++
          const { fields, ids } = MESSAGE_TABLE[message.type]
          if (message.body.length !== fields.length) throw new Error(`${about}: a body of another length`)
          for (const [i, [field, { check }]] of fields.entries()) if (!check(message.body[i])) throw new Error(`${about}: field ${field}`)
          for (const id of ids) if (message[id] === null) throw new Error(`${about}: no ${id}`)
          // An accepted message is the same when it is sent on.
          const { requestId, context, autogradId, pass, deadlineMs, trace, lineage, requiresGrad } = message
          const head = { requestId, context, autogradId, pass, deadlineMs, trace, lineage, requiresGrad }
          const again = codec.decode(codec.encode(Object.assign(codec.prepare(message.type, message.body), head)))
          expect([about, fingerprint(again.body)]).toEqual([about, fingerprint(message.body)])
          expect([about, { ...again }]).toMatchObject([about, head])
        } catch (error) {
          if (!isRefusal(error)) throw new Error(`${about}: ${String(error)}`, { cause: error })
          refused++
        }
      }
    }
    expect(refused).toBeGreaterThan(ROUNDS)
    expect(valid).toBeGreaterThan(0)
  })

  test.each(SEEDS)('seed %i: random bytes give a WIRE error or a valid message', (seed) => {
    const random = new Random(seed ^ 0xb17e5)
    const codec = new Codec()
    let valid = 0
    for (let round = 0; round < 20 * ROUNDS; round++) {
      const header = bytesOf(random, 16 + 8 * random.below(8) + (random.below(4) === 0 ? random.below(8) : 0))
      header.set([header.length - 4, 0, 0, WIRE_VERSION])
      // Mostly a head that can be read; then containers and small numbers, or cells, so that it gets past the first bytes.
      const isOfCells = random.below(2) === 0
      if (random.below(8) > 0)
        header.set(
          [
            random.pick(Object.values(MessageType)),
            isOfCells ? random.below(32) + random.pick([0, 0, 0x40, 0x80]) : 0x20,
            random.below(2),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
          ],
          4,
        )
      for (let i = 16; i < header.length; i++) {
        if (isOfCells)
          header[i] = random.pick([
            0,
            0,
            0,
            i % 8 === 0 ? random.below(10) : i % 8 === 1 ? random.pick([0, 0x10, 0x12, 0x0b]) : random.below(4),
          ])
        else if (random.below(3) > 0)
          header[i] = random.pick([0x90, 0x91, 0x92, 0x93, 0x94, 0x81, 0xa1, 0xc0, 0, 1, 2, 3, 8, 9, 10, 11, 16, 19])
      }
      try {
        codec.decode({ header, segments: [] })
        valid++
      } catch (error) {
        if (!isRefusal(error)) {
          throw new Error(`seed ${seed}, round ${round}: ${Buffer.from(header).toString('hex')}: ${String(error)}`, { cause: error })
        }
      }
    }
    expect(valid).toBeGreaterThan(0)
  })
})
