/**
 * One peer's session and its connections, one after another: dials when something is first sent, takes connections that the peer dials,
 * dials again when a connection breaks, gives up when there was none for too long. `session.ts` is the link that users hold, `exchange.ts` has one
 * of these for each peer.
 *
 * Note [Which connection]. Both may dial at once, and a connection may be dead at one end and alive at the other. So one of the two decides, the
 * worker with the smaller id: it makes a connection the session's by ATTACH, with a number that grows. The other follows the greatest number that
 * it has seen, on whichever connection. Each first says RESUME on a new connection. The one that decides takes the newest, with one exception: if
 * it has dialled, it refuses a connection that the peer dialled before it could know of that.
 *
 * Note [Lives]. A link has a life, a number that the session's frames carry; so has the peer's. An end that meets another life than before has lost
 * the former one: that worker was started again, or has given the session up. Frames of two lives never mix.
 */
import { PostgradError } from '@postgrad/base'
import type { Clock, Timer } from '../clock.js'
import { Session } from '../session/session.js'
import type { Address } from './address.js'
import { Bye, ChunkType, chunkInvalid, frameTooLarge } from './chunk.js'
import type { Established } from './connection.js'
import { SESSION_PURPOSE } from './connection.js'
import type { Identity } from './credentials.js'
import { Dial, type Endpoint, probe } from './dialler.js'
import { type Attempt, attemptsText, isFinal } from './socket-errors.js'
import type { SocketEnd, SocketLink } from './socket-link.js'

export interface PeerName {
  readonly name: string
  readonly id: number
}

export type Addresses = () => readonly Address[] | Promise<readonly Address[]>

/** `suspected`: nothing comes. `standing-still`: but its kernel answers, so it lives. */
export type PeerHealth = 'well' | 'suspected' | 'standing-still'

export interface PeerLinkOptions {
  readonly end: Endpoint
  readonly peer: PeerName
  /** The role that the peer must have proven; null: that in which it first comes. */
  readonly role: string | null
  readonly addresses: Addresses
  /** The peer's identity, when its first connection is there. */
  readonly onIdentity: (identity: Identity) => void
  readonly onHealth: (health: PeerHealth) => void
  /** A connection of another life of the peer: it belongs to the next link. */
  readonly onOtherLife: (established: Established, resume: Buffer) => void
  /** Nothing follows: the session has ended at this end. */
  readonly onOver: () => void
}

/** A connection that may become the session's. */
interface Candidate {
  readonly established: Established
  readonly isOurs: boolean
  peerLife: number | null
}

const RESUME_BYTES = 12
/** After a break, the dialled end gives the other so long to dial again. */
const OTHERS_TURN_MS = 300
/** So often in a row, with nothing delivered in between, a connection may end because this end cannot read it. */
const UNREADABLE_MAX = 3
/** Connections of a peer that wait for its RESUME. An honest peer has two at most, when both dial. */
const CANDIDATES_MAX = 4
/** Room for the head that a session adds. */
const SESSION_SLACK_BYTES = 1024

export class PeerLink {
  readonly session: Session
  readonly peer: PeerName
  identity: Identity | null = null
  /** Connections that the session has had. */
  attached = 0
  private readonly options: PeerLinkOptions
  private readonly clock: Clock
  private readonly life: number
  private readonly decides: boolean
  private peerLife: number | null = null
  /** The number of the last ATTACH. */
  private chosen = 0
  private carrier: SocketLink | null = null
  private isCarrierOurs = false
  private attachedMs = 0
  private readonly candidates = new Set<Candidate>()
  private dial: Dial | null = null
  private isLookingUp = false
  private attempt = 0
  private retryTimer: Timer | null = null
  private graceTimer: Timer | null = null
  private endTimer: Timer | null = null
  /** Of the last round over the addresses; null before the first. */
  private failures: readonly Attempt[] | null = null
  private lost = ''
  private probed = ''
  private suspicions = 0
  private health: PeerHealth = 'well'
  private stillTimer: Timer | null = null
  private unreadable = 0
  private deliveredBefore = -1
  private endedDetail: string | null = null
  private isOver = false

