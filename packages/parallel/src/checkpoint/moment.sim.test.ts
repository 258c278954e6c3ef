/** A checkpoint has the state at the call of `save`, or the save fails because the state has changed. */
import { describe, expect, test } from '@jest/globals'
import { noGrad } from '@postgrad/autograd'
import { Adam, Linear, StepLR } from '@postgrad/nn'
import { expose, remote, rref } from '@postgrad/rpc'
import { full, type Tensor, tensor } from '@postgrad/tensor'
import { DistributedOptimizer } from '../distributed-optimizer.js'
import { RemoteModule } from '../remote-module.js'
import { failure } from '../sim-workers.suite.js'
import { Count, directories, Filled, Outer, onCluster } from './checkpoint-world.suite.js'
import { Checkpoints } from './checkpoints.js'

const directory = directories()
const make = (n: number): Tensor => full([2], n)
expose({ makeOfMoments: make })

const changed = { code: 'CHECKPOINT_FAILED', cause: { code: 'SAFETENSORS_CHANGED' } }

describe('CP-11 a save that is not awaited', () => {
  test('CP-11 a step of this worker at once: SAFETENSORS_CHANGED', () =>
    onCluster(2, async () => {
      const model = new Linear(3, 3)
      const optimizer = new Adam(model.parameters(), { lr: 0.1 })
      const scheduler = new StepLR(optimizer, { stepSize: 100 })
      const step = () => {
        optimizer.zeroGrad()
        model
          .forward(tensor([[1, 2, 3]]))
          .sum()
          .backward()
        optimizer.step()
        scheduler.step()
      }
      step()
      const checkpoints = new Checkpoints(directory())
      const saving = failure(checkpoints.save(1, { model, optimizer, scheduler, done: 1 }))
      step()
      expect(await saving).toMatchObject(changed)
      expect(await checkpoints.list()).toEqual([])
    }))

  test('CP-11 plain data and states without tensors are those of the call, here and on other workers', () =>
    onCluster(2, async () => {
      const [here, there] = [new Count(), remote(1, Count, [])]
      await there.call('set', [3])
      here.set(3)
      const history = [{ loss: 3 }]
      const checkpoints = new Checkpoints(directory())
      const saving = checkpoints.save(1, { here, there, history })
      here.set(4)
      const later = there.call('set', [4])
      history.push({ loss: 4 })
      history[0]!.loss = 5
      await saving
      await later
      const { values } = await checkpoints.load({ here, there })
      expect([here.get(), await there.call('get', []), values.history]).toEqual([3, 3, [{ loss: 3 }]])
    }))

  test.each([
    ['a module of another worker', (parts: Parts) => parts.there.getModuleRref().call('fill', [2])],
    ['a module in a module of another worker', (parts: Parts) => parts.inner.call('fill', [2])],
    ['an own module', async (parts: Parts) => parts.here.fill(2)],
  ])('CP-11 a write to %s at once: SAFETENSORS_CHANGED', (_, write) =>
    onCluster(3, async () => {
      const parts = await partsOf()
      const checkpoints = new Checkpoints(directory())
      const saving = failure(checkpoints.save(1, parts.saved))
      const writing = write(parts)
      expect(await saving).toMatchObject(changed)
      await writing
      // Without a write it is saved.
      await checkpoints.save(2, parts.saved)
    }),
  )

  test('CP-11 a module that is still being made when save is called is saved as it is made', () =>
    onCluster(2, async () => {
      const [here, there] = [0, 1].map((worker) => remote(worker, Filled, [2, 5]))
      const checkpoints = new Checkpoints(directory())
      await checkpoints.save(1, { here, there })
      await there!.call('fill', [6])
      await checkpoints.load({ here, there })
      expect([await here!.call('values', []), await there!.call('values', [])]).toEqual([
        [5, 5],
        [5, 5],
      ])
    }))

  test('CP-11 what the program writes to after a save that it has awaited is not of it', () =>
    onCluster(3, async () => {
      const parts = await partsOf()
      const optimizer = new DistributedOptimizer(Adam, [rref(parts.here.w), ...(await parts.there.remoteParameters())], { lr: 1 })
      const checkpoints = new Checkpoints(directory())
      await checkpoints.save(1, { ...parts.saved, optimizer })
      parts.here.fill(9)
      await parts.there.getModuleRref().call('fill', [9])
      await parts.inner.call('fill', [9])
      await checkpoints.load({ ...parts.saved, optimizer })
      expect([parts.here.values(), await parts.there.getModuleRref().call('values', []), await parts.inner.call('values', [])]).toEqual([
        [1, 1],
        [0, 0, 0],
        [0],
      ])
    }))
})

