/** A model on several workers, as one file, and back. The measure is the file of the same model in one place. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { BatchNorm1d, Dropout, Linear, loadSafetensors, Module, ReLU, Sequential, safetensorsBytes } from '@postgrad/nn'
import { call, currentWorker, expose, RRef, remote, rref } from '@postgrad/rpc'
import { currentRuntime, type WorkerRuntime } from '@postgrad/rpc/internal'
import { manualSeed, type Tensor, zeros } from '@postgrad/tensor'
import { type CheckpointDisk, syncDisk, useCheckpointDisk } from '../checkpoint/disk.js'
import { DistributedDataParallel } from '../ddp/distributed-data-parallel.js'
import { overSeeds as overRanks } from '../ddp/sim-ranks.suite.js'
import { splitSequential } from '../pipelining/split-sequential.js'
import { PipelineStage } from '../pipelining/stage.js'
import { RemoteModule } from '../remote-module.js'
import { failure, overSeeds } from '../sim-workers.suite.js'
import { loadModel } from './load-model.js'
import { saveModel } from './save-model.js'

/** Everything that a state dict may hold: buffers, a shared weight, float64, names in arrays. */
class Encoder extends Module {
  readonly layers = [new Linear(4, 4), new BatchNorm1d(4)]
  readonly tied = (this.layers[0] as Linear).weight
  readonly wide = new Linear(2, 3, { dtype: 'float64' })
  forward(x: Tensor): Tensor {
    return x
  }
}
/** In one place, or with its encoder on another worker. */
class Model extends Module {
  readonly encoder: Encoder | RemoteModule<Encoder>
  readonly head = new Linear(4, 2)
  constructor(encoder: Encoder | RemoteModule<Encoder>) {
    super()
    this.encoder = encoder
  }
  forward(x: Tensor): Tensor {
    return x
  }
}
/** Another worker's, with a part on a third one. */
class Nested extends Module {
  readonly own = new Linear(3, 3)
  readonly inner: RemoteModule<Encoder>
  constructor(worker: string) {
    super()
    this.inner = new RemoteModule(worker, Encoder, [])
  }
  forward(x: Tensor): Tensor {
    return x
  }
  end(): void {
    this.inner.dispose()
  }
}

const made: Module[] = []
/** Called on a worker: layers of a Sequential that was cut, of which it has one stage. */
function stageOf(index: number): RRef<Module> {
  manualSeed(index)
  const stage = splitSequential(new Sequential(new Linear(2, 3), new ReLU(), new Linear(3, 3), new Dropout(0.5), new Linear(3, 1)), 2)[
    index
  ]!
  made.push(stage)
  return rref(stage as Module)
}
const weightsOf = (module: Module): unknown => Object.fromEntries(Object.entries(module.stateDict()).map(([key, x]) => [key, x.toArray()]))
const step = (module: Module): void => {
  for (const x of Object.values(module.stateDict())) x.add_(1)
}
const weightsThere = async (ref: RRef<Module>): Promise<unknown> => weightsOf(await ref.toHere())
const stepThere = async (ref: RRef<Module>): Promise<void> => step(await ref.toHere())
expose({
  FullStateEncoder: Encoder,
  FullStateNested: Nested,
  FullStateLinear: Linear,
  fullStateStage: stageOf,
  fullStateWeights: weightsThere,
  fullStateStep: stepThere,
})

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postgrad-full-state-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function onWorkers(
  main: (workers: readonly WorkerRuntime[]) => Promise<void>,
  seeds = 2,
  disk: CheckpointDisk = syncDisk,
): Promise<void> {
  await overSeeds(
    3,
    async (workers) => {
      for (const worker of workers) useCheckpointDisk(worker, disk)
      await main(workers)
    },
    seeds,
  )
}

/** The bytes of the file that the module in one place, with these weights, has. */
async function oneFile(module: Module, from: string): Promise<Uint8Array> {
  module.loadStateDict(await loadSafetensors(readFileSync(from)))
  return await safetensorsBytes(module.stateDict())
}
const bytesOf = (path: string): Uint8Array => new Uint8Array(readFileSync(path))

