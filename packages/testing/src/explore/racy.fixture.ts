/** A program that is wrong under some orders of delivery: for the tests of how a failed run is reported. */
import { call, expose } from '@postgrad/rpc'
import type { SimCluster } from '../simulate/simulate.js'

/** In the order of arrival at worker0; of one run. */
let arrived: string[] = []
const arrive = (from: string): string => {
  arrived.push(from)
  return from
}
const echo = (value: unknown) => value
expose({ 'racy.arrive': arrive, 'racy.echo': echo })

export const RACY_WORKERS = ['worker0', 'worker1', 'worker2', 'worker3']

/** All call worker0 after some talk; what it gives is the order in which they came. */
export async function unordered(sim: SimCluster): Promise<readonly string[]> {
  arrived = []
  await Promise.all(
    ['worker1', 'worker2', 'worker3'].map((name) =>
      sim.on(name).run(async () => {
        for (const to of RACY_WORKERS) await call(to, echo, [name])
        await call('worker0', arrive, [name])
      }),
    ),
  )
  return arrived
}

/** The same, but fails under the orders in which worker3 comes first and worker2 second. */
export async function racy(sim: SimCluster): Promise<readonly string[]> {
  await unordered(sim)
  if (arrived[0] === 'worker3' && arrived[1] === 'worker2') throw new Error(`worker3 came first of ${arrived.length}`)
  return arrived
}

/** Is not the same twice. */
export const chancy = (sim: SimCluster): Promise<unknown> => sim.on('worker0').run(() => call('worker1', echo, [Math.random()]))

export const notAProgram = 7
