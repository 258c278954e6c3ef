import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crossEntropy, Generator } from 'postgrad'
import { expectClean, inlined, simulate } from 'postgrad/testing'
import { MICROBATCHES, main, mean, newModel, newOptimizer, nextBatch, WORKERS } from './program.js'

const workers = WORKERS

/** The same training with the model in one place: a batch in parts, whose gradients add up. */
async function inOneProcess(steps: number): Promise<number[]> {
  const model = newModel()
  const optimizer = newOptimizer(model.parameters())
  const random = new Generator(1)
  const losses: number[] = []
  for (let step = 0; step < steps; step++) {
    const [points, arms] = nextBatch(random).map((all) => all.chunk(MICROBATCHES))
    optimizer.zeroGrad()
    const parts = points!.map((part, i) => crossEntropy(model.forward(part), arms![i]!))
    for (const loss of parts) loss.div(MICROBATCHES).backward()
    optimizer.step()
    losses.push(await mean(parts))
  }
  return losses
}

test('the losses are those of the model in one place, whatever the order of the messages', async () => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('rank0').run(() => inOneProcess(3)))
  for (let seed = 1; seed <= 5; seed++) {
    const simulation = await simulate({ workers, seed }, (sim) => Promise.all(WORKERS.map((name) => sim.on(name).run(main, 3))))
    assert.deepEqual(simulation.result.at(-1), oracle)
    expectClean(simulation)
  }
})
