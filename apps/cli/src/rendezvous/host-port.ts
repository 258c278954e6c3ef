/** HOST:PORT in a command line or a variable: a name, an IPv4 address, or an IPv6 address in brackets. */

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Null: it is none. */
export function parseHostPort(text: string): HostPort | null {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(text) ?? []
  const port = parsePort(digits ?? '')
  const host = bracketed ?? plain
  return port === null || host === undefined ? null : { host, port }
}

/** 1 to 65535; null: it is none. */
export function parsePort(text: string): number | null {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : null
}

export function formatHostPort({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