interface Parts {
  readonly here: Filled
  readonly there: RemoteModule<Filled>
  readonly inner: ReturnType<Outer['innerRef']>
  readonly saved: Record<string, unknown>
}

async function partsOf(): Promise<Parts> {
  const here = new Filled(2, 1)
  const there = new RemoteModule('worker1', Filled, [3])
  const outer = new RemoteModule('worker1', Outer, ['worker2'])
  const inner = await outer.getModuleRref().call('innerRef', [])
  await inner.call('values', [])
  return { here, there, inner, saved: { here, there, outer } }
}

describe('CP-10 names', () => {
  test('CP-10 two tensors whose paths read the same, and a part whose name is __proto__, come back', () =>
    onCluster(1, async () => {
      const best = { 'encoder.weight': full([1], 1), encoder: { weight: full([2], 2) } }
      const checkpoints = new Checkpoints(directory())
      await checkpoints.save(1, { best, ['__proto__']: full([3], 3), __metadata__: full([1], 4) })
      const { values } = await checkpoints.load({})
      const read = values.best as typeof best
      expect([read['encoder.weight'].toArray(), read.encoder.weight.toArray()]).toEqual([[1], [2, 2]])
      const own = (name: string) => (Object.getOwnPropertyDescriptor(values, name)!.value as Tensor).toArray()
      expect([own('__proto__'), own('__metadata__')]).toEqual([[3, 3, 3], [4]])
    }))
})

describe('CP-13 what a reference refers to', () => {
  test('CP-13 a tensor is saved by its owner as the tensor that it is, and given back', () =>
    onCluster(2, async () => {
      const there = new RemoteModule('worker1', Filled, [2, 6])
      const [weight] = await there.remoteParameters()
      const checkpoints = new Checkpoints(directory())
      await checkpoints.save(1, { weight, other: remote(1, make, [7]), here: rref(make(8)) })
      const { values } = await checkpoints.load({})
      expect(['weight', 'other', 'here'].map((name) => (values[name] as Tensor).toArray())).toEqual([
        [6, 6],
        [7, 7],
        [8, 8],
      ])
      // Also where the parts name it.
      expect(Object.keys((await checkpoints.load({ weight })).values)).toEqual(expect.arrayContaining(['weight', 'other', 'here']))
    }))

  test('CP-13 anything else is refused with a remedy that can be followed', () =>
    onCluster(2, async () => {
      const error = await failure(new Checkpoints(directory()).save(1, { number: remote(1, makeNumber, []) }))
      expect(error).toMatchObject({ code: 'CHECKPOINT_UNSUPPORTED', op: 'save', message: expect.stringMatching(/^save: .*toHere\(\)/) })
    }))
})
const makeNumber = (): number => 5
expose({ makeNumberOfMoments: makeNumber })

describe('CP-9 values of any size', () => {
  test('CP-9 more than a message holds comes back, to any worker, and no value of it goes by a message', () =>
    onCluster(2, async () => {
      const history = Array.from({ length: 20_000 }, (_, step) => 1 / (step + 1))
      const text = 'x'.repeat(9 << 20)
      const checkpoints = new Checkpoints(directory())
      const model = new Filled(2, 5)
      await checkpoints.save(1, { model, history, text })
      noGrad(() => model.w.fill_(0))
      const { values } = await checkpoints.load({ model })
      expect(model.values()).toEqual([5, 5])
      const read = values.history as number[]
      expect([read.length, read.every((each, i) => each === history[i]), values.text === text]).toEqual([history.length, true, true])
    }))
})
