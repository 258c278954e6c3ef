/** The directory of checkpoints: which entries are listed, ignored or removed, and what another process may do there. */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { Linear, SGD } from '@postgrad/nn'
import { call, expose, remote, rref } from '@postgrad/rpc'
import { type Tensor, zeros } from '@postgrad/tensor'
import { FileLock } from '@postgrad/transport/internal'
import { DistributedOptimizer } from '../distributed-optimizer.js'
import { RemoteModule } from '../remote-module.js'
import { failure } from '../sim-workers.suite.js'
import { directories, Filled, onCluster } from './checkpoint-world.suite.js'
import { Checkpoints } from './checkpoints.js'
import { type CheckpointDisk, syncDisk } from './disk.js'
import { MANIFEST } from './manifest.js'

const directory = directories()
const steps = async (checkpoints: Checkpoints) => (await checkpoints.list()).map(({ step }) => step)
const folder = (step: number) => join(directory(), `step-${String(step).padStart(12, '0')}`)
const fileOf = (step: number, end: string) => join(folder(step), readdirSync(folder(step)).find((name) => name.endsWith(end))!)

expose({ LinearOfVersion1: Linear })

describe('CP-14 versions', () => {
  test('CP-14 a checkpoint of version 1 loads', () =>
    onCluster(2, async () => {
      const here = new Linear(2, 1)
      const there = new RemoteModule('worker1', Linear, [1, 2])
      const params = [rref(here.weight), rref(here.bias!), ...(await there.remoteParameters())]
      const optimizer = new DistributedOptimizer(SGD, params, { lr: 1, momentum: 0.5 })
      const checkpoints = new Checkpoints(fileURLToPath(new URL('../../golden/checkpoint-version-1', import.meta.url)))
      expect(await steps(checkpoints)).toEqual([7])
      expect((await checkpoints.latest({ verify: true }))?.step).toBe(7)
      const { values } = await checkpoints.load({ here, there, optimizer })
      expect([here.weight.toArray(), here.bias!.toArray()]).toEqual([[[0.5, 0.5]], [-1]])
      expect(optimizer.paramGroups[0]!.lr).toBe(0.25)
      const weight = await call('worker1', weightOf, [there.getModuleRref()])
      expect(weight.flat().every((each) => Math.abs(each) <= 1 && each !== 0)).toBe(true)
      const { best, ...plain } = values as { best: { w: Tensor } }
      expect(best.w.toArray()).toEqual([
        [1, 2],
        [3, 4],
      ])
      expect(plain).toEqual({
        history: [
          { step: 1, loss: -0 },
          { step: 2, loss: Number.NaN },
        ],
        plain: { '@': 2n ** 70n, list: [null, undefined, 'naïve'] },
      })
    }))

  test('CP-14 a later version is refused by its name, and stays', () =>
    onCluster(1, async () => {
      const checkpoints = new Checkpoints(directory(), { keep: 1 })
      await checkpoints.save(1, { done: 1 })
      const path = join(folder(1), MANIFEST)
      writeFileSync(path, readFileSync(path, 'utf8').replace('"version": 2', '"version": 3'))
      for (const [op, look] of [
        ['latest', checkpoints.latest()],
        ['list', checkpoints.list()],
        ['load', checkpoints.load({})],
        ['load', checkpoints.load({}, { step: 1 })],
      ] as const) {
        expect(await failure(look)).toMatchObject({ code: 'CHECKPOINT_UNSUPPORTED', op, values: { version: 3 } })
      }
      await checkpoints.save(2, { done: 2 })
      await checkpoints.save(3, { done: 3 })
      expect(readdirSync(directory()).sort()).toEqual(['step-000000000001', 'step-000000000003'])
    }))
})
const weightOf = async (module: ReturnType<RemoteModule<Linear>['getModuleRref']>): Promise<number[][]> =>
  (await module.toHere()).weight.toArray() as number[][]
