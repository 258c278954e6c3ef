/** Checkpoints that cannot be written, are incomplete, damaged, or another program's. `packages/testing` has tests of whole ones. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Future, type PostgradError } from '@postgrad/base'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { loadSafetensors, Module, openSafetensors, SGD } from '@postgrad/nn'
import { call, currentWorker, expose, remote, rref } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { Cluster } from '@postgrad/rpc/suite'
import { currentGenerator, rand, type Tensor, zeros } from '@postgrad/tensor'
import { DistributedOptimizer } from '../distributed-optimizer.js'
import { RemoteModule } from '../remote-module.js'
import { failure, overSeeds } from '../sim-workers.suite.js'
import { type CheckpointProgress, Checkpoints, type CheckpointsOptions } from './checkpoints.js'
import { type CheckpointDisk, syncDisk, useCheckpointDisk } from './disk.js'
import { MANIFEST } from './manifest.js'

class Weights extends Module {
  readonly w: Tensor
  constructor(size: number, dtype: 'float32' | 'float64' = 'float32') {
    super()
    this.w = zeros([size], { requiresGrad: true, dtype })
  }
  forward(): Tensor {
    return this.w
  }
  fill(value: number): void {
    this.loadStateDict({ w: zeros([...this.w.shape]).add(value) })
  }
  values(): unknown {
    return this.w.toArray()
  }
}
/** One number, as its state. */
class Kept {
  value = 0
  set(value: number): void {
    this.value = value
  }
  get(): number {
    return this.value
  }
  stateDict(): number {
    return this.value
  }
}
/** Takes over even states only. */
class Fussy extends Kept {
  loadStateDict(value: number): void {
    this.value = -1
    if (value % 2 === 1) throw new RangeError('odd')
    this.value = value
  }
}
class Stateless {}
/** Called when a state is about to be loaded, when it has been, and when weights have. */
const watched: { begins: (() => void) | null; ends: (() => void) | null; weights: (() => void) | null } = {
  begins: null,
  ends: null,
  weights: null,
}
/** Takes a while to load. */
class Slow extends Kept {
  async loadStateDict(value: number): Promise<void> {
    watched.begins?.()
    await new Promise<void>((resolve) => currentWorker().clock.setTimer(10, resolve))
    this.value = value
    watched.ends?.()
  }
}
class WatchedWeights extends Weights {
  override loadStateDict(...given: Parameters<Module['loadStateDict']>): ReturnType<Module['loadStateDict']> {
    const loaded = super.loadStateDict(...given)
    watched.weights?.()
    return loaded
  }
}
expose({ CheckpointWeights: Weights, CheckpointFussy: Fussy, CheckpointStateless: Stateless, CheckpointSlow: Slow })

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'postgrad-checkpoint-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Weights here and on worker 1, filled with `value`. */
class Model {
  readonly here = new Weights(2)
  readonly there = new RemoteModule('worker1', Weights, [3])
  readonly parts = { here: this.here, there: this.there }

  async fill(value: number): Promise<this> {
    this.here.fill(value)
    await this.there.getModuleRref().call('fill', [value])
    return this
  }
  async values(): Promise<unknown> {
    return [this.here.values(), await this.there.getModuleRref().call('values', [])]
  }
}
const filled = (value: number) => [
  [value, value],
  [value, value, value],
]

/** Whatever the test's world is named, its files are on the machine. */
async function cluster(
  main: (
    model: Model,
    checkpoints: Checkpoints,
    workers: Parameters<Parameters<typeof overSeeds>[1]>[0],
    make: (options?: CheckpointsOptions) => Checkpoints,
  ) => Promise<void>,
  { size = 2, disk = syncDisk }: { size?: number; disk?: CheckpointDisk } = {},
): Promise<void> {
  await overSeeds(
    size,
    async (workers) => {
      for (const worker of workers) useCheckpointDisk(worker, disk)
      const make = (options?: CheckpointsOptions) => new Checkpoints(directory, options)
      await main(new Model(), make(), workers, make)
    },
    1,
  )
}

/** Counts the files that are being written. */
class CountingDisk implements CheckpointDisk {
  open = 0
  makeDirectory = syncDisk.makeDirectory
  read = syncDisk.read
  size = syncDisk.size
  source = syncDisk.source
  list = syncDisk.list
  remove = syncDisk.remove
  removeEmpty = syncDisk.removeEmpty

  async create(path: string) {
    const file = await syncDisk.create(path)
    this.open++
    const end = (how: 'commit' | 'abort') => async () => {
      this.open--
      await file[how]()
    }
    return { write: file.write, commit: end('commit'), abort: end('abort') }
  }
}

