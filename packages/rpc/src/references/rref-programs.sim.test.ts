/**
 * Random programs of making, sharing, fetching, calling and giving up, over three or four workers, against a model that is a list: who holds a
 * reference to which value. Whenever nothing is under way the counts of the protocol must be those of the list.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { Random } from '@postgrad/sim/internal'
import { call, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { Cluster, failure, withSeed } from '../worker/sim-cluster.suite.js'
import type { RRef } from './rref.js'

class Cell {
  private n: number
  constructor(n: number) {
    this.n = n
  }
  add(m: number): number {
    this.n += m
    return this.n
  }
}

/** One reference that a worker's program holds. */
interface Handle {
  readonly worker: number
  readonly ref: RRef<Cell>
  readonly value: Value
}

interface Value {
  readonly owner: number
  /** The cell's number, as far as it is settled. */
  n: number
}

/** References on their way into a program: what a served function received, by a ticket that the model gave out. */
const arrived = new Map<number, RRef<Cell>>()
const lent = new Map<number, RRef<Cell>>()
const makeCell = (n: number) => new Cell(n)
const take = (ticket: number, ref: RRef<Cell>) => {
  arrived.set(ticket, ref)
}
const takeAndUse = async (ticket: number, ref: RRef<Cell>) => {
  arrived.set(ticket, ref)
  return ref.call('add', [1])
}
const giveBack = (ticket: number) => lent.get(ticket)!
const takeTwice = (one: number, two: number, refs: { a: RRef<Cell>; b: Map<string, RRef<Cell>> }) => {
  arrived.set(one, refs.a)
  arrived.set(two, refs.b.get('x')!)
}
const refuse = (_ref: RRef<Cell>, _bad: unknown) => {}
expose({ Cell, makeCell, take, takeAndUse, giveBack, takeTwice, refuse })

class Program {
  readonly cluster: Cluster
  readonly random: Random
  readonly handles: Handle[] = []
  readonly running: Promise<void>[] = []
  readonly problems: unknown[] = []
  /** The worker that has died, if one has: what its program still does is seen by nobody. */
  dead: number | null = null
  private nextTicket = 0
  private readonly size: number

  constructor(seed: number, size: number) {
    this.size = size
    // ORD-4: in every second run messages overtake others.
    this.cluster = new Cluster(seed, size, { overtaking: seed % 2 === 1 })
    this.random = new Random(seed + 1_000_000)
  }

  on<T>(worker: number, fn: () => T): T {
    return this.cluster.workers[worker]!.run(fn)
  }

  /** One random action; most of it happens while the next is done. */
  act(): void {
    const kind = this.random.below(12)
    const from = this.random.below(this.size)
    if (from === this.dead) return
    const to = this.random.below(this.size)
    const handle = this.handles.length === 0 ? undefined : this.handles[this.random.below(this.handles.length)]!
    if (handle === undefined || kind === 0 || this.handles.length < 3) this.make(from, to)
    else if (kind === 1) this.own(from)
    else if (kind <= 4) this.share(handle, to)
    else if (kind === 5) this.shareAndUse(handle, to)
    else if (kind === 6) this.shareTwice(handle, to)
    else if (kind === 7) this.ask(handle, from)
    else if (kind === 8) this.add(handle)
    else if (kind === 9) this.refuse(handle, to)
    else this.drop(handle)
  }

  private make(from: number, to: number): void {
    const n = this.random.below(1000)
    const ref = this.on(from, () => (this.random.coin() ? remote(this.name(to), Cell, [n]) : remote(this.name(to), makeCell, [n])))
    this.handles.push({ worker: from, ref: ref as RRef<Cell>, value: { owner: to, n } })
  }

  private own(from: number): void {
    const n = this.random.below(1000)
    this.handles.push({ worker: from, ref: this.on(from, () => rref(new Cell(n))), value: { owner: from, n } })
  }

  private share({ worker, ref, value }: Handle, to: number): void {
    const ticket = this.nextTicket++
    this.go(
      worker,
      this.on(worker, () => call(this.name(to), take, [ticket, ref])).then(() => this.receive(ticket, to, value)),
    )
  }

  private shareAndUse({ worker, ref, value }: Handle, to: number): void {
    const ticket = this.nextTicket++
    value.n++
    this.go(
      worker,
      this.on(worker, () => call(this.name(to), takeAndUse, [ticket, ref])).then(() => this.receive(ticket, to, value)),
    )
  }

  private shareTwice({ worker, ref, value }: Handle, to: number): void {
    const one = this.nextTicket++
    const two = this.nextTicket++
    const refs = { a: ref, b: new Map([['x', ref]]) }
    this.go(
      worker,
      this.on(worker, () => call(this.name(to), takeTwice, [one, two, refs])).then(() => {
        this.receive(one, to, value)
        this.receive(two, to, value)
      }),
    )
  }

  /** `from` asks the holder of a handle for it, and gets it as a result. The holder keeps its own until then. */
  private ask({ worker, ref, value }: Handle, from: number): void {
    const ticket = this.nextTicket++
    const at = this.handles.findIndex((handle) => handle.ref === ref)
    this.handles.splice(at, 1)
    lent.set(ticket, ref)
    this.go(
      from,
      this.on(from, () => call(this.name(worker), giveBack, [ticket])).then((got) => {
        lent.delete(ticket)
        this.handles.push({ worker, ref, value }, { worker: from, ref: got, value })
      }),
    )
  }

  private add({ worker, ref, value }: Handle): void {
    value.n += 7
    this.go(
      worker,
      this.on(worker, () => ref.call('add', [7])).then(() => {}),
    )
  }

