/**
 * Three processes of a group with a proxy in front of each and of their store: started, asked, stopped, killed and started again. `fire.fixture.ts` sends them through the
 * fire. A worker listens on 127.0.0.1, and others are told 127.0.0.2 with the same port, where the proxy is.
 */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'
import type { Random } from '@postgrad/sim/internal'
import type { Failure, MemberOptions } from '../fixtures/fire-member.js'
import { FaultProxy } from './fault-proxy.fixture.js'
import type { Place } from './fire-plan.fixture.js'
import { FireMember, MemberFailed } from './fire-process.fixture.js'

const HERE = '127.0.0.1'
const ADVERTISED = '127.0.0.2'
/** Below what systems give to connections that go out. */
const PORTS = [20_000, 30_000] as const
export const RANKS = 3
/** Less than what a process that hangs is waited for. */
const JOIN_MS = 15_000
const CALL_MS = 3000

/** Three processes, and what stands between them. */
export class FireGroup {
  readonly proxies: ReadonlyMap<Place, FaultProxy>
  readonly members: FireMember[] = []
  private readonly ports: readonly number[]
  private readonly more: Partial<MemberOptions>

  private constructor(ports: readonly number[], proxies: ReadonlyMap<Place, FaultProxy>, more: Partial<MemberOptions>) {
    this.ports = ports
    this.proxies = proxies
    this.more = more
  }

  /** @param more beside what makes them a group */
  static async start(random: Random, more: Partial<MemberOptions> = {}): Promise<FireGroup> {
    const ports: number[] = []
    const proxies = new Map<Place, FaultProxy>()
    for (const place of ['worker0', 'worker1', 'worker2', 'store'] as const) {
      const [port, proxy] = await proxyAtFreePort(random)
      ports.push(port)
      proxies.set(place, proxy)
    }
    const group = new FireGroup(ports, proxies, more)
    try {
      for (let rank = 0; rank < RANKS; rank++) group.members.push(group.spawn(rank))
      await Promise.all(group.members.map((member) => member.ready()))
      return group
    } catch (error) {
      await group.discard()
      throw error
    }
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
    return new FireMember(rank, {
      initMethod: `tcp://${rank === 0 ? HERE : ADVERTISED}:${store}`,
      worldSize: RANKS,
      bind: HERE,
      advertise: ADVERTISED,
      ports: [this.ports[rank]!, this.ports[rank]!],
      transports: ['tcp'],
      rpcTimeoutMs: CALL_MS,
      timeoutMs: JOIN_MS,
      ...this.more,
    })
  }
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
