/** How the processes of a group reach each other, and when one that cannot be reached is given up. `init.ts` above and `meeting-store.ts` beside it use it. */
import { networkInterfaces } from 'node:os'
import { invalidArgument } from '@postgrad/tensor/internal'
import { isLoopback, type ListenAddress, SOCKET_LIMITS, type SocketLimits } from '@postgrad/transport/internal'
import { checkNames, type OptionNames } from '../options/check-options.js'
import type { Place } from './init-method.js'

/** A way to reach a process. */
export type GroupTransport = 'unix' | 'tcp'

/** When a connection is given up, in ms. PyTorch has the deadlines of calls alone. */
export interface ConnectionOptions {
  /** Something is said at least so often. Default 1,000. */
  readonly heartbeatMs?: number
  /** Nothing came for so long: suspected. Default 5,000. */
  readonly suspectMs?: number
  /** Nothing came for so long: dead, unless the peer is on this machine, where it stands still. Default 15,000. */
  readonly deadMs?: number
  /** A connection that has broken is dialled again for so long. Half of it is what rank 0 waits for a process that has let its connection to the store go. Default 10,000. */
  readonly graceMs?: number
  /** One attempt to connect may take so long. Default 5,000, or half of `graceMs` if that is less: one that nobody answers must not be the last. */
  readonly connectMs?: number
}

const CONNECTION: OptionNames<ConnectionOptions> = { heartbeatMs: true, suspectMs: true, deadMs: true, graceMs: true, connectMs: true }
const TRANSPORTS: readonly GroupTransport[] = ['unix', 'tcp']
const LOOPBACK = '127.0.0.1'

/** @throws INVALID_ARGUMENT for what is no such option; that each is a time, the exchange checks */
export function limitsOf(connection: ConnectionOptions = {}): Partial<SocketLimits> {
  checkNames('init', connection, CONNECTION)
  const given = Object.fromEntries(Object.entries(connection).filter(([, ms]) => ms !== undefined))
  const { graceMs = SOCKET_LIMITS.graceMs } = connection
  return { connectMs: Math.min(SOCKET_LIMITS.connectMs, graceMs / 2), ...given }
}

export interface PlacesOptions {
  readonly bind?: string | undefined
  readonly advertise?: string | undefined
  readonly ports?: readonly [first: number, last: number] | undefined
  readonly transports?: readonly GroupTransport[] | undefined
}

/** Where a worker listens: for those of its machine on a socket of its own, for others on a port. @throws INVALID_ARGUMENT */
export function places(options: PlacesOptions, { meeting }: Place, path: () => string): ListenAddress[] {
  const { bind, advertise, ports, transports = TRANSPORTS } = options
  if (!Array.isArray(transports) || transports.length === 0 || transports.some((each) => !TRANSPORTS.includes(each))) {
    throw invalidArgument('init', "transports among 'unix' and 'tcp', one at least", JSON.stringify(transports), 'Leave it out for both.')
  }
  const host = bind ?? (meeting.kind === 'file' || isLoopback(meeting.host) ? LOOPBACK : '0.0.0.0')
  const named = advertise ?? (isLoopback(host) ? undefined : ownAddress())
  const all: ListenAddress[] = []
  if (transports.includes('unix')) all.push({ kind: 'unix', path: path() })
  if (transports.includes('tcp')) all.push({ kind: 'tcp', host, port: ports ?? 0, ...(named === undefined ? {} : { advertise: named }) })
  return all
}

/** The machine's first address that is not loopback; undefined if it has none. */
function ownAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return (all.find(({ internal, family }) => !internal && family === 'IPv4') ?? all.find(({ internal }) => !internal))?.address
}
