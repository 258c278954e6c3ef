/**
 * A worker's connections to workers of other processes: listens, dials, and gives a link to each peer, which survives breaks of its
 * connection. `peer-link.ts` has the session of one peer, `listener.ts` and `dialler.ts` make connections, `connection.ts` authenticates
 * their other ends. The rules EXC-1… are in SPEC.md.
 *
 *     link(peer) ─→ PeerLink ─→ Session ─→ SocketLink ─→ chunks ─→ TCP, TLS, Unix socket
 *                      ↑ dials, redials        ↑ one at a time
 *     listen ─→ Listener ─→ handshake ─┬ session: to the peer's link; without one it waits a while
 *                                      └ anything else: to the service of that name
 */
import type { Socket } from 'node:net'
import type { PostgradError } from '@postgrad/base'
import { builtin, onAbort } from '@postgrad/base/internal'
import { Budget, type Holder, type Share } from '../budget.js'
import type { Clock, Timer } from '../clock.js'
import { callListener } from '../clock.js'
import { FrameRooms } from '../frame-room.js'
import type { Link } from '../link.js'
import type { StayAwake } from '../stay-awake.js'
import type { Address } from './address.js'
import { Bye, ChunkType } from './chunk.js'
import type { Place } from './chunk-reader.js'
import { type Established, SESSION_PURPOSE } from './connection.js'
import { type Credentials, checkCredentials, DEFAULT_ROLE, type Identity } from './credentials.js'
import { Dial, type Endpoint } from './dialler.js'
import { RELEASE } from './handshake.js'
import { refuse } from './handshake-errors.js'
import { type ListenAddress, Listener } from './listener.js'
import { type Addresses, linkExists, type PeerHealth, PeerLink, type PeerName, readResume } from './peer-link.js'
import { ReadBuffer } from './read-buffer.js'
import { connectFailed, exchangeClosed, isFinal } from './socket-errors.js'
import { type SocketLimits, socketLimits } from './socket-limits.js'
import { ownIdentity, TlsEnds } from './tls.js'

export interface ExchangeOptions {
  /** This worker. The role is that of the credentials; without any it is 'member' unless given. */
  readonly self: Omit<Identity, 'role'> & { readonly role?: string }
  /** Its proof. Null: none, and the exchange listens and dials only on this machine. */
  readonly credentials: Credentials | null
  readonly clock: Clock
  readonly limits?: Partial<SocketLimits>
  /** Whether a role is restricted: its large frames have a small room of their own (`frame-room.ts`), and all such roles have a quarter of the connections together. Default: none is. */
  readonly isRestricted?: (role: string) => boolean
  /** The library's version, which must be the same at both ends; default this one's. */
  readonly release?: string
  /**
   * Which connections send large frames with a checksum of their bytes. `network`: those alone that may leave this machine, since nothing can damage what passes through
   * its memory; it saves 9 ms of 64 MiB at each end. Unix sockets stay here, and TCP over loopback where both ends find that nobody forwards it (HSK-12). With TLS it is left to
   * TLS. Default `always`.
   */
  readonly checksums?: 'always' | 'network'
  /** Where large segments are read to; what it gives is the receiver's with the frame. Default: fresh memory. */
  readonly place?: Place
  /** Called with the address of each end that dialled this one and was refused with AUTH_FAILED, VERSION_MISMATCH or CLUSTER_MISMATCH. */
  readonly onRefused?: (from: string, error: PostgradError) => void
  /** This thread's; see `SocketLinkOptions`. */
  readonly stayAwake?: StayAwake
  /** Nonces, lives and jitter. Default: `crypto.randomBytes`; nothing else is safe with credentials. */
  readonly random?: (bytes: number) => Uint8Array
}

export interface DialedService {
  readonly link: Link
  readonly peer: Identity
}

export interface ServiceDialOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Tries again until the time is over if no worker answers yet. Default false: each address once. */
  readonly retry?: boolean
}

/** A session's connection that waits for its link. */
interface Stranger {
  readonly established: Established
  readonly timer: Timer
  readonly share: Share
  resume: Buffer | null
}

export class Exchange {
  readonly self: Identity
  readonly counts = { attached: 0, ended: 0, strangers: 0 }
  private readonly end: Endpoint
  private readonly listener: Listener
  private readonly sockets = new Set<Socket>()
  private readonly peers = new Map<number, PeerLink>()
  private readonly strangers = new Set<Stranger>()
  private readonly strangerBudget: Budget
  private readonly services = new Map<string, (link: Link, peer: Identity, holder: Holder) => void>()
  private readonly serviceLinks = new Set<Link>()
  private readonly dials = new Set<(error: PostgradError) => void>()
  private readonly identityListeners: ((peer: Identity) => void)[] = []
  private readonly healthListeners: ((peer: PeerName, health: PeerHealth) => void)[] = []
  private closing: Promise<void> | null = null
  private onEmpty: (() => void) | null = null

