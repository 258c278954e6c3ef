import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crossEntropy } from 'postgrad'
import { expectClean, expectSameBits, inlined, simulate } from 'postgrad/testing'
import { batches, main, newModel, newOptimizer, TRAINERS } from './program.js'

const workers = TRAINERS
const train = (seed: number, epochs: number) =>
  simulate({ workers, seed }, (sim) => Promise.all(TRAINERS.map((name) => sim.on(name).run(main, epochs))))

/** The same training with one model: a step has the batches of both trainers. */
async function inOneProcess(epochs: number) {
  const model = newModel()
  const optimizer = newOptimizer(model.parameters())
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const others = batches(1, epoch)[Symbol.asyncIterator]()
    for await (const [points, labels] of batches(0, epoch)) {
      const [otherPoints, otherLabels] = (await others.next()).value!
      optimizer.zeroGrad()
      const loss = crossEntropy(model.forward(points), labels)
      loss
        .add(crossEntropy(model.forward(otherPoints), otherLabels))
        .div(2)
        .backward()
      optimizer.step()
    }
  }
  return model.stateDict()
}

test('both copies have the bits of one process, whatever the order of the messages', async () => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('trainer0').run(() => inOneProcess(2)))
  for (let seed = 1; seed <= 5; seed++) {
    const simulation = await train(seed, 2)
    for (const { weights } of simulation.result) expectSameBits(weights, oracle)
    expectClean(simulation)
  }
})

test('it learns', async () => {
  const { result } = await train(1, 20)
  assert.ok(result[0]!.right > 0.9)
})
