/**
 * The store by which the processes of a group meet: rank 0 serves it where all dial, or it is a file. Whoever serves it also notices which process has gone, since
 * each keeps a connection to it. `init.ts` above uses it.
 */
import type { Clock, Link, LinkReceiver, Store, Timer } from '@postgrad/transport'
import { FileStore } from '@postgrad/transport'
import {
  type Credentials,
  Exchange,
  type Identity,
  SOCKET_LIMITS,
  type SocketLimits,
  StoreServer,
  TcpStore,
} from '@postgrad/transport/internal'
import type { Meeting, Place } from './init-method.js'

/** Of `meet`. */
export interface MeetOptions {
  readonly place: Place
  readonly self: Identity
  readonly credentials: Credentials | null
  /** What rank 0 listens on where the host that others dial is no address of this machine's own. */
  readonly bind: string | undefined
  /** How long rank 0 may take to be there, in ms. */
  readonly timeoutMs: number
  readonly clock: Clock
  readonly limits: Partial<SocketLimits>
  /** What rank 0 keeps the store in. */
  readonly storeFile: string | undefined
  /** The process that dialled as this has let its connection go, and has not come back in time. */
  readonly onGone: (visitor: number) => void
}

/** A store, as long as this process needs it. */
export interface MeetingStore {
  readonly store: Store
  /** Whether others use it through this process. */
  readonly isServed: boolean
  /** How long whoever serves it waits for a process that has let its connection go, in ms. */
  readonly graceMs: number
  close(): Promise<void>
}

type TcpMeeting = Meeting & { readonly kind: 'tcp' }

const STORE = 'store'

/** Rejects with ADDRESS_IN_USE, CREDENTIALS_REQUIRED. That nobody is there, or another cluster, shows when the store is used. */
export async function meet(options: MeetOptions): Promise<MeetingStore> {
  const { place, self, credentials, clock, limits } = options
  const { meeting, rank } = place
  if (meeting.kind === 'file') {
    const store = new FileStore(meeting.path, { clock })
    return { store, isServed: false, graceMs: graceMsOf(limits), close: async () => store.close() }
  }
  const exchange = new Exchange({ self, credentials, clock, limits })
  try {
    return await (rank === 0 ? serve(exchange, meeting, options) : dial(exchange, meeting, options))
  } catch (error) {
    await exchange.close()
    throw error
  }
}

/** Less than what the process's own end of the connection takes, so that nobody comes back who has been given up. */
const graceMsOf = (limits: Partial<SocketLimits>): number => (limits.graceMs ?? SOCKET_LIMITS.graceMs) / 2

async function serve(exchange: Exchange, { host, port }: TcpMeeting, options: MeetOptions): Promise<MeetingStore> {
  const { bind, clock, onGone, limits, storeFile } = options
  const graceMs = graceMsOf(limits)
  const server = new StoreServer({ clock, ...(storeFile === undefined ? {} : { file: storeFile }) })
  const presence = new Presence(clock, graceMs, onGone)
  exchange.serve(STORE, (link, peer) => server.accept(presence.over(link, peer.id)))
  await exchange.listen([{ kind: 'tcp', host: bind ?? host, port, advertise: host }])
  const close = async (): Promise<void> => {
    presence.close()
    server.close()
    await exchange.close()
  }
  return { store: server.store, isServed: true, graceMs, close }
}

async function dial(exchange: Exchange, { host, port }: TcpMeeting, { clock, timeoutMs, limits }: MeetOptions): Promise<MeetingStore> {
  // So that what it was that did not answer is known before the time is over.
  const attempt = { timeoutMs: timeoutMs / 2 }
  const connect = async (): Promise<Link> => (await exchange.dial(STORE, [{ kind: 'tcp', host, port }], attempt)).link
  const { graceMs = SOCKET_LIMITS.graceMs } = limits
  const store = new TcpStore({ clock, connect, connectMs: timeoutMs, graceMs })
  const close = async (): Promise<void> => {
    store.close()
    await exchange.close()
  }
  return { store, isServed: false, graceMs: graceMsOf(limits), close }
}

/** Which of the processes have a connection here. */
class Presence {
  private readonly clock: Clock
  private readonly graceMs: number
  private readonly onGone: (visitor: number) => void
  private readonly connections = new Map<number, number>()
  private readonly missing = new Map<number, Timer>()
  private isClosed = false

  /** @param graceMs how long a process that has lost its connection may take to come back */
  constructor(clock: Clock, graceMs: number, onGone: (visitor: number) => void) {
    this.clock = clock
    this.graceMs = graceMs
    this.onGone = onGone
  }

  /** The same link, whose end is noticed. */
  over(link: Link, visitor: number): Link {
    this.connections.set(visitor, (this.connections.get(visitor) ?? 0) + 1)
    this.missing.get(visitor)?.cancel()
    this.missing.delete(visitor)
    const watched: Link = Object.create(link)
    watched.open = (receiver: LinkReceiver): void =>
      link.open({
        onFrame: (frame) => receiver.onFrame(frame),
        onTurnEnd: () => receiver.onTurnEnd(),
        onClose: (reason) => {
          receiver.onClose(reason)
          this.lost(visitor)
        },
      })
    return watched
  }

  close(): void {
    this.isClosed = true
    for (const timer of this.missing.values()) timer.cancel()
    this.missing.clear()
  }

  private lost(visitor: number): void {
    const left = this.connections.get(visitor)! - 1
    this.connections.set(visitor, left)
    if (left > 0 || this.isClosed) return
    this.missing.set(
      visitor,
      this.clock.setTimer(this.graceMs, () => {
        this.missing.delete(visitor)
        this.onGone(visitor)
      }),
    )
  }
}