/** From its `diesAt`-th operation on nothing happens any more: the machine has lost its power. */
class DyingDisk implements CheckpointDisk {
  operations = 0
  private readonly diesAt: number
  constructor(diesAt: number) {
    this.diesAt = diesAt
  }
  private live<T>(fn: () => Promise<T>): Promise<T> {
    if (++this.operations >= this.diesAt) throw new Error('no power')
    return fn()
  }
  async makeDirectory(path: string) {
    return await this.live(() => syncDisk.makeDirectory(path))
  }
  async create(path: string) {
    const file = await this.live(() => syncDisk.create(path))
    return {
      // Half of the bytes get there.
      write: async (bytes: Uint8Array) => {
        if (this.operations + 1 === this.diesAt) await file.write(bytes.subarray(0, bytes.length >> 1))
        await this.live(() => file.write(bytes))
      },
      commit: async () => await this.live(() => file.commit()),
      abort: async () => await this.live(() => file.abort()),
    }
  }
  read(path: string, bytesMax: number) {
    return syncDisk.read(path, bytesMax)
  }
  size(path: string) {
    return syncDisk.size(path)
  }
  source(path: string) {
    return syncDisk.source(path)
  }
  async list(path: string) {
    return await this.live(() => syncDisk.list(path))
  }
  async remove(path: string) {
    return await this.live(() => syncDisk.remove(path))
  }
  async removeEmpty(path: string) {
    return await this.live(() => syncDisk.removeEmpty(path))
  }
}

describe('CP-2 incomplete checkpoints', () => {
  test('CP-2 wherever the power fails, the checkpoint before is there whole, or the new one is, and saving goes on', async () => {
    let isThrough = false
    const ends = new Set<unknown>()
    for (let diesAt = 1; !isThrough; diesAt++) {
      rmSync(directory, { recursive: true, force: true })
      await cluster(async (model, checkpoints) => void (await checkpoints.save(1, (await model.fill(1)).parts)))
      const disk = new DyingDisk(diesAt)
      await cluster(
        async (model, _, __, make) => {
          isThrough = await make({ keep: 1 })
            .save(2, (await model.fill(2)).parts)
            .then(
              () => true,
              () => false,
            )
        },
        { disk },
      )
      await cluster(async (model, checkpoints, _, make) => {
        const { step } = (await checkpoints.latest())!
        ends.add(step)
        await checkpoints.load(model.parts)
        expect({ diesAt, values: await model.values() }).toEqual({ diesAt, values: filled(step) })
        await make({ keep: 1 }).save(3, (await model.fill(3)).parts)
        expect((await checkpoints.list()).map((info) => info.step)).toEqual([3])
        expect(readdirSync(directory)).toHaveLength(1)
      })
      expect(diesAt).toBeLessThan(60)
    }
    expect(ends).toEqual(new Set([1, 2]))
  })

  test('CP-2 the same where a checkpoint of that step is replaced', async () => {
    let isThrough = false
    for (let diesAt = 1; !isThrough; diesAt++) {
      rmSync(directory, { recursive: true, force: true })
      await cluster(async (model, checkpoints) => void (await checkpoints.save(1, (await model.fill(1)).parts)))
      await cluster(
        async (model, checkpoints) => {
          isThrough = await checkpoints.save(1, (await model.fill(2)).parts).then(
            () => true,
            () => false,
          )
        },
        { disk: new DyingDisk(diesAt) },
      )
      await cluster(async (model, checkpoints) => {
        await checkpoints.load(model.parts)
        expect([filled(1), filled(2)]).toContainEqual(await model.values())
        if (isThrough) expect(await model.values()).toEqual(filled(2))
      })
    }
  })

  test('CP-2 a worker that dies while files are written: no checkpoint, and those before as they were', async () => {
    await cluster(async (model, checkpoints) => void (await checkpoints.save(1, (await model.fill(1)).parts)))
    const dies: CheckpointDisk = {
      ...syncDisk,
      async create(path) {
        const worker = currentWorker()
        if (worker.info.name === 'worker1') await worker.close()
        return await syncDisk.create(path)
      },
    }
    await cluster(
      async (model, checkpoints) => {
        const error = await failure(checkpoints.save(2, (await model.fill(2)).parts))
        expect(error).toMatchObject({ code: 'CHECKPOINT_FAILED', values: { workers: ['worker1'] }, cause: { code: 'WORKER_DIED' } })
      },
      { disk: dies },
    )
    await cluster(async (model, checkpoints) => {
      expect((await checkpoints.list()).map(({ step }) => step)).toEqual([1])
      await checkpoints.load(model.parts)
      expect(await model.values()).toEqual(filled(1))
    })
  })
})

