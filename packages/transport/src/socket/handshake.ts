/**
 * Authenticates the other end: the first messages of both ends of a new connection, as a state machine without a socket. `handshake-messages.ts` has
 * the format, `HANDSHAKE.md` the rules; `connection.ts` moves the bytes, and keeps the limit of time.
 *
 *     dialler                                    listener
 *     HELLO      nonce, who, what for, whom ───▸
 *                ◂─── nonce, who, does it have your role's key     CHALLENGE
 *     PROOF      does it have yours, proof  ───▸ (the dialler is authenticated)
 *                ◂───────────────────────────────── proof          WELCOME
 *
 * Note [Which key]: A process that has the key of a role can be in that role. So an observer must not have the members' key; members must still distinguish
 * it from a member. A connection is therefore proven under the keys of both roles, as far as both ends have them: each end says whether it has the
 * key of the other's role, and there must be one. An end that has the key of the role that is claimed is never content with less. One that has not (an
 * observer that meets a member) is content with the key of its own role: it meets someone who has at least that.
 *
 * A proof is an HMAC over the side's label and the very bytes of all messages before it, so over both nonces, names, ids, roles and the purpose. Without
 * keys (loopback, or TLS, which proves more) it is the plain hash: then it holds against errors, and not against anyone.
 */
import { strict as assert } from 'node:assert'
import { PostgradError } from '@postgrad/base'
import { builtin, plainText } from '@postgrad/base/internal'
import { type CertificateIdentity, certificateMismatch } from './certificate.js'
import { type Credentials, checkCredentials, type Identity, isClusterName, isRole, isWorkerName } from './credentials.js'
import { isRefusalReason, reasonOf, refuse, wasRefused } from './handshake-errors.js'
import {
  decodeMessage,
  encodeMessage,
  HANDSHAKE_BYTES_MAX,
  type HandshakeHow,
  isPurpose,
  isRelease,
  kindOf,
  type Message,
  type MessageKind,
  NONCE_BYTES,
} from './handshake-messages.js'

/** Which release of the library this is: the ends of a connection compare it. A test of package postgrad holds it against the manifest. */
export const RELEASE = '0.1.0'

export type HandshakeSide = 'dialler' | 'listener'

export interface HandshakeOptions {
  readonly side: HandshakeSide
  /** This end. With a key its role is that of the credentials. */
  readonly self: Identity
  /** This end's proof. Null: none, on this machine only (`requireCredentials`). */
  readonly credentials: Credentials | null
  /** The dialler's: what the connection is for, 'session' by default. */
  readonly purpose?: string
  /** The dialler's: the worker that it expects; null: any. */
  readonly wants?: { readonly name: string; readonly id: number } | null
  /** Nonces that nobody can guess: `crypto.randomBytes`. */
  readonly random: (bytes: number) => Uint8Array
  /** The identity in the other end's certificate. With TLS there must be one. */
  readonly tlsPeer?: CertificateIdentity | null
  /** The two ends of the connection as this one sees them (`loopbackWay`); empty by default: not over loopback. */
  readonly way?: string
  /** The library's version, which must be the same at both ends; default this one's. */
  readonly release?: string
}

/** The result of a message. */
export interface HandshakeStep {
  /** The bytes to send to the other end. */
  readonly send: Uint8Array | null
  /** The handshake has ended well: send `send`, and then begin. */
  readonly done: { readonly peer: Identity; readonly purpose: string } | null
}

/** The message that this end waits for; `over`: it is done, or has failed. */
type State = 'begin' | 'HELLO' | 'CHALLENGE' | 'PROOF' | 'WELCOME' | 'over'

/** One end's part in the handshake of one connection. */
export class Handshake {
  /** Both ends see the same connection over loopback: nobody forwards it, so no bytes leave the machine. Known when it is done. */
  isDirect = false
  private readonly options: HandshakeOptions
  private readonly op: string
  private readonly how: HandshakeHow
  private state: State
  private received = 0
  private hello: Message<'HELLO'> | null = null
  private peer: Identity | null = null
  /** The bytes of all messages so far, of both ends. */
  private readonly said: Uint8Array[] = []
  private keys: readonly Uint8Array[] = []
  /** The listener's: whether it has the key of the dialler's role. */
  private knows = false

  /** @throws INVALID_ARGUMENT, CREDENTIALS_INVALID */
  constructor(options: HandshakeOptions) {
    const { self, credentials, purpose = 'session', wants = null, release = RELEASE, way = '' } = options
    if (credentials !== null) checkCredentials(credentials)
    const role = credentials?.kind === 'key' ? credentials.role : self.role
    if (!isClusterName(self.cluster))
      throw badOption("letters, digits, '.', '-' and '_' as the cluster's name, 127 at most", 'cluster', self.cluster)
    if (!isWorkerName(self.name)) throw badOption("letters, digits, '-', '_' and ':' as the worker's name", 'name', self.name)
    if (!isRole(self.role) || self.role !== role) throw badOption(`the role of the credentials, '${role}'`, 'role', self.role)
    if (!isPurpose(purpose)) throw badOption('1 to 16 small letters', 'purpose', purpose)
    if (!isRelease(release)) throw badOption("letters, digits, '.', '+' and '-', 64 at most", 'release', release)
    this.options = { ...options, purpose, wants, release, way }
    this.op = options.side === 'dialler' ? 'connect' : 'accept'
    this.how = credentials?.kind ?? 'none'
    this.state = options.side === 'dialler' ? 'begin' : 'HELLO'
  }

