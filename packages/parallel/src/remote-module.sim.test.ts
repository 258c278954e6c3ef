/** RemoteModule, after PyTorch's `remote_module_test.py`, and its gradients against the same module here. */
import { describe, expect, test } from '@jest/globals'
import { mul } from '@postgrad/autograd'
import type { PostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { Linear, Module, SGD } from '@postgrad/nn'
import { call, currentWorker, expose, remote } from '@postgrad/rpc'
import { currentDevice, ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { DistributedOptimizer } from './distributed-optimizer.js'
import { RemoteModule } from './remote-module.js'
import { failure, overSeeds } from './sim-workers.suite.js'

/** PyTorch's MyModule. */
class MyModule extends Module {
  readonly param1: Tensor
  readonly inner = new Linear(2, 2)
  readonly firstArg: string
  constructor(firstArg = '', firstKwarg = -1) {
    super()
    this.firstArg = firstArg
    this.param1 = tensor([[firstKwarg, 0]], { requiresGrad: true })
  }
  forward(x: Tensor, n = 1, word = 'default'): [string, number, Tensor] {
    return [word, n, mul(x, this.param1)]
  }
}
class Where extends Module {
  forward(): string {
    return `${currentWorker().info.name} ${currentDevice().spec} ${this.training}`
  }
}
class Slow extends Module {
  async forward(x: Tensor): Promise<Tensor> {
    await new Promise<void>((resolve) => {
      currentWorker().clock.setTimer(100, resolve)
    })
    return x
  }
}
class BadModule {
  forward(): number {
    return 1
  }
}
class FailsToMake extends Module {
  constructor() {
    super()
    throw new RangeError('no module today')
  }
  forward(): void {}
}
class NeverExposed extends Module {
  forward(): void {}
}
const forwardOf = async (module: RemoteModule<MyModule>, x: Tensor) => {
  using mine = module
  return await mine.forward(x, 3, 'over')
}
const newAttribute = (module: RemoteModule<MyModule> & { note?: string }) => [module.note ?? null, module.training, module.remoteDevice]
expose({ MyModule, Where, Slow, BadModule, FailsToMake, Linear, forwardOf, newAttribute })

const one = tensor([[1, 2]])

function thrown(fn: () => unknown): PostgradError {
  try {
    fn()
  } catch (error) {
    return error as PostgradError
  }
  throw new Error('expected an exception')
}

describe.each(['worker1', 'worker0', 'worker1/js'])('on %s', (device) => {
  test('RM-1 forward and forwardAsync run on the owner, with all kinds of arguments (forward_async, forward_sync, forward_with_kwargs)', async () => {
    await overSeeds(2, async () => {
      using module = new RemoteModule(device, MyModule, ['first', 2])
      const results = await Promise.all([module.forward(one, 2, 'hello'), module.forwardAsync(one, 5), module.forward(one)])
      expect(results.map(([word, n, y]) => [word, n, y.toArray()])).toEqual([
        ['hello', 2, [[2, 0]]],
        ['default', 5, [[2, 0]]],
        ['default', 1, [[2, 0]]],
      ])
      expect(String(module)).toMatch(device === 'worker0' ? /^RemoteModule\(worker0, OwnerRRef/ : `RemoteModule(${device}, UserRRef`)
    })
  })

  test('RM-2 train and eval reach the module before what is called later (train_eval)', async () => {
    await overSeeds(2, async () => {
      using module = new RemoteModule(device, Where)
      const [owner, spec] = device.split('/')
      const where = (training: boolean) => `${owner} ${spec ?? 'cpu'} ${training}`
      const first = module.forward()
      expect(module.eval()).toBe(module)
      const second = module.forward()
      module.train()
      expect(await Promise.all([first, second, module.forward()])).toEqual([where(true), where(false), where(true)])
      expect(module.training).toBe(true)
    })
  })

  test('RM-3 remoteParameters gives references to the parameters, of the tree or of the module alone', async () => {
    await overSeeds(2, async () => {
      using module = new RemoteModule(device, MyModule, ['', 7])
      const all = await module.remoteParameters()
      expect(all).toHaveLength(3)
      expect((await all[0]!.toHere()).toArray()).toEqual([[7, 0]])
      expect(all.map((ref) => ref.ownerName())).toEqual(all.map(() => device.split('/')[0]))
      const own = await module.remoteParameters({ recurse: false })
      expect(own).toHaveLength(1)
      for (const ref of [...all, ...own]) ref.dispose()
    })
  })
})

describe('references and sending', () => {
  test('RM-4 getModuleRref is the reference to the module; another RemoteModule can be made of it (create_remote_module_from_module_rref)', async () => {
    await overSeeds(2, async () => {
      const module = new RemoteModule('worker1', MyModule, ['', 2])
      const again = RemoteModule.initFromModuleRref('worker1', module.getModuleRref())
      expect(again.getModuleRref()).toBe(module.getModuleRref())
      expect((await again.forward(one))[2].toArray()).toEqual([[2, 0]])
      expect(thrown(() => new RemoteModule('worker0', module.getModuleRref())).code).toBe('REMOTE_DEVICE_INVALID')
      const made = remote('worker1', MyModule, ['x', 3])
      expect((await new RemoteModule('worker1/js', made).forward(one))[2].toArray()).toEqual([[3, 0]])
    })
  })

  test('RM-5 it can be sent over RPC, whoever gets it (send_remote_module_over_the_wire)', async () => {
    await overSeeds(3, async (workers) => {
      const module = new RemoteModule('worker1', MyModule, ['', 2])
      for (const to of ['worker2', 'worker1', 'worker0']) {
        const [word, n, y] = await call(to, forwardOf, [module, one])
        expect([word, n, y.toArray()]).toEqual(['over', 3, [[2, 0]]])
      }
      module.dispose()
      await call('worker2', forwardOf, [new RemoteModule('worker2', MyModule), one])
      await call('worker1', forwardOf, [new RemoteModule('worker2/js', MyModule), one])
      await new Promise<void>((resolve) => {
        currentWorker().clock.setTimer(1, resolve)
      })
      expect(workers[1]!.debugInfo()).toMatchObject({ ownerRRefs: 0, forks: 0 })
    })
  })

  test('RM-5 what a program adds to it does not travel (send_remote_module_with_a_new_attribute_not_pickled)', async () => {
    await overSeeds(2, async () => {
      const module: RemoteModule<MyModule> & { note?: string } = new RemoteModule('worker1/wasm', MyModule)
      module.note = 'mine'
      module.eval()
      expect(await call('worker1', newAttribute, [module])).toEqual([null, false, 'worker1/wasm'])
      expect(module.note).toBe('mine')
    })
  })
})

describe('gradients', () => {
  test('RM-6 of its parameters and inputs equal those of the same module here; DistributedOptimizer steps it', async () => {
    await overSeeds(2, async () => {
      using module = new RemoteModule('worker1', Linear, [3, 2])
      const params = await module.remoteParameters()
      const here = new Linear(3, 2)
      const [weight, bias] = await Promise.all(params.map((param) => param.toHere()))
      here.loadStateDict({ weight: weight!, bias: bias! })
      const x = tensor([[1, -2, 3]], { requiresGrad: true })
      const local = here.forward(x).pow(2).sum()
      local.backward()
      new SGD(here.parameters(), { lr: 0.1 }).step()
      const xs = tensor([[1, -2, 3]], { requiresGrad: true })
      await distAutograd.context(async (ctx) => {
        const loss = (await module.forward(xs)).pow(2).sum()
        expect(loss.itemSync()).toBe(local.itemSync())
        await ctx.backward([loss])
        expect(ctx.gradients().get(xs)!.toArray()).toEqual(x.grad!.toArray())
        using optimizer = new DistributedOptimizer(SGD, params, { lr: 0.1 })
        await optimizer.step(ctx)
      })
      expect((await params[0]!.toHere()).toArray()).toEqual(here.weight.toArray())
      expect((await params[1]!.toHere()).toArray()).toEqual(here.bias!.toArray())
      for (const param of params) param.dispose()
    })
  })
})

describe('errors', () => {
  test('RM-1 arguments of the constructor that are no list', async () => {
    await overSeeds(2, async () => {
      const Any = RemoteModule as unknown as new (...args: unknown[]) => unknown
      for (const rest of [[2, 2], [{ inFeatures: 2 }], [null]]) {
        const error = thrown(() => new Any('worker1', Linear, ...rest))
        expect(error).toMatchObject({
          code: 'INVALID_ARGUMENT',
          remedy: expect.stringContaining("new RemoteModule('worker1', Linear, [2, 4])"),
        })
      }
    })
  })

  test('RM-7 a class that is no module, a constructor that throws, a class that is not exposed (bad_module)', async () => {
    await overSeeds(2, async () => {
      const bad = new RemoteModule('worker1', BadModule as never)
      for (const use of [bad.ready(), bad.forward(), bad.remoteParameters()]) {
        expect(await failure(use)).toMatchObject({ code: 'NOT_A_MODULE', values: { name: 'BadModule' } })
      }
      expect((await failure(bad.ready())).message).toContain('instance of Module')
      const failing = new RemoteModule('worker1', FailsToMake)
      failing.train()
      expect(await failure(failing.forward())).toMatchObject({ name: 'RangeError', message: 'no module today' })
      expect(thrown(() => new RemoteModule('worker1', NeverExposed)).code).toBe('FUNCTION_NOT_EXPOSED')
    })
  })

  test('RM-8 devices and workers that are none (valid_device, invalid_devices)', async () => {
    await overSeeds(2, async () => {
      for (const device of ['worker1/wasm/0', '/wasm', 'worker1/', '']) {
        expect([device, thrown(() => new RemoteModule(device, MyModule)).code]).toEqual([device, 'REMOTE_DEVICE_INVALID'])
      }
      expect(thrown(() => new RemoteModule('nobody/wasm', MyModule)).code).toBe('UNKNOWN_WORKER')
      expect(await failure(new RemoteModule('worker1/abacus', MyModule).ready())).toMatchObject({ code: 'DEVICE_UNKNOWN' })
      expect((await new RemoteModule(1, MyModule, ['', 2]).forward(ones([1, 2])))[2].toArray()).toEqual([[2, 0]])
    })
  })

  test('RM-9 what a module here cannot do for one elsewhere says so (unsupported_methods)', async () => {
    await overSeeds(2, async () => {
      using module = new RemoteModule('worker1', MyModule)
      const methods = Object.getOwnPropertyNames(Module.prototype).filter(
        (name) => !['constructor', 'train', 'eval', 'toString', 'fieldName', 'kindOf', 'hooks'].includes(name),
      )
      expect(methods.length).toBeGreaterThan(20)
      for (const method of methods) {
        const error = thrown(() => (module as unknown as Record<string, () => unknown>)[method]!())
        expect([method, error.code]).toEqual([method, 'REMOTE_MODULE_UNSUPPORTED'])
        expect(error.message).toContain(`Method \`${method}\` not supported for RemoteModule`)
      }
      expect(thrown(() => module.parameters()).message).toContain('Please use `remoteParameters` instead.')
      expect(thrown(() => module.parameters()).message).toContain('new DistributedOptimizer(SGD, await module.remoteParameters(), { lr })')
    })
  })

  test('OPT-1 a local optimizer of references says which class takes them', async () => {
    await overSeeds(2, async () => {
      using module = new RemoteModule('worker1', MyModule)
      const references = await module.remoteParameters()
      const message =
        "SGD: expected tensors of this worker, got a reference to a tensor of worker 'worker1'. Write new DistributedOptimizer(SGD, references, { lr }), and await optimizer.step(ctx)."
      for (const wrong of [references, references[0], [{ params: references }], [{ params: references[0] }], [zeros([1]), ...references]]) {
        expect(thrown(() => new SGD(wrong as never, { lr: 0.1 }))).toMatchObject({ code: 'INVALID_ARGUMENT', message })
      }
    })
  })

  test('OPT-9 a promise of references says that it must be awaited', async () => {
    await overSeeds(2, async () => {
      using module = new RemoteModule('worker1', MyModule)
      const awaited = module.remoteParameters() as never
      expect(thrown(() => new SGD(awaited, { lr: 0.1 })).message).toContain('got a promise. Await it.')
      expect(thrown(() => new DistributedOptimizer(SGD, awaited, { lr: 0.1 })).message).toContain('got a promise. Await it: await')
      await awaited
    })
  })

  test('RM-10 deadlines, and the death of the owner', async () => {
    await overSeeds(2, async (workers) => {
      using module = new RemoteModule('worker1', Slow)
      expect(await failure(module.forwardWith({ timeoutMs: 20 }, one))).toMatchObject({ code: 'RPC_TIMEOUT' })
      const waiting = failure(module.forward(one))
      await workers[1]!.close()
      expect(await waiting).toMatchObject({ code: 'WORKER_DIED' })
      module.train()
      expect(await failure(module.forward(one))).toMatchObject({ code: 'WORKER_DIED' })
    })
  })
})
