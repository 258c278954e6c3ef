/**
 * The addresses of workers, as text and in parts: `tcp://host:port`, `tcp://[::1]:port`, `unix:/path`. `credentials.ts` asks this file which of
 * them only this machine can reach.
 */
import { isAbsolute } from 'node:path'
import { PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'

/** Where a worker can be reached. */
export type Address = UnixAddress | TcpAddress

/** A Unix domain socket: processes of one machine. */
export interface UnixAddress {
  readonly kind: 'unix'
  /** Absolute. */
  readonly path: string
}

/** A TCP port. */
export interface TcpAddress {
  readonly kind: 'tcp'
  /** A name, or an IP address without brackets. */
  readonly host: string
  /** 0 where one listens: any that is free. */
  readonly port: number
}

/** macOS keeps 104 bytes for a path and its closing 0, Linux 108; what is longer is cut there without a word. */
export const UNIX_PATH_BYTES_MAX = 103

const PORT_MAX = 65_535
const HOST_LENGTH_MAX = 253
const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?$/
/** The host in brackets, or a host without a colon; then the port. */
const TCP = /^tcp:\/\/(?:\[([^[\]]*)\]|([^:[\]/]*)):(\d{1,5})$/
const FORMS = "'tcp://host:port', 'tcp://[::1]:port' or 'unix:/path'"

/**
 * The parts of an address that is written as text.
 * @throws ADDRESS_INVALID
 */
export function parseAddress(text: string): Address {
  if (typeof text !== 'string') throw addressInvalid(FORMS, typeof text, 'Pass the address as text.')
  if (text.startsWith('unix:')) return checkAddress({ kind: 'unix', path: text.slice('unix:'.length) })
  const parts = TCP.exec(text)
  if (parts === null) throw addressInvalid(FORMS, shown(text), 'Write the port too; put an IPv6 address in brackets.')
  const [, inBrackets, plain, port] = parts
  if (inBrackets !== undefined && !isIPv6(inBrackets))
    throw addressInvalid('an IPv6 address in the brackets', shown(text), 'Leave out the brackets.')
  return checkAddress({ kind: 'tcp', host: (inBrackets ?? plain) as string, port: Number(port) })
}

/**
 * The text that `parseAddress` reads as this address.
 * @throws ADDRESS_INVALID
 */
export function formatAddress(address: Address): string {
  const checked = checkAddress(address)
  if (checked.kind === 'unix') return `unix:${checked.path}`
  return `tcp://${isIPv6(checked.host) ? `[${checked.host}]` : checked.host}:${checked.port}`
}

/**
 * The address itself, if it is one: for what was not read by `parseAddress`.
 * @throws ADDRESS_INVALID
 */
export function checkAddress(address: Address): Address {
  const kind = (address as Address | null | undefined)?.kind
  if (kind === 'unix') return checkPath(address as UnixAddress)
  if (kind === 'tcp') return checkHostAndPort(address as TcpAddress)
  throw addressInvalid("an address of kind 'tcp' or 'unix'", shown(String(kind)), 'Make it by parseAddress.')
}

/** True if only this machine reaches the host: 127.0.0.0/8, ::1, the same written as IPv6, and the name localhost. */
export function isLoopback(host: string): boolean {
  const { isIP, BlockList } = net()
  const version = isIP(host)
  if (version !== 0) {
    const loopback = new BlockList()
    loopback.addSubnet('127.0.0.0', 8, 'ipv4') // holds for ::ffff:127.0.0.1 too
    loopback.addAddress('::1', 'ipv6')
    return loopback.check(withoutZone(host), version === 4 ? 'ipv4' : 'ipv6')
  }
  return /^localhost\.?$/i.test(host)
}

/** True if only this machine reaches the address. */
export function isLocal(address: Address): boolean {
  return address.kind === 'unix' || isLoopback(address.host)
}

/**
 * The place from which a connection comes, as limits count places: the network of 64 bits for IPv6, as a machine has all of its addresses, and 'unix' for a socket without an address. IPv4
 * that a listener of both families sees is IPv4.
 */
export function networkOf(remoteAddress: string | undefined): string {
  if (remoteAddress === undefined) return 'unix'
  const host = unmapped(remoteAddress)
  if (!isIPv6(host) || isLoopback(host)) return host
  const [before, after] = host.split('::', 2) as [string, string?]
  const parts = before === '' ? [] : before.split(':')
  const rest = after === undefined || after === '' ? [] : after.split(':')
  if (after !== undefined) parts.push(...Array<string>(8 - parts.length - rest.length).fill('0'), ...rest)
  return `${parts
    .slice(0, 4)
    .map((part) => Number.parseInt(part, 16).toString(16))
    .join(':')}::/64`
}

/** The two ends of a connection, as one of its sockets sees them. */
export interface SocketEnds {
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}

/**
 * Both ends of a connection over loopback, the dialler's first; empty for any other. If dialler and listener see the same, the bytes cross this machine's kernel and
 * no proxy forwards them: it would have other ports.
 */
export function loopbackWay(side: 'dialler' | 'listener', socket: SocketEnds): string {
  const { localAddress = '', localPort, remoteAddress = '', remotePort } = socket
  if (!isLoopback(localAddress) || !isLoopback(remoteAddress)) return ''
  const [here, there] = [`${unmapped(localAddress)}:${localPort}`, `${unmapped(remoteAddress)}:${remotePort}`]
  return side === 'dialler' ? `${here}>${there}` : `${there}>${here}`
}

function checkPath(address: UnixAddress): UnixAddress {
  const { path } = address
  if (typeof path !== 'string' || !isAbsolute(path) || path.includes('\0')) {
    throw addressInvalid(
      'an absolute path',
      shown(String(path)),
      'Another process may have another folder as its own: write the whole path.',
    )
  }
  const bytes = Buffer.byteLength(path)
  if (bytes > UNIX_PATH_BYTES_MAX) {
    throw addressInvalid(
      `a path of at most ${UNIX_PATH_BYTES_MAX} bytes`,
      `${bytes} bytes`,
      'Choose a folder with a shorter path, such as /tmp.',
    )
  }
  return address
}

function checkHostAndPort(address: TcpAddress): TcpAddress {
  const { host, port } = address
  const isHost = typeof host === 'string' && (isIPv6(host) || (host.length <= HOST_LENGTH_MAX && HOST_NAME.test(host)))
  if (!isHost)
    throw addressInvalid(
      'a host name or an IP address',
      shown(String(host)),
      'Write it without a port; every address of this machine is 0.0.0.0, or :: for IPv6.',
    )
  if (!Number.isInteger(port) || port < 0 || port > PORT_MAX) {
    throw addressInvalid(`a port from 0 to ${PORT_MAX}`, shown(String(port)), 'Port 0 means any that is free, where one listens.')
  }
  return address
}

/** Not imported above: a worker that has no socket does not load it. */
const net = () => builtin<typeof import('node:net')>('node:net')

const isIPv6 = (host: string): boolean => net().isIPv6(host)
const withoutZone = (host: string): string => host.split('%', 1)[0] as string
/** A listener of both families sees an IPv4 address as an IPv6 one. */
const unmapped = (host: string): string => withoutZone(host).replace(/^::ffff:(?=\d+\.)/i, '')

/** Text of others is shown in part, and in one line. */
const shown = (text: string): string => JSON.stringify(text.length > 128 ? `${text.slice(0, 128)}…` : text)

function addressInvalid(expected: string, got: string, remedy: string): PostgradError {
  return new PostgradError('ADDRESS_INVALID', { op: 'address', expected, got, remedy, values: { got } })
}
