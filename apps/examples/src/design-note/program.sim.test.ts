/** The design note's programs in the simulation: every order of delivery gives the bits of the inlined programs, and leaves nothing. */
import { expect, test } from '@jest/globals'
import { expectClean, explore, inlined, simulate, type TestCluster } from 'postgrad/testing'
import { designNote, endToEnd } from './program.js'

const SEEDS = 25
const workers = ['worker0', 'worker1', 'worker2']

const note = async (cluster: TestCluster) => {
  const { values, gradients, loss } = await cluster.on('worker0').run(designNote)
  return { values: values.map((t) => t.toArray()), gradients: gradients.map((t) => t.toArray()), loss }
}

test('the design note: t1 and t2 get t4, t4 gets t1 + t2, in every order', async () => {
  const oracle = await inlined({ workers }, note)
  const [t1, t2, t4] = oracle.values as [number[][], number[][], number[][]]
  const sum = t1.map((row, i) => row.map((x, j) => Math.fround(x + t2[i]![j]!)))
  expect(oracle.gradients).toEqual([t4, t4, sum])
  for (let seed = 1; seed <= SEEDS; seed++) {
    const simulation = await simulate({ workers, seed }, note)
    expect({ seed, ...simulation.result }).toEqual({ seed, ...oracle })
    expectClean(simulation)
  }
})

test('end to end, all workers at once: every step lowers the loss by its learning rate times 18', async () => {
  const [steps, lr] = [4, 0.125]
  const ring = (cluster: TestCluster) =>
    Promise.all(workers.map((name, i) => cluster.on(name).run(endToEnd, workers[(i + 1) % workers.length]!, steps, lr)))
  const oracle = await inlined({ workers }, ring)
  for (const losses of oracle) {
    expect(losses).toHaveLength(steps + 1)
    for (let i = 1; i <= steps; i++) expect(losses[i - 1]! - losses[i]!).toBeCloseTo(18 * lr, 4)
  }
  for (let seed = 1; seed <= SEEDS; seed++) {
    const simulation = await simulate({ workers, seed }, ring)
    expect({ seed, losses: simulation.result }).toEqual({ seed, losses: oracle })
    expectClean(simulation)
  }
})

test('every order of delivery there is: the same bits', async () => {
  const one = await explore({ workers }, note)
  expect(one).toMatchObject({ exhausted: true, outcomes: 1 })
  const pair = ['worker0', 'worker1']
  const both = await explore({ workers: pair }, (sim) =>
    Promise.all(pair.map((name, i) => sim.on(name).run(endToEnd, pair[1 - i]!, 1, 0.5))),
  )
  expect(both).toMatchObject({ exhausted: true, outcomes: 1 })
  expect(both.orders).toBeGreaterThan(1)
})