describe('FS-1', () => {
  test('FS-1 the file is that of the model in one place, byte for byte, and goes back', async () => {
    await onWorkers(async () => {
      const path = join(folder, 'model.safetensors')
      using encoder = new RemoteModule('worker1', Encoder, [])
      const model = new Model(encoder)
      await saveModel(path, model)
      const local = new Model(new Encoder())
      expect(bytesOf(path)).toEqual(await oneFile(local, path))
      // The same weights elsewhere, from the file of the model in one place.
      step(local)
      await saveSafetensorsHere(join(folder, 'local.safetensors'), local)
      expect(await loadModel(join(folder, 'local.safetensors'), model)).toEqual({ missingKeys: [], unexpectedKeys: [] })
      expect(weightsOf(model.head)).toEqual(weightsOf(local.head))
      expect(await call('worker1', weightsThere, [encoder.getModuleRref() as RRef<Module>])).toEqual(weightsOf(local.encoder as Encoder))
    })
  })

  test('FS-1 a remote module, modules by name, modules within modules of other workers', async () => {
    await onWorkers(async () => {
      const path = join(folder, 'parts.safetensors')
      using linear = new RemoteModule('worker2', Linear, [2, 2])
      await saveModel(path, linear)
      expect([...Object.keys(await loadSafetensors(readFileSync(path)))].sort()).toEqual(['bias', 'weight'])
      using nested = new RemoteModule('worker1', Nested, ['worker2'])
      const head = new Linear(1, 1)
      const parts = { nested, more: { head, linear: linear.getModuleRref() } }
      await saveModel(path, parts, { metadata: { format: 'pt' } })
      const saved = await loadSafetensors(readFileSync(path))
      const inner = Object.keys(new Encoder().stateDict()).map((key) => `nested.inner.${key}`)
      const others = [
        'nested.own.weight',
        'nested.own.bias',
        'more.head.weight',
        'more.head.bias',
        'more.linear.weight',
        'more.linear.bias',
      ]
      expect(Object.keys(saved).sort()).toEqual([...inner, ...others].sort())
      step(head)
      await loadModel(path, parts)
      expect(weightsOf(head)).toEqual({ weight: saved['more.head.weight']!.toArray(), bias: saved['more.head.bias']!.toArray() })
      await nested.getModuleRref().call('end', [])
    })
  })

  test('FS-1 the stages of a pipeline are one Sequential', async () => {
    await onWorkers(async () => {
      const path = join(folder, 'stages.safetensors')
      const stages = [await call('worker1', stageOf, [0]), await call('worker2', stageOf, [1])]
      await saveModel(path, stages)
      const whole = new Sequential(new Linear(2, 3), new ReLU(), new Linear(3, 3), new Dropout(0.5), new Linear(3, 1))
      expect(bytesOf(path)).toEqual(await oneFile(whole, path))
      step(whole)
      await saveSafetensorsHere(path, whole)
      await loadModel(path, stages)
      expect(await call('worker2', weightsThere, [stages[1]!])).toEqual(weightsOf(splitSequential(whole, 2)[1]!))
      const here = splitSequential(whole, 2).map((stage, i) => new PipelineStage(stage, i, 2))
      const before = bytesOf(path)
      await saveModel(path, here)
      expect(bytesOf(path)).toEqual(before)
      for (const stage of stages) stage.dispose()
      made.length = 0
    })
  })
})

/** As `saveSafetensors`, which waits for the machine's files. */
async function saveSafetensorsHere(path: string, module: Module): Promise<void> {
  writeFileSync(path, await safetensorsBytes(module.stateDict()))
}

