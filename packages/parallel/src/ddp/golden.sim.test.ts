/** Compares 50 steps with PyTorch's DistributedDataParallel over gloo, and with one process on the joined batches; `golden.soak` runs all cases. */
import { expect, test } from '@jest/globals'
import { crossEntropy } from '@postgrad/autograd'
import { raw } from '@postgrad/tensor/internal'
import {
  expectState,
  golden,
  hooked,
  MODELS,
  nameOf,
  numbers,
  OPTIMIZERS,
  started,
  TOLERANCE,
  target,
  trainsAs,
  trainsInHalves,
} from './golden.suite.js'

/** Those of the small network take most of the time: each number of ranks once, each optimizer once. */
const cases = golden.cases.filter(({ model, optimizer, size }) => model !== 'cnn' || (optimizer === 'adam') === (size === 2))

test.each(cases.map((each) => [nameOf(each), each] as const))('DDP-40 50 steps are those of PyTorch: %s', (_, each) => trainsAs(each))

test('DDP-54 50 steps with gradients as float16 are those of PyTorch, as far as half precision goes', async () => {
  expect(hooked.cases.map(({ size }) => size)).toEqual([2, 4])
  await trainsInHalves(hooked.cases[0]!)
})

test('DDP-41 50 steps are those of one process with the joined batch, but for the order of its sums', () => {
  for (const { model, optimizer: name, size, uneven, state } of golden.cases) {
    if (model === 'cnn' || uneven !== null) continue
    const module = started(model)
    const optimizer = OPTIMIZERS[name](module.parameters())
    for (let step = 0; step < 50; step++) {
      const ranks = [...Array(size).keys()]
      optimizer.zeroGrad()
      const x = raw.cat(ranks.map((rank) => numbers(MODELS[model].shape, rank, step)))
      crossEntropy(module.forward(x), raw.cat(ranks.map((rank) => target(rank, step)))).backward()
      optimizer.step()
    }
    expectState(module, state, TOLERANCE)
  }
})
