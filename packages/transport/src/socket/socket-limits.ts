/**
 * The limits of memory and time of a connection, in one place. Every number has a default and a reason; `exchange.ts` takes some as options.
 */
import { PostgradError } from '@postgrad/base'
import type { FrameLimits } from './chunk.js'

export interface SocketLimits extends FrameLimits {
  /** Handed to a socket and not written yet; later bytes wait in the link, where a heartbeat goes ahead of them. */
  readonly handedBytesMax: number
  /** Waits in a link that has no session; beyond, the link breaks. */
  readonly queuedBytesMax: number
  /** A session keeps at most so many bytes that are not acknowledged; beyond, it breaks. */
  readonly keptBytesMax: number
  /** All that an unauthenticated end may send, and how long it may take. */
  readonly handshakeBytesMax: number
  readonly handshakeMs: number
  /** Connections whose other end is not known yet: of all addresses together, and of one. */
  readonly halfOpenMax: number
  readonly halfOpenPerAddressMax: number
  /** Open connections that one address may have, known or not. Unix sockets count as one address. */
  readonly connectionsPerAddressMax: number
  /** Open connections of authenticated workers, of all together; an identity and a role may have fewer (`budget.ts`). */
  readonly connectionsMax: number
  /** Connections of workers to which this one has no link yet, of all together, and how long each waits for one. */
  readonly strangersMax: number
  readonly strangerMs: number
  /** A PING leaves when nothing else was sent for so long. */
  readonly heartbeatMs: number
  /** Nothing received for so long: suspected; for so long: the connection is dead, and so is the link. */
  readonly suspectMs: number
  readonly deadMs: number
  /** How long a link may be without a connection before it ends. */
  readonly graceMs: number
  /** One attempt to connect, its handshake included. */
  readonly connectMs: number
  /** Between two attempts: at first, then doubled up to the second. */
  readonly backoffMs: number
  readonly backoffMsMax: number
  /** How long an end that has said BYE waits for the other's. */
  readonly lingerMs: number
}

export const SOCKET_LIMITS: SocketLimits = Object.freeze({
  frameBytesMax: 2 ** 30 + 2 ** 26,
  segmentsMax: 2 ** 14,
  handedBytesMax: 2 ** 20,
  queuedBytesMax: 2 ** 31,
  keptBytesMax: 2 ** 31,
  handshakeBytesMax: 4096,
  handshakeMs: 5000,
  halfOpenMax: 256,
  halfOpenPerAddressMax: 64,
  connectionsPerAddressMax: 4096,
  connectionsMax: 16_384,
  strangersMax: 1024,
  strangerMs: 10_000,
  heartbeatMs: 1000,
  suspectMs: 5000,
  deadMs: 15_000,
  graceMs: 10_000,
  connectMs: 5000,
  backoffMs: 50,
  backoffMsMax: 1000,
  lingerMs: 1000,
})

/** @throws INVALID_ARGUMENT */
export function socketLimits(some: Partial<SocketLimits> = {}): SocketLimits {
  for (const [name, value] of Object.entries(some)) {
    if (!(name in SOCKET_LIMITS) || typeof value !== 'number' || !(value > 0) || !Number.isFinite(value)) {
      throw new PostgradError('INVALID_ARGUMENT', {
        op: 'Exchange',
        expected: `limits of sockets: ${Object.keys(SOCKET_LIMITS).join(', ')}, each a number above 0`,
        got: `${name}: ${value}`,
        remedy: 'Leave out what the default serves.',
        values: { name },
      })
    }
  }
  return { ...SOCKET_LIMITS, ...some }
}
