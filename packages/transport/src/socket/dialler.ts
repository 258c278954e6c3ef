/**
 * Dials a worker at its addresses, one after another, until it answers at one: connect, TLS, handshake (`connection.ts`). `peer-link.ts`
 * uses it for sessions, `exchange.ts` for services.
 */
import type { Socket } from 'node:net'
import { builtin } from '@postgrad/base/internal'
import type { Clock, Timer } from '../clock.js'
import type { FrameRooms } from '../frame-room.js'
import type { StayAwake } from '../stay-awake.js'
import { type Address, formatAddress } from './address.js'
import type { CertificateIdentity } from './certificate.js'
import type { Place } from './chunk-reader.js'
import { type Checksums, type Established, establish, noAnswer } from './connection.js'
import { type Credentials, type Identity, requireCredentials } from './credentials.js'
import type { ReadBuffer } from './read-buffer.js'
import { type Attempt, sentenceOf } from './socket-errors.js'
import type { SocketLimits } from './socket-limits.js'
import type { TlsEnds } from './tls.js'

/** The options that all connections of an exchange share. */
export interface Endpoint {
  readonly self: Identity
  readonly credentials: Credentials | null
  /** With credentials of TLS, and then always. */
  readonly tls: TlsEnds | null
  readonly clock: Clock
  readonly limits: SocketLimits
  readonly random: (bytes: number) => Uint8Array
  readonly release: string
  readonly checksums: 'always' | 'network'
  readonly place: Place | undefined
  readonly rooms: FrameRooms
  /** Restricted roles have a quarter of each budget together (BUD-3). */
  readonly isRestricted: (role: string) => boolean
  readonly reads: ReadBuffer
  readonly stayAwake: StayAwake | undefined
  /** Every socket, from its beginning; it is let go when it has closed. */
  readonly track: (socket: Socket) => void
}

export interface DialOptions {
  readonly purpose: string
  readonly wants: { readonly name: string; readonly id: number } | null
  readonly addresses: readonly Address[]
  /** Of all attempts together. */
  readonly timeoutMs?: number
  readonly onDone: (established: Established) => void
  readonly onFailed: (attempts: readonly Attempt[]) => void
}

/** One round over the addresses. */
export class Dial {
  private readonly end: Endpoint
  private readonly options: DialOptions
  private readonly addresses: readonly Address[]
  private readonly attempts: Attempt[] = []
  private readonly limitMs: number
  private next = 0
  private isOver = false
  private timer: Timer | null = null
  /** Ends the attempt that is under way. */
  private stop: ((detail: string) => void) | null = null

  constructor(end: Endpoint, options: DialOptions) {
    this.end = end
    this.options = options
    this.addresses = preferred(options.addresses)
    this.limitMs = end.clock.now() + (options.timeoutMs ?? Number.POSITIVE_INFINITY)
    // In a turn of its own: no callback runs inside of this constructor.
    end.clock.defer(() => this.tryNext())
  }

  /** Calls no callback. */
  cancel(): void {
    if (this.isOver) return
    this.isOver = true
    this.timer?.cancel()
    this.stop?.('it was called off')
  }

  private tryNext(): void {
    if (this.isOver) return
    const address = this.addresses[this.next++]
    const { clock, limits } = this.end
    const timeoutMs = Math.ceil(Math.min(limits.connectMs, this.limitMs - clock.now()))
    if (address === undefined || timeoutMs <= 0) {
      this.isOver = true
      this.options.onFailed(this.attempts)
      return
    }
    try {
      requireCredentials(address, this.end.credentials)
      this.connect(address, timeoutMs)
    } catch (error) {
      this.failed(address, error as Error)
    }
  }

  private failed(address: Address, error: Error): void {
    this.timer?.cancel()
    this.timer = null
    this.stop = null
    if (this.isOver) return
    this.attempts.push({ address, error })
    this.tryNext()
  }

  private connect(address: Address, timeoutMs: number): void {
    const { clock, tls, track } = this.end
    const beganMs = clock.now()
    const socket = connectTo(address)
    track(socket)
    let isSettled = false
    const failed = (error: Error): void => {
      if (isSettled) return
      isSettled = true
      socket.destroy()
      this.failed(address, error)
    }
    this.stop = (detail) => failed(new Error(detail))
    this.timer = clock.setTimer(timeoutMs, () => failed(noAnswer(timeoutMs)))
    const connected = (made: Socket, peer: CertificateIdentity | null): void => {
      if (isSettled) return
      isSettled = true
      this.timer?.cancel()
      this.shakeHands(address, made, peer, Math.max(1, Math.ceil(beganMs + timeoutMs - clock.now())))
    }
    socket.on('error', failed)
    socket.once('connect', () => {
      if (isSettled) return
      if (tls === null) connected(socket, null)
      else tls.secure(socket, 'dialler', connected, failed)
    })
  }

  private shakeHands(address: Address, socket: Socket, tlsPeer: CertificateIdentity | null, timeoutMs: number): void {
    const { self, credentials, clock, limits, random, release } = this.end
    const { purpose, wants } = this.options
    this.stop = establish(socket, {
      clock,
      limits,
      timeoutMs,
      checksums: checksumsOf(this.end, address.kind === 'unix'),
      place: this.end.place,
      rooms: this.end.rooms,
      reads: this.end.reads,
      stayAwake: this.end.stayAwake,
      handshake: { side: 'dialler', self, credentials, purpose, wants, random, tlsPeer, release },
      onDone: (established) => {
        if (this.isOver) {
          established.link.close()
          return
        }
        this.isOver = true
        this.options.onDone(established)
      },
      onFailed: (error) => this.failed(address, error),
    })
  }
}

/** Only connects, to find out about the process at an address: whether its kernel still takes connections for it. */
export function probe(end: Endpoint, addresses: readonly Address[], onSaid: (said: string, isThere: boolean) => void): void {
  const address = preferred(addresses)[0]
  if (address === undefined) return
  const socket = connectTo(address)
  end.track(socket)
  const timer = end.clock.setTimer(end.limits.connectMs, () => said('its machine does not answer either'))
  const said = (what: string, isThere = false): void => {
    timer.cancel()
    socket.destroy()
    onSaid(what, isThere)
  }
  socket.once('connect', () => said('its process is there and does not answer', true))
  socket.once('error', (error) => said(sentenceOf(error)))
}

function connectTo(address: Address): Socket {
  const { connect } = builtin<typeof import('node:net')>('node:net')
  return address.kind === 'unix' ? connect({ path: address.path }) : connect({ host: address.host, port: address.port })
}

/** TLS has a better one in its records. */
export function checksumsOf({ tls, checksums }: Endpoint, isUnix: boolean): Checksums {
  if (tls !== null || (isUnix && checksums === 'network')) return 'never'
  return checksums
}

/** Unix sockets that are there first: the same machine. One that is not there is left out, unless there is nothing else. */
function preferred(addresses: readonly Address[]): readonly Address[] {
  const { existsSync } = builtin<typeof import('node:fs')>('node:fs')
  const unix = addresses.filter((address) => address.kind === 'unix')
  const there = unix.filter(({ path }) => existsSync(path))
  const seen = new Set<string>()
  const ordered = [...there, ...addresses.filter(({ kind }) => kind === 'tcp')]
  return (ordered.length > 0 ? ordered : unix).filter((address) => {
    const text = formatAddress(address)
    return !seen.has(text) && seen.add(text)
  })
}