describe('CP-3 damaged checkpoints', () => {
  const damages: [string, (path: string) => void][] = [
    ['a byte of a tensor', (path) => flip(path, -1)],
    ['a byte of the header', (path) => flip(path, 20)],
    ['shorter', (path) => truncateSync(path, readFileSync(path).length - 4)],
    ['gone', (path) => unlinkSync(path)],
    ['empty', (path) => writeFileSync(path, '')],
  ]
  test.each(damages)('CP-3 a file: %s', (_, damage) =>
    cluster(async (model, checkpoints) => {
      for (const worker of ['worker0', 'worker1']) {
        const { directory: at } = await checkpoints.save(1, (await model.fill(1)).parts)
        damage(join(at, readdirSync(at).find((name) => name.startsWith(worker))!))
        await model.fill(2)
        expect((await failure(checkpoints.load(model.parts))).code).toBe('CHECKPOINT_CORRUPT')
        expect(await model.values()).toEqual(filled(2))
      }
    }),
  )

  test.each(damages)('CP-3 the manifest: %s', (_, damage) =>
    cluster(async (model, checkpoints) => {
      await checkpoints.save(1, (await model.fill(1)).parts)
      const { directory: at } = await checkpoints.save(2, (await model.fill(2)).parts)
      damage(join(at, MANIFEST))
      expect((await checkpoints.list()).map(({ step }) => step)).toEqual([1])
      await checkpoints.load(model.parts)
      expect(await model.values()).toEqual(filled(1))
      expect(['CHECKPOINT_CORRUPT', 'CHECKPOINT_NOT_FOUND']).toContain((await failure(checkpoints.load(model.parts, { step: 2 }))).code)
    }),
  )

  test('CP-3 none', () =>
    cluster(async (model, checkpoints) => {
      expect(await checkpoints.latest()).toBeNull()
      expect((await failure(checkpoints.load(model.parts))).code).toBe('CHECKPOINT_NOT_FOUND')
      expect((await failure(checkpoints.load(model.parts, { step: 7 }))).code).toBe('CHECKPOINT_NOT_FOUND')
    }))
})

describe('CP-4 another program', () => {
  test('CP-4 other workers', async () => {
    await cluster(async (model, checkpoints) => void (await checkpoints.save(1, model.parts)), { size: 3 })
    await cluster(async (model, checkpoints) => {
      const error = await failure(checkpoints.load(model.parts))
      expect([error.code, error.values.worker]).toEqual(['CHECKPOINT_MISMATCH', 'worker2'])
    })
    rmSync(directory, { recursive: true })
    await cluster(async (model, _, __, make) => void (await make({ workers: [0] }).save(1, model.parts)), { size: 3 })
    await cluster(async (model, checkpoints) => void (await checkpoints.load(model.parts)))
  })

  test('CP-4 other names, shapes, dtypes; nothing is changed on any worker', () =>
    cluster(async (model, checkpoints) => {
      await checkpoints.save(1, (await model.fill(1)).parts)
      await model.fill(2)
      const { here, there } = model
      const optimizer = new DistributedOptimizer(SGD, [rref(here.w)], { lr: 1 })
      for (const parts of [
        { here },
        { there },
        { here, other: there },
        { here: there, there: here },
        { here: new Weights(3), there },
        { here: new Weights(2, 'float64'), there },
        { here, there: new RemoteModule('worker1', Weights, [4]) },
        { here, there, optimizer },
        { here: new Fussy(), there },
      ]) {
        expect((await failure(checkpoints.load(parts))).code).toBe('CHECKPOINT_MISMATCH')
        expect(await model.values()).toEqual(filled(2))
      }
      await checkpoints.load(model.parts)
      expect(await model.values()).toEqual(filled(1))
    }))

  test('CP-5 an object that refuses its state: all are as they were, on all workers', () =>
    cluster(async (model, checkpoints) => {
      const [good, bad] = [new Fussy(), remote(1, Fussy, [])]
      const parts = { ...model.parts, good, bad }
      good.set(4)
      await bad.call('set', [3])
      await checkpoints.save(1, parts)
      good.set(6)
      await bad.call('set', [8])
      const before = currentGenerator().state()
      const error = await failure(checkpoints.load(parts))
      expect(error).toMatchObject({ code: 'CHECKPOINT_FAILED', values: { workers: ['worker1'] }, cause: { name: 'RangeError' } })
      expect([good.get(), await bad.call('get', [])]).toEqual([6, 8])
      expect(currentGenerator().state()).toEqual(before)
      await bad.call('set', [2])
      await checkpoints.save(1, parts)
      await bad.call('set', [0])
      await checkpoints.load(parts)
      expect([good.get(), await bad.call('get', [])]).toEqual([6, 2])
    }))
})

