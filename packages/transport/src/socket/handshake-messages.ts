/**
 * The format of the messages of a handshake: `handshake.ts` decides which message is sent when, this file encodes and checks them.
 *
 *     byte 0: "PGRD"   4: version (16 bits, big-endian)   6: kind   7: 0   8: the fields as JSON, in this order, without spaces
 *
 * Each message has one form: any other text of the same fields is refused, as are unknown fields.
 */
import { TextDecoder, TextEncoder, WORKER_ID_MAX } from '@postgrad/base/internal'
import { isClusterName, isRole, isWorkerName } from './credentials.js'
import { isRefusalReason, refuse } from './handshake-errors.js'

/** Of the handshake and of the frames that follow it. */
export const PROTOCOL_VERSION = 1

/** All that one end may send before it is authenticated. */
export const HANDSHAKE_BYTES_MAX = 4096

/** Of a nonce, and of a proof (SHA-256). */
export const NONCE_BYTES = 32

/** How an end proves itself: not at all (loopback alone), by a key, by the certificate of TLS. */
export type HandshakeHow = 'none' | 'key' | 'tls'

const isText = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value)
/** 32 bytes in base64: the last letter has two bits of nothing, which must be 0. */
const is32Bytes = isText(/^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/)
const isId = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= WORKER_ID_MAX
const isBoolean = (value: unknown) => typeof value === 'boolean'
export const isPurpose = isText(/^[a-z]{1,16}$/)
export const isRelease = isText(/^[A-Za-z0-9.+-]{0,64}$/)
const isHow = isText(/^(none|key|tls)$/)
/** One text, so that no message has objects in objects: `name#id`, or empty for any worker. */
const isWants = isText(/^$|^[A-Za-z0-9\-_:]{1,127}#(0|[1-9]\d{0,4})$/)

/** As `loopbackWay` writes it. */
const isWay = isText(/^$|^[0-9a-f.:]{3,45}:\d{1,5}>[0-9a-f.:]{3,45}:\d{1,5}$/)

/** The fields of each kind, in their order, and what each must be. */
const FIELDS = {
  /** The dialler: who it is, what for, whom it wants to meet, and between which ends it sees the connection, where it is on loopback. */
  HELLO: {
    nonce: is32Bytes,
    release: isRelease,
    cluster: isClusterName,
    name: isWorkerName,
    id: isId,
    role: isRole,
    purpose: isPurpose,
    wants: isWants,
    way: isWay,
    how: isHow,
  },
  /** The listener: who it is, the ends that it sees, and whether it has the key of the dialler's role. */
  CHALLENGE: { nonce: is32Bytes, name: isWorkerName, id: isId, role: isRole, way: isWay, how: isHow, knows: isBoolean },
  /** The dialler: whether it has the key of the listener's role, and its proof. */
  PROOF: { knows: isBoolean, proof: is32Bytes },
  /** The listener's proof. */
  WELCOME: { proof: is32Bytes },
  /** In place of any of these: why not. */
  REFUSAL: { reason: isRefusalReason },
} as const satisfies Record<string, Record<string, (value: unknown) => boolean>>

/** The numbers of the kinds. */
const KINDS = { HELLO: 1, CHALLENGE: 2, PROOF: 3, WELCOME: 4, REFUSAL: 5 } as const satisfies Record<MessageKind, number>

export type MessageKind = keyof typeof FIELDS

interface FieldTypes {
  readonly nonce: string
  readonly release: string
  readonly cluster: string
  readonly name: string
  readonly id: number
  readonly role: string
  readonly purpose: string
  readonly wants: string
  readonly way: string
  readonly how: HandshakeHow
  readonly knows: boolean
  readonly proof: string
  readonly reason: string
}

/** The fields of a message of a kind. */
export type Message<K extends MessageKind> = { readonly [F in keyof (typeof FIELDS)[K] & keyof FieldTypes]: FieldTypes[F] }

const HEAD_BYTES = 8
const MAGIC = 0x50475244 // "PGRD"

/** The bytes of a message. */
export function encodeMessage<K extends MessageKind>(kind: K, fields: Message<K>): Uint8Array {
  const values = fields as Readonly<Record<string, unknown>>
  const body = new TextEncoder().encode(
    JSON.stringify(Object.fromEntries(Object.keys(FIELDS[kind]).map((field) => [field, values[field]]))),
  )
  const bytes = new Uint8Array(HEAD_BYTES + body.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, MAGIC)
  view.setUint16(4, PROTOCOL_VERSION)
  view.setUint8(6, KINDS[kind])
  bytes.set(body, HEAD_BYTES)
  return bytes
}

/**
 * The kind of a message, from its head alone. Versions are compared here, before anything else of the other version is looked at.
 * @throws HANDSHAKE_INVALID, VERSION_MISMATCH
 */
export function kindOf(op: string, bytes: Uint8Array): MessageKind {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (bytes.length < HEAD_BYTES || view.getUint32(0) !== MAGIC) throw refuse(op, 'malformed', 'a handshake of postgrad', 'something else')
  const version = view.getUint16(4)
  if (version !== PROTOCOL_VERSION)
    throw refuse(op, 'version', `protocol ${PROTOCOL_VERSION}`, `protocol ${version}`, { here: PROTOCOL_VERSION, there: version })
  const number = view.getUint8(6)
  const kind = (Object.keys(KINDS) as MessageKind[]).find((one) => KINDS[one] === number)
  if (kind === undefined || view.getUint8(7) !== 0) throw refuse(op, 'malformed', 'a message of the handshake', `kind ${number}`)
  return kind
}

/**
 * The fields of a message whose head was looked at by `kindOf`.
 * @throws HANDSHAKE_INVALID
 */
export function decodeMessage<K extends MessageKind>(op: string, kind: K, bytes: Uint8Array): Message<K> {
  const fields = jsonOf(bytes.subarray(HEAD_BYTES))
  const checks: Readonly<Record<string, (value: unknown) => boolean>> = FIELDS[kind]
  const expected = Object.keys(checks)
  if (fields === null || Object.keys(fields).join() !== expected.join())
    throw refuse(op, 'malformed', `${kind} with ${expected.join(', ')}`, 'other fields')
  for (const field of expected)
    if (!checks[field]?.(fields[field])) throw refuse(op, 'malformed', `a ${field} of ${kind} in its form`, 'another')
  const message = fields as unknown as Message<K>
  const again = encodeMessage(kind, message)
  if (again.length !== bytes.length || again.some((byte, i) => byte !== bytes[i]))
    throw refuse(op, 'malformed', `${kind} in its one form`, 'another')
  return message
}

function jsonOf(bytes: Uint8Array): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null // not JSON: the caller refuses it, and quotes nothing of it
  }
}
