/** How the processes of a group reach each other, and when they give up one that they cannot reach. `init.ts` and `meeting-store.ts` use it. */
import { networkInterfaces } from 'node:os'
import { DIED } from '@postgrad/base/internal'
import { invalidArgument } from '@postgrad/tensor/internal'
import { isLoopback, isUnreached, type ListenAddress, SOCKET_LIMITS, type SocketLimits } from '@postgrad/transport/internal'
import { checkNames, type OptionNames } from '../options/check-options.js'
import type { Place } from './init-method.js'

/** A way to reach a process: 'unix' on the same machine, 'tcp' from any. */
export type GroupTransport = 'unix' | 'tcp'

/** When a process gives up a connection to another process. All times in ms. PyTorch has only the time limits of calls. */
export interface ConnectionOptions {
  /** The longest time between two messages of one end; an idle end sends a heartbeat. Default 1,000. */
  readonly heartbeatMs?: number
  /** If nothing arrives for this long, the peer counts as stalled. Default 5,000. */
  readonly suspectMs?: number
  /** If nothing arrives for this long, the peer counts as dead. A peer on this machine whose process still exists counts as stalled. Default 15,000. */
  readonly deadMs?: number
  /** How long a process tries to connect again after its connection broke. Rank 0 waits half of this time for a process that lost its connection to the store. Default 10,000. */
  readonly graceMs?: number
  /** How long one attempt to connect may take: less than `graceMs`. Default 5,000, or half of `graceMs` if that is less: then there is time for a second attempt. */
  readonly connectMs?: number
}

const CONNECTION: OptionNames<ConnectionOptions> = { heartbeatMs: true, suspectMs: true, deadMs: true, graceMs: true, connectMs: true }
const TRANSPORTS: readonly GroupTransport[] = ['unix', 'tcp']
const LOOPBACK = '127.0.0.1'

/** @throws INVALID_ARGUMENT for another option, or for attempts longer than all of their time; the exchange checks that each is a time */
export function limitsOf(connection: ConnectionOptions = {}): Partial<SocketLimits> {
  checkNames('init', connection, CONNECTION)
  const given = Object.fromEntries(Object.entries(connection).filter(([, ms]) => ms !== undefined))
  const { graceMs = SOCKET_LIMITS.graceMs, connectMs } = connection
  // The link would end amid its first attempt, and its error could not say what is wrong with the address.
  if (connectMs !== undefined && connectMs >= graceMs) {
    const remedy = 'Pass at most half of graceMs, so that there is time for a second attempt, or leave it out.'
    throw invalidArgument('init: connection', `a connectMs below graceMs (${graceMs})`, String(connectMs), remedy)
  }
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

/** The remedy of WORKER_DIED, by what the link to the worker said at its end. */
export function deathRemedy(detail: string): string {
  if (!isUnreached(detail)) return `${DIED} Look at what its process printed last.`
  return 'No connection to it was ever made. Check that a firewall of at least one of the two machines lets TCP through to the `ports` of its process (postgrad run: --ports), and that the address is right (--advertise).'
}
