/**
 * Handles the controller's messages about other workers (`MemberWords.connect`): notes deaths, and opens the worker's ends of links to newcomers. News of
 * a restart may come while the link to the former worker of that name is still open, though that worker has ended: then the newcomer waits for its end.
 */
import type { WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import type { HeapTransport } from '@postgrad/tensor/internal'
import type { Link } from '@postgrad/transport'
import type { PeerInfo } from './roster.js'

/** A link whose worker has ended closes by itself within this time, as a rule. */
const LOST_END_MS = 1_000

interface Waiting {
  open(): void
  /** Shows the holder of the other end that this worker has gone. */
  close(): void
}

/** A link, and how large tensors travel over it; null: their bytes do. */
interface Opened {
  readonly link: Link
  readonly transport: HeapTransport | null
}

export class PeerLinks<Peer extends PeerInfo> {
  private readonly runtime: WorkerRuntime
  private readonly openOf: (peer: Peer) => Opened
  /** By the id of the worker at the other end, until its end is known. */
  private readonly links = new Map<WorkerId, Link>()
  /** Newcomers, by the name for which they wait. */
  private readonly waiting = new Map<string, Waiting[]>()
  private isClosed = false

  /** @param openOf is called when the end comes, so that what happens to it while it waits is not missed */
  constructor(runtime: WorkerRuntime, openOf: (peer: Peer) => Opened) {
    this.runtime = runtime
    this.openOf = openOf
    runtime.onPeerDeath(({ name, id }) => {
      this.links.delete(id)
      this.openNext(name)
    })
    runtime.onClose(() => {
      this.isClosed = true
      for (const name of [...this.waiting.keys()]) this.openNext(name)
    })
  }

  /** Resolves when all of them can be called. */
  async connect(peers: readonly Peer[], gone: readonly WorkerInfo[]): Promise<void> {
    for (const worker of gone) {
      this.runtime.noteDeath(worker, 'before this worker was linked with it')
      const link = this.links.get(worker.id)
      // Its end may have been lost on its way: then this end never closes.
      if (link?.abandon !== undefined) this.runtime.clock.setTimer(LOST_END_MS, () => link.abandon!('its thread has ended'))
    }
    await Promise.all(peers.map((peer) => this.add(peer)))
  }

  private add(peer: Peer): Promise<void> {
    const { link, transport } = this.openOf(peer)
    const { info, isGuest } = peer
    this.links.set(info.id, link)
    return new Promise((settled) => {
      const open = (): void => {
        this.runtime.connect(info, link, transport, isGuest)
        settled()
      }
      const close = (): void => {
        link.close()
        settled()
      }
      this.waiting.set(info.name, [...(this.waiting.get(info.name) ?? []), { open, close }])
      this.openNext(info.name)
    })
  }

  /** Opens those that wait for this name, one after the other's end. */
  private openNext(name: string): void {
    const waiting = this.waiting.get(name) ?? []
    while (waiting.length > 0 && (this.isClosed || !this.runtime.isLinkedTo(name))) {
      const next = waiting.shift()!
      if (this.isClosed) next.close()
      else next.open()
    }
    if (waiting.length === 0) this.waiting.delete(name)
  }
}