  /** @throws CREDENTIALS_INVALID, INVALID_ARGUMENT, AUTH_FAILED if the certificate names nobody */
  constructor(options: ExchangeOptions) {
    const { self, credentials, clock, random, release = RELEASE, isRestricted = () => false } = options
    if (credentials !== null) checkCredentials(credentials)
    const tls = credentials?.kind === 'tls' ? new TlsEnds(credentials) : null
    this.self = { cluster: self.cluster, name: self.name, id: self.id, role: roleOf(options) }
    this.end = {
      self: this.self,
      credentials,
      tls,
      clock,
      limits: socketLimits(options.limits),
      random: random ?? ((bytes) => builtin<typeof import('node:crypto')>('node:crypto').randomBytes(bytes)),
      release,
      checksums: options.checksums ?? 'always',
      place: options.place,
      rooms: new FrameRooms(clock, isRestricted),
      isRestricted,
      reads: new ReadBuffer(),
      stayAwake: options.stayAwake,
      track: (socket) => this.track(socket),
    }
    this.strangerBudget = new Budget(this.end.limits.strangersMax)
    this.listener = new Listener({
      end: this.end,
      admits: (_, purpose) => this.admits(purpose),
      onConnection: (established) => this.onConnection(established),
      onRefused: (from, error) => options.onRefused?.(from, error),
    })
  }

  /**
   * Listens, and does not keep the process alive by it.
   * @returns what others can reach, in the order of `at`
   * @throws ADDRESS_IN_USE, ADDRESS_INVALID, CREDENTIALS_REQUIRED
   */
  async listen(at: readonly ListenAddress[]): Promise<readonly Address[]> {
    if (this.closing !== null) throw exchangeClosed('listen')
    return await this.listener.listen(at)
  }

  /**
   * The link to a worker, at once: it dials when something is first sent, or takes what the other has dialled. One at a time.
   * @param role the role that it must have proven; null: any, and then the link stays with that in which it first comes
   * @throws LINK_EXISTS, EXCHANGE_CLOSED
   */
  link(peer: PeerName, addresses: Addresses, role: string | null = null): Link {
    if (this.closing !== null) throw exchangeClosed('exchange.link')
    if (this.peers.has(peer.id)) throw linkExists(peer)
    const made = new PeerLink({
      end: this.end,
      peer,
      role,
      addresses,
      onIdentity: (identity) => this.onIdentity(identity),
      onHealth: (health) => this.onHealth(peer, health),
      onOtherLife: (established, resume) => this.onStranger(established, resume),
      onOver: () => this.onPeerOver(made),
    })
    this.peers.set(peer.id, made)
    for (const stranger of [...this.strangers]) {
      if (stranger.established.peer.id !== peer.id) continue
      this.forget(stranger)
      made.join(stranger.established, false, stranger.resume)
    }
    return made.session
  }

  /** The caller knows that this peer has ended: its link closes after all received frames, and is not connected again. */
  ended(id: number, detail: string): void {
    this.peers.get(id)?.ended(detail)
  }

  /** Takes connections that are dialled for this purpose. The link must be opened in the same turn or later; nothing is lost before. */
  serve(purpose: string, accept: (link: Link, peer: Identity, holder: Holder) => void): void {
    this.services.set(purpose, accept)
  }

  /**
   * A connection for a purpose of its own, without a session: if it breaks, its link ends.
   * @throws CONNECT_FAILED, with what each address said; AUTH_FAILED, VERSION_MISMATCH, CLUSTER_MISMATCH, PURPOSE_UNKNOWN, CREDENTIALS_REQUIRED; what the signal says
   */
  dial(purpose: string, addresses: readonly Address[], options: ServiceDialOptions): Promise<DialedService> {
    const { clock, limits } = this.end
    const limitMs = clock.now() + options.timeoutMs
    return new Promise((resolve, reject) => {
      let dial: Dial | null = null
      let timer: Timer | null = null
      const stopListening = options.signal === undefined ? () => {} : onAbort(options.signal, () => fail(options.signal?.reason as Error))
      const over = (): void => {
        stopListening()
        timer?.cancel()
        dial?.cancel()
        this.dials.delete(fail)
      }
      const fail = (error: Error): void => {
        over()
        reject(error)
      }
      let attempt = 0
      const tryAll = (): void => {
        dial = new Dial(this.end, {
          purpose,
          wants: null,
          addresses,
          timeoutMs: limitMs - clock.now(),
          onDone: ({ link, peer }) => {
            over()
            this.keepService(link)
            resolve({ link, peer })
          },
          onFailed: (attempts) => {
            const waitMs = Math.min(limits.backoffMs * 2 ** attempt++, limits.backoffMsMax)
            if (options.retry !== true || attempts.some(isFinal) || clock.now() + waitMs >= limitMs) {
              fail(connectFailed(`a worker, for '${purpose}'`, attempts))
            } else timer = clock.setTimer(waitMs, tryAll)
          },
        })
      }
      if (this.closing !== null) fail(exchangeClosed('exchange.dial'))
      else if (options.signal?.aborted === true) fail(options.signal.reason as Error)
      else {
        this.dials.add(fail)
        tryAll()
      }
    })
  }

