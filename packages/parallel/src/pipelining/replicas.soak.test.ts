/** A grid of pipelines whose stages are replicas: each worker dies at each point of a step, under several orders of delivery. The others end with a typed error or with the step. */
import { expect, test } from '@jest/globals'
import { Linear } from '@postgrad/nn'
import { initProcessGroup, newSubgroupsByEnumeration } from '@postgrad/process-group'
import { ones, type Tensor } from '@postgrad/tensor'
import { DistributedDataParallel } from '../ddp/distributed-data-parallel.js'
import { seeded } from '../ddp/models.suite.js'
import { Ranks, runWithCrash, withSeed } from '../ddp/sim-ranks.suite.js'
import { Pipeline } from './pipeline.js'
import { PipelineStage } from './stage.js'

const SEEDS = [1, 2, 3]
const VICTIMS = [0, 1, 3]
const STRIDE = 2

/** On each of four ranks: two pipelines of two stages, and one step. */
async function stepOn(rank: number): Promise<string> {
  await initProcessGroup()
  const { current } = await newSubgroupsByEnumeration([
    [0, 2],
    [1, 3],
  ])
  const replica = await DistributedDataParallel.create(
    seeded(rank % 2, () => new Linear(2, 2)),
    { processGroup: current! },
  )
  const first = 2 * (rank >> 1)
  const pipeline = new Pipeline(new PipelineStage(replica, rank % 2, 2), {
    workers: [first, first + 1],
    schedule: '1F1B',
    microbatches: 3,
    loss: (output: Tensor, target: Tensor) => output.sub(target).square().mean(),
    name: `pipeline ${first}`,
  } as never)
  await pipeline.step(rank % 2 === 0 ? [ones([3, 2])] : [], rank % 2 === 1 ? { target: ones([3, 2]) } : {})
  return 'done'
}

test.each(VICTIMS)('PIP-18, PIP-12: rank %d of a grid dies at every second point', async (victim) => {
  const outcomes = new Map<string, number>()
  for (const seed of SEEDS) {
    let crashed = true
    for (let crashAt = 0; crashed; crashAt += STRIDE) {
      await withSeed(1000 * seed + crashAt, async () => {
        const ranks = new Ranks(seed, 4)
        const ends = ranks.workers.map((worker, rank) =>
          worker.run(() => stepOn(rank)).catch((error: { code?: string }) => error.code ?? String(error)),
        )
        const others = Promise.all(ends.filter((_, rank) => rank !== victim))
        const run = await runWithCrash(ranks, others, `worker${victim}`, crashAt)
        crashed = run.crashed
        expect(run.outcome).toBe('value')
        for (const end of run.value!) {
          // Before its first step what ends are collectives.
          expect(['done', 'PIPELINE_FAILED', 'GROUP_BROKEN', 'WORKER_DIED']).toContain(end)
          outcomes.set(end, (outcomes.get(end) ?? 0) + 1)
        }
      })
    }
  }
  expect(outcomes.get('PIPELINE_FAILED')).toBeGreaterThan(100)
  expect(outcomes.get('done')).toBeGreaterThan(0)
})
