/** The means by which processes meet: loopback, Unix sockets, the wanted ports, the host's own name. */

import { lookup } from 'node:dns/promises'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { prepareDir } from '../status/runtime-dir.js'
import type { Surroundings } from '../surroundings.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** Null: it can be listened on there. */
export function whyNoListen(at: { readonly path: string } | { readonly host: string; readonly port: number }): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) => resolve(error.message))
    server.listen(at, () => server.close(() => resolve(null)))
  })
}

export async function judgeLoopback(): Promise<Finding> {
  const why = await whyNoListen({ host: '127.0.0.1', port: 0 })
  if (why === null) return ok('loopback TCP', 'can be listened on')
  return fail('loopback TCP', why, 'Several processes cannot meet by TCP.', 'Allow sockets in the sandbox or container.')
}

/** @param onExit of `Surroundings` */
export async function judgeUnixSockets(
  onExit: Surroundings['onExit'],
  socket: (at: { readonly path: string }) => Promise<string | null> = whyNoListen,
): Promise<Finding> {
  const name = 'Unix sockets'
  if (process.platform === 'win32') return ok(name, 'none on Windows', 'Processes of one machine connect by named pipes.')
  const refused = (why: string): Finding =>
    warn(
      name,
      why,
      "launch({ processes }) fails, and so does init without { transports: ['tcp'] }.",
      'Let TMPDIR name a folder on a local disk that you can write to.',
    )
  let folder: string
  try {
    folder = mkdtempSync(join(tmpdir(), 'postgrad-doctor-'))
  } catch (error) {
    return refused((error as Error).message)
  }
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  const stop = onExit(remove)
  try {
    const why = await socket({ path: join(folder, 's.sock') })
    return why === null ? ok(name, 'can be listened on') : refused(why)
  } finally {
    stop()
    remove()
  }
}

export function judgeRuntimeDir(folder: string): Finding {
  const why = prepareDir(folder)
  if (why === null) return ok('runtime folder', folder)
  return warn(
    'runtime folder',
    why,
    "'postgrad ps' and 'postgrad top' see no runs.",
    'Set XDG_RUNTIME_DIR to a folder of your own (mode 700).',
  )
}

/** @param port whether it is free: null, or why not */
export async function judgePorts([from, to]: readonly [number, number], port: (port: number) => Promise<string | null>): Promise<Finding> {
  const name = `ports ${from}-${to}`
  const taken: string[] = []
  for (let one = from; one <= to; one++) {
    const why = await port(one)
    if (why !== null) taken.push(`${one} (${why})`)
  }
  const count = to - from + 1
  const free = count === 1 ? 'it is free' : `all ${count} are free`
  if (taken.length === 0) return ok(name, free, 'Whether a firewall lets others in cannot be seen from here.')
  const shown = taken.length > 3 ? `${taken.slice(0, 3).join(', ')} and ${taken.length - 3} more` : taken.join(', ')
  const judge = taken.length === count ? fail : warn
  return judge(
    name,
    `${count - taken.length} of ${count} are free; not ${shown}`,
    'Each worker that others reach takes one.',
    'Choose another --ports range.',
  )
}

/** @param addresses of this machine's own name; null: it has none */
export function judgeHostname(host: string, addresses: readonly string[] | null): Finding {
  const name = 'host name'
  const todo = 'Pass --advertise with a name or address by which others reach this machine.'
  if (addresses === null) return warn(name, `${host} has no address`, 'Other machines cannot use this name.', todo)
  const found = `${host} is ${addresses.join(', ')}`
  const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1'
  if (!addresses.every(isLoopback)) return ok(name, found)
  return warn(name, found, 'That is this machine only for itself.', `With other machines: ${todo.charAt(0).toLowerCase()}${todo.slice(1)}`)
}

export async function judgeOwnHostname(): Promise<Finding> {
  const host = hostname()
  try {
    const found = await lookup(host, { all: true })
    return judgeHostname(host, [...new Set(found.map(({ address }) => address))])
  } catch {
    return judgeHostname(host, null)
  }
}
