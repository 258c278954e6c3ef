/** JOB-15: jobs in a simulation, by the API that workers have on threads. */
import { expect, test } from '@jest/globals'
import { currentJob, currentJobs } from '@postgrad/jobs'
import { expose } from '@postgrad/rpc'
import { currentGenerator, type Tensor, tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'

const order: string[] = []
const double = (x: Tensor): Tensor => tensor([...x.dataSync()].map((v) => 2 * Number(v)))
const draw = (who: string): number => {
  order.push(who)
  return currentGenerator().uniform()
}
const stopped: string[] = []
const waits = (who: string): Promise<never> =>
  new Promise((_, reject) => {
    const { signal } = currentJob()
    signal.addEventListener('abort', () => {
      stopped.push(`${who} ${signal.reason.code}`)
      reject(signal.reason)
    })
  })
expose({ simulatedDouble: double, simulatedDraw: draw, simulatedWaits: waits })

const workers = ['a', 'b']
const draws = async (who: string): Promise<number[]> => Promise.all([0, 1, 2].map((i) => currentJobs().run(draw, [`${who}${i}`])))

test('JOB-15 the same seed gives the same run, another seed another order, and the same numbers', async () => {
  const run = async (seed: number): Promise<{ numbers: number[][]; order: string; hash: unknown }> => {
    order.length = 0
    const simulation = await simulate({ workers, seed, jobs: { jobs: { threads: 2 } } }, (sim) =>
      Promise.all(workers.map((name) => sim.on(name).run(draws, name))),
    )
    expectClean(simulation)
    return { numbers: simulation.result, order: order.join(' '), hash: simulation.steps }
  }
  const first = await run(1)
  expect(await run(1)).toEqual(first)
  const others = await Promise.all([]).then(async () => {
    const runs = []
    for (let seed = 2; seed < 12; seed++) runs.push(await run(seed))
    return runs
  })
  expect(others.some(({ order: other }) => other !== first.order)).toBe(true)
  for (const { numbers } of others) expect(numbers).toEqual(first.numbers)
  expect(new Set(first.numbers.flat()).size).toBe(6)
})

test('JOB-15 tensors, a map, and a pool that is not there', async () => {
  await simulate({ workers, jobs: { rollouts: {} } }, (sim) =>
    sim.on('a').run(async () => {
      const jobs = currentJobs('rollouts')
      const results: unknown[] = []
      for await (const y of jobs.map(double, [tensor([1]), tensor([2, 3])])) results.push(y.toArray())
      expect(results).toEqual([[2], [4, 6]])
      await expect(currentJobs('others').run(double, [tensor([1])])).rejects.toMatchObject({ code: 'JOBS_NOT_HERE' })
    }),
  )
  await simulate({ workers }, (sim) =>
    sim.on('a').run(async () => {
      expect(() => currentJobs()).toThrow('no worker of a cluster')
    }),
  )
})

test('JOB-14 a crash cancels what its worker has submitted, and the pool goes on', async () => {
  stopped.length = 0
  const { result } = await simulate({ workers, jobs: { jobs: { threads: 1 } } }, async (sim) => {
    const clock = sim.world.clock
    for (const who of ['running', 'waiting'])
      void sim
        .on('a')
        .run(() => currentJobs().run(waits, [who]))
        .catch(() => {})
    await new Promise<void>((resolve) => clock.setTimer(10, resolve))
    sim.crash('a')
    return sim.on('b').run(() => currentJobs().run(draw, ['b']))
  })
  expect(typeof result).toBe('number')
  expect(stopped).toEqual(['running WORKER_DIED'])
})