expose({ weightOfVersion1: weightOf })

describe('CP-15 what is listed', () => {
  test('CP-15, CP-17 latest and list look at lengths, with verify at the bytes, and load takes what latest gives', () =>
    onCluster(1, async () => {
      const checkpoints = new Checkpoints(directory())
      for (const step of [1, 2, 3]) await checkpoints.save(step, { step, w: zeros([4]) })
      const bytes = readFileSync(fileOf(2, '.safetensors'))
      bytes[bytes.length - 1]! ^= 1
      writeFileSync(fileOf(2, '.safetensors'), bytes)
      truncateSync(fileOf(3, '.state'), 10)
      expect([await steps(checkpoints), (await checkpoints.latest())!.step]).toEqual([[1, 2], 2])
      expect((await checkpoints.list({ verify: true })).map(({ step }) => step)).toEqual([1])
      expect((await checkpoints.latest({ verify: true }))!.step).toBe(1)
      const error = await failure(checkpoints.load({}))
      expect(error).toMatchObject({ code: 'CHECKPOINT_CORRUPT', op: 'load', message: expect.stringMatching(/^load: expected the bytes/) })
      expect(error.stack).toContain('load: expected the bytes')
      expect(await failure(checkpoints.load({}, { step: 3 }))).toMatchObject({ code: 'CHECKPOINT_CORRUPT', op: 'load' })
      expect(await failure(checkpoints.load({}, { step: 9 }))).toMatchObject({ code: 'CHECKPOINT_NOT_FOUND', op: 'load' })
      rmSync(fileOf(2, '.state'))
      expect((await checkpoints.load({})).values.step).toBe(1)
      for (const wrong of [{ verify: 1 }, { deep: true }, 5] as never[]) {
        expect((await failure(checkpoints.latest(wrong))).code).toBe('INVALID_ARGUMENT')
        expect((await failure(checkpoints.list(wrong))).code).toBe('INVALID_ARGUMENT')
      }
    }))

  test('CP-15 a folder that was copied under another number is none of that number, and stays', () =>
    onCluster(1, async () => {
      const checkpoints = new Checkpoints(directory(), { keep: 1 })
      await checkpoints.save(3, { done: 3 })
      cpSync(folder(3), folder(1), { recursive: true })
      renameSync(folder(1), folder(9))
      cpSync(folder(3), folder(1), { recursive: true })
      expect([await steps(checkpoints), (await checkpoints.load({})).values.done]).toEqual([[3], 3])
      expect((await failure(checkpoints.load({}, { step: 9 }))).code).toBe('CHECKPOINT_CORRUPT')
      await checkpoints.save(4, { done: 4 })
      expect(readdirSync(directory()).map((name) => Number(name.slice(5)))).toEqual([1, 4, 9])
    }))

  test('CP-15 files, broken links and devices under the names of steps and their files are passed over', () =>
    onCluster(1, async () => {
      const checkpoints = new Checkpoints(directory(), { keep: 1 })
      await checkpoints.save(1, { done: 1 })
      writeFileSync(folder(9), 'a file')
      symlinkSync('nowhere', folder(8))
      mkdirSync(folder(7))
      symlinkSync('/dev/zero', join(folder(7), MANIFEST))
      mkdirSync(folder(6))
      execFileSync('mkfifo', [join(folder(6), MANIFEST)])
      expect([await steps(checkpoints), (await checkpoints.latest())!.step, (await checkpoints.load({})).step]).toEqual([[1], 1, 1])
      for (const step of [6, 7, 8, 9]) expect((await failure(checkpoints.load({}, { step }))).code).toBe('CHECKPOINT_NOT_FOUND')
      // A file of a checkpoint, too.
      await checkpoints.save(5, { done: 5 })
      const path = fileOf(5, '.safetensors')
      rmSync(path)
      symlinkSync('/dev/zero', path)
      expect((await failure(checkpoints.load({}, { step: 5 }))).code).toBe('CHECKPOINT_CORRUPT')
    }))

  test('CP-15 what another process removes between two looks is none', () => {
    let vanishing = ''
    const disk: CheckpointDisk = {
      ...syncDisk,
      async size(path) {
        const found = await syncDisk.size(path)
        if (path.includes(vanishing)) rmSync(path, { force: true })
        return found
      },
    }
    return onCluster(
      1,
      async () => {
        const checkpoints = new Checkpoints(directory())
        for (const end of [MANIFEST, '.safetensors', '.state']) {
          vanishing = 'nothing'
          for (const step of [1, 2]) await checkpoints.save(step, { step })
          vanishing = join('step-000000000002', end === MANIFEST ? MANIFEST : '')
          if (end === MANIFEST) expect((await checkpoints.latest())!.step).toBe(1)
          else expect((await checkpoints.load({})).values.step).toBe(1)
          expect(await steps(checkpoints)).toEqual([1])
        }
      },
      disk,
    )
  })
})

