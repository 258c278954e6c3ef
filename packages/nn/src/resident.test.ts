/** Training on a device with its own memory gives the bits of `js`. Only the batch is copied to it and only the loss back, and no buffer is left. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from '@jest/globals'
import { manualSeed, randint, randn, type Tensor, tensor, withDevice } from '@postgrad/tensor'
import { residentDevice } from '@postgrad/tensor/suite'
import {
  Adadelta,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  Conv2d,
  CrossEntropyLoss,
  Flatten,
  Linear,
  loadSafetensors,
  MaxPool2d,
  type Module,
  NAdam,
  RAdam,
  ReLU,
  RMSprop,
  Rprop,
  Sequential,
  SGD,
  safetensorsBytes,
} from './index.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

interface Case {
  readonly name: string
  readonly make: () => Module & { forward(x: Tensor): Tensor }
  readonly shape: readonly number[]
}

const CASES: readonly Case[] = [
  { name: 'an MLP', make: () => new Sequential(new Linear(12, 16), new ReLU(), new Linear(16, 5)), shape: [8, 12] },
  {
    name: 'a small CNN',
    make: () => new Sequential(new Conv2d(1, 4, 3), new ReLU(), new MaxPool2d(2), new Flatten(), new Linear(36, 5)),
    shape: [8, 1, 8, 8],
  },
]

const OPTIMIZERS = [SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam, Rprop]

describe.each(CASES)('$name', ({ make, shape }) => {
  test.each(OPTIMIZERS)('trains by $name', async (Optimizer) => {
    const there = residentDevice()
    const batches = Array.from({ length: 3 }, (_, i) => {
      manualSeed(i)
      return [randn(shape), randint(0, 5, [shape[0]!])] as const
    })
    const criterion = new CrossEntropyLoss()

    const train = async (model: ReturnType<typeof make>, up: (x: Tensor) => Tensor) => {
      const optim = new Optimizer(model.parameters(), { lr: 0.01, ...(Optimizer === SGD ? { momentum: 0.9 } : {}) })
      const losses: number[] = []
      for (const [x, y] of batches) {
        const [input, target] = [up(x), up(y)]
        const loss = criterion.forward(model.forward(input), target)
        loss.backward()
        optim.step()
        losses.push(await loss.item())
        model.zeroGrad()
        for (const used of [input, target, loss]) if (used.device === there) used.close()
      }
      return losses
    }

    const model = () => {
      manualSeed(7)
      return make()
    }
    const here = model()
    const expected = await withDevice('js', () => train(here, (x) => x))
    const moved = model().to(there)
    expect(moved.parameters().every((p) => p.device === there)).toBe(true)
    const [uploads, downloads] = [there.home.uploads.length, there.home.downloads.length]
    const got = await train(moved, (x) => x.to(there))
    expect(got).toEqual(expected)
    // Two of each batch up, one loss down.
    expect([there.home.uploads.length - uploads, there.home.downloads.length - downloads]).toEqual([6, 3])
    const back = await moved.cpu()
    expect(Object.entries(back.stateDict()).map(([name, x]) => [name, x.toArray()])).toEqual(
      Object.entries(here.stateDict()).map(([name, x]) => [name, x.toArray()]),
    )
  })
})

test('memory returns to what it was: what no step holds any more goes back when it is collected', async () => {
  const there = residentDevice()
  const model = CASES[0]!.make().to(there)
  const optim = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 })
  const x = randn([8, 12], { device: there })
  const y = tensor([0, 1, 2, 3, 4, 0, 1, 2], { dtype: 'int32', device: there })
  const step = () => {
    new CrossEntropyLoss().forward(model.forward(x), y).backward()
    optim.step()
    model.zeroGrad()
  }
  /** Finalizers run between macrotasks, as many at once as V8 likes; a read lets the queue run. */
  const inUse = async (atMost: number) => {
    for (let turn = 0; turn < 200 && there.memory().inUse > atMost; turn++) {
      collect()
      await new Promise((resolve) => setImmediate(resolve))
      await x.data()
    }
    return there.memory().inUse
  }
  step()
  // Parameters, momentum and the batch.
  const held = 4 * (2 * model.parameters().reduce((sum, p) => sum + p.numel, 0) + x.numel + y.numel)
  expect(await inUse(held)).toBe(held)
  for (let i = 0; i < 3; i++) step()
  expect(there.memory().inUse).toBeGreaterThan(held)
  expect(await inUse(held)).toBe(held)
})

test('a state dict goes to whatever device the module is on, and safetensors come back', async () => {
  const there = residentDevice()
  const [a, b] = [CASES[0]!.make(), CASES[0]!.make().to(there)]
  b.loadStateDict(a.stateDict())
  const down = await Promise.all(b.parameters().map((p) => p.detach().cpu()))
  expect(down.map((p) => p.toArray())).toEqual(a.parameters().map((p) => p.toArray()))
  expect(() => a.loadStateDict(b.stateDict())).toThrow(expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS' }))
  const bytes = await safetensorsBytes(b.stateDict())
  const [here, up] = [await loadSafetensors(bytes), await loadSafetensors(bytes, { device: there })]
  for (const [name, x] of Object.entries(a.stateDict())) {
    expect(here[name]!.toArray()).toEqual(x.toArray())
    expect([String(up[name]!.device), (await up[name]!.cpu()).toArray()]).toEqual([there.spec, x.toArray()])
  }
})

test('the state of an optimizer is put where its parameter is', async () => {
  const there = residentDevice()
  const [a, b] = [CASES[0]!.make(), CASES[0]!.make().to(there)]
  const [here, up] = [new Adam(a.parameters(), { lr: 0.1 }), new Adam(b.parameters(), { lr: 0.1 })]
  a.forward(randn([2, 12]))
    .sum()
    .backward()
  here.step()
  b.loadStateDict(a.stateDict())
  up.loadStateDict(here.stateDict())
  expect(Object.values(up.stateDict().state).map(({ expAvg }) => String((expAvg as Tensor).device))).toEqual(Array(4).fill(String(there)))
})