  constructor(options: PeerLinkOptions) {
    const { end, peer } = options
    this.options = options
    this.peer = peer
    this.clock = end.clock
    this.decides = end.self.id < peer.id
    this.life = Buffer.from(end.random(4)).readUInt32LE(0) || 1
    const { limits } = end
    const bytesMax = limits.frameBytesMax - SESSION_SLACK_BYTES
    this.session = new Session(null, {
      clock: end.clock,
      self: this.life,
      peer: null,
      name: `${peer.name} (${peer.id})`,
      // Only bytes bound the waiting frames: a peer that is busy for long gets many small ones, as over a port.
      keptFramesMax: Number.POSITIVE_INFINITY,
      keptBytesMax: limits.keptBytesMax,
      reconnectMs: Number.POSITIVE_INFINITY,
      carrierLoses: false,
      carrierTakes: false,
      check: ({ header, segments }) => {
        let bytes = header.length
        for (let i = 0; i < segments.length; i++) bytes += (segments[i] as Uint8Array).length
        if (bytes > bytesMax || segments.length > limits.segmentsMax) throw frameTooLarge(bytes, segments.length, limits)
      },
      onWant: () => this.want(),
      onOver: () => this.onOver(),
    })
  }

  get isConnected(): boolean {
    return this.carrier !== null
  }

  /** A connection to or from this peer. The peer's RESUME may have come already. */
  join(established: Established, isOurs: boolean, resume: Buffer | null = null): void {
    const { link, peer } = established
    // A key says the role, and not which worker of that role: one of another role could take over the session, and with it the rights that it has.
    const role = this.identity?.role ?? this.options.role
    if (this.isOver || peer.name !== this.peer.name || (role !== null && role !== peer.role)) {
      link.abort(Bye.STRANGER, `this is a link to ${this.peer.name}${role === null ? '' : ` as ${role}`}`)
      if (!isOurs || this.isOver) return
      // The right worker may still dial, or answer there next time.
      this.lost = `a process that answers for ${this.peer.name} is there as ${peer.role}, and not as ${role}`
      this.retry(0)
      return
    }
    const candidate: Candidate = { established, isOurs, peerLife: null }
    const [oldest] = this.candidates
    if (this.candidates.size >= CANDIDATES_MAX) oldest?.established.link.abort(Bye.REPLACED, 'newer connections wait')
    this.candidates.add(candidate)
    link.hook({
      onControl: (type, body) => this.onControl(candidate, type, body),
      onEnd: (end) => this.onEnd(candidate, end),
      onSuspected: (isSuspected) => this.onSuspected(link, isSuspected),
    })
    const body = Buffer.alloc(RESUME_BYTES)
    body.writeUInt32LE(this.life, 0)
    body.writeUInt32LE(this.peerLife ?? 0, 4)
    body.writeUInt32LE(this.chosen, 8)
    link.control(ChunkType.RESUME, body)
    if (resume !== null) this.onControl(candidate, ChunkType.RESUME, resume)
  }

  /** The caller knows that this worker has ended: the link looks for no connection any more. */
  ended(detail: string): void {
    if (this.endedDetail !== null || this.isOver) return
    this.endedDetail = detail
    this.stopDialling()
    if (this.carrier === null) {
      this.session.abandon(detail)
      return
    }
    // Frames that it sent may still be on their way, and are read though the link was paused.
    this.session.setPaused(false)
    this.endTimer = this.clock.setTimer(this.options.end.limits.lingerMs, () => this.session.abandon(detail))
  }

  // --- which connection

  private onControl(candidate: Candidate, type: ChunkType, body: Buffer): void {
    if (this.isOver) return
    if (type === ChunkType.RESUME) this.onResume(candidate, body)
    else if (type === ChunkType.ATTACH) this.onAttach(candidate, body)
    else throw chunkInvalid(`type ${type}`, 'what belongs to a session')
  }

  private onResume(candidate: Candidate, body: Buffer): void {
    const { life, known, seen } = readResume(body)
    if (candidate.established.link === this.carrier) throw chunkInvalid('a RESUME', 'one RESUME on a connection')
    // To a former life of this link. The peer learns of this one in the same moment, and then says RESUME again.
    if (known !== 0 && known !== this.life) return
    if (this.peerLife !== null && life !== this.peerLife) {
      this.candidates.delete(candidate)
      this.options.onOtherLife(candidate.established, body)
      this.session.abandon(`${this.peer.name} was started again, or has given up this session`)
      return
    }
    candidate.peerLife = life
    if (!this.decides) return
    if (this.isGlare(candidate, seen)) {
      candidate.established.link.abort(Bye.REPLACED, 'the connection from the other side stays')
      return
    }
    const number = Buffer.alloc(4)
    number.writeUInt32LE(++this.chosen, 0)
    candidate.established.link.control(ChunkType.ATTACH, number)
    this.attach(candidate)
  }