describe('CP-5 a load that is aborted', () => {
  test.each(['begins', 'ends'] as const)('CP-5 when an object’s loading %s: all are as they were, on all workers', (when) =>
    cluster(async (model, checkpoints, [worker]) => {
      const [own, first, second] = [new Slow(), remote(1, Slow, []), remote(1, Slow, [])]
      const parts = { ...model.parts, own, first, second }
      const set = async (value: number) => {
        own.set(value)
        for (const there of [first, second]) await there.call('set', [value])
        await model.fill(value)
      }
      const all = async () => [own.get(), await first.call('get', []), await second.call('get', []), await model.values()]
      await set(1)
      await checkpoints.save(1, parts)
      await set(2)
      const before = currentGenerator().state()
      const ending = new AbortController()
      watched[when] = () => worker!.run(() => ending.abort())
      const error = await failure(checkpoints.load(parts, { signal: ending.signal }))
      watched[when] = null
      expect(error).toMatchObject({ code: 'CHECKPOINT_FAILED', cause: { code: 'CALL_CANCELLED' } })
      expect(await all()).toEqual([2, 2, 2, filled(2)])
      // Nothing of it is still under way.
      await new Promise<void>((resolve) => currentWorker().clock.setTimer(100, resolve))
      expect(await all()).toEqual([2, 2, 2, filled(2)])
      expect(currentGenerator().state()).toEqual(before)
      await checkpoints.load(parts)
      expect(await all()).toEqual([1, 1, 1, filled(1)])
    }),
  )

  test('CP-5 when all objects have loaded their states: the load succeeds, on all workers', () =>
    cluster(async (_model, checkpoints, [worker]) => {
      const [here, there] = [new WatchedWeights(2), new RemoteModule('worker1', Weights, [3])]
      const parts = { here, there }
      const fill = async (value: number) => {
        here.fill(value)
        await there.getModuleRref().call('fill', [value])
      }
      await fill(1)
      await checkpoints.save(1, parts)
      await fill(2)
      const ending = new AbortController()
      watched.weights = () => worker!.run(() => ending.abort())
      const { step } = await checkpoints.load(parts, { signal: ending.signal })
      watched.weights = null
      expect([step, ending.signal.aborted]).toEqual([1, true])
      expect([here.values(), await there.getModuleRref().call('values', [])]).toEqual(filled(1))
    }))
})

