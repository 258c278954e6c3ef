/**
 * Listens on Unix sockets and TCP ports, within limits: it counts connections that are not authenticated yet, in all and by address, and all
 * connections of an address. It counts authenticated ones by identity, too, and hands them to `exchange.ts`.
 */
import type { Server, Socket } from 'node:net'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import { Budget, ofLevel } from '../budget.js'
import { type Address, checkAddress, formatAddress, networkOf } from './address.js'
import type { CertificateIdentity } from './certificate.js'
import { Bye } from './chunk.js'
import { type Established, establish } from './connection.js'
import { type Identity, requireCredentials } from './credentials.js'
import { checksumsOf, type Endpoint } from './dialler.js'
import { addressInUse, cannotListen, pathTaken } from './socket-errors.js'

/** Where to listen. */
export type ListenAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | {
      readonly kind: 'tcp'
      /** Of this machine; 0.0.0.0 is all of them. */
      readonly host: string
      /** 0: any that is free. A pair: the first that is free, both included. */
      readonly port: number | readonly [number, number]
      /** The host that others dial; default: `host`. */
      readonly advertise?: string
    }

export interface ListenerOptions {
  readonly end: Endpoint
  /** Throws if this is not served. */
  readonly admits: (peer: Identity, purpose: string) => void
  readonly onConnection: (established: Established) => void
  /** An end that dialled from this address did not prove what it must, and was refused. Called for each: its taker limits what it makes of it. */
  readonly onRefused: (from: string, error: PostgradError) => void
}

export class Listener {
  /** Connections that were let in, and those that were too many. `failed`: the handshake was. */
  readonly counts = { accepted: 0, refused: 0, failed: 0 }
  private readonly options: ListenerOptions
  private readonly servers: Server[] = []
  private readonly halfOpen = new Map<string, number>()
  private readonly open = new Map<string, number>()
  private readonly known: Budget
  private halfOpenCount = 0
  private isClosed = false

  constructor(options: ListenerOptions) {
    this.options = options
    this.known = new Budget(options.end.limits.connectionsMax)
  }

  /** @returns what others reach. @throws ADDRESS_IN_USE, ADDRESS_INVALID, CREDENTIALS_REQUIRED */
  async listen(at: readonly ListenAddress[]): Promise<readonly Address[]> {
    // Nothing is opened if one of them is wrong.
    for (const address of at) {
      const first = firstOf(address)
      checkAddress(first)
      if (address.kind === 'tcp' && address.advertise !== undefined) checkAddress({ kind: 'tcp', host: address.advertise, port: 0 })
      requireCredentials(first, this.options.end.credentials)
    }
    const reached: Address[] = []
    for (const address of at) reached.push(address.kind === 'unix' ? await this.listenUnix(address.path) : await this.listenTcp(address))
    return reached
  }

  close(): void {
    this.isClosed = true
    // A server takes its socket's file away as well.
    for (const server of this.servers) server.close()
  }

  private async listenUnix(path: string): Promise<Address> {
    const { chmodSync, lstatSync, rmSync } = builtin<typeof import('node:fs')>('node:fs')
    // A pipe of Windows is not a file: it has no mode, and ends with its process.
    if (process.platform === 'win32') {
      await this.startAt(path)
      return { kind: 'unix', path }
    }
    try {
      await this.start({ path })
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw cannotListen(path, error as NodeJS.ErrnoException)
      const there = lstatSync(path, { throwIfNoEntry: false })
      // A user's file: to connect to it is refused as well.
      if (there?.isSocket() === false) throw pathTaken(path, 'is not a socket')
      if (there !== undefined && there.uid !== process.geteuid?.()) throw pathTaken(path, 'belongs to another user')
      // A killed process leaves its socket: nobody listens there any more.
      if (await answers(path)) throw addressInUse(`unix:${path}`, 'EADDRINUSE')
      rmSync(path, { force: true })
      await this.startAt(path)
    }
    chmodSync(path, 0o600)
    return { kind: 'unix', path }
  }

  private async startAt(path: string): Promise<void> {
    try {
      await this.start({ path })
    } catch (error) {
      throw codeOf(error) === 'EADDRINUSE' ? addressInUse(`unix:${path}`, 'EADDRINUSE') : cannotListen(path, error as NodeJS.ErrnoException)
    }
  }

  private async listenTcp({ host, port, advertise }: ListenAddress & { kind: 'tcp' }): Promise<Address> {
    const [from, to] = typeof port === 'number' ? [port, port] : port
    const textOf = (one: number): string => formatAddress({ kind: 'tcp', host, port: one })
    for (let each = from; each <= to; each++) {
      try {
        const server = await this.start({ host, port: each })
        const got = server.address() as { port: number }
        return { kind: 'tcp', host: advertise ?? host, port: got.port }
      } catch (error) {
        if (codeOf(error) !== 'EADDRINUSE') throw cannotListen(textOf(each), error as NodeJS.ErrnoException)
      }
    }
    throw addressInUse(from === to ? textOf(from) : `every port of ${host} from ${from} to ${to}`, 'EADDRINUSE')
  }

