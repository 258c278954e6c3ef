/**
 * Three processes of a group, with a proxy in front of each and of their store: starts, asks, stops, kills and restarts them. `fire.fixture.ts` strikes them. A worker
 * listens on 127.0.0.1, and advertises 127.0.0.2 with the same port, where its proxy listens.
 */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Random } from '@postgrad/sim/internal'
import { FaultProxy } from './fault-proxy.fixture.js'
import type { Place, World } from './fire-plan.fixture.js'
import { FireMember, MemberFailed } from './fire-process.fixture.js'
import type { Failure, MemberOptions } from './fixtures/fire-member.js'

const HERE = '127.0.0.1'
const ADVERTISED = '127.0.0.2'
/** Below what systems give to connections that go out. */
const PORTS = [20_000, 30_000] as const
export const RANKS = 3
/** Less than what a process that hangs is waited for. */
const JOIN_MS = 15_000
const CALL_MS = 3000

const KEY = Buffer.alloc(32, 7).toString('base64')
/** Of the tests of transport, which compile it. */
const AUTHORITY = new URL('../../../transport/dist/socket/certificates.fixture.js', import.meta.url)

type Proof = Pick<MemberOptions, 'key' | 'tls'>

export interface FireGroupOptions {
  readonly random: Random
  readonly world: World
  /** Where those meet who meet by a file. */
  readonly directory: string
  /** In addition to the group's own. */
  readonly more: Partial<MemberOptions>
}

/** Three processes, and the proxies between them. */
export class FireGroup {
  readonly proxies: ReadonlyMap<Place, FaultProxy>
  readonly members: FireMember[] = []
  private readonly ports: readonly number[]
  private readonly options: FireGroupOptions
  /** By rank. */
  private readonly proofs: readonly Proof[]

  private constructor(
    ports: readonly number[],
    proxies: ReadonlyMap<Place, FaultProxy>,
    options: FireGroupOptions,
    proofs: readonly Proof[],
  ) {
    this.ports = ports
    this.proxies = proxies
    this.options = options
    this.proofs = proofs
  }

  static async start(options: FireGroupOptions): Promise<FireGroup> {
    const { random, world } = options
    const ports: number[] = []
    const proxies = new Map<Place, FaultProxy>()
    for (const place of ['worker0', 'worker1', 'worker2', 'store'] as const) {
      const [port, proxy] = await proxyAtFreePort(random)
      ports.push(port)
      proxies.set(place, proxy)
    }
    const group = new FireGroup(ports, proxies, options, await proofsOf(world))
    try {
      for (let rank = 0; rank < RANKS; rank++) group.members.push(group.spawn(rank))
      await Promise.all(group.members.map((member) => member.ready()))
      return group
    } catch (error) {
      await group.discard()
      throw error
    }
  }

  /** Whether it ends with rank 0, which serves its store. */
  get endsWithRank0(): boolean {
    return this.options.world !== 'file'
  }

  /** The dead process's rank is taken by a new one. */
  async restart(rank: number): Promise<void> {
    const member = this.spawn(rank)
    this.members[rank] = member
    await member.ready()
  }

  heal(): void {
    for (const proxy of this.proxies.values()) proxy.heal()
    for (const member of this.members) member.goOn()
  }

  /** All end together. @throws if one does not, or complains */
  async shutdown(timeoutMs: number): Promise<void> {
    for (const member of this.members) member.tell({ ask: 'shutdown' })
    const failures: Failure[] = []
    for (const member of this.members) member.listen((told) => told.told === 'failed' && failures.push(told.failure))
    await Promise.all(this.members.map((member) => member.end(timeoutMs)))
    const codes = this.members.map(({ code }) => code)
    await this.discard()
    if (codes.some((code) => code !== 0)) throw new MemberFailed(`ended with ${codes}; ${JSON.stringify(failures)}`)
  }

  /** At once, however it is. */
  async discard(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()))
    await Promise.all([...this.proxies.values()].map((proxy) => proxy.close()))
  }

  private spawn(rank: number): FireMember {
    const store = this.ports[RANKS]!
    const { world, directory, more } = this.options
    const initMethod =
      world === 'file' ? pathToFileURL(join(directory, `meeting-${store}`)).href : `tcp://${rank === 0 ? HERE : ADVERTISED}:${store}`
    return new FireMember(rank, {
      initMethod,
      worldSize: RANKS,
      bind: HERE,
      advertise: ADVERTISED,
      ports: [this.ports[rank]!, this.ports[rank]!],
      transports: ['tcp'],
      rpcTimeoutMs: CALL_MS,
      timeoutMs: JOIN_MS,
      ...this.proofs[rank],
      ...more,
    })
  }
}

async function proofsOf(world: World): Promise<Proof[]> {
  const ranks = Array.from({ length: RANKS }, (_, rank) => rank)
  if (world !== 'tls') return ranks.map(() => (world === 'key' ? { key: KEY } : {}))
  const { Authority } = await import(AUTHORITY.href)
  const authority = new Authority('fire')
  return ranks.map((rank) => ({ tls: authority.credentials(`postgrad:postgrad/worker${rank}?role=member`) }))
}

/** Whether 127.0.0.2 is this machine too, as on Linux; null if it is, else why not. */
export async function whyNoProxies(): Promise<string | null> {
  const error = await tryListen(ADVERTISED, 0)
  return error === null ? null : `${ADVERTISED} cannot be listened on (${error})`
}

async function proxyAtFreePort(random: Random): Promise<[number, FaultProxy]> {
  for (;;) {
    const port = randomInt(...PORTS)
    if ((await tryListen(HERE, port)) !== null) continue
    try {
      return [port, await FaultProxy.start({ listen: { host: ADVERTISED, port }, target: { host: HERE, port }, random })]
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'EADDRINUSE') throw error
    }
  }
}

function tryListen(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code!))
    server.listen({ host, port }, () => server.close(() => resolve(null)))
  })
}
