/**
 * Rows of the simulation: how many seeds, and how many orders of an exploration, one core does in a minute, for a pass over three workers. The limit of these
 * rows is the same program inlined: its workers, forward and backward, without a message.
 */
import { add, call, distAutograd, expose, mul, rand, sum, type Tensor } from 'postgrad'
import { explore, inlined, simulate, type TestCluster } from 'postgrad/testing'
import type { Contestant, RowPlan } from '../row.js'

const AIM = 60_000
const SECONDS = 60
const workers = 3

const further = async (a: Tensor, b: Tensor) => mul(await call('worker2', add, [a, b]), b)
expose({ 'bench.further': further })

/** worker0 asks worker1, which asks worker2; backward goes the same way. */
async function pass(): Promise<void> {
  await distAutograd.context(async (ctx) => {
    const [a, b] = [rand([3, 3], { requiresGrad: true }), rand([3, 3], { requiresGrad: true })]
    await ctx.backward([sum(mul(await call('worker1', further, [a, b]), a))])
  })
}

const onWorker0 = (cluster: TestCluster) => cluster.on('worker0').run(pass)
/** All three at once, each as `worker0`: more orders than can be counted. */
const onAll = (cluster: TestCluster) => Promise.all(cluster.workers.map(({ name }) => cluster.on(name).run(pass)))

/** CPU seconds of all threads of the process: other work on the machine does not count. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1e6
}

const runs = (one: (seed: number) => Promise<unknown>): Contestant => {
  let seed = 0
  return (n) =>
    timed(async () => {
      for (let i = 0; i < n; i++) await one(seed++)
    })
}

export function simulationRows(): RowPlan[] {
  const shared = { n: 200, figure: (seconds: number, n: number) => (SECONDS * n) / seconds, higherIsBetter: true, peers: {} }
  return [
    {
      ...shared,
      name: 'simulation: a pass over three workers',
      unit: 'seeds/min',
      ours: runs((seed) => simulate({ workers, seed, countMessages: false, world: { traceEventsMax: 0 } }, onWorker0)),
      limit: runs(() => inlined({ workers }, onWorker0)),
      aim: () => AIM,
    },
    {
      ...shared,
      name: 'simulation: explore, a pass of each of three workers',
      unit: 'orders/min',
      ours: (n) => timed(() => explore({ workers, ordersMax: n, seeds: 0, countMessages: false }, onAll)),
      limit: runs(() => inlined({ workers }, onAll)),
      aim: () => null,
    },
  ]
}