  private start(where: { readonly path: string } | { readonly host: string; readonly port: number }): Promise<Server> {
    const { createServer } = builtin<typeof import('node:net')>('node:net')
    const server = createServer((socket) => this.onSocket(socket))
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ ...where, exclusive: true }, () => {
        server.removeListener('error', reject)
        // The server survives a connection that it cannot accept (no more file descriptors).
        server.on('error', () => this.counts.refused++)
        this.servers.push(server)
        // A process that only listens may end.
        server.unref()
        if (this.isClosed) server.close()
        resolve(server)
      })
    })
  }

  private onSocket(socket: Socket): void {
    const { end } = this.options
    const { limits, tls } = end
    const from = networkOf(socket.remoteAddress)
    const halfOpen = this.halfOpen.get(from) ?? 0
    const open = this.open.get(from) ?? 0
    if (
      this.isClosed ||
      this.halfOpenCount >= limits.halfOpenMax ||
      halfOpen >= limits.halfOpenPerAddressMax ||
      open >= limits.connectionsPerAddressMax
    ) {
      this.counts.refused++
      socket.destroy()
      return
    }
    end.track(socket)
    socket.on('error', () => {})
    this.halfOpenCount++
    this.halfOpen.set(from, halfOpen + 1)
    this.open.set(from, open + 1)
    let isKnown = false
    const known = (): void => {
      if (isKnown) return
      isKnown = true
      this.halfOpenCount--
      decrement(this.halfOpen, from)
    }
    socket.once('close', () => {
      known()
      decrement(this.open, from)
    })
    if (tls === null) {
      this.shakeHands(socket, null, limits.handshakeMs, known)
      return
    }
    const beganMs = end.clock.now()
    const timer = end.clock.setTimer(limits.handshakeMs, () => socket.destroy())
    const secured = (made: Socket, peer: CertificateIdentity): void => {
      timer.cancel()
      this.shakeHands(made, peer, Math.max(1, Math.ceil(beganMs + limits.handshakeMs - end.clock.now())), known)
    }
    const { remoteAddress } = socket
    tls.secure(socket, 'listener', secured, (error) => {
      timer.cancel()
      this.onFailed(remoteAddress, error)
    })
  }

  private shakeHands(socket: Socket, tlsPeer: CertificateIdentity | null, timeoutMs: number, known: () => void): void {
    const { end, admits, onConnection } = this.options
    // A socket that has closed does not say it any more.
    const { remoteAddress } = socket
    const { self, credentials, clock, limits, random, release } = end
    establish(socket, {
      clock,
      limits,
      timeoutMs,
      checksums: checksumsOf(end, socket.remoteAddress === undefined),
      place: end.place,
      rooms: end.rooms,
      reads: end.reads,
      stayAwake: end.stayAwake,
      handshake: { side: 'listener', self, credentials, random, tlsPeer, release },
      admits,
      onDone: (established) => {
        known()
        const { holder, link } = established
        const share = this.known.share(holder, end.isRestricted(holder.role))
        const over = share.take(1)
        if (over !== null) {
          this.counts.refused++
          link.abort(Bye.STRANGER, `${ofLevel(over.level)} may have ${over.limit} connections, and has them`)
          return
        }
        socket.once('close', () => share.end())
        this.counts.accepted++
        onConnection(established)
      },
      onFailed: (error) => this.onFailed(remoteAddress, error),
    })
  }

  /** A connection that only broke does not count as refused, and neither does another program that dialled this port. */
  private onFailed(from: string | undefined, error: Error): void {
    this.counts.failed++
    if (!isPostgradError(error) || !REFUSED.has(error.code) || error.values.by === 'peer') return
    this.options.onRefused(from?.replace(/^::ffff:/, '') ?? 'this machine', error)
  }
}

const REFUSED: ReadonlySet<string> = new Set(['AUTH_FAILED', 'VERSION_MISMATCH', 'CLUSTER_MISMATCH'])

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code

const firstOf = (address: ListenAddress): Address =>
  address.kind === 'unix'
    ? address
    : { kind: 'tcp', host: address.host, port: typeof address.port === 'number' ? address.port : address.port[0] }

function decrement(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 1) - 1
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}

/** Whether somebody listens on a Unix socket. */
function answers(path: string): Promise<boolean> {
  const { connect } = builtin<typeof import('node:net')>('node:net')
  return new Promise((resolve) => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', (error) => resolve(codeOf(error) !== 'ECONNREFUSED'))
  })
}