  /** The proven identity of a peer, as long as there is a link to it that has been connected. */
  identityOf(id: number): Identity | null {
    return this.peers.get(id)?.identity ?? null
  }

  /** Called at each link's first connection. */
  onPeerIdentity(listener: (peer: Identity) => void): void {
    this.identityListeners.push(listener)
  }

  /** Called when nothing was received from a peer for `suspectMs`, when its process is found to live all the same, and when something was received again. */
  onPeerHealth(listener: (peer: PeerName, health: PeerHealth) => void): void {
    this.healthListeners.push(listener)
  }

  /** Closes every link and waits for its goodbye, for a limited time. Nothing is open afterwards. */
  close(): Promise<void> {
    this.closing ??= this.closeAll()
    return this.closing
  }

  private async closeAll(): Promise<void> {
    const { clock, limits } = this.end
    this.listener.close()
    for (const fail of [...this.dials]) fail(exchangeClosed('exchange.dial'))
    for (const stranger of [...this.strangers]) {
      this.forget(stranger)
      stranger.established.link.abort(Bye.CLOSED, 'the worker has ended')
    }
    for (const link of [...this.serviceLinks]) link.close()
    for (const peer of [...this.peers.values()]) peer.session.close()
    if (this.sockets.size === 0 && this.peers.size === 0) return
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(2 * limits.lingerMs, () => {
        for (const peer of [...this.peers.values()]) peer.session.abandon('the worker has ended')
        for (const socket of [...this.sockets]) socket.destroy()
        // A socket that never connected may not even say that it has closed.
        resolve()
      })
      this.onEmpty = () => {
        timer.cancel()
        resolve()
      }
      this.checkEmpty()
    })
  }

  private checkEmpty(): void {
    if (this.sockets.size === 0 && this.peers.size === 0) this.onEmpty?.()
  }

  private track(socket: Socket): void {
    this.sockets.add(socket)
    socket.once('close', () => {
      this.sockets.delete(socket)
      this.checkEmpty()
    })
  }

  private admits(purpose: string): void {
    if (this.closing === null && (purpose === SESSION_PURPOSE || this.services.has(purpose))) return
    throw refuse('accept', 'purpose', `one of: ${[SESSION_PURPOSE, ...this.services.keys()].join(', ')}`, `'${purpose}'`, { purpose })
  }

  private onConnection(established: Established): void {
    const { link, peer, purpose, holder } = established
    if (purpose !== SESSION_PURPOSE) {
      this.keepService(link)
      const accept = this.services.get(purpose) as (link: Link, peer: Identity, holder: Holder) => void
      callListener(this.end.clock, () => accept(link, peer, holder))
      return
    }
    const known = this.peers.get(peer.id)
    if (known === undefined) this.onStranger(established, null)
    else known.join(established, false)
  }

  private keepService(link: Link): void {
    const kept = link as Established['link']
    this.serviceLinks.add(kept)
    kept.hook({ onEnd: () => this.serviceLinks.delete(kept) })
  }

  /** The list of workers may learn of this one a little later than it dials. */
  private onStranger(established: Established, resume: Buffer | null): void {
    const { link, holder } = established
    const { clock, limits } = this.end
    const share = this.strangerBudget.share(holder, this.end.isRestricted(holder.role))
    if (this.closing !== null || share.take(1) !== null) {
      link.abort(Bye.STRANGER, 'too many wait that are not known here')
      return
    }
    this.counts.strangers++
    const timer = clock.setTimer(limits.strangerMs, () => link.abort(Bye.STRANGER, 'the worker is not known here'))
    const stranger: Stranger = { established, timer, share, resume }
    this.strangers.add(stranger)
    link.hook({
      onControl: (type, body) => {
        if (type !== ChunkType.RESUME) return
        // The peer knows a life of this worker's link, which is gone: that session is over here.
        if (readResume(body).known !== 0) link.abort(Bye.CLOSED, 'the session has ended here')
        else stranger.resume = body
      },
      onEnd: () => this.forget(stranger),
    })
  }

  private forget(stranger: Stranger): void {
    stranger.timer.cancel()
    stranger.share.end()
    this.strangers.delete(stranger)
  }

  private onIdentity(identity: Identity): void {
    this.counts.attached++
    for (const listener of this.identityListeners) callListener(this.end.clock, () => listener(identity))
  }

  private onHealth(peer: PeerName, health: PeerHealth): void {
    for (const listener of this.healthListeners) callListener(this.end.clock, () => listener(peer, health))
  }

  private onPeerOver(peer: PeerLink): void {
    this.counts.ended++
    if (this.peers.get(peer.peer.id) === peer) this.peers.delete(peer.peer.id)
    this.checkEmpty()
  }
}

function roleOf({ self, credentials }: ExchangeOptions): string {
  if (credentials?.kind === 'key') return credentials.role
  if (credentials?.kind === 'tls') return ownIdentity(credentials).role
  return self.role ?? DEFAULT_ROLE
}
