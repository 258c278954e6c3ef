/**
 * Which workers are linked with which, in a simulation whose joins, restarts, leaves and deaths are those that ship (rules MEM-n of `cluster/SPEC.md`):
 * small programs for `explore`, and one of many changes for a seed.
 */
import { mul, sum } from '@postgrad/autograd'
import { isPostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { Random } from '@postgrad/sim/internal'
import { ones, type Tensor } from '@postgrad/tensor'
import { type SimCluster, simulate } from '../simulate/simulate.js'

const whoAmI = (): number => currentWorker().info.id
const twice = (x: Tensor): Tensor => mul(x, 2)
expose({ 'membership.whoAmI': whoAmI, 'membership.twice': twice })

/** Counts the deaths that each worker notices, from its first step. */
export class Witness {
  private readonly sim: SimCluster
  private readonly runtimes: WorkerRuntime[] = []
  private readonly heard = new Map<number, number[]>()

  constructor(sim: SimCluster) {
    this.sim = sim
    for (const { name } of sim.workers) this.watch(name)
  }

  join(name: string): void {
    this.sim.join(name)
    this.watch(name)
  }

  restart(name: string): void {
    this.sim.restart(name)
    this.watch(name)
  }

  /** To be asked when nothing is under way: which living workers are not linked, or have noticed a death too often or not at all. */
  problems(): string[] {
    const problems: string[] = []
    const isAlive = (one: WorkerRuntime) => this.isAlive(one)
    for (const here of this.runtimes.filter(isAlive)) {
      const { name, id } = here.info
      for (const there of this.runtimes) {
        if (there === here) continue
        const peer = [...here.peers].find(({ info }) => info.id === there.info.id)
        const isLinked = peer?.link?.closed === false
        const times = this.heard.get(id)!.filter((dead) => dead === there.info.id).length
        const knew = peer === undefined && here.deathOf(there.info.id) !== null && times === 0
        if (isAlive(there)) {
          if (!isLinked) problems.push(`${name}#${id} is not linked with ${there.info.name}#${there.info.id}`)
          if (times > 0) problems.push(`${name}#${id} takes ${there.info.name}#${there.info.id} for dead`)
          continue
        }
        if (isLinked) problems.push(`${name}#${id} has a link to ${there.info.name}#${there.info.id}, which is dead`)
        if (times + (knew ? 1 : 0) !== 1)
          problems.push(`${name}#${id} has heard ${times} times of the end of ${there.info.name}#${there.info.id}`)
      }
    }
    return problems
  }

  private isAlive(runtime: WorkerRuntime): boolean {
    const { name } = runtime.info
    return this.sim.on(name).runtime === runtime && !this.sim.world.isCrashed(name) && !runtime.isClosed
  }

  private watch(name: string): void {
    const { runtime } = this.sim.on(name)
    const heard: number[] = []
    this.runtimes.push(runtime)
    this.heard.set(runtime.info.id, heard)
    runtime.onPeerDeath(({ id }) => heard.push(id))
  }
}

/** The value, or the code of the error. */
export async function outcome<T>(promise: PromiseLike<T>): Promise<T | string> {
  try {
    return await promise
  } catch (error) {
    if (isPostgradError(error)) return error.code
    throw error
  }
}

/** The id at this name, as another worker finds it. */
export const ask = (sim: SimCluster, from: string, to: string): Promise<number | string> =>
  sim.on(from).run(() => outcome(call(to, whoAmI)))

/** A pass over the worker of that name: the gradient, or the code of the error. */
export const pass = (sim: SimCluster, from: string, over: string): Promise<number | string> =>
  sim.on(from).run(() =>
    outcome(
      distAutograd.context(async (ctx) => {
        const x = ones([1], { requiresGrad: true })
        await ctx.backward([sum(await call(over, twice, [x]))])
        return Number(ctx.gradients().get(x)!.toArray())
      }),
    ),
  )

/** So long after the last thing that was asked for nothing is under way. */
export const quiet = (sim: SimCluster, afterMs = 777): Promise<void> =>
  new Promise((resolve) => void sim.world.clock.setTimer(afterMs, resolve))

const CHANGES = 8
const NAMES = ['a', 'b', 'c', 'd']

/** Joins, restarts, leaves and deaths as the seed has them, with calls between; throws where something is wrong in the end. */
export async function membershipProgram(seed: number): Promise<void> {
  await simulate({ workers: ['a', 'b'], seed, ...(seed % 2 === 0 ? {} : { faults: [] }) }, async (sim) => {
    const random = new Random(seed)
    const witness = new Witness(sim)
    const isThere = (name: string) => sim.workers.some((worker) => worker.name === name)
    const isAlive = (name: string) => isThere(name) && !sim.world.isCrashed(name) && !sim.on(name).runtime.isClosed
    for (let i = 0; i < CHANGES; i++) {
      const living = NAMES.filter(isAlive)
      const name = NAMES[random.below(NAMES.length)]!
      const what = random.below(4)
      // Somebody is always there.
      if (!isAlive(name)) witness.join(name)
      else if (what === 0) witness.restart(name)
      else if (living.length > 1 && what === 1) sim.crash(name)
      else if (living.length > 1 && what === 2) void outcome(sim.ready(name).then(() => (isAlive(name) ? sim.leave(name) : undefined)))
      const [from, to] = [living[random.below(living.length)]!, NAMES[random.below(NAMES.length)]!]
      if (isAlive(from)) void ask(sim, from, to).catch(() => {})
      if (random.coin()) await quiet(sim, random.below(3))
    }
    await quiet(sim, 60_000)
    const problems = witness.problems()
    if (problems.length > 0) throw new Error(problems.join('; '))
  })
}
