/**
 * Notices which processes have gone if they meet by a file, since then no process serves their store. The living process that joined first is the keeper: all others stay
 * connected to it, and it reports those that lose the connection (`presence.ts`). The others report the keeper's end, and then the next process is the keeper.
 * `init.ts` makes one in each such process.
 */
import { isPostgradError } from '@postgrad/base'
import type { Clock, Link } from '@postgrad/transport'
import { type Exchange, parseAddress } from '@postgrad/transport/internal'
import type { Arrival } from './group-log.js'
import { Presence, type Visitor } from './presence.js'

export interface KeeperOptions {
  /** This process's worker. */
  readonly id: number
  /** What others dial for their calls is dialled for this as well. */
  readonly exchange: Exchange
  readonly clock: Clock
  /** How long the keeper is dialled; half of it is what the keeper waits, so that it is the first to say who has gone while it lives. */
  readonly graceMs: number
  readonly onGone: (visitor: Visitor) => void
}

const PURPOSE = 'keeper'
/** Between two connections, or refusals. */
const REST_MS = 100

export class Keeper {
  private readonly options: KeeperOptions
  private readonly presence: Presence
  private keeperId: number | null = null
  private watching = new AbortController()
  private isClosed = false

  constructor(options: KeeperOptions) {
    const { exchange, clock, graceMs, onGone, id } = options
    this.options = options
    // Who ends a connection to one that is the keeper no more, or not yet, has not gone.
    this.presence = new Presence(clock, graceMs / 2, (visitor) => {
      if (this.keeperId === id) onGone(visitor)
    })
    exchange.serve(PURPOSE, (link, peer) => void untilEnd(this.presence.over(link, peer)))
  }

  /** @param living who has come and not gone, in the order in which they came, which is the same for all */
  see(living: readonly Arrival[]): void {
    const { id } = this.options
    const [keeper] = living
    if (keeper === undefined || this.isClosed) return
    if (keeper.id !== this.keeperId) {
      this.watching.abort()
      this.watching = new AbortController()
      this.keeperId = keeper.id
      if (keeper.id !== id) void this.watch(keeper, this.watching.signal)
    }
    if (keeper.id !== id) return
    for (const { name, visitor, role } of living) if (visitor !== id) this.presence.expect({ name, id: visitor, role })
  }

  close(): void {
    this.isClosed = true
    this.watching.abort()
    this.presence.close()
  }

  private async watch({ name, id, visitor, role, addresses }: Arrival, signal: AbortSignal): Promise<void> {
    const { exchange, clock, graceMs, onGone } = this.options
    const places = addresses.map(parseAddress)
    let untilMs = clock.now() + graceMs
    while (!signal.aborted) {
      const leftMs = untilMs - clock.now()
      if (leftMs <= 0) {
        onGone({ name, id: visitor, role })
        return
      }
      let isThere = false
      try {
        const { link, peer } = await exchange.dial(PURPOSE, places, { timeoutMs: leftMs, signal, retry: true })
        const end = untilEnd(link)
        const close = (): void => link.close()
        signal.addEventListener('abort', close)
        // Where the keeper has listened there may be another by now.
        isThere = peer.id === id && peer.role === role
        if (signal.aborted || !isThere) close()
        await end
        signal.removeEventListener('abort', close)
      } catch (error) {
        // What was damaged on the way may look like a refusal: it is tried for all that time.
        isThere = standsStill(error)
      }
      // So late after that time, this process itself had stopped, and has not read what came.
      if (isThere || clock.now() - untilMs > graceMs / 4) untilMs = clock.now() + graceMs
      await new Promise<void>((resolve) => clock.setTimer(REST_MS, resolve))
    }
  }
}

/** A stopped process on this machine has not gone: its kernel takes the connection, and nobody answers. */
function standsStill(error: unknown): boolean {
  return isPostgradError(error, 'CONNECT_FAILED') && error.values.isThere === true
}

/** Nothing is said over such a connection. */
function untilEnd(link: Link): Promise<void> {
  return new Promise((resolve) => link.open({ onFrame() {}, onTurnEnd() {}, onClose: () => resolve() }))
}
