/**
 * A group as one of its processes sees it: the processes that joined, by the log in their store (`group-log.ts`), and the links to them. A process makes a link when it
 * reads an arrival, and dials when it first sends. If a process ends without a goodbye, rank 0, which serves the store, or the keeper reports it. `init.ts` makes it.
 */
import { isPostgradError, PostgradError, type WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import type { HeapTransport } from '@postgrad/tensor/internal'
import type { Clock } from '@postgrad/transport'
import { type Exchange, parseAddress } from '@postgrad/transport/internal'
import { PeerLinks } from '../membership/peer-links.js'
import type { PeerInfo } from '../membership/roster.js'
import { type Arrival, type GroupEntry, type GroupLog, isSaidBy } from './group-log.js'
import { type Place, whereOf } from './init-method.js'
import type { Visitor } from './presence.js'
import type { Refusals } from './refusals.js'

/** Why a process is taken for dead, by how all meet. */
const GONE = {
  tcp: (graceMs: number) => `its process ended or was cut off: rank 0 had no connection to it for ${graceMs / 1000} s`,
  file: () => 'its process ended or was cut off: the keeper had no connection to it, or it was the keeper and could not be reached',
} as const

/** Of `Group`. */
export interface GroupOptions {
  /** For the error of a process that waited in vain. */
  readonly refusals?: Pick<Refusals, 'summary'>
  /** How long rank 0 waits for a process that lost its connection, in ms. */
  readonly graceMs?: number
}

interface Peer extends PeerInfo {
  readonly addresses: readonly string[]
  readonly role: string
}

export class Group {
  private readonly log: GroupLog
  private readonly place: Place
  private readonly clock: Clock
  private readonly successionMs: number
  private readonly refusals: Pick<Refusals, 'summary'>
  private readonly graceMs: number
  /** Who has come and not gone, by rank. */
  private readonly living = new Map<number, Arrival>()
  private readonly gone: WorkerInfo[] = []
  /** The ids of all that have ever come, which no other has again. */
  private readonly known = new Set<number>()
  private readonly closing = new AbortController()
  private following: Promise<void> | null = null
  private exchange: Exchange | null = null
  private links: PeerLinks<Peer> | null = null
  private self: Arrival | null = null
  private see: (living: readonly Arrival[]) => void = () => {}
  private onChange: () => void = () => {}
  private onStoreLost: (error: PostgradError) => void = () => {}

  /** @param successionMs how long to wait until a rank's former process is found dead: rank 0 first waits for it to come back */
  constructor(
    log: GroupLog,
    place: Place,
    clock: Clock,
    successionMs: number,
    { refusals = { summary: '' }, graceMs = 0 }: GroupOptions = {},
  ) {
    this.log = log
    this.place = place
    this.clock = clock
    this.successionMs = successionMs
    this.refusals = refusals
    this.graceMs = graceMs
  }

  get worldSize(): number {
    return this.place.worldSize ?? this.living.size
  }

  /** How many others are there. */
  get others(): number {
    return [...this.living.values()].filter(({ id }) => id !== this.self?.id).length
  }

  /**
   * This process comes, and waits for the rest. `before`: how many have wanted its rank before it.
   * Rejects with RENDEZVOUS_TIMEOUT, RENDEZVOUS_CONFLICT, and what the store rejects with.
   */
  async come(self: Arrival, before: number, timeoutMs: number): Promise<void> {
    const endMs = this.clock.now() + timeoutMs
    const left = (): number => Math.max(1, endMs - this.clock.now())
    if (before > 0) await this.succeed(self, before, Math.min(left(), this.successionMs))
    this.self = self
    await this.log.append(self)
    const worldSize = this.place.worldSize ?? 0
    while (this.living.size < worldSize || this.living.get(self.rank)?.id !== self.id) {
      const entry = await this.next(left(), timeoutMs)
      this.note(entry)
      if (entry.what === 'joined') this.check(self, entry)
      else if (entry.id === self.id)
        throw conflict(
          'a process that stays in the group until all have joined',
          `'${self.name}' at rank ${self.rank}, which the group declared dead: ${entry.detail}`,
          'Call init again, with a name and a rank of its own for each process.',
          { name: self.name, rank: self.rank },
        )
    }
  }

  /** Opens the links, and follows the log from now on. `transport`: how tensors travel over a new link. `see` gets the living processes, now and at each change, in the order of arrival. */
  begin(
    runtime: WorkerRuntime,
    exchange: Exchange,
    transport: () => HeapTransport | null,
    see: (living: readonly Arrival[]) => void = () => {},
  ): Promise<void> {
    this.exchange = exchange
    this.see = see
    this.links = new PeerLinks<Peer>(runtime, ({ info, addresses, role }) => ({
      link: exchange.link(info, () => addresses.map(parseAddress), role),
      transport: transport(),
    }))
    for (const worker of this.gone) runtime.noteDeath(worker, 'before this worker came')
    const others = [...this.living.values()].filter(({ id }) => id !== this.self!.id)
    see([...this.living.values()])
    this.following = this.follow()
    return this.links.connect(others.map(peerOf), [])
  }

  /** A process has ended without a goodbye. Rank 0 or the keeper has noticed it, or, of the keeper, a process that was connected to it. */
  async noteGone(visitor: Visitor): Promise<void> {
    const arrival = [...this.living.values()].find((one) => isSaidBy(one, visitor))
    if (arrival === undefined || this.closing.signal.aborted) return
    // If the store ends, or takes no more, links still report their own ends.
    await this.log.append({ what: 'died', id: arrival.id, detail: GONE[this.place.meeting.kind](this.graceMs) }).catch(() => {})
  }

  /** Calls `listener` when this process can no longer learn of arrivals and deaths. */
  whenStoreLost(listener: (error: PostgradError) => void): void {
    this.onStoreLost = listener
  }

  /** Writes that this worker has left. */
  async leave(): Promise<void> {
    if (this.self !== null) await this.log.append({ what: 'left', id: this.self.id, detail: '' })
  }

  /** Resolves when no other is left, or after so many ms. */
  async untilAlone(timeoutMs: number): Promise<void> {
    if (this.others === 0) return
    await new Promise<void>((resolve) => {
      const timer = this.clock.setTimer(timeoutMs, resolve)
      this.onChange = () => {
        if (this.others > 0) return
        timer.cancel()
        resolve()
      }
    })
  }

  async close(): Promise<void> {
    this.closing.abort()
    await this.following
  }

  /** Takes the rank of one that has gone. Of those that have wanted it before, some may have ended before they came. */
  private async succeed(self: Arrival, before: number, timeoutMs: number): Promise<void> {
    const endMs = this.clock.now() + timeoutMs
    let seen = 0
    for (;;) {
      const former = this.living.get(self.rank)
      if (seen >= before && former === undefined) return
      let entry: GroupEntry
      try {
        entry = await this.log.read({ timeoutMs: Math.max(1, endMs - this.clock.now()) })
      } catch (error) {
        if (!isPostgradError(error, 'STORE_TIMEOUT')) throw error
        if (former === undefined) return
        if (this.successionMs === 0) {
          await this.log.append({ what: 'died', id: former.id, detail: 'another process serves the store in its place' })
          continue
        }
        throw conflict(
          `rank ${self.rank} for one process`,
          `'${former.name}', which lives, and '${self.name}'`,
          'Give each process a rank of its own, or end the other process first.',
          { rank: self.rank },
        )
      }
      this.note(entry)
      if (entry.what === 'joined' && entry.rank === self.rank) seen++
    }
  }

  private async next(leftMs: number, timeoutMs: number): Promise<GroupEntry> {
    try {
      return await this.log.read({ timeoutMs: Number.isFinite(leftMs) ? leftMs : 0 })
    } catch (error) {
      throw isPostgradError(error, 'STORE_TIMEOUT') ? this.notAll(timeoutMs) : error
    }
  }

  /** Checks names from this process's own arrival on: a former process of its name may be gone by then. */
  private check(self: Arrival, { name, rank, worldSize }: Arrival): void {
    if (worldSize !== self.worldSize) {
      throw conflict(
        'one world size',
        `${self.worldSize ?? 'none'} here and ${worldSize ?? 'none'} at '${name}' (rank ${rank})`,
        'Give all processes the same worldSize.',
        { worldSize, rank },
      )
    }
    if (this.living.get(self.rank)?.id !== self.id) return
    const other = [...this.living.values()].find((one) => one.name === self.name && one.id !== self.id)
    if (other === undefined) return
    throw conflict(
      'a name for each process',
      `'${self.name}' at rank ${self.rank} and at rank ${other.rank}`,
      'Give each process a name of its own.',
      { name: self.name, rank: other.rank },
    )
  }

  private note(entry: GroupEntry): void {
    if (entry.what === 'joined') {
      this.known.add(entry.id)
      this.living.set(entry.rank, entry)
      return
    }
    for (const [rank, { name, id }] of this.living) {
      if (id !== entry.id) continue
      this.living.delete(rank)
      this.gone.push({ name, id })
    }
  }

  private async follow(): Promise<void> {
    try {
      for (;;) {
        const entry = await this.nextSound()
        // A known id joins once: a second arrival under it is forged. A process with this worker's name finds the conflict itself.
        if (entry.what === 'joined' && (this.known.has(entry.id) || entry.name === this.self!.name)) continue
        this.note(entry)
        if (entry.what === 'died' && entry.id === this.self!.id) {
          this.givenUp(entry.detail)
          return
        }
        this.see([...this.living.values()])
        if (entry.what === 'joined') void this.links!.connect([peerOf(entry)], [])
        else this.exchange!.ended(entry.id as WorkerId, entry.what === 'left' ? 'it has left' : entry.detail)
        this.onChange()
      }
    } catch (error) {
      // Links report their own ends as before.
      if (!this.closing.signal.aborted) this.onStoreLost(storeLost(this.place, error))
    }
  }

  /** This process lives, but the others took it for dead: none of them listens to it now. */
  private givenUp(detail: string): void {
    for (const { id } of this.living.values()) this.exchange!.ended(id, `the group has given this process up: ${detail}`)
  }

  /** Skips invalid entries, which no process of the group has written. */
  private async nextSound(): Promise<GroupEntry> {
    for (;;) {
      try {
        return await this.log.read({ timeoutMs: 0, signal: this.closing.signal })
      } catch (error) {
        if (!isPostgradError(error, 'GROUP_LOG_INVALID')) throw error
      }
    }
  }

  private notAll(timeoutMs: number): PostgradError {
    const { meeting } = this.place
    const worldSize = this.place.worldSize ?? 1
    const missing = Array.from({ length: worldSize }, (_, rank) => rank).filter((rank) => !this.living.has(rank))
    const ranks = missing.length === 1 ? `rank ${missing[0]} is` : `ranks ${missing.join(', ')} are`
    return new PostgradError('RENDEZVOUS_TIMEOUT', {
      op: 'init',
      message: `after ${Math.round(timeoutMs)} ms ${worldSize - missing.length} of ${worldSize} processes had joined at ${whereOf(meeting)}; ${ranks} missing${this.refusals.summary}`,
      remedy:
        'Look at what these processes have printed, and whether they were given the same address; or pass a longer { timeoutMs } (postgrad run: --join-timeout).',
      values: { missing, worldSize, timeoutMs },
    })
  }
}

function peerOf({ name, id, addresses, role }: Arrival): Peer {
  return { info: { name, id }, isGuest: false, addresses, role }
}

function storeLost({ meeting }: Place, cause: unknown): PostgradError {
  return new PostgradError('STORE_LOST', {
    op: 'init',
    message: `the store at ${whereOf(meeting)} has ended for this process: it no longer learns which workers join the group, and it learns of a death only if it is connected to that worker`,
    remedy: 'Calls to the workers that it knows continue. To learn of others it must join again, as a new process.',
    values: { store: whereOf(meeting) },
    cause,
  })
}

function conflict(expected: string, got: string, remedy: string, values: Readonly<Record<string, unknown>>): PostgradError {
  return new PostgradError('RENDEZVOUS_CONFLICT', { op: 'init', expected, got, remedy, values })
}