describe('FS-2', () => {
  test('FS-2 names and shapes that differ are refused before anything is written', async () => {
    await onWorkers(async () => {
      const path = join(folder, 'model.safetensors')
      using encoder = new RemoteModule('worker1', Encoder, [])
      const model = new Model(encoder)
      const before = [weightsOf(model.head), await call('worker1', weightsThere, [encoder.getModuleRref() as RRef<Module>])]
      const { 'head.bias': _, ...state } = new Model(new Encoder()).stateDict()
      writeFileSync(path, await safetensorsBytes({ ...state, 'head.weight': zeros([2, 5]), extra: zeros([1]) }))
      const error = (await failure(loadModel(path, model))) as PostgradError
      expect([error.code, error.op, error.values]).toEqual([
        'STATE_DICT_MISMATCH',
        'loadModel',
        { missing: ['head.bias'], unexpected: ['extra'], shapes: ['head.weight is [2, 4], not [2, 5]'] },
      ])
      // Other shapes are refused in any case; names are then not the reason.
      const loose = (await failure(loadModel(path, model, { strict: false }))) as PostgradError
      expect([loose.code, loose.values]).toEqual([
        'STATE_DICT_MISMATCH',
        { missing: [], unexpected: [], shapes: ['head.weight is [2, 4], not [2, 5]'] },
      ])
      expect([weightsOf(model.head), await call('worker1', weightsThere, [encoder.getModuleRref() as RRef<Module>])]).toEqual(before)
      writeFileSync(path, await safetensorsBytes({ ...state, extra: zeros([1]) }))
      expect(await loadModel(path, model, { strict: false })).toEqual({ missingKeys: ['head.bias'], unexpectedKeys: ['extra'] })
      expect(weightsOf(model.head)).toMatchObject({ weight: state['head.weight']!.toArray() })
    })
  })

  test('FS-2 arguments other than models', async () => {
    await onWorkers(async () => {
      const path = join(folder, 'model.safetensors')
      const linear = new Linear(1, 1)
      const wrong = [5, null, {}, [linear], { a: 5 }, remote('worker1', madeCount, [])]
      for (const model of wrong) {
        expect(await failure(saveModel(path, model as never))).toMatchObject({ code: 'INVALID_ARGUMENT' })
        if (model instanceof RRef) model.dispose()
      }
      expect(await failure(saveModel(path, { a: { b: linear }, 'a.b': linear }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
      const layers = [new Sequential(linear), new Scaled(linear)]
      expect(await failure(saveModel(path, layers))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining("'scale'"),
      })
      expect(await failure(saveModel(5 as never, linear))).toMatchObject({ code: 'INVALID_ARGUMENT' })
      expect(await failure(saveModel(path, linear, { meta: {} } as never))).toMatchObject({ code: 'INVALID_ARGUMENT' })
      expect(await failure(loadModel(path, linear, { strictly: true } as never))).toMatchObject({ code: 'INVALID_ARGUMENT' })
      expect(readdirSync(folder)).toEqual([])
      await saveModel(path, linear)
      using count = remote('worker1', madeCount, [])
      expect(await failure(loadModel(path, count as never))).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'loadModel' })
    }, 1)
  })

  test('FS-2 a DistributedDataParallel is saved as its module at any depth, and no rank loads into it alone', async () => {
    await overRanks(2, async (rank) => {
      useCheckpointDisk(currentRuntime(), syncDisk)
      const path = join(folder, `ddp-${rank}.safetensors`)
      const dense = await DistributedDataParallel.create(new Sequential(new Linear(1, 1)))
      const model = new Wrapping(dense)
      for (const [part, names] of [
        [dense, ['0.bias', '0.weight']],
        [model, ['dense.0.bias', 'dense.0.weight', 'own.bias', 'own.weight']],
      ] as const) {
        await saveModel(path, part)
        expect(Object.keys(await loadSafetensors(readFileSync(path))).sort()).toEqual(names)
        expect(await failure(loadModel(path, part))).toMatchObject({
          code: 'INVALID_ARGUMENT',
          op: 'loadModel',
          message: expect.stringContaining('Load before DistributedDataParallel.create'),
        })
      }
      await saveModel(path, dense)
      await loadModel(path, dense.module)
    })
  })
})
/** With a tensor that is in none of its layers. */
class Scaled extends Sequential {
  readonly scale = zeros([1], { requiresGrad: true })
}
class Wrapping extends Module {
  readonly own = new Linear(1, 1)
  readonly dense: Module
  constructor(dense: Module) {
    super()
    this.dense = dense
  }
  forward(x: Tensor): Tensor {
    return x
  }
}
function madeCount(): number {
  return made.length
}
expose({ fullStateMadeCount: madeCount })

