/**
 * The share of this worker's time that reading from a restricted role may take. A message is decoded as it arrives, before the mailbox can be fair, and a long text takes some
 * milliseconds. A worker that also works with others reads such a role for a quarter of its time; any other reads it as fast as it comes. Rule CRE-19 in SPEC.md.
 */
import type { Clock, Frame } from '@postgrad/transport'
import { Allowance } from '@postgrad/transport/internal'
import type { Gate } from './hooks.js'
import { READING_MS_MAX, READING_MS_PER_SECOND } from './inflow.js'
import type { Peer } from './peer.js'

/** So long after a message of another role this worker counts as working with others. */
const OTHERS_MS = 1000

interface Reader {
  readonly gate: Gate | null
  receive(peer: Peer, frame: Frame): void
}

export class ReadingShare {
  private readonly clock: Clock
  private readonly reader: Reader
  /** By role. */
  private readonly allowances = new Map<string, Allowance>()
  /** Whether others have sent something since a restricted role did, and when that was seen. */
  private isNews = false
  private othersMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, reader: Reader) {
    this.clock = clock
    this.reader = reader
  }

  receive(peer: Peer, frame: Frame): void {
    const { reader, clock } = this
    const { inflow } = peer
    if (inflow === null || reader.gate?.isRestricted(peer) !== true) {
      this.isNews = true
      reader.receive(peer, frame)
      return
    }
    const begunMs = clock.now()
    reader.receive(peer, frame)
    const endedMs = clock.now()
    if (this.isNews) this.othersMs = endedMs
    this.isNews = false
    if (endedMs - this.othersMs > OTHERS_MS) return
    const allowance = this.allowances.get(peer.role) ?? new Allowance(clock, READING_MS_MAX, READING_MS_PER_SECOND)
    this.allowances.set(peer.role, allowance)
    inflow.onRead(allowance, endedMs - begunMs)
  }
}