describe('CP-6 what is saved', () => {
  test('CP-6 tensors and plain data come back as they were; files are safetensors that anybody reads', () =>
    cluster(async (model, checkpoints) => {
      const value = {
        list: [1, [2.5, -0, Number.NaN, Number.POSITIVE_INFINITY]],
        text: 'naïve',
        none: null,
        big: 2n ** 70n,
        not: undefined,
        '@': { '@@': true },
      }
      const t = rand([2, 2])
      const { directory: at } = await checkpoints.save(5, { ...model.parts, value, nested: { t } })
      const drawn = rand([3]).toArray()
      const { values, step } = await checkpoints.load(model.parts)
      expect(step).toBe(5)
      expect(values.value).toEqual(value)
      expect((values.nested as { t: Tensor }).t.toArray()).toEqual(t.toArray())
      expect(rand([3]).toArray()).toEqual(drawn)
      const tensors = await loadSafetensors(readFileSync(join(at, readdirSync(at).find((name) => name.startsWith('worker0'))!)))
      expect(Object.keys(tensors).sort()).toEqual(['here.w', 'nested.t'])
      expect(
        (await openSafetensors(readFileSync(join(at, readdirSync(at).find((name) => name.startsWith('worker1'))!)))).tensors.size,
      ).toBe(1)
    }))

  test('CP-6 what is no state is refused, with its path', () =>
    cluster(async (model, checkpoints) => {
      const ring: unknown[] = []
      ring.push(ring)
      for (const [bad, path] of [
        [() => 1, 'bad'],
        [{ a: [new Map()] }, 'bad.a.0'],
        [{ when: new Date(0) }, 'bad.when'],
        [ring, 'bad.0'],
        [[Symbol('s')], 'bad.0'],
        [new Float32Array(2), 'bad'],
      ] as const) {
        const error = await failure(checkpoints.save(1, { ...model.parts, bad }))
        expect([error.code, error.values.path]).toEqual(['CHECKPOINT_UNSUPPORTED', path])
      }
      expect((await failure(checkpoints.save(1, { bad: remote(1, Stateless, []) }))).code).toBe('CHECKPOINT_UNSUPPORTED')
      expect((await failure(checkpoints.save(1, { 'a.b': 1 }))).code).toBe('INVALID_ARGUMENT')
      for (const step of [-1, 1.5, Number.NaN]) expect((await failure(checkpoints.save(step, {}))).code).toBe('INVALID_ARGUMENT')
      expect(() => new Checkpoints(directory, { keepLast: 2 } as never)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('got keepLast') }),
      )
      for (const wrong of [{ timeout: 1 }, 5] as never[]) {
        expect((await failure(checkpoints.save(1, {}, wrong))).code).toBe('INVALID_ARGUMENT')
        expect((await failure(checkpoints.load({}, wrong))).code).toBe('INVALID_ARGUMENT')
      }
      expect(() => new Checkpoints(directory, { keep: 0 })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
      expect(await checkpoints.list()).toEqual([])
    }))

  test('CP-2 a save that is cancelled in the middle of a file leaves none open, here and elsewhere', async () => {
    const disk = new CountingDisk()
    await cluster(
      async (_model, _, __, make) => {
        const ending = new AbortController()
        const checkpoints = make({ onProgress: () => ending.abort() })
        const parts = { here: new Weights(FILE_PIECES), there: new RemoteModule('worker1', Weights, [FILE_PIECES]) }
        expect((await failure(checkpoints.save(1, parts, { signal: ending.signal }))).code).toBe('CHECKPOINT_FAILED')
        // A message notifies the other worker.
        await call('worker1', nothing)
        expect(disk.open).toBe(0)
        expect(await checkpoints.list()).toEqual([])
      },
      { disk },
    )
  })
  /** Elements of three pieces, each with a report. */
  const FILE_PIECES = 3 * 2 ** 22
  const nothing = (): void => {}
  expose({ nothingOfCheckpoints: nothing })

  test('CP-7 the newest are kept, in their order, and progress is told to the last byte', () =>
    cluster(async (model, _, __, make) => {
      const told: CheckpointProgress[] = []
      const checkpoints = make({ keep: 2, onProgress: (progress) => told.push(progress) })
      for (const step of [1, 10, 2, 3]) await checkpoints.save(step, model.parts)
      expect((await checkpoints.list()).map(({ step }) => step)).toEqual([3, 10])
      // A save of an old step is kept, although newer steps are there.
      await checkpoints.save(2, model.parts)
      expect((await checkpoints.list()).map(({ step }) => step)).toEqual([2, 10])
      await checkpoints.save(3, model.parts)
      const latest = (await checkpoints.latest())!
      expect([latest.step, latest.workers]).toEqual([10, ['worker0', 'worker1']])
      const last = told.findLast(({ step }) => step === 10)!
      const sums = Object.values(last.workers)
      expect(sums.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(latest.bytes)
      for (const { bytes, total } of sums) expect(bytes).toBe(total)
    }))
})