describe('FS-3', () => {
  test('FS-3 a save that breaks off leaves the file as it was', async () => {
    let create = syncDisk.create
    const disk: CheckpointDisk = { ...syncDisk, create: (at) => create(at) }
    const main = async (): Promise<void> => {
      const path = join(folder, 'model.safetensors')
      writeFileSync(path, 'before')
      using encoder = new RemoteModule('worker1', Encoder, [])
      const ref = encoder.getModuleRref() as RRef<Module>
      let writes = 0
      // A step between two tensors.
      create = async (at) => {
        const file = await syncDisk.create(at)
        const write = async (bytes: Uint8Array): Promise<void> => {
          if (++writes === 3) await call('worker1', stepThere, [ref])
          await file.write(bytes)
        }
        return { ...file, write }
      }
      expect(await failure(saveModel(path, encoder))).toMatchObject({ code: 'SAFETENSORS_CHANGED' })
      create = async () => {
        throw Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC', syscall: 'write' })
      }
      expect(await failure(saveModel(path, encoder))).toMatchObject({ code: 'SAFETENSORS_IO', values: { path } })
      expect(readFileSync(path, 'utf8')).toBe('before')
      expect(readdirSync(folder)).toEqual(['model.safetensors'])
    }
    await onWorkers(main, 1, disk)
  })

  test('FS-3 the file cannot be read, or is damaged: nothing is changed', async () => {
    await onWorkers(async () => {
      const path = join(folder, 'model.safetensors')
      const model = new Model(new Encoder())
      const before = weightsOf(model)
      expect(await failure(loadModel(join(folder, 'none.safetensors'), model))).toMatchObject({ code: 'SAFETENSORS_IO' })
      writeFileSync(path, 'no file of tensors')
      expect(await failure(loadModel(path, model))).toMatchObject({ code: 'SAFETENSORS_INVALID' })
      expect(weightsOf(model)).toEqual(before)
    }, 1)
  })
})

describe('FS-3 all workers or none', () => {
  test('FS-3 a module that refuses its new weights: all modules get their old ones back, also itself', async () => {
    await onWorkers(async () => {
      const path = join(folder, 'parts.safetensors')
      using good = new RemoteModule('worker1', Linear, [1, 1])
      const here = new Linear(1, 1)
      const refused = { code: 'MODEL_LOAD_FAILED', values: { worker: 'worker2' }, cause: { message: 'refused' } }
      for (const make of [Half, Stubborn] as (typeof Module & (new () => Half | Stubborn))[]) {
        using bad = new RemoteModule('worker2', make, [])
        const [goodRef, badRef] = [good, bad].map((each) => each.getModuleRref() as unknown as RRef<Module>)
        const parts = { good, bad, here }
        await saveModel(path, parts)
        writeFileSync(path, await safetensorsBytes(plusOne(await loadSafetensors(readFileSync(path)))))
        const all = async () => [
          await call('worker1', weightsThere, [goodRef!]),
          await call('worker2', weightsThere, [badRef!]),
          weightsOf(here),
        ]
        const before = await all()
        expect(await failure(loadModel(path, parts))).toMatchObject(refused)
        expect(await all()).toEqual(before)
        // Nothing is left of it: the next load begins.
        expect(await failure(loadModel(path, parts))).toMatchObject(refused)
      }
    })
  })

  test('FS-3 an error of a worker that has died names saveModel and loadModel', async () => {
    await overSeeds(
      3,
      async (workers, world) => {
        for (const worker of workers) useCheckpointDisk(worker, syncDisk)
        const path = join(folder, 'model.safetensors')
        using linear = new RemoteModule('worker1', Linear, [1, 1])
        await saveModel(path, linear)
        world.crash('worker1')
        await waited(100)
        const [saving, loading] = [await failure(saveModel(path, linear)), await failure(loadModel(path, linear))]
        expect(saving).toMatchObject({
          code: 'WORKER_DIED',
          op: 'saveModel',
          message: expect.stringMatching(/^saveModel: worker 'worker1'/),
        })
        expect(loading).toMatchObject({
          code: 'WORKER_DIED',
          op: 'loadModel',
          message: expect.stringMatching(/^loadModel: worker 'worker1'/),
        })
      },
      1,
    )
  })
})