describe('CP-15 next to a save', () => {
  test('CP-15 the only step that was listed may go while a newer one comes: that is found', () => {
    let isDue = false
    const disk: CheckpointDisk = {
      ...syncDisk,
      async list(path) {
        const names = await syncDisk.list(path)
        if (isDue && path === directory()) {
          isDue = false
          renameSync(folder(1), join(directory(), 'gone'))
          renameSync(join(directory(), 'next'), folder(2))
        }
        return names
      },
    }
    return onCluster(
      1,
      async () => {
        const checkpoints = new Checkpoints(directory())
        for (const look of [async () => [await checkpoints.latest()], () => checkpoints.list()]) {
          await checkpoints.save(2, { done: 2 })
          renameSync(folder(2), join(directory(), 'next'))
          await checkpoints.save(1, { done: 1 })
          isDue = true
          expect(await look()).toMatchObject([{ step: 2 }])
          rmSync(join(directory(), 'gone'), { recursive: true })
        }
      },
      disk,
    )
  })
})

describe('CP-16 what is removed', () => {
  test('CP-16 a folder that holds anything else keeps it, and a step that is superseded leaves nothing', () =>
    onCluster(1, async () => {
      const checkpoints = new Checkpoints(directory(), { keep: 2 })
      mkdirSync(folder(1))
      mkdirSync(folder(0))
      writeFileSync(join(folder(1), 'notes.txt'), 'mine')
      writeFileSync(join(folder(1), 'worker0.1-a.safetensors'), 'of a save that broke off')
      for (const step of [10, 2, 3]) await checkpoints.save(step, { step })
      writeFileSync(join(folder(10), 'evaluation.json'), '{}')
      expect(existsSync(folder(0))).toBe(false)
      expect(readdirSync(folder(1))).toEqual(['notes.txt'])
      // It goes back to step 2: step 3 has had its time, though it is a later one.
      await checkpoints.save(2, { step: 2 })
      expect([await steps(checkpoints), existsSync(folder(3))]).toEqual([[2, 10], false])
      for (const step of [11, 12]) await checkpoints.save(step, { step })
      expect(await steps(checkpoints)).toEqual([11, 12])
      expect(readdirSync(folder(10))).toEqual(['evaluation.json'])
    }))

  test('CP-16 a manifest that is damaged stays, and is not counted', () =>
    onCluster(1, async () => {
      const checkpoints = new Checkpoints(directory(), { keep: 2 })
      for (const step of [1, 2, 3]) await checkpoints.save(step, { step })
      writeFileSync(join(folder(3), MANIFEST), '{')
      await checkpoints.save(4, { step: 4 })
      expect([await steps(checkpoints), existsSync(fileOf(3, '.state'))]).toEqual([[2, 4], true])
    }))
})