describe('several workers save', () => {
  const sleep = (ms: number) => new Promise<void>((resolve) => currentWorker().clock.setTimer(ms, resolve))
  const saveAs = async (step: number, value: number): Promise<void> => {
    const here = new Weights(2)
    here.fill(value)
    await new Checkpoints(directory).save(step, { here })
  }
  expose({ checkpointSaveAs: saveAs })

  test('CP-8 at a time in one directory: the others are told who does, and what was saved is whole', async () => {
    await cluster(
      async ({ here }, checkpoints) => {
        const elsewhere = ['worker1', 'worker2'].map((name) => call(name, saveAs, [0, 7]))
        const mine = checkpoints.save(0, { here })
        const ends = await Promise.allSettled([mine, ...elsewhere])
        const refused = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as PostgradError] : []))
        expect(refused.length).toBe(2)
        for (const error of refused) expect(error).toMatchObject({ code: 'CHECKPOINT_BUSY', values: { directory } })
        expect((await checkpoints.load({ here })).step).toBe(0)

        await call('worker1', saveAs, [1, 7]) // one after the other, each may
        await checkpoints.save(1, { here })
        const twice = await Promise.allSettled([checkpoints.save(2, { here }), new Checkpoints(directory).save(2, { here })])
        expect(twice.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      },
      { size: 3 },
    )
  })

  test('CP-8 a saver that ends in the middle holds nobody up', async () => {
    let isStuck = true
    const create: CheckpointDisk['create'] = (path) => (isStuck ? new Promise(() => {}) : syncDisk.create(path))
    await cluster(
      async ({ here }, checkpoints, workers) => {
        const theirs = call('worker2', saveAs, [0, 7]).catch(() => {})
        await sleep(50)
        const error = await failure(checkpoints.save(0, { here }))
        expect(error).toMatchObject({ code: 'CHECKPOINT_BUSY', values: { worker: 'worker2' } })
        isStuck = false
        await workers[2]!.close()
        await theirs
        await sleep(50)
        await checkpoints.save(0, { here })
        expect((await checkpoints.load({ here })).workers).toEqual(['worker0', 'worker1'])
      },
      { size: 3, disk: { ...syncDisk, create } },
    )
  })

  /** Files wait to be made until `go`. */
  function stuck() {
    const paths: string[] = []
    let go = (): void => {}
    let isStuck = true
    const going = new Promise<void>((resolve) => {
      go = () => {
        isStuck = false
        resolve()
      }
    })
    const create: CheckpointDisk['create'] = async (path) => {
      paths.push(path)
      if (isStuck && !path.includes(MANIFEST)) await going
      return await syncDisk.create(path)
    }
    return { disk: { ...syncDisk, create }, paths, go, loosen: () => (isStuck = false) }
  }
  const part = (value: number): { here: Weights } => {
    const here = new Weights(2)
    here.fill(value)
    return { here }
  }

  test('CP-8 a worker that is no part of the save, and keeps others from saving, leaves: it does so until the save has ended', async () => {
    const { disk, go } = stuck()
    await cluster(
      async (_model, _checkpoints, workers) => {
        const [first, saver, , other] = workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime, WorkerRuntime]
        const pause = () => other.run(() => sleep(50))
        const theirs = saver.run(() => new Checkpoints(directory, { workers: ['worker2', 'worker3'] }).save(0, part(1)))
        await pause()
        const ended = first.leave()
        await pause()
        expect((await other.run(() => failure(new Checkpoints(directory).save(0, part(2))))).code).toBe('CHECKPOINT_BUSY')
        go()
        await theirs
        await ended
        await other.run(() => new Checkpoints(directory).save(0, part(2)))
      },
      { size: 4, disk },
    )
  })

  test('CP-8 a worker that is no part of the save, and keeps others from saving, dies: who saves then is alone', async () => {
    const { disk, go, loosen } = stuck()
    await cluster(
      async (_model, _checkpoints, workers) => {
        const [first, saver, , other] = workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime, WorkerRuntime]
        const pause = () => other.run(() => sleep(50))
        const theirs = saver.run(() => failure(new Checkpoints(directory, { workers: ['worker2', 'worker3'] }).save(0, part(1))))
        await pause()
        const ended = first.close()
        await pause()
        loosen()
        await other.run(() => new Checkpoints(directory).save(0, part(2)))
        go()
        expect(await theirs).toMatchObject({ code: 'CHECKPOINT_FAILED', values: { workers: ['worker0'] } })
        expect(((await theirs).cause as { code?: string }).code).toBe('WORKER_DIED')
        await ended
        const mine = part(0)
        await other.run(() => new Checkpoints(directory, { workers: ['worker1', 'worker2'] }).load(mine))
        expect(mine.here.values()).toEqual([2, 2])
      },
      { size: 4, disk },
    )
  })

  test('CP-8 a save at its end removes nothing of one of the same step that has begun meanwhile', async () => {
    const gates = { manifest: new Future<void>(), file: new Future<void>() }
    let isSecond = false
    const create: CheckpointDisk['create'] = async (path) => {
      if (path.includes(MANIFEST) && !isSecond) await gates.manifest
      if (path.includes('worker3') && isSecond) await gates.file
      return await syncDisk.create(path)
    }
    await cluster(
      async (_model, _checkpoints, workers) => {
        const [holder, saver, , other] = workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime, WorkerRuntime]
        const pause = () => other.run(() => sleep(50))
        const theirs = saver.run(() => new Checkpoints(directory, { workers: ['worker1', 'worker2'] }).save(0, part(1)))
        await pause()
        isSecond = true
        await holder.close()
        await pause()
        const mine = part(2)
        const saving = other.run(() => new Checkpoints(directory).save(0, mine))
        await pause()
        gates.manifest.setResult()
        expect((await theirs).workers).toEqual(['worker1', 'worker2'])
        gates.file.setResult()
        await saving
        await other.run(() => new Checkpoints(directory).load(mine))
      },
      { size: 4, disk: { ...syncDisk, create } },
    )
  })

  test('CP-8 the worker that is asked whether another one saves dies just then', () =>
    cluster(
      async (_model, _checkpoints, [first, saver]) => {
        const saving = saver!.run(() => failure(new Checkpoints(directory).save(0, part(1))))
        await first!.close()
        expect(await saving).toMatchObject({ code: 'CHECKPOINT_FAILED', values: { workers: ['worker0'] }, cause: { code: 'WORKER_DIED' } })
      },
      { size: 2 },
    ))

  test('CP-8 what a saver that has ended has begun shares no file with the next save', async () => {
    const { disk, paths, go, loosen } = stuck()
    await cluster(
      async (_model, checkpoints, workers) => {
        const theirs = call('worker2', saveAs, [0, 7]).catch(() => {})
        await sleep(50)
        await workers[2]!.close()
        await theirs
        await sleep(50)
        loosen()
        const parts = part(1)
        await checkpoints.save(0, parts)
        go()
        await sleep(50)
        const files = paths.filter((path) => !path.includes(MANIFEST))
        // Two for each of three workers, and of two.
        expect([files.length, new Set(files).size]).toEqual([10, 10])
        await checkpoints.load(parts)
      },
      { size: 3, disk },
    )
  })

  test('CP-8 who hears of a save that has ended may save, whoever it is', async () => {
    await overSeeds(
      4,
      async (workers) => {
        for (const worker of workers) useCheckpointDisk(worker, syncDisk)
        await workers[3]!.run(async () => {
          for (const [step, name] of ['worker1', 'worker2', 'worker3', 'worker1'].entries()) await call(name, saveAs, [step, 7])
        })
      },
      12,
    )
  })

  test('CP-8 a save that has ended does not wait for a worker that computes', async () => {
    const computing = new Cluster(1, 2, { install: installDistAutograd })
    const toHolder = computing.gate(1, 0)
    // The last word to worker 0 that a save of worker 1 waits for comes before its manifest.
    const create: CheckpointDisk['create'] = async (path) => {
      if (path.includes(MANIFEST)) toHolder.shut()
      return await syncDisk.create(path)
    }
    for (const worker of computing.workers) useCheckpointDisk(worker, { ...syncDisk, create })
    const { step } = await computing.run(1, () => new Checkpoints(directory).save(3, part(1)))
    expect(step).toBe(3)
    toHolder.unshut()
    expect(await computing.leftovers()).toEqual([])
  })

  test('CP-8 a step that is none is refused before anybody is asked', async () => {
    const { disk, go } = stuck()
    await cluster(
      async (_model, checkpoints) => {
        const elsewhere = call('worker1', saveAs, [0, 7])
        await sleep(50)
        expect((await failure(checkpoints.save(-1, part(1)))).code).toBe('INVALID_ARGUMENT')
        go()
        await elsewhere
      },
      { disk },
    )
  })
})

