/** The options of `postgrad run`. It refuses options that do not go together, and names the flag that is too much. */
import { type DeviceSpec, PostgradError } from 'postgrad'
import type { CredentialsFiles, JoinOptions } from '../bridge.js'
import type { OutputOptions } from '../output/screen.js'
import type { HostPort } from '../rendezvous/host-port.js'
import type { Place, PlaceFlags } from '../rendezvous/launcher-env.js'

export type RestartPolicy = 'none' | 'all' | 'failed'

export interface RunOptions extends OutputOptions, PlaceFlags {
  /** A count, or names; undefined: one, or as many as there are ranks. */
  readonly workers?: number | readonly string[]
  readonly processes?: number
  readonly device?: DeviceSpec
  readonly seed?: number
  /** The whole run's time, in ms; 0: without a limit. */
  readonly timeout?: number
  /** Of one call between workers, in ms. */
  readonly rpcTimeout?: number
  /** For workers that are ended before they are done, in ms. */
  readonly grace?: number
  /** How long workers may take to start, or others to join, in ms; 0: no limit. */
  readonly joinTimeout?: number
  readonly master?: HostPort
  readonly key?: string
  readonly role?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly tlsCa?: string
  readonly bind?: string
  readonly advertise?: string
  readonly ports?: readonly [number, number]
  /** Whether errors that leave this process say where they arose; undefined: as `init` has it. */
  readonly remoteStacks?: boolean
  readonly restart?: RestartPolicy
  readonly maxRestarts?: number
  /** False: `ps` and `top` do not see this run. */
  readonly status?: boolean
}

export const MAX_RESTARTS = 3

/**
 * @param place of this process; null: it runs all workers itself
 * @throws OPTIONS_CONFLICT
 */
export function checkTogether(options: RunOptions, place: Place | null): void {
  const { processes, restart, maxRestarts, workers } = options
  if (maxRestarts !== undefined && (restart ?? 'none') === 'none') throw conflict('--max-restarts needs --restart all or --restart failed')
  if (options.key !== undefined && tlsFlags(options).some((file) => file !== undefined))
    throw conflict('--key and --tls-cert exclude each other; pass one of them')
  if (options.role !== undefined && options.key === undefined) throw conflict('--role names a key of a key file: pass --key FILE as well')
  if (tlsFlags(options).some((file) => file !== undefined) && tlsFlags(options).some((file) => file === undefined))
    throw conflict('--tls-cert, --tls-key and --tls-ca belong together')
  const network = NETWORK_FLAGS.find(([name]) => options[name] !== undefined)
  if (place === null) {
    const count = namesOf(workers, null).length
    if (processes !== undefined && processes > count) throw conflict(`--processes ${processes} is more than there are workers: ${count}`)
    if (network !== undefined) {
      const [name, flag] = network
      const given = options[name] === false ? `--no${flag.slice(1)}` : flag
      throw conflict(`${given} is for processes that meet others: pass --rank, --world-size and --master`)
    }
    return
  }
  const others = place.source === 'flags' ? '--rank says' : `the variables of ${place.source} say`
  const lone = place.source === 'flags' ? '' : '; --launcher none runs all workers here'
  if (processes !== undefined) throw conflict(`--processes starts processes, and ${others} that others do that${lone}`)
  if (restart !== undefined && restart !== 'none')
    throw conflict(`--restart is for runs that start all workers, and ${others} that others do that: let them start it again${lone}`)
  const names = namesOf(workers, place)
  if (names.length !== place.worldSize)
    throw conflict(`--workers has ${names.length}, and ${others} that there are ${place.worldSize} processes of one worker each${lone}`)
}

/** The workers' names, of all processes together. */
export function namesOf(workers: RunOptions['workers'], place: Place | null): readonly string[] {
  if (typeof workers === 'object') return workers
  return Array.from({ length: workers ?? place?.worldSize ?? 1 }, (_, i) => `worker${i}`)
}

export function networkOf(options: RunOptions): Pick<JoinOptions, 'credentials' | 'bind' | 'advertise' | 'ports' | 'remoteStacks'> {
  const { bind, advertise, ports, remoteStacks } = options
  const credentials = credentialsOf(options)
  return {
    ...(credentials === null ? {} : { credentials }),
    ...(bind === undefined ? {} : { bind }),
    ...(advertise === undefined ? {} : { advertise }),
    ...(ports === undefined ? {} : { ports }),
    ...(remoteStacks === undefined ? {} : { remoteStacks }),
  }
}

function credentialsOf({ key, role, tlsCert, tlsKey, tlsCa }: RunOptions): CredentialsFiles | null {
  if (key !== undefined) return { kind: 'key', file: key, ...(role === undefined ? {} : { role }) }
  if (tlsCert === undefined || tlsKey === undefined || tlsCa === undefined) return null
  return { kind: 'tls', cert: tlsCert, key: tlsKey, ca: tlsCa }
}

const NETWORK_FLAGS = [
  ['key', '--key'],
  ['tlsCert', '--tls-cert'],
  ['tlsKey', '--tls-key'],
  ['tlsCa', '--tls-ca'],
  ['bind', '--bind'],
  ['advertise', '--advertise'],
  ['ports', '--ports'],
  ['remoteStacks', '--remote-stacks'],
] as const satisfies readonly (readonly [keyof RunOptions, string])[]

const tlsFlags = ({ tlsCert, tlsKey, tlsCa }: RunOptions): readonly (string | undefined)[] => [tlsCert, tlsKey, tlsCa]

export function timedOut(timeoutMs: number): PostgradError {
  return new PostgradError('RUN_TIMEOUT', {
    op: 'run',
    message: `main took longer than --timeout ${timeoutMs} ms`,
    remedy: 'Pass a larger one, or 0 for no limit.',
    values: { timeoutMs },
  })
}

function conflict(message: string): PostgradError {
  return new PostgradError('OPTIONS_CONFLICT', { op: 'run', message, remedy: "See 'postgrad run --help'." })
}
