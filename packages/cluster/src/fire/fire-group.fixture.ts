/**
 * Three processes of a group with a proxy in front of each and of their store: started, asked, stopped, killed and started again. `fire.fixture.ts` sends them through the
 * fire. A worker listens on 127.0.0.1, and others are told 127.0.0.2 with the same port, where the proxy is.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Random } from '@postgrad/sim/internal'
import type { Ask, Failure, Look, Told } from '../fixtures/fire-member.js'
import type { InitOptions } from '../init/init.js'
import { FaultProxy } from './fault-proxy.fixture.js'
import { CONNECTION, type Place } from './fire-plan.fixture.js'

const MEMBER = new URL('../fixtures/fire-member.js', import.meta.url)
const HERE = '127.0.0.1'
const ADVERTISED = '127.0.0.2'
/** Below what systems give to connections that go out. */
const PORTS = [20_000, 30_000] as const
export const RANKS = 3
/** A process that has not come by then hangs. */
const START_MS = 30_000
const CALL_MS = 3000

/** Of a process that the test did not kill, or that had something to complain of. */
export class MemberFailed extends Error {}

export class FireMember {
  readonly rank: number
  readonly exited: Promise<void>
  isStopped = false
  /** By this test. */
  isKilled = false
  isGone = false
  id = -1
  complaints = ''
  private readonly child: ChildProcess
  private readonly listeners = new Set<(told: Told) => void>()
  private readonly gone = new Set<() => void>()
  code: number | null = null

  constructor(rank: number, options: InitOptions) {
    this.rank = rank
    // jest's own flags must not reach the child.
    const { NODE_OPTIONS: _, ...env } = process.env
    this.child = spawn(process.execPath, [fileURLToPath(MEMBER), JSON.stringify(options)], {
      env,
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.complaints += text
    })
    this.child.on('message', (told: Told) => {
      for (const listener of [...this.listeners]) listener(told)
    })
    this.child.on('error', () => {})
    this.exited = new Promise((resolve) => {
      this.child.on('close', (code) => {
        this.code = code
        this.isGone = true
        for (const tellGone of [...this.gone]) tellGone()
        resolve()
      })
    })
  }

  /** When it is a member. Rejects with what `init` has rejected with. */
  async ready(): Promise<void> {
    const told = await this.hear(START_MS, (one) => one.told === 'ready' || one.told === 'failed')
    if (told.told === 'failed') throw new MemberFailed(`rank ${this.rank} did not come: ${told.failure.message}`)
    this.id = (told as Extract<Told, { told: 'ready' }>).id
  }

  tell(asked: Ask): void {
    if (!this.isGone && this.child.connected) this.child.send(asked, () => {})
  }

  async look(timeoutMs: number): Promise<Look> {
    const heard = this.hear(timeoutMs, ({ told }) => told === 'look')
    this.tell({ ask: 'look' })
    return ((await heard) as Extract<Told, { told: 'look' }>).look
  }

  listen(listener: (told: Told) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** The first word for which `isIt`. Rejects when the process ends before, or after so many ms. */
  hear(timeoutMs: number, isIt: (told: Told) => boolean): Promise<Told> {
    return new Promise((resolve, reject) => {
      const over = (): void => {
        stop()
        this.gone.delete(ended)
        clearTimeout(timer)
      }
      const ended = (): void => {
        over()
        reject(new MemberFailed(`rank ${this.rank} has ended (${this.code}): ${this.complaints}`))
      }
      const stop = this.listen((told) => {
        if (!isIt(told)) return
        over()
        resolve(told)
      })
      const timer = setTimeout(() => {
        over()
        reject(new MemberFailed(`rank ${this.rank} has said nothing for ${timeoutMs} ms`))
      }, timeoutMs)
      this.gone.add(ended)
      if (this.isGone) ended()
    })
  }

  stop(): void {
    this.isStopped = true
    this.child.kill('SIGSTOP')
  }

  goOn(): void {
    if (!this.isStopped) return
    this.isStopped = false
    this.child.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    this.isKilled = true
    this.child.kill('SIGKILL')
    await this.exited
  }

  /** Waits for its own end. */
  async end(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), timeoutMs)
    await this.exited
    clearTimeout(timer)
  }
}

/** Three processes, and what stands between them. */
export class FireGroup {
  readonly proxies: ReadonlyMap<Place, FaultProxy>
  readonly members: FireMember[] = []
  private readonly ports: readonly number[]
  private readonly more: Partial<InitOptions>

  private constructor(ports: readonly number[], proxies: ReadonlyMap<Place, FaultProxy>, more: Partial<InitOptions>) {
    this.ports = ports
    this.proxies = proxies
    this.more = more
  }

  /** @param more beside what makes them a group */
  static async start(random: Random, more: Partial<InitOptions> = {}): Promise<FireGroup> {
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
      rank,
      worldSize: RANKS,
      bind: HERE,
      advertise: ADVERTISED,
      ports: [this.ports[rank]!, this.ports[rank]!],
      transports: ['tcp'],
      connection: CONNECTION,
      rpcTimeoutMs: CALL_MS,
      timeoutMs: START_MS,
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