describe('CP-17 arguments and errors', () => {
  test('CP-17 what cannot be meant is refused before anything is done', () =>
    onCluster(1, async () => {
      for (const keep of ['2', true, 1.5, Number.NaN, 0, null, 2n] as never[]) {
        expect(() => new Checkpoints(directory(), { keep })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
      }
      const checkpoints = new Checkpoints(directory(), { keep: Number.POSITIVE_INFINITY })
      for (const parts of [{ model: undefined }, null, 5, { 'a b': 1 }] as never[]) {
        expect((await failure(checkpoints.save(1, parts))).code).toBe('INVALID_ARGUMENT')
        expect((await failure(checkpoints.load(parts))).code).toBe('INVALID_ARGUMENT')
      }
      for (const timeoutMs of [-5, Number.NaN, '5' as never]) {
        expect((await failure(checkpoints.save(1, { done: 1 }, { timeoutMs }))).code).toBe('TIMEOUT_INVALID')
        expect((await failure(checkpoints.load({}, { timeoutMs }))).code).toBe('TIMEOUT_INVALID')
      }
      expect(readdirSync(directory())).toEqual([])
    }))

  test('CP-17 whatever the disk says is the cause of a CHECKPOINT_FAILED', () =>
    onCluster(1, async () => {
      const path = join(directory(), 'a-file')
      writeFileSync(path, '')
      const checkpoints = new Checkpoints(path)
      expect(await failure(checkpoints.save(1, { done: 1 }))).toMatchObject({ code: 'CHECKPOINT_FAILED', cause: { code: 'EEXIST' } })
      const below = new Checkpoints(join(path, 'below'))
      expect(await failure(below.save(1, { done: 1 }))).toMatchObject({ code: 'CHECKPOINT_FAILED', cause: { code: 'ENOTDIR' } })
      expect(await below.latest()).toBeNull()
    }))

  test('CP-17 the error names the call of the program, also if the directory cannot be read, or older checkpoints not be removed', () => {
    const broken = { list: false, remove: false }
    const disk: CheckpointDisk = {
      ...syncDisk,
      async list(path) {
        if (broken.list) throw new Error('no list')
        return await syncDisk.list(path)
      },
      async remove(path) {
        if (broken.remove) throw new Error('no remove')
        await syncDisk.remove(path)
      },
    }
    return onCluster(
      1,
      async () => {
        const checkpoints = new Checkpoints(directory(), { keep: 1 })
        await checkpoints.save(1, { done: 1 })
        broken.remove = true
        expect(await failure(checkpoints.save(2, { done: 2 }))).toMatchObject({
          code: 'CHECKPOINT_FAILED',
          message:
            "save: older checkpoints could not be removed on 'worker0': no remove. The new checkpoint is complete. See the cause; the next save tries again.",
        })
        expect((await checkpoints.latest())!.step).toBe(2)
        broken.list = true
        for (const op of ['list', 'latest'] as const) {
          expect(await failure(checkpoints[op]())).toMatchObject({
            code: 'CHECKPOINT_FAILED',
            op,
            message: `${op}: the checkpoints could not be read on 'worker0': no list. See the cause, and look at the disk.`,
          })
        }
        broken.list = false
        broken.remove = false
        await checkpoints.save(3, { done: 3 })
        expect(await steps(checkpoints)).toEqual([3])
      },
      disk,
    )
  })

  test('CP-17 a worker that has died is the cause of a CHECKPOINT_FAILED that names it', () =>
    onCluster(2, async ([, other]) => {
      const checkpoints = new Checkpoints(directory(), { workers: [0] })
      const there = remote(1, Filled, [2])
      await there.toHere().catch(() => {})
      await other!.close()
      for (const [op, ends] of [
        ['save', checkpoints.save(1, { there })],
        ['load', checkpoints.load({ there })],
      ] as const) {
        expect(await failure(ends)).toMatchObject({
          code: 'CHECKPOINT_FAILED',
          op,
          values: { workers: ['worker1'] },
          cause: { code: 'WORKER_DIED' },
        })
      }
    }))
})

describe('CP-18 two runs in one directory', () => {
  test('CP-18 a lock that another process holds: CHECKPOINT_BUSY, which says which, and nothing is changed', () =>
    onCluster(1, async () => {
      const checkpoints = new Checkpoints(directory())
      await checkpoints.save(1, { done: 1 })
      const theirs = new FileLock(join(directory(), 'saving.lock'))
      expect(theirs.tryAcquire()).toBe(true)
      expect(await failure(checkpoints.save(1, { done: 2 }))).toMatchObject({
        code: 'CHECKPOINT_BUSY',
        values: { directory: directory(), holder: expect.stringContaining(String(process.pid)) },
      })
      // Others may load.
      expect((await checkpoints.load({})).values.done).toBe(1)
      theirs.release()
      await checkpoints.save(1, { done: 2 })
      expect(readdirSync(directory())).toEqual(['step-000000000001'])
    }))

  test('CP-18 one directory under two names', () =>
    onCluster(2, async () => {
      const here = new Filled(2)
      const link = `${directory()}-link`
      symlinkSync(directory(), link)
      try {
        const ends = await Promise.allSettled([directory(), link].map((path) => new Checkpoints(path).save(1, { here })))
        const refused = ends.flatMap((end) => (end.status === 'rejected' ? [(end.reason as { code?: string }).code] : []))
        expect(refused).toEqual(['CHECKPOINT_BUSY'])
      } finally {
        rmSync(link)
      }
    }))

  test('CP-18 a lock of another machine: taken over when it has been silent for 4 s, and not while it is refreshed', () =>
    onCluster(1, async ([worker]) => {
      const path = join(directory(), 'saving.lock')
      symlinkSync('elsewhere/boot+pid/17/17/99/1/1', path)
      const checkpoints = new Checkpoints(directory())
      const begun = worker!.clock.now()
      await checkpoints.save(1, { done: 1 })
      const waited = worker!.clock.now() - begun
      expect(waited >= 4_000 && waited < 5_000).toBe(true)

      symlinkSync('elsewhere/boot+pid/17/17/99/2/1', path)
      const again = worker!.clock.setTimer(1_500, () => {
        rmSync(path)
        symlinkSync('elsewhere/boot+pid/17/17/99/3/1', path)
      })
      expect((await failure(checkpoints.save(2, { done: 2 }))).code).toBe('CHECKPOINT_BUSY')
      again.cancel()
    }))

  test('CP-18 a lock that another run has taken over: no manifest', () => {
    const disk: CheckpointDisk = {
      ...syncDisk,
      async create(path) {
        if (path.endsWith('.state')) {
          rmSync(join(directory(), 'saving.lock'))
          symlinkSync('elsewhere/boot+pid/17/17/99/1/1', join(directory(), 'saving.lock'))
        }
        return await syncDisk.create(path)
      },
    }
    return onCluster(
      1,
      async () => {
        const checkpoints = new Checkpoints(directory())
        expect(await failure(checkpoints.save(1, { done: 1 }))).toMatchObject({
          code: 'CHECKPOINT_FAILED',
          message: expect.stringContaining('another run'),
        })
        expect(await steps(checkpoints)).toEqual([])
        // The lock of the other run is left alone.
        expect(readdirSync(directory())).toEqual(['saving.lock'])
      },
      disk,
    )
  })

  test('CP-18 no two attempts have a name in common, in no two runs', async () => {
    const names: string[] = []
    for (let run = 0; run < 3; run++) {
      await onCluster(1, async () => {
        for (const step of [1, 2]) {
          await new Checkpoints(directory()).save(step, { done: 1 })
          names.push(...readdirSync(folder(step)).filter((name) => name !== MANIFEST))
        }
      })
      rmSync(directory(), { recursive: true })
    }
    expect(new Set(names).size).toBe(12)
  })
})
