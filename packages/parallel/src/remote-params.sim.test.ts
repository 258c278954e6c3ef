/** All parameters of a model whose modules live on several workers. */
import { describe, expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { Linear, Module, SGD } from '@postgrad/nn'
import { expose, rref } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { DistributedOptimizer } from './distributed-optimizer.js'
import { RemoteModule } from './remote-module.js'
import { getAllRemoteParams } from './remote-params.js'
import { failure, overSeeds } from './sim-workers.suite.js'

class Leaf extends Module {
  readonly linear = new Linear(2, 2)
  forward(x: Tensor): Tensor {
    return this.linear.forward(x)
  }
}
/** A module here with one on worker 2 below it. */
class Nested extends Module {
  readonly first = new Linear(2, 2, { bias: false })
  readonly second: RemoteModule<Leaf>
  constructor(to: string) {
    super()
    this.second = new RemoteModule(to, Leaf)
  }
  async forward(x: Tensor): Promise<Tensor> {
    return await this.second.forward(this.first.forward(x))
  }
}
class Unmade extends Module {
  constructor() {
    super()
    throw new RangeError('no module today')
  }
  forward(): void {}
}
expose({ ParamsLeaf: Leaf, ParamsNested: Nested, ParamsUnmade: Unmade })

class Model extends Module {
  readonly head = new Linear(2, 2, { bias: false })
  readonly body = [new RemoteModule('worker1', Nested, ['worker2'])]
  readonly again = this.body[0]!
  readonly tail: Linear
  constructor() {
    super()
    this.tail = this.head
  }
  async forward(x: Tensor): Promise<Tensor> {
    return this.tail.forward(await this.body[0]!.forward(this.head.forward(x)))
  }
}

describe('getAllRemoteParams', () => {
  test('OPT-13 those here and those of remote modules at any depth, in their order, each once; an optimizer steps them', () =>
    overSeeds(3, async () => {
      const model = new Model()
      const params = await getAllRemoteParams(model)
      expect(params.map((param) => param.ownerName())).toEqual(['worker0', 'worker1', 'worker2', 'worker2'])
      expect(params[0]!.localValue()).toBe(model.head.weight)
      const optimizer = new DistributedOptimizer(SGD, params, { lr: 0.5 })
      const values = () => Promise.all(params.map(async (param) => (await param.toHere()).toArray()))
      const before = await values()
      await distAutograd.context(async (ctx) => {
        await ctx.backward([(await model.forward(ones([1, 2]))).sum()])
        await optimizer.step(ctx)
      })
      for (const [i, now] of (await values()).entries()) expect(now).not.toEqual(before[i])
      expect((await getAllRemoteParams(model.body[0]!)).map((param) => param.ownerName())).toEqual(['worker1', 'worker2', 'worker2'])
      expect((await getAllRemoteParams(rref(model) as never)).length).toBe(4)
    }))

  test('OPT-13 what is no module, and a remote one that could not be made', () =>
    overSeeds(2, async () => {
      for (const bad of [null, {}, [new Linear(1, 1)]])
        expect((await failure(getAllRemoteParams(bad as never))).code).toBe('INVALID_ARGUMENT')
      class Broken extends Module {
        readonly part = new RemoteModule('worker1', Unmade)
      }
      expect(await failure(getAllRemoteParams(new Broken()))).toMatchObject({ name: 'RangeError' })
    }))
})