  /** Dialled by the peer when it could not know yet that it is connected. The time bounds what a connection that is dead at one end can do. */
  private isGlare({ isOurs }: Candidate, seen: number): boolean {
    if (this.carrier === null || isOurs || !this.isCarrierOurs || seen >= this.chosen) return false
    return this.clock.now() - this.attachedMs < this.options.end.limits.backoffMsMax
  }

  private onAttach(candidate: Candidate, body: Buffer): void {
    if (this.decides || candidate.peerLife === null || body.length !== 4)
      throw chunkInvalid('an ATTACH', 'one from the deciding end, after its RESUME')
    const number = body.readUInt32LE(0)
    if (candidate.established.link === this.carrier) throw chunkInvalid('an ATTACH', 'one ATTACH on a connection')
    if (number <= this.chosen || (this.peerLife !== null && candidate.peerLife !== this.peerLife)) {
      candidate.established.link.abort(Bye.REPLACED)
      return
    }
    this.chosen = number
    this.attach(candidate)
  }

  private attach(candidate: Candidate): void {
    const { link, peer } = candidate.established
    const before = this.carrier
    this.candidates.delete(candidate)
    this.carrier = link
    this.isCarrierOurs = candidate.isOurs
    this.attachedMs = this.clock.now()
    this.attempt = 0
    this.attached++
    this.stopDialling()
    this.graceTimer?.cancel()
    this.graceTimer = null
    this.peerLife = candidate.peerLife
    this.identity = peer
    // The former connection's suspicion no longer holds; this one has its own.
    this.newSuspicion()
    this.tellHealth('well')
    before?.abort(Bye.REPLACED)
    for (const other of [...this.candidates]) other.established.link.abort(Bye.REPLACED)
    this.session.reconnect(link, this.peerLife)
    if (this.attached === 1) this.options.onIdentity(peer)
  }

  private onEnd(candidate: Candidate, { by, bye, isDead, isUnreadable, detail }: SocketEnd): void {
    const { link } = candidate.established
    const wasCarrier = this.carrier === link
    if (wasCarrier) this.carrier = null
    else if (!this.candidates.delete(candidate)) return
    // By self: it was the session that closed its connection, for it is over.
    if (this.isOver || (by === 'self' && wasCarrier)) return
    if (this.carrier !== null) return
    if (bye === Bye.CLOSED || isDead) {
      // The session is over at the other end: it has said so by END before, or has broken there. Or the other end lives no more.
      this.session.abandon(this.endedDetail ?? (isDead && this.probed !== '' ? `${detail} (${this.probed})` : detail))
      return
    }
    if (isUnreadable && wasCarrier && this.isPoisoned()) {
      this.session.abandon(`${detail}, again and again`)
      return
    }
    // Nobody has said anything yet, and nobody waits for anything.
    if (this.attached === 0 && this.session.unacknowledged === 0) return
    this.newSuspicion()
    this.lost = detail
    if (this.endedDetail !== null) {
      this.session.abandon(this.endedDetail)
      return
    }
    this.armGrace()
    if (this.candidates.size > 0) return
    this.retry(candidate.isOurs && bye === null ? 0 : OTHERS_TURN_MS)
  }

  /**
   * Another connection cures damage on the way. A frame that this end cannot read at all (beyond its limits, or its memory) would come again on each.
   */
  private isPoisoned(): boolean {
    const { delivered } = this.session.counts
    this.unreadable = delivered === this.deliveredBefore ? this.unreadable + 1 : 1
    this.deliveredBefore = delivered
    return this.unreadable >= UNREADABLE_MAX
  }

  /** The kernel of a stopped process still takes connections; of one that has ended, it does not. */
  private onSuspected(link: SocketLink, isSuspected: boolean): void {
    // A connection that was replaced or never taken says nothing of the peer while there is another.
    if (this.isOver || (this.carrier !== null && link !== this.carrier)) return
    const { end, addresses } = this.options
    const suspicion = this.newSuspicion()
    this.tellHealth(isSuspected ? (link.isOfMachine ? 'standing-still' : 'suspected') : 'well')
    if (!isSuspected || link.isOfMachine) return
    Promise.resolve()
      .then(addresses)
      .then(
        (known) =>
          probe(end, known, (said, isThere) => {
            // Something may have come meanwhile.
            if (suspicion !== this.suspicions || this.isOver) return
            this.probed = said
            if (!isThere) return
            // If the way was cut and is whole again, waiting bytes arrive with the probe's answer, and the connection's next tick says so.
            this.stillTimer = end.clock.setTimer(end.limits.heartbeatMs, () => this.tellHealth('standing-still'))
          }),
        // Without an address: no probe.
        () => {},
      )
  }