describe('FS-4', () => {
  test('FS-4 of two loads at once into the same tensors, one fails and the other is whole', async () => {
    await onWorkers(async () => {
      using linear = new RemoteModule('worker1', Linear, [3, 3])
      using second = new RemoteModule('worker2', Linear, [3, 3])
      const refs = [linear, second].map((each) => each.getModuleRref() as unknown as RRef<Module>)
      const paths = await Promise.all(
        [1, 2].map(async (value) => {
          const path = join(folder, `${value}.safetensors`)
          await filledFile(path, value, ['a', 'b'])
          return path
        }),
      )
      // Whichever part is named first.
      const models = [
        { a: linear, b: second },
        { b: second, a: linear },
      ]
      const ends = await Promise.allSettled(paths.map((path, i) => loadModel(path, models[i]!)))
      const failed = ends.flatMap((end) => (end.status === 'rejected' ? [(end.reason as PostgradError).code] : []))
      expect(failed).toEqual(['MODEL_LOAD_FAILED'])
      const winner = 1 + ends.findIndex(({ status }) => status === 'fulfilled')
      const expected = weightsOf(filled(winner))
      expect([await call('worker1', weightsThere, [refs[0]!]), await call('worker2', weightsThere, [refs[1]!])]).toEqual([
        expected,
        expected,
      ])
      // The next one does not wait for anything.
      await loadModel(paths[2 - winner]!, models[0]!)
    }, 6)
  })

  test('FS-4 loads of other tensors on the same worker do not disturb one another, in any order of messages', async () => {
    await onWorkers(async () => {
      const [two, one] = [join(folder, 'two.safetensors'), join(folder, 'one.safetensors')]
      await filledFile(two, 7, ['a', 'b'])
      writeFileSync(one, await safetensorsBytes(filled(8).stateDict()))
      for (let delay = 0; delay < 8; delay++) {
        using a = new RemoteModule('worker1', Linear, [3, 3])
        using b = new RemoteModule('worker2', Linear, [3, 3])
        const [refA, refB] = [a, b].map((each) => each.getModuleRref() as unknown as RRef<Module>)
        const other = call('worker1', loadLater, [one, delay])
        await loadModel(two, { a, b })
        expect(await other).toEqual(weightsOf(filled(8)))
        const expected = weightsOf(filled(7))
        expect([await call('worker1', weightsThere, [refA!]), await call('worker2', weightsThere, [refB!])]).toEqual([expected, expected])
      }
    }, 6)
  })
})

/** Loads another module on worker2 from worker1, after some messages. */
async function loadLater(path: string, delay: number): Promise<unknown> {
  using module = new RemoteModule('worker2', Linear, [3, 3])
  const ref = module.getModuleRref() as unknown as RRef<Module>
  for (let i = 0; i < delay; i++) await call('worker2', weightsThere, [ref])
  await loadModel(path, module)
  return await call('worker2', weightsThere, [ref])
}
/** Writes half of its weights, and refuses the rest. */
class Half extends Module {
  readonly a = new Linear(1, 1)
  private isRefusing = true
  override loadStateDict(...given: Parameters<Module['loadStateDict']>): ReturnType<Module['loadStateDict']> {
    if (!this.isRefusing) return super.loadStateDict(...given)
    this.isRefusing = false
    super.loadStateDict({ 'a.bias': given[0]['a.bias']! }, { strict: false })
    throw new Error('refused')
  }
  override stateDict(): ReturnType<Module['stateDict']> {
    this.isRefusing = true
    return super.stateDict()
  }
  forward(x: Tensor): Tensor {
    return x
  }
}
/** Refuses everything. */
class Stubborn extends Module {
  readonly a = new Linear(1, 1)
  override loadStateDict(): never {
    throw new Error('refused')
  }
  forward(x: Tensor): Tensor {
    return x
  }
}
function filled(value: number): Linear {
  const local = new Linear(3, 3)
  for (const x of Object.values(local.stateDict())) x.fill_(value)
  return local
}
async function filledFile(path: string, value: number, names: readonly string[]): Promise<void> {
  const state = names.flatMap((name) => Object.entries(filled(value).stateDict()).map(([key, x]) => [`${name}.${key}`, x]))
  writeFileSync(path, await safetensorsBytes(Object.fromEntries(state)))
}
function plusOne(state: Readonly<Record<string, Tensor>>): Record<string, Tensor> {
  return Object.fromEntries(Object.entries(state).map(([key, x]) => [key, x.add(1)]))
}
expose({ FullStateHalf: Half, FullStateStubborn: Stubborn, fullStateLoadLater: loadLater })

