/**
 * The store by which the processes of a group meet: rank 0 serves it where all dial, or it is a file. Whoever serves it also notices which process has gone, since
 * each keeps a connection to it (`presence.ts`); where it is a file, `keeper.ts` does. `init.ts` above uses it.
 */
import type { Clock, Link, Store } from '@postgrad/transport'
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
import { Presence, type Visitor } from './presence.js'

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
  readonly onGone: (visitor: Visitor) => void
}

/** A store, as long as this process needs it. */
export interface MeetingStore {
  readonly store: Store
  /** Whether others use it through this process. */
  readonly isServed: boolean
  /** Whether somebody serves it, and notices by that who has gone; else the processes keep watch themselves (`keeper.ts`). */
  readonly isWatched: boolean
  /** How long a process that has let its connection go is waited for, in ms: by whoever serves the store, and else at most. */
  readonly graceMs: number
  /** A process has come that dials as this: whoever serves the store waits for its connection from now on. */
  expect(visitor: Visitor): void
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
    const { graceMs = SOCKET_LIMITS.graceMs } = limits
    return { store, isServed: false, isWatched: false, graceMs, expect: () => {}, close: async () => store.close() }
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
  exchange.serve(STORE, (link, peer) => server.accept(presence.over(link, peer)))
  await exchange.listen([{ kind: 'tcp', host: bind ?? host, port, advertise: host }])
  const close = async (): Promise<void> => {
    presence.close()
    server.close()
    await exchange.close()
  }
  return { store: server.store, isServed: true, isWatched: true, graceMs, expect: (visitor) => presence.expect(visitor), close }
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
  return { store, isServed: false, isWatched: true, graceMs: graceMsOf(limits), expect: () => {}, close }
}