  private refuse({ worker, ref }: Handle, to: number): void {
    this.go(
      worker,
      failure(this.on(worker, () => call(this.name(to), refuse, [ref, Symbol('bad')]))).then((error) => {
        if (error.code !== 'WIRE_UNSUPPORTED_VALUE') throw error
      }),
    )
  }

  private drop(handle: Handle): void {
    this.handles.splice(this.handles.indexOf(handle), 1)
    this.on(handle.worker, () => handle.ref.dispose())
  }

  private receive(ticket: number, worker: number, value: Value): void {
    const ref = arrived.get(ticket)!
    arrived.delete(ticket)
    this.handles.push({ worker, ref, value })
  }

  private go(by: number, promise: Promise<void>): void {
    this.running.push(
      promise.catch((error: unknown) => {
        if (by !== this.dead) this.problems.push(error)
      }),
    )
  }

  /** One event, if there is one without time passing. */
  step(): void {
    const { world } = this.cluster
    if (world.choices.size > 0) world.step()
  }

  /** Lets what follows from the last steps happen. */
  async settleOne(): Promise<void> {
    await turn()
  }

  /** Forgets what the dead worker holds. */
  bury(): void {
    for (const handle of [...this.handles]) if (handle.worker === this.dead) this.handles.splice(this.handles.indexOf(handle), 1)
  }

  /** Until nothing is under way. */
  async settle(): Promise<void> {
    while (this.running.length > 0) await this.cluster.world.run(Promise.all(this.running.splice(0)))
    await this.cluster.world.drain()
    if (this.problems.length > 0) throw this.problems[0]
  }

  /** The protocol counts as many as the list has. */
  check(): void {
    const remoteHandles = (owner: number) => this.handles.filter(({ worker, value }) => value.owner === owner && worker !== owner)
    for (const worker of this.cluster.workers) {
      const id = worker.info.id
      expect({ worker: id, ...worker.rrefs.debugInfo() }).toEqual({
        worker: id,
        ownerRRefs: new Set(remoteHandles(id).map(({ value }) => value)).size,
        forks: remoteHandles(id).length,
        userRRefs: this.handles.filter(({ worker: holder, value }) => holder === id && value.owner !== id).length,
        pendingUsers: 0,
        pendingChildren: 0,
      })
    }
  }

  /** Every reference still leads to its value. */
  async useAll(): Promise<void> {
    for (const { worker, ref, value } of this.handles) {
      const n = await this.cluster.world.run(this.on(worker, () => ref.call('add', [0])))
      expect(n).toBe(value.n)
      expect(ref.confirmedByOwner()).toBe(true)
      expect(ref.isOwner()).toBe(worker === value.owner)
    }
  }

  name(id: number): string {
    return `worker${id}`
  }
}

describe('random programs', () => {
  /** `npm run soak -- --seeds 10000 rref-programs` takes more. */
  const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 100)
  const ACTIONS = 40

  test(`RREF-26: of ${ACTIONS} actions, seeds 1 to ${SEEDS}: the counts are the model's whenever nothing is under way, and nothing is left at the end`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      await withSeed(seed, async () => {
        const program = new Program(seed, 3 + (seed % 2))
        for (let i = 1; i <= ACTIONS; i++) {
          program.act()
          // Some of it happens before the next thing is done.
          for (let steps = program.random.below(6); steps > 0; steps--) program.step()
          if (program.random.coin()) await program.settleOne()
          if (i % 20 === 0) {
            await program.settle()
            program.check()
          }
        }
        await program.useAll()
        for (const { worker, ref } of program.handles.splice(0)) program.on(worker, () => ref.dispose())
        await program.settle()
        program.check()
        expect(await program.cluster.leftovers()).toEqual([])
      })
    }
  })

  test(`RREF-26: with a worker that dies in the middle, seeds 1 to ${SEEDS}: everything ends at once, and the survivors hold nothing at the end`, async () => {
    const errors = new Map<string, number>()
    for (let seed = 1; seed <= SEEDS; seed++) {
      await withSeed(seed, async () => {
        const size = 3 + (seed % 2)
        const program = new Program(seed, size)
        const { cluster, random } = program
        const victim = random.below(size)
        const deathAt = 5 + random.below(ACTIONS - 10)
        for (let i = 1; i <= ACTIONS; i++) {
          if (i === deathAt) {
            cluster.world.crash(`worker${victim}`)
            program.dead = victim
          }
          try {
            program.act()
          } catch (error) {
            program.problems.push(error)
          }
          for (let steps = random.below(6); steps > 0; steps--) program.step()
          if (random.coin()) await program.settleOne()
          if (i >= deathAt) program.bury()
        }
        // Waits of the dead worker never end: only the others' actions do.
        await cluster.world.drain()
        program.bury()
        expect(cluster.world.nowMs).toBeLessThan(1)
        for (const error of program.problems as { code: string; values: { worker: string } }[]) {
          errors.set(error.code, (errors.get(error.code) ?? 0) + 1)
          expect(['WORKER_DIED', 'RREF_DELETED']).toContain(error.code)
          if (error.code === 'WORKER_DIED') expect(error.values.worker).toBe(`worker${victim}`)
        }
        for (const { worker, ref } of program.handles) program.on(worker, () => ref.dispose())
        for (const [ticket, ref] of [...arrived, ...lent]) {
          arrived.delete(ticket)
          lent.delete(ticket)
          ref.dispose()
        }
        const letters = cluster.workers.reduce((n, { info }) => n + (info.id === victim ? 0 : cluster.info(info.id).deadLetters!), 0)
        await cluster.world.drain()
        const left = await cluster.leftovers({ except: [victim], letters })
        expect(left).toEqual([])
      })
    }
    expect([...errors.keys()]).toContain('WORKER_DIED')
  })
})
