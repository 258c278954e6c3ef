/**
 * Workers under load are terminated at random moments and in random ways, started again, added and removed, again and again. After each round every living
 * worker is checked: no promise hangs, each answer is right, nothing is left in any table, and the books of the
 * shared heap agree with what each worker says that it holds.
 */
import { Random } from '@postgrad/sim/internal'
import { heapStats, threadHeap, verifyHeap } from '@postgrad/tensor/internal'
import { leaks } from '@postgrad/testing'
import * as program from '../fixtures/turmoil.js'
import type { Cluster } from '../index.js'
import { launch } from '../index.js'

export interface TurmoilResult {
  readonly terminations: number
  readonly restarts: number
  readonly joins: number
  readonly done: number
  readonly failed: Readonly<Record<string, number>>
  readonly milliseconds: number
}

const PROGRAM = new URL('../fixtures/turmoil.js', import.meta.url)
const CORE = ['a', 'b', 'c', 'd']
/** Errors of an operation when a worker that it needs dies. Any other, a deadline above all, is a mistake. */
const EXPECTED = ['WORKER_DIED', 'RREF_DELETED', 'UNKNOWN_WORKER', 'DIST_AUTOGRAD_']
/** Terminations between two looks at everything. */
const PER_ROUND = 10
/** Clean-up messages are one-way and finalizers slow; they get this many looks of 20 ms. */
const PATIENCE = 250

/** @throws with the seed, at the first thing that is not as it must be */
export async function turmoil({ terminations, seed }: { terminations: number; seed: number }): Promise<TurmoilResult> {
  const started = performance.now()
  const rest = new Rounds(seed)
  const cluster = await launch(PROGRAM, { workers: CORE, referenceLeaks: 'ignore' })
  cluster.onWorkerDeath(() => {})
  try {
    while (rest.terminations < terminations) await rest.round(cluster, Math.min(PER_ROUND, terminations - rest.terminations))
  } catch (error) {
    throw new Error(`seed ${seed}, after ${rest.terminations} terminations: ${(error as Error).message}`, { cause: error })
  } finally {
    await cluster.close({ timeoutMs: 0 })
  }
  const heap = threadHeap()
  const left = [...heapStats(heap).heldBytes.keys()].filter((slot) => slot !== heap.slot)
  if (left.length > 0) throw new Error(`seed ${seed}: slots ${left} hold blocks behind the end of the cluster`)
  const { restarts, joins, done, failed } = rest
  return { terminations: rest.terminations, restarts, joins, done, failed, milliseconds: performance.now() - started }
}

class Rounds {
  terminations = 0
  restarts = 0
  joins = 0
  done = 0
  readonly failed: Record<string, number> = {}
  /** Draws follow from the seed; their effects do not, since threads have their own time. */
  private readonly random: Random
  private guests = 0
  private mainPorts = -1

  constructor(seed: number) {
    this.random = new Random(seed)
  }

  async round(cluster: Cluster, count: number): Promise<void> {
    await Promise.all(cluster.workers.map(({ name }) => cluster.on(name).run(program.startLoad, this.random.below(2 ** 20))))
    for (let i = 0; i < count; ) i += await this.strike(cluster)
    await this.settle(cluster)
    await this.check(cluster)
  }

  /** One or two terminations, and what replaces the dead. */
  private async strike(cluster: Cluster): Promise<number> {
    await sleep(this.random.below(40))
    const alive = cluster.workers.filter(({ name }) => cluster.deathOf(name) === null)
    const victim = alive[this.random.below(alive.length)]!.name
    await this.terminate(cluster, victim)
    await sleep(this.random.below(10))
    const way = this.random.below(10)
    if (way < 6) await this.restart(cluster, victim)
    else if (way < 8) {
      // Another dies while the first is started again.
      const restarting = this.restart(cluster, victim)
      await sleep(this.random.below(200))
      const others = alive.filter(({ name }) => name !== victim)
      const second = others[this.random.below(others.length)]!.name
      await this.terminate(cluster, second)
      await restarting
      await this.restart(cluster, second)
      return 2
    } else {
      // A guest joins meanwhile, and leaves or dies.
      const guest = `guest${this.guests++}`
      await Promise.all([cluster.join(guest), this.restart(cluster, victim)])
      this.joins++
      await cluster.on(guest).run(program.startLoad, this.random.below(2 ** 20))
      await sleep(this.random.below(60))
      if (this.random.below(2) === 0) {
        await cluster.on(guest).run(program.stopLoad)
        await cluster.leave(guest)
      } else {
        await this.terminate(cluster, guest)
        await cluster.leave(guest)
        return 2
      }
    }
    return 1
  }

