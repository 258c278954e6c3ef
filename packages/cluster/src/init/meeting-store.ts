/**
 * The store by which the processes of a group meet: rank 0 serves it, or it is a file. Rank 0 also notices which process has gone, since each keeps a connection
 * to it (`presence.ts`); if the store is a file, `keeper.ts` does that. `init.ts` uses it.
 */
import { PostgradError } from '@postgrad/base'
import type { RoleRights } from '@postgrad/rpc'
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
import { MeetingGuard } from './meeting-guard.js'
import { Presence, type Visitor } from './presence.js'

/** Of `meet`. */
export interface MeetOptions {
  readonly place: Place
  readonly self: Identity
  readonly credentials: Credentials | null
  /** The address that rank 0 listens on if its machine does not have the host's address. */
  readonly bind: string | undefined
  /** How long rank 0 may take to be there, in ms. */
  readonly timeoutMs: number
  readonly clock: Clock
  readonly limits: Partial<SocketLimits>
  /** What rank 0 keeps the store in. */
  readonly storeFile: string | undefined
  /** Of roles that have not all of them: such a one does not serve the store, and in it may do what joining needs. See `meeting-guard.ts`. */
  readonly rights: Readonly<Record<string, RoleRights>>
  /** The process that dialled as this has let its connection go, and has not come back in time. */
  readonly onGone: (visitor: Visitor) => void
  /** Rank 0 has refused a connection from this address. */
  readonly onRefused: (from: string, error: PostgradError) => void
}

/** A store, as long as this process needs it. */
export interface MeetingStore {
  readonly store: Store
  /** Whether others use it through this process. */
  readonly isServed: boolean
  /** Whether somebody serves it, and notices by that who has gone; else the processes keep watch themselves (`keeper.ts`). */
  readonly isWatched: boolean
  /** How long a process that lost its connection has to come back, in ms: at rank 0, or with a file at most. */
  readonly graceMs: number
  /** A process has come that dials as this visitor: rank 0 waits for its connection from now on. */
  expect(visitor: Visitor): void
  close(): Promise<void>
}

type TcpMeeting = Meeting & { readonly kind: 'tcp' }

const STORE = 'store'

/** Under which the log and the counters of a group lie. */
export const prefixOf = ({ round }: Pick<Place, 'round'>): string => `postgrad/${round}`

/** Rejects with ADDRESS_IN_USE, CREDENTIALS_REQUIRED. That nobody is there, or another cluster, shows when the store is used. */
export async function meet(options: MeetOptions): Promise<MeetingStore> {
  const { place, self, credentials, clock, limits } = options
  const { meeting, rank } = place
  if (meeting.kind === 'file') {
    const store = new FileStore(meeting.path, { clock })
    const { graceMs = SOCKET_LIMITS.graceMs } = limits
    return { store, isServed: false, isWatched: false, graceMs, expect: () => {}, close: async () => store.close() }
  }
  const isRestricted = (role: string): boolean => Object.hasOwn(options.rights, role)
  const exchange = new Exchange({ self, credentials, clock, limits, isRestricted, onRefused: options.onRefused })
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
  const { bind, clock, onGone, limits, storeFile, place, rights } = options
  const graceMs = graceMsOf(limits)
  const server = new StoreServer({ clock, ...(storeFile === undefined ? {} : { file: storeFile }) })
  const presence = new Presence(clock, graceMs, onGone)
  const guard = new MeetingGuard({ table: server.table, prefix: `${prefixOf(place)}/`, worldSize: place.worldSize, rights })
  exchange.serve(STORE, (link, peer, holder) => server.accept(presence.over(link, peer), guard.of(peer, holder), holder))
  await exchange.listen([{ kind: 'tcp', host: bind ?? host, port, advertise: host }])
  const close = async (): Promise<void> => {
    presence.close()
    server.close()
    await exchange.close()
  }
  return { store: server.store, isServed: true, isWatched: true, graceMs, expect: (visitor) => presence.expect(visitor), close }
}

async function dial(exchange: Exchange, { host, port }: TcpMeeting, options: MeetOptions): Promise<MeetingStore> {
  const { clock, timeoutMs, limits, rights } = options
  // So that what it was that did not answer is known before the time is over.
  const attempt = { timeoutMs: timeoutMs / 2 }
  const connect = async (): Promise<Link> => {
    const { link, peer } = await exchange.dial(STORE, [{ kind: 'tcp', host, port }], attempt)
    if (!Object.hasOwn(rights, peer.role) || peer.role === exchange.self.role) return link
    link.close()
    throw servedBy(peer)
  }
  const { graceMs = SOCKET_LIMITS.graceMs } = limits
  const store = new TcpStore({ clock, connect, connectMs: timeoutMs, graceMs })
  const close = async (): Promise<void> => {
    store.close()
    await exchange.close()
  }
  return { store, isServed: false, isWatched: true, graceMs: graceMsOf(limits), expect: () => {}, close }
}

/** Rank 0 decides who is in the group, so its role must be trusted. */
function servedBy({ name, role }: Identity): PostgradError {
  return new PostgradError('AUTH_FAILED', {
    op: 'connect',
    expected: 'a store that is served in a role that { rights } does not restrict, or in this process’s own role',
    got: `'${name}' as '${role}'`,
    remedy: 'Look at who listens at this address: rank 0 should, with the credentials of a member.',
    values: { name, role },
  })
}