  /** The dialler's first message, once; null for a listener, which waits. */
  begin(): Uint8Array | null {
    if (this.options.side === 'listener') return null
    assert(this.state === 'begin', 'a handshake begins once')
    const { self, purpose, wants, release, way } = this.options
    this.state = 'CHALLENGE'
    return this.say('HELLO', {
      nonce: this.nonce(),
      release: release as string,
      cluster: self.cluster,
      name: self.name,
      id: self.id,
      role: self.role,
      purpose: purpose as string,
      wants: wantsText(wants),
      way: way as string,
      how: this.how,
    })
  }

  /**
   * Takes one whole message of the other end. After an error it takes no more: send `Handshake.refusal` to the other end, and close.
   * @throws AUTH_FAILED, VERSION_MISMATCH, CLUSTER_MISMATCH, WRONG_PEER, HANDSHAKE_INVALID
   */
  receive(message: Uint8Array): HandshakeStep {
    const state = this.state
    this.state = 'over'
    this.received += message.length
    if (this.received > HANDSHAKE_BYTES_MAX)
      throw refuse(this.op, 'size', `at most ${HANDSHAKE_BYTES_MAX} bytes of handshake`, `${this.received}`)
    const kind = kindOf(this.op, message)
    if (state === 'begin' || state === 'over') throw refuse(this.op, 'unexpected', 'no message in this state', kind)
    if (kind === 'REFUSAL') {
      const { reason } = decodeMessage(this.op, kind, message)
      assert(isRefusalReason(reason))
      throw wasRefused(this.op, reason)
    }
    if (kind !== state) throw refuse(this.op, 'unexpected', state, kind)
    return this[state](message)
  }

  /** The message to the other end when this end throws `error`: a reason without secrets. Null if the other end refused, which knows. */
  static refusal(error: unknown): Uint8Array | null {
    const reason = reasonOf(error)
    return reason === null ? null : encodeMessage('REFUSAL', { reason })
  }

  private HELLO(bytes: Uint8Array): HandshakeStep {
    const hello = this.hear('HELLO', bytes)
    const { self, way } = this.options
    this.checkRelease(hello.release)
    if (hello.cluster !== self.cluster) {
      throw refuse(this.op, 'cluster', `cluster '${self.cluster}'`, `'${hello.cluster}'`, { here: self.cluster, there: hello.cluster })
    }
    if (hello.wants !== '' && hello.wants !== wantsText(self)) {
      throw refuse(this.op, 'peer', `a connection to ${wantsText(self)}`, `one to ${hello.wants}`, { wanted: hello.wants })
    }
    this.hello = hello
    this.meet(hello)
    const keys = this.keyRing()
    this.knows = keys !== null && Object.hasOwn(keys, hello.role)
    this.state = 'PROOF'
    const { name, id, role } = self
    return {
      send: this.say('CHALLENGE', { nonce: this.nonce(), name, id, role, way: way as string, how: this.how, knows: this.knows }),
      done: null,
    }
  }

  private CHALLENGE(bytes: Uint8Array): HandshakeStep {
    const challenge = this.hear('CHALLENGE', bytes)
    const { wants } = this.options
    const text = wantsText({ name: challenge.name, id: challenge.id })
    if (wants && text !== wantsText(wants)) throw refuse(this.op, 'peer', wantsText(wants), text, { wanted: wantsText(wants), met: text })
    this.meet(challenge)
    const keys = this.keyRing()
    const knows = keys !== null && Object.hasOwn(keys, challenge.role)
    this.keys = this.keysOf(this.options.self.role, challenge.role, challenge.knows, knows)
    this.state = 'WELCOME'
    return { send: this.say('PROOF', { knows, proof: this.proof('dialler', knows) }), done: null }
  }

  private PROOF(bytes: Uint8Array): HandshakeStep {
    const { knows, proof } = decodeMessage(this.op, 'PROOF', bytes)
    const hello = this.hello
    assert(hello !== null && this.peer !== null)
    this.keys = this.keysOf(hello.role, this.options.self.role, this.knows, knows)
    this.checkProof(proof, this.proof('dialler', knows))
    this.said.push(bytes.slice())
    const send = this.say('WELCOME', { proof: this.proof('listener', knows) })
    return { send, done: { peer: this.peer, purpose: hello.purpose } }
  }

  private WELCOME(bytes: Uint8Array): HandshakeStep {
    const { proof } = decodeMessage(this.op, 'WELCOME', bytes)
    assert(this.peer !== null)
    this.checkProof(proof, this.proof('listener', Object.hasOwn(this.keyRing() ?? {}, this.peer.role)))
    return { send: null, done: { peer: this.peer, purpose: this.options.purpose as string } }
  }