  private async terminate(cluster: Cluster, name: string): Promise<void> {
    this.terminations++
    const way = this.random.below(4)
    const thread = cluster.on(name)
    if (way === 0) await thread.run(program.exitNow, 3).catch(() => {})
    else if (way === 1) {
      await thread.run(program.throwNow).catch(() => {})
      while (cluster.deathOf(name) === null) await sleep(1)
    } else await cluster.kill(name)
  }

  private async restart(cluster: Cluster, name: string): Promise<void> {
    await cluster.restart(name)
    this.restarts++
    await cluster.on(name).run(program.startLoad, this.random.below(2 ** 20))
  }

  /** Ends the load everywhere; throws what went wrong. */
  private async settle(cluster: Cluster): Promise<void> {
    const reports = await Promise.all(cluster.workers.map(({ name }) => cluster.on(name, { timeoutMs: 60_000 }).run(program.stopLoad)))
    for (const { done, failed, wrong } of reports) {
      if (wrong.length > 0) throw new Error(wrong.join('\n'))
      this.done += done
      for (const [code, count] of Object.entries(failed)) this.failed[code] = (this.failed[code] ?? 0) + count
    }
    const unexpected = Object.keys(this.failed).filter((code) => !EXPECTED.some((expected) => code.startsWith(expected)))
    if (unexpected.length > 0) throw new Error(`operations failed with ${unexpected}`)
  }

  private async check(cluster: Cluster): Promise<void> {
    const names = cluster.workers.map(({ name }) => name)
    const problems = await Promise.all(
      names.map((name) => cluster.on(name, { timeoutMs: 60_000 }).run(program.checkUp, this.random.below(2 ** 20))),
    )
    if (problems.flat().length > 0) throw new Error(problems.flat().join('\n'))
    let left: readonly string[] = []
    for (let tries = 0; tries < PATIENCE; tries++) {
      left = await this.whatIsLeft(cluster)
      if (left.length === 0) return
      await sleep(20)
    }
    throw new Error(`left behind:\n${left.join('\n')}`)
  }

  private async whatIsLeft(cluster: Cluster): Promise<string[]> {
    const infos = await cluster.debugInfo()
    const names = Object.keys(infos)
    const left = leaks(infos, { allow: ['deadLetters'] })
    for (const [name, { openLinks, ports }] of Object.entries(infos)) {
      if (openLinks !== names.length - 1) left.push(`${name} has ${openLinks} links of ${names.length - 1}`)
      // One a link, and that to the main thread; Node's own makes the third.
      if (ports! > names.length + 1) left.push(`${name} has ${ports} ports of ${names.length + 1}`)
    }
    const held = await Promise.all(names.map((name) => cluster.on(name).run(program.heldHere)))
    held.forEach(({ onTheWay }, i) => {
      if (onTheWay > 0) left.push(`${names[i]} has ${onTheWay} blocks on the way`)
    })
    const heap = threadHeap()
    left.push(...verifyHeap(heap.words, [{ slot: heap.slot, held: heap.audit() }, ...held]))
    const ports = process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length - 2 * names.length
    if (this.mainPorts === -1) this.mainPorts = ports
    if (ports > this.mainPorts) left.push(`the main thread has ${ports - this.mainPorts} ports more than after the first round`)
    return left
  }
}

const sleep = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs))