function flip(path: string, at: number): void {
  const bytes = readFileSync(path)
  const place = at < 0 ? bytes.length + at : at
  bytes[place] = bytes[place]! ^ 1
  writeFileSync(path, bytes)
}

describe('CP-5 modules', () => {
  test('CP-5 a module whose own loadStateDict throws: weights, states and generators of all workers are put back', () =>
    cluster(async ({ there, here }, checkpoints) => {
      const [refusing, kept] = [new RefusingWeights(1), new Kept() as Kept & { loadStateDict(value: number): void }]
      kept.loadStateDict = (value) => kept.set(value)
      const fill = async (value: number): Promise<void> => {
        here.fill(value)
        kept.set(value)
        await there.getModuleRref().call('fill', [value])
      }
      const values = async () => [here.values(), kept.get(), await there.getModuleRref().call('values', []), currentGenerator().state()]
      await fill(1)
      await checkpoints.save(1, { here, kept, there, refusing })
      await fill(2)
      rand([3])
      const before = await values()
      expect(await failure(checkpoints.load({ here, kept, there, refusing }))).toMatchObject({
        code: 'CHECKPOINT_FAILED',
        cause: { message: 'refused' },
        values: { workers: ['worker0'] },
      })
      expect(await values()).toEqual(before)
      // Nothing is left of it.
      await checkpoints.save(2, { here, kept, there })
      await fill(3)
      await checkpoints.load({ here, kept, there })
      expect(await values()).toEqual(before)
    }))
})
class RefusingWeights extends Weights {
  override loadStateDict(): never {
    throw new Error('refused')
  }
}