  /** Compares the other end's claim with this end's kind of credentials and with the other's certificate. */
  private meet({ name, id, role, way, how }: Message<'HELLO'> | Message<'CHALLENGE'>): void {
    const { self, credentials, tlsPeer } = this.options
    const purpose = this.hello?.purpose ?? this.options.purpose
    if (how !== this.how) throw refuse(this.op, 'credentials', NAMES_OF_HOW[this.how], NAMES_OF_HOW[how], { here: this.how, there: how })
    if (id === self.id && purpose === 'session') throw refuse(this.op, 'self', 'another worker', `this one's own id, ${id}`, { id })
    const peer: Identity = { cluster: self.cluster, name, id, role }
    if (credentials?.kind === 'tls') {
      const part = tlsPeer ? certificateMismatch(tlsPeer, peer) : 'name'
      if (part !== null) {
        throw refuse(this.op, 'certificate', `a certificate of ${name} as ${role}, id ${id}`, tlsPeer ? `another ${part}` : 'none', {
          name,
          role,
          id,
          part,
        })
      }
    }
    this.peer = peer
    this.isDirect = way !== '' && way === this.options.way
  }

  private checkRelease(there: string): void {
    const here = this.options.release as string
    if (there !== here) throw refuse(this.op, 'version', `version '${here}'`, `'${there}'`, { here, there })
  }

  private keyRing(): Readonly<Record<string, Uint8Array>> | null {
    const { credentials } = this.options
    return credentials?.kind === 'key' ? credentials.keys : null
  }

  /** The keys of both roles that both ends have; none without a key's credentials. See Note [Which key]. @throws AUTH_FAILED if there is none */
  private keysOf(dialler: string, listener: string, listenerKnows: boolean, diallerKnows: boolean): readonly Uint8Array[] {
    const ring = this.keyRing()
    if (ring === null) {
      if (listenerKnows || diallerKnows) throw refuse(this.op, 'malformed', 'no word of keys', 'one')
      return []
    }
    const roles = new Set([...(listenerKnows ? [dialler] : []), ...(diallerKnows ? [listener] : [])])
    const keys = [...roles].map((role) => ring[role])
    if (keys.length === 0 || keys.some((key) => key === undefined)) {
      throw refuse(this.op, 'role', `a key that both ends have, of '${dialler}' or '${listener}'`, 'none', { dialler, listener })
    }
    return keys as readonly Uint8Array[]
  }

  /** In base64. Under two keys, only an end with both can make it. */
  private proof(side: HandshakeSide, diallerKnows: boolean): string {
    const { createHash, createHmac } = builtin<typeof import('node:crypto')>('node:crypto')
    const [first, ...others] = this.keys
    const inner = first === undefined ? createHash('sha256') : createHmac('sha256', first)
    inner.update(`postgrad handshake ${side} ${diallerKnows}\0`)
    for (const bytes of this.said) {
      const length = new Uint8Array(4)
      new DataView(length.buffer).setUint32(0, bytes.length)
      inner.update(length).update(bytes)
    }
    let value = inner.digest()
    for (const key of others) value = createHmac('sha256', key).update(value).digest()
    return value.toString('base64')
  }

  private checkProof(got: string, expected: string): void {
    const { timingSafeEqual } = builtin<typeof import('node:crypto')>('node:crypto')
    if (!timingSafeEqual(Buffer.from(got, 'base64'), Buffer.from(expected, 'base64'))) {
      const peer = this.peer as Identity
      throw refuse(this.op, 'key', `the proof of '${peer.name}' as '${peer.role}'`, 'another', { name: peer.name, role: peer.role })
    }
  }

  private nonce(): string {
    const bytes = this.options.random(NONCE_BYTES)
    assert(bytes.length === NONCE_BYTES, 'as many random bytes as were asked for')
    return Buffer.from(bytes).toString('base64')
  }

  private say<K extends MessageKind>(kind: K, fields: Message<K>): Uint8Array {
    const bytes = encodeMessage(kind, fields)
    this.said.push(bytes.slice())
    return bytes
  }

  private hear<K extends MessageKind>(kind: K, bytes: Uint8Array): Message<K> {
    const message = decodeMessage(this.op, kind, bytes)
    this.said.push(bytes.slice())
    return message
  }
}

/** Of a wrong value, so many characters are shown. */
const SHOWN_MAX = 128
const NAMES_OF_HOW = { none: 'no credentials', key: 'a key', tls: 'TLS' } as const satisfies Record<HandshakeHow, string>

const wantsText = (one: { readonly name: string; readonly id: number } | null | undefined): string => (one ? `${one.name}#${one.id}` : '')

/** None of these options is a secret. */
function badOption(expected: string, option: string, value: unknown): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', {
    op: 'handshake',
    expected,
    got: JSON.stringify(plainText(value).slice(0, SHOWN_MAX)),
    remedy: `Correct { ${option} }.`,
    values: { option },
  })
}
