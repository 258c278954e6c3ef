/**
 * Makes a link to an authenticated peer of a connected socket: one handshake, within its limits of bytes and time. `handshake.ts`
 * has the messages, `listener.ts` and `dialler.ts` make the sockets.
 */
import type { Socket } from 'node:net'
import { isPostgradError, PostgradError } from '@postgrad/base'
import type { Holder } from '../budget.js'
import type { Clock } from '../clock.js'
import type { FrameRooms } from '../frame-room.js'
import type { StayAwake } from '../stay-awake.js'
import { loopbackWay, networkOf } from './address.js'
import { type CertificateIdentity, subjectOf } from './certificate.js'
import { ChunkType } from './chunk.js'
import type { Place } from './chunk-reader.js'
import type { Identity } from './credentials.js'
import { Handshake, type HandshakeOptions } from './handshake.js'
import type { ReadBuffer } from './read-buffer.js'
import type { SocketLimits } from './socket-limits.js'
import { type SocketEnd, SocketLink } from './socket-link.js'
import { isOfTls, tlsRefused } from './tls.js'

/** A link whose other end has proven who it is. */
export interface Established {
  readonly link: SocketLink
  readonly peer: Identity
  readonly purpose: string
  /** The peer, as budgets count. */
  readonly holder: Holder
}

/** The purpose of connections that carry a session, which only lends its frames. */
export const SESSION_PURPOSE = 'session'

/** Whether large frames' bytes get a checksum; `network`: unless they stay on this machine, as both ends find. */
export type Checksums = 'always' | 'network' | 'never'

export interface EstablishOptions {
  readonly clock: Clock
  readonly limits: SocketLimits
  readonly timeoutMs: number
  /** The socket gives the `way`. */
  readonly handshake: HandshakeOptions
  readonly checksums: Checksums
  readonly place: Place | undefined
  /** For large frames that come. */
  readonly rooms?: FrameRooms
  readonly reads?: ReadBuffer
  readonly stayAwake?: StayAwake | undefined
  /** Throws for a purpose that is not served here. */
  readonly admits?: (peer: Identity, purpose: string) => void
  /** Called at once when it is done, so that the link's taker misses nothing that came with the last message. */
  readonly onDone: (established: Established) => void
  readonly onFailed: (error: PostgradError) => void
}

/** Runs the handshake. Exactly one of `onDone` and `onFailed` is called, once. @returns what ends it early */
export function establish(socket: Socket, options: EstablishOptions): (detail: string) => void {
  const { clock, limits, timeoutMs, checksums } = options
  let isOver = false
  const link = new SocketLink(socket, {
    clock,
    limits,
    isAdmitted: false,
    place: options.place,
    reads: options.reads,
    stayAwake: options.stayAwake,
    onControl: (type, body) => onControl(type, body),
    onEnd: (end) => onEnd(end),
  })
  const timer = clock.setTimer(timeoutMs, () => {
    fail(noAnswer(timeoutMs))
    link.fail('the handshake took too long')
  })
  const fail = (error: PostgradError): void => {
    if (isOver) return
    isOver = true
    timer.cancel()
    options.onFailed(error)
  }
  const onEnd = ({ detail, error }: SocketEnd): void => fail(isPostgradError(error) ? error : endedEarly(detail, error))
  const send = (message: Uint8Array | null): void => {
    if (message !== null) link.control(ChunkType.HANDSHAKE, message)
  }
  const refuse = (error: unknown): void => {
    const known = isPostgradError(error) ? error : endedEarly(String(error), error)
    const refusal = Handshake.refusal(error)
    fail(known)
    send(refusal)
    link.close()
  }

  let handshake: Handshake
  // A socket that has closed since does not say it any more.
  const { remoteAddress } = socket
  const isUnix = remoteAddress === undefined
  try {
    handshake = new Handshake({ ...options.handshake, way: loopbackWay(options.handshake.side, socket) })
  } catch (error) {
    fail(error as PostgradError)
    link.fail('no handshake')
    return () => {}
  }
  const onControl = (type: ChunkType, body: Buffer): void => {
    if (isOver || type !== ChunkType.HANDSHAKE) return
    try {
      const { send: answer, done } = handshake.receive(body)
      if (done !== null) options.admits?.(done.peer, done.purpose)
      send(answer)
      if (done === null) return
      isOver = true
      timer.cancel()
      const { peer, purpose } = done
      link.name = `${peer.name} (${peer.id}), ${purpose}`
      link.hook({})
      const holder = holderOf(peer, options.handshake.tlsPeer ?? null, remoteAddress)
      const { isDirect } = handshake
      link.admit({
        isLent: purpose === SESSION_PURPOSE,
        checksBytes: checksums === 'always' || (checksums === 'network' && !isDirect),
        isOfMachine: isUnix || isDirect,
        room: options.rooms?.of(holder) ?? null,
      })
      options.onDone({ link, peer, purpose, holder })
    } catch (error) {
      if (isOver) throw error
      refuse(error)
    }
  }
  send(handshake.begin())
  return (detail) => {
    fail(endedEarly(detail, null))
    link.fail(detail)
  }
}

/** A key proves a role, and names are only claims (SECURITY.md): without a certificate only the place identifies a peer. */
function holderOf({ role }: Identity, certificate: CertificateIdentity | null, remoteAddress: string | undefined): Holder {
  return { identity: certificate === null ? `${role} at ${networkOf(remoteAddress)}` : subjectOf(certificate), role }
}

function endedEarly(detail: string, error: unknown): PostgradError {
  if (isOfTls(error)) return tlsRefused(error as Error)
  const code = (error as { code?: unknown } | null)?.code
  return new PostgradError('CONNECTION_LOST', {
    op: 'connect',
    message: detail,
    remedy: 'The other end may say more about it.',
    cause: error ?? undefined,
    values: typeof code === 'string' ? { code } : {},
  })
}

export function noAnswer(timeoutMs: number): PostgradError {
  return new PostgradError('CONNECT_TIMEOUT', {
    op: 'connect',
    message: `no answer within ${timeoutMs} ms`,
    remedy: 'Its machine may be down, a firewall may drop what is sent, or the program that listens there is not a worker.',
    values: { timeoutMs },
  })
}