describe('CP-19', () => {
  test('CP-19 arguments that a loop of steps cannot use are refused at the call', async () => {
    await overSeeds(
      1,
      async () => {
        const checkpoints = new Checkpoints(join(tmpdir(), 'postgrad-never-made'))
        const wrong: (() => unknown)[] = [
          () => checkpoints.steps({ done: 1 }, { until: 2, every: 1 }),
          () => checkpoints.steps({ mean: zeros([1]) }, { until: 2, every: 1 }),
          () => checkpoints.steps({ nothing: null }, { until: 2, every: 1 }),
          () => checkpoints.steps({ map: new Map([['a', 1]]) }, { until: 2, every: 1 }),
          () => checkpoints.steps({ floats: new Float32Array(2) }, { until: 2, every: 1 }),
          () => checkpoints.steps({ date: new Date(0) }, { until: 2, every: 1 }),
          () => checkpoints.steps({ stateless: new Stateless() }, { until: 2, every: 1 }),
          () => checkpoints.steps({ frozen: Object.freeze({ a: 0 }) }, { until: 2, every: 1 }),
          () => checkpoints.steps({ frozen: Object.freeze([]) }, { until: 2, every: 1 }),
          () => checkpoints.steps({ fixed: Object.defineProperty({}, 'a', { value: 1 }) }, { until: 2, every: 1 }),
          () => checkpoints.steps({}, { until: 2, every: 0 }),
          () => checkpoints.steps({}, { until: 1.5, every: 1 }),
          () => checkpoints.steps({}, { until: 2 } as never),
          () => checkpoints.steps({}, { until: 2, each: 1 } as never),
        ]
        for (const one of wrong) expect(one).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
        expect(wrong[0]).toThrow('Put it into an object of the program: const kept = { done }, and pass kept.')
      },
      1,
    )
  })

  test('CP-19 a kept object that the checkpoint lacks, or has as another kind, is refused before anything is changed', () =>
    cluster(
      async ({ here }, checkpoints, _, make) => {
        const saved = [{ other: 1 }, { kept: 5 }, { kept: null }, { kept: 'text' }, { kept: zeros([1]) }, { kept: [1, 2] }]
        const resume = async (parts: Record<string, unknown>) => {
          for await (const _step of make().steps({ here, ...parts }, { until: 9, every: 9 })) break
        }
        for (const [i, parts] of saved.entries()) {
          here.fill(i)
          await checkpoints.save(i, { here, ...parts })
          here.fill(-1)
          const kept = { n: 3 }
          expect([i, await failure(resume({ kept }))]).toEqual([
            i,
            expect.objectContaining({
              code: 'CHECKPOINT_MISMATCH',
              message: expect.stringContaining("an object 'kept' in the checkpoint"),
            }),
          ])
          expect([i, kept, here.values()]).toEqual([i, { n: 3 }, [-1, -1]])
        }
        await checkpoints.save(10, { here, kept: { a: 1 } })
        expect(await failure(resume({ kept: [] }))).toMatchObject({
          code: 'CHECKPOINT_MISMATCH',
          message: expect.stringContaining('got an object'),
        })
        const kept = Object.assign(Object.create(null) as { a?: number }, { b: 2 })
        await resume({ kept })
        expect({ ...kept }).toEqual({ a: 1 })
      },
      { size: 2 },
    ))

  test('CP-19 objects and arrays get their contents back; a loop that ends early saves nothing; a damaged checkpoint fails', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'postgrad-steps-'))
    try {
      const run = async (stop: number, kept: { sum: number; more?: boolean }, list: number[]): Promise<number[]> => {
        const given: number[] = []
        await overSeeds(
          1,
          async ([worker]) => {
            useCheckpointDisk(worker!, syncDisk)
            for await (const step of new Checkpoints(directory).steps({ kept, list }, { until: 5, every: 2 })) {
              given.push(step)
              kept.sum += step
              list.push(step)
              if (step === stop) break
            }
          },
          1,
        )
        return given
      }
      expect(await run(3, { sum: 0 }, [])).toEqual([1, 2, 3])
      const [kept, list] = [{ sum: 99, more: true }, [9, 9, 9]]
      expect(await run(0, kept, list)).toEqual([3, 4, 5])
      expect([kept, list]).toEqual([{ sum: 15 }, [1, 2, 3, 4, 5]])
      expect(readdirSync(directory).filter((name) => name.startsWith('step-'))).toHaveLength(3)
      for (const name of readdirSync(directory)) {
        const folder = join(directory, name)
        for (const file of readdirSync(folder)) if (file !== MANIFEST) truncateSync(join(folder, file), 1)
      }
      await expect(run(0, kept, list)).rejects.toThrow('Load an earlier checkpoint')
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