  /** The results of probes for earlier ones are ignored from now on. */
  private newSuspicion(): number {
    this.probed = ''
    this.stillTimer?.cancel()
    this.stillTimer = null
    return ++this.suspicions
  }

  private tellHealth(health: PeerHealth): void {
    if (health === this.health) return
    this.health = health
    this.options.onHealth(health)
  }

  // --- dialling

  private want(): void {
    if (this.carrier !== null || this.isOver || this.endedDetail !== null) return
    this.armGrace()
    if (this.candidates.size > 0 || this.dial !== null || this.retryTimer !== null || this.isLookingUp) return
    this.dialNow()
  }

  private dialNow(): void {
    this.isLookingUp = true
    // `addresses` may throw or reject: then no address is known.
    Promise.resolve()
      .then(this.options.addresses)
      .then(
        (addresses) => this.dialAt(addresses),
        (error: Error) => {
          this.isLookingUp = false
          this.lost = `its addresses could not be looked up: ${error.message}`
          this.retry(0)
        },
      )
  }

  private dialAt(addresses: readonly Address[]): void {
    this.isLookingUp = false
    if (this.isOver || this.carrier !== null || this.endedDetail !== null || this.dial !== null) return
    this.dial = new Dial(this.options.end, {
      purpose: SESSION_PURPOSE,
      wants: this.peer,
      addresses,
      onDone: (established) => {
        this.dial = null
        this.join(established, true)
      },
      onFailed: (attempts) => {
        this.dial = null
        this.failures = attempts
        if (attempts.length > 0 && attempts.every(isFinal) && this.candidates.size === 0) this.giveUp('')
        else this.retry(0)
      },
    })
  }

  private retry(leastMs: number): void {
    if (this.isOver || this.carrier !== null || this.dial !== null || this.retryTimer !== null || this.endedDetail !== null) return
    const { limits, random } = this.options.end
    const backoffMs = Math.min(limits.backoffMs * 2 ** this.attempt, limits.backoffMsMax)
    this.attempt++
    // From a half to one and a half of it, so that workers that lost the same peer do not all dial at once.
    const jitter = 0.5 + (random(1)[0] as number) / 256
    this.retryTimer = this.clock.setTimer(leastMs + backoffMs * jitter, () => {
      this.retryTimer = null
      if (this.carrier === null && this.candidates.size === 0) this.dialNow()
    })
  }

  private stopDialling(): void {
    this.dial?.cancel()
    this.dial = null
    this.retryTimer?.cancel()
    this.retryTimer = null
  }

  private armGrace(): void {
    const { graceMs } = this.options.end.limits
    this.graceTimer ??= this.clock.setTimer(graceMs, () => {
      this.graceTimer = null
      this.giveUp(` within ${graceMs} ms`)
    })
  }

  private giveUp(within: string): void {
    const tried = this.failures === null ? '' : `: ${attemptsText(this.failures)}`
    const before = this.lost === '' ? '' : `${this.lost}; `
    this.session.abandon(`${before}no ${this.attached > 0 ? 'new ' : ''}connection to ${this.peer.name} (${this.peer.id})${within}${tried}`)
  }

  private onOver(): void {
    if (this.isOver) return
    this.isOver = true
    this.stopDialling()
    this.graceTimer?.cancel()
    this.endTimer?.cancel()
    this.stillTimer?.cancel()
    for (const { established } of [...this.candidates]) established.link.abort(Bye.CLOSED, 'the session has ended')
    this.candidates.clear()
    this.options.onOver()
  }
}

/** Whether a link ended with this detail because no connection was ever made, and no address answered: as if a firewall were in between. */
export const isUnreached = (detail: string): boolean =>
  /(^|; )no connection to /.test(detail) && /CONNECT_TIMEOUT|EHOSTUNREACH|ENETUNREACH/.test(detail)

export function readResume(body: Buffer): { readonly life: number; readonly known: number; readonly seen: number } {
  const life = body.length === RESUME_BYTES ? body.readUInt32LE(0) : 0
  if (life === 0) throw chunkInvalid('no RESUME', 'two lives and a number')
  return { life, known: body.readUInt32LE(4), seen: body.readUInt32LE(8) }
}

export function linkExists(peer: PeerName): PostgradError {
  return new PostgradError('LINK_EXISTS', {
    op: 'exchange.link',
    expected: 'one link to a worker at a time',
    got: `a second one to ${peer.name} (${peer.id})`,
    remedy: 'Use the first, or close it before.',
    values: { name: peer.name, id: peer.id },
  })
}