describe('FS-5', () => {
  test('FS-5 a signal and a time that have ended count for modules of this worker, and wrong ones are refused', async () => {
    await onWorkers(async () => {
      const path = join(folder, 'model.safetensors')
      const linear = new Linear(1, 1)
      const wrong = [
        [{ signal: AbortSignal.abort() }, 'CALL_CANCELLED'],
        [{ signal: 5 as never }, 'INVALID_ARGUMENT'],
        [{ timeoutMs: -1 }, 'TIMEOUT_INVALID'],
        [{ timeoutMs: 'x' as never }, 'TIMEOUT_INVALID'],
      ] as const
      for (const [options, code] of wrong) {
        expect(await failure(saveModel(path, linear, options))).toMatchObject({ code, op: 'saveModel' })
        expect(readdirSync(folder)).toEqual([])
      }
      await saveModel(path, linear, { timeoutMs: 0, signal: new AbortController().signal })
      for (const [options, code] of wrong) expect(await failure(loadModel(path, linear, options))).toMatchObject({ code, op: 'loadModel' })
    }, 1)
  })

  test('FS-5 timeoutMs counts for the whole call, and an abort ends it between two tensors', async () => {
    const controller = new AbortController()
    let onWrite: () => unknown = () => {}
    const create: CheckpointDisk['create'] = async (at) => {
      const file = await syncDisk.create(at)
      const write = async (bytes: Uint8Array): Promise<void> => {
        await onWrite()
        await file.write(bytes)
      }
      return { ...file, write }
    }
    const source: CheckpointDisk['source'] = async (at) => {
      await onWrite()
      return await syncDisk.source(at)
    }
    const main = async (): Promise<void> => {
      const path = join(folder, 'model.safetensors')
      const parts = { a: new Linear(2, 2), b: new Linear(2, 2) }
      let writes = 0
      onWrite = () => {
        if (++writes === 3) controller.abort('enough')
      }
      expect(await failure(saveModel(path, parts, { signal: controller.signal }))).toMatchObject({
        code: 'CALL_CANCELLED',
        op: 'saveModel',
      })
      // Each write takes less than the time, all together more.
      onWrite = () => waited(30)
      const late = { code: 'RPC_TIMEOUT', values: { timeoutMs: 100 } }
      expect(await failure(saveModel(path, parts, { timeoutMs: 100 }))).toMatchObject({ ...late, op: 'saveModel' })
      expect(readdirSync(folder)).toEqual([])
      await saveModel(path, parts, { timeoutMs: 1000 })
      onWrite = () => waited(60)
      await loadModel(path, parts, { timeoutMs: 100 })
      expect(await failure(loadModel(path, parts, { timeoutMs: 60 }))).toMatchObject({ code: 'RPC_TIMEOUT', op: 'loadModel' })
      onWrite = () => {}
      // A part whose owner is still making it.
      using slow = remote('worker1', slowLinear, [])
      expect(await failure(saveModel(path, slow, { timeoutMs: 100 }))).toMatchObject({
        ...late,
        op: 'saveModel',
        message: expect.stringContaining("100 ms), and waited for worker 'worker1'"),
      })
    }
    await onWorkers(main, 1, { ...syncDisk, create, source })
  })
})
const waited = (ms: number): Promise<void> => new Promise((resolve) => void currentWorker().clock.setTimer(ms, resolve))
async function slowLinear(): Promise<Module> {
  await waited(500)
  return new Linear(1, 1)
}
expose({ fullStateSlowLinear: slowLinear })
