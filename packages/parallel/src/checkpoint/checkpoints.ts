/**
 * Checkpoints of a whole cluster during training: each worker writes its state into its own files, and a manifest is written last. Training continues
 * from a checkpoint with the same bits, in another cluster of the same workers.
 *
 *     const checkpoints = new Checkpoints('checkpoints', { keep: 3 })
 *     await checkpoints.save(step, { model, optimizer, scheduler, epoch })
 *     …
 *     const { step, values } = await checkpoints.load({ model, optimizer, scheduler })     // values.epoch
 *
 * Note [Saved whole, or not at all]
 * Every file is written under another name, synced, and renamed; the manifest, which names all files with their hashes, is written when all are there. A run
 * that dies earlier leaves a directory without a manifest. That is not a checkpoint: `list` does not show it, and the next `save` removes it. When an old
 * checkpoint is removed, its manifest goes first.
 *
 * PyTorch: `torch.distributed.checkpoint`, which knows process groups and not workers that own different things.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { noGrad } from '@postgrad/autograd'
import { isPostgradError } from '@postgrad/base'
import { structuredClone, timeLimit } from '@postgrad/base/internal'
import { type CallOptions, call, getWorkerInfo, getWorkerInfos, stream, type Target, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { checkOptions } from '@postgrad/tensor/internal'
import { inAnyCase } from '../in-any-case.js'
import { checkpointDiskOf } from './disk.js'
import { type CheckpointOp, failed, failedUnlessTyped, mismatch, notCleaned } from './errors.js'
import { alone } from './lock.js'
import {
  fileNames,
  filesOf,
  type Manifest,
  newAttempt,
  notFound,
  readManifest,
  stepDirectory,
  type WorkerFiles,
  writeManifest,
} from './manifest.js'
import { Moment } from './moment.js'
import { type CheckpointParts, type Plan, planOf, refused } from './parts.js'
import { restore, valuesOf } from './restore.js'
import { type Step, Steps } from './steps.js'
import { type CheckpointStepsOptions, type SavesAndLoads, trainingSteps } from './training-steps.js'
import { workerFile } from './worker-file.js'

/** Options of `Checkpoints`. */
export interface CheckpointsOptions {
  /** How many of the newest checkpoints to keep; default all. */
  readonly keep?: number
  /** The workers whose random number generators are saved, in addition to those of the workers that own saved objects; default all workers of the cluster. */
  readonly workers?: readonly Target[]
  /** Called with the progress while the workers write their files. */
  readonly onProgress?: (progress: CheckpointProgress) => void
}

/** The progress of a checkpoint that is being written. */
export interface CheckpointProgress {
  /** The number under which the checkpoint is saved. */
  readonly step: number
  /** For each worker, by name: how many bytes it has written, and how many it writes in all. `total` is 0 until the worker has begun. */
  readonly workers: Readonly<Record<string, { readonly bytes: number; readonly total: number }>>
}

/** A checkpoint on disk. */
export interface CheckpointInfo {
  /** The number under which the checkpoint was saved. */
  readonly step: number
  /** The folder of the checkpoint. */
  readonly directory: string
  /** The size of all files of the checkpoint together, in bytes. */
  readonly bytes: number
  /** The names of the workers that wrote a part of the checkpoint. */
  readonly workers: readonly string[]
}

/** The checkpoint that `load` has loaded. */
export interface LoadedCheckpoint extends CheckpointInfo {
  /** The tensors and plain data that were saved, by name. */
  readonly values: Readonly<Record<string, unknown>>
}

/** Limits of `save` and `load`. By default they have no time limit, since files may be large. If a worker dies, both fail in any case. */
export type CheckpointCallOptions = Pick<CallOptions, 'timeoutMs' | 'signal'>

/** Options of `latest` and `list`. */
export interface CheckpointLookOptions {
  /** Whether to read each file and compare its bytes with those that were written. Default false: only lengths are compared. */
  readonly verify?: boolean
}

/**
 * Saves and loads modules, optimizers and random number generators of all workers together. Each worker writes its own files. A checkpoint is complete, or does
 * not exist. PyTorch: `torch.distributed.checkpoint`.
 * @example
 * const [model, step] = [new Linear(2, 4), 100]
 * const checkpoints = new Checkpoints('checkpoints', { keep: 3 }) // one worker saves for all
 * await checkpoints.save(step, { model })
 * const { step: loaded } = await checkpoints.load({ model }) // the newest complete one; loaded is 100
 */
export class Checkpoints {
  /** The directory of the checkpoints. Each checkpoint is a folder in it. */
  readonly directory: string
  private readonly options: CheckpointsOptions
  private readonly keep: number
  /** One save or load at a time. */
  private last: Promise<unknown> = Promise.resolve()

  /** @param directory a path that names the same directory on all workers. @throws INVALID_ARGUMENT */
  constructor(directory: string | URL, options: CheckpointsOptions = {}) {
    checkOptions('Checkpoints', options, ['keep', 'workers', 'onProgress'])
    const { keep = Number.POSITIVE_INFINITY } = options
    if (!(Number.isSafeInteger(keep) || keep === Number.POSITIVE_INFINITY) || keep < 1) {
      throw refused('keep to be an integer from 1', typeof keep === 'number' ? String(keep) : `${typeof keep} ${String(keep)}`)
    }
    this.directory = resolve(directory instanceof URL ? fileURLToPath(directory) : directory)
    this.options = options
    this.keep = keep
  }

  /**
   * Saves `parts` and the generators of all workers under the number `step`. One worker calls it for all workers (in PyTorch every rank calls `save`). All
   * values are those at the time of the call. Plain data is copied, but tensors are not: if the program writes to a tensor before it is in its file, the save
   * fails, so await the save before the next step. If a checkpoint of the same step exists, the new one replaces it at the end. If the save fails, it leaves no
   * new checkpoint, and earlier ones do not change.
   * @throws INVALID_ARGUMENT if an argument is not valid; CHECKPOINT_UNSUPPORTED if a part cannot be saved; CHECKPOINT_BUSY if another save to this directory
   * is under way, in this run or another; CHECKPOINT_FAILED if a worker fails, or the worker with the smallest id, which keeps other saves out, ends or leaves.
   * Its `values.workers` names the workers, and its cause is the first worker's error, such as WORKER_DIED, SAFETENSORS_CHANGED, or ENOSPC of the disk
   */
  async save(step: number, parts: CheckpointParts, options: CheckpointCallOptions = {}): Promise<CheckpointInfo> {
    checkOptions('Checkpoints.save', options, ['timeoutMs', 'signal'])
    timeLimit('Checkpoints.save', options.timeoutMs ?? 0)
    if (!Number.isSafeInteger(step) || step < 0 || step > 1e15 - 1) throw refused('an integer from 0 as step', String(step))
    const moment = this.moment(parts, options)
    try {
      return await this.inTurn('save', () =>
        alone(this.directory, options, async (stillAlone) => {
          await noGrad(() => moment.complete())
          return await this.saveMoment(step, moment, Object.keys(parts), stillAlone, options)
        }),
      )
    } finally {
      await moment.end()
    }
  }

  /**
   * Loads a checkpoint, by default the newest complete one, into the objects of `parts` and the generators of all workers. Returns the checkpoint, with the
   * tensors and plain data in it, whose names may be left out of `parts`. All workers read and check everything before anything changes. If an object refuses
   * its state, all objects keep their old state. If the load is aborted or its time is over, it rejects as soon as all workers have restored the old states.
   * @throws INVALID_ARGUMENT if an argument is not valid; CHECKPOINT_NOT_FOUND if that checkpoint does not exist; CHECKPOINT_CORRUPT if a file is missing, too
   * short, or has other bytes; CHECKPOINT_MISMATCH if workers, names, shapes or dtypes differ; CHECKPOINT_UNSUPPORTED if a later version of postgrad wrote it;
   * CHECKPOINT_FAILED if a worker fails. Its `values.workers` names the workers, and its cause is the first worker's error, such as STATE_DICT_MISMATCH
   */
  load(parts: CheckpointParts, given: CheckpointCallOptions & { readonly step?: number } = {}): Promise<LoadedCheckpoint> {
    return this.loadIf(() => {}, parts, given)
  }

  /** @param check throws for values with which nothing may be changed */
  private loadIf(
    check: (values: Readonly<Record<string, unknown>>) => void,
    parts: CheckpointParts,
    given: CheckpointCallOptions & { readonly step?: number },
  ): Promise<LoadedCheckpoint> {
    return this.inTurn('load', async () => {
      checkOptions('Checkpoints.load', given, ['step', 'timeoutMs', 'signal'])
      timeLimit('Checkpoints.load', given.timeoutMs ?? 0)
      const { step, ...options } = given
      const plan = await noGrad(() => planOf(parts, this.workers()))
      try {
        for (let tries = 1; ; tries++) {
          const { directory, manifest } = await this.chosen(step)
          try {
            checkWorkers(manifest, plan)
            const values = await this.loadAll(plan, manifest, directory, check, options)
            return { ...infoOf(directory, manifest), values }
          } catch (error) {
            // Another process that saves may have removed or replaced the step meanwhile.
            if (tries === TRIES_MAX || !isPostgradError(error, 'CHECKPOINT_CORRUPT') || (await this.isStill(step, manifest))) throw error
          }
        }
      } finally {
        for (const ref of plan.made) ref.dispose()
      }
    })
  }

  /**
   * The numbers of the steps that are left of a training, from 1 to `until`. The loop loads the newest checkpoint if there is one, and saves after every `every`th
   * step and after the last. So a program that was killed and is started again continues after its last save, with the same bits. A loop that ends early, by `break`
   * or an error, saves nothing.
   *
   * Plain objects and arrays are refilled in place. A bare number, text or tensor cannot be a part: put it into an object of the program, `const kept = { running: 0 }`,
   * and pass `{ kept }`. A `Generator` that the program made can be a part, too; each worker's current generator is saved in any case.
   * @throws INVALID_ARGUMENT if an option or a part is not valid; in the loop the errors of `load` and `save`. Without a checkpoint, it begins with step 1
   * @example for await (const step of new Checkpoints('checkpoints').steps({ model: new Linear(2, 1) }, { until: 100, every: 10 })) console.log(step)
   */
  steps(parts: CheckpointParts, options: CheckpointStepsOptions): AsyncGenerator<number, void, undefined> {
    const loads: SavesAndLoads['load'] = (ofLoad, limits, check) => this.loadIf(check, ofLoad, limits)
    return trainingSteps({ save: (step, ofSave, limits) => this.save(step, ofSave, limits), load: loads }, parts, options)
  }

  /**
   * All complete checkpoints, the newest last. A complete checkpoint has its manifest, and all its files with the right lengths. `{ verify: true }` also reads
   * the files, and leaves out checkpoints whose bytes have changed.
   * @throws INVALID_ARGUMENT if an option is not valid; CHECKPOINT_UNSUPPORTED if a later version of postgrad wrote a checkpoint; CHECKPOINT_FAILED if the
   * directory cannot be read
   */
  async list(options: CheckpointLookOptions = {}): Promise<CheckpointInfo[]> {
    const verify = verifyOf('Checkpoints.list', options)
    return await looking('list', async () =>
      (await this.stepsOnDisk().whole(verify)).map(({ directory, manifest }) => infoOf(directory, manifest)),
    )
  }

  /** The newest complete checkpoint; null if there is none. `verify` is the same as in `list`. @throws the errors of `list` */
  async latest(options: CheckpointLookOptions = {}): Promise<CheckpointInfo | null> {
    const verify = verifyOf('Checkpoints.latest', options)
    const newest = await looking('latest', () => this.stepsOnDisk().newest(verify))
    return newest === null ? null : infoOf(newest.directory, newest.manifest)
  }

  private moment(parts: CheckpointParts, options: CheckpointCallOptions): Moment {
    const { info } = currentRuntime()
    try {
      // Nothing of it belongs to the context that may be current.
      return noGrad(() => new Moment(parts, this.workers(), options))
    } catch (error) {
      throw failedUnlessTyped('save', [info.name], error)
    }
  }

  private workers(): readonly WorkerInfo[] {
    return this.options.workers?.map((target) => getWorkerInfo(target)) ?? getWorkerInfos()
  }

  private stepsOnDisk(): Steps {
    return new Steps(checkpointDiskOf(currentRuntime()), this.directory)
  }

  /** The step that a load reads. @throws CHECKPOINT_NOT_FOUND, CHECKPOINT_CORRUPT */
  private async chosen(step: number | undefined): Promise<Step> {
    const steps = this.stepsOnDisk()
    if (step === undefined) {
      // One that is damaged, where there is none that is whole: the load says what is wrong with it.
      const newest = (await steps.newest(false)) ?? (await steps.newestOfAll())
      if (newest === null) throw notFound(this.directory)
      return newest
    }
    const directory = stepDirectory(this.directory, step)
    return { directory, manifest: await readManifest(checkpointDiskOf(currentRuntime()), directory, step) }
  }

  private async isStill(step: number | undefined, manifest: Manifest): Promise<boolean> {
    const now = await this.chosen(step)
    return filesOf(now.manifest)[0]?.file === filesOf(manifest)[0]?.file
  }

  private async saveMoment(
    step: number,
    moment: Moment,
    parts: readonly string[],
    stillAlone: () => Promise<void>,
    options: CheckpointCallOptions,
  ): Promise<CheckpointInfo> {
    const self = currentRuntime().info.name
    const disk = checkpointDiskOf(currentRuntime())
    const [steps, directory, attempt] = [this.stepsOnDisk(), stepDirectory(this.directory, step), newAttempt()]
    const before = await steps.before(step)
    await disk.makeDirectory(directory)
    let manifest: Manifest
    try {
      const workers = await this.writeAll(moment, step, directory, attempt, options)
      await stillAlone()
      manifest = await writeManifest(disk, directory, { step, parts, workers: Object.fromEntries(workers) })
    } catch (error) {
      // Report the first error; the files left are not a checkpoint.
      await steps.removeAttempt(step, attempt).catch(() => {})
      throw error
    }
    await steps.clean(step, manifest, before, this.keep).catch((error: unknown) => {
      throw notCleaned(self, error)
    })
    return infoOf(directory, manifest)
  }

  private async writeAll(
    moment: Moment,
    step: number,
    directory: string,
    attempt: string,
    options: CheckpointCallOptions,
  ): Promise<[string, WorkerFiles][]> {
    const { onProgress } = this.options
    const progress = new Map([...moment.workers.keys()].map((name) => [name, { bytes: 0, total: 0 }]))
    return await onEach('save', moment.workers, async (info) => {
      const names = fileNames(info.name, attempt)
      const items = noGrad(() => stream(info, workerFile.write, [moment.token, directory, names], { timeoutMs: 0, ...options }))
      let last: WorkerFiles | null = null
      for await (const { bytes, written, files } of items) {
        last = files
        progress.set(info.name, { bytes: written, total: bytes })
        onProgress?.({ step, workers: structuredClone(Object.fromEntries(progress)) })
      }
      return [info.name, last!]
    })
  }

  private async loadAll(
    plan: Plan,
    manifest: Manifest,
    directory: string,
    check: (values: Readonly<Record<string, unknown>>) => void,
    options: CheckpointCallOptions,
  ): Promise<Record<string, unknown>> {
    const token = currentRuntime().ids.take()
    const disk = checkpointDiskOf(currentRuntime())
    const limits = { timeoutMs: 0, ...options }
    try {
      await onEach('load', plan.workers, ({ info, entries }) => {
        // Values are returned, not put into an object.
        const wanted = entries.filter(({ kind }) => kind !== 'value')
        return noGrad(() => call(info, restore.stage, [token, directory, manifest.workers[info.name]!, wanted], limits))
      })
      const found: [string, unknown][] = []
      for (const files of Object.values(manifest.workers)) found.push(...(await noGrad(() => valuesOf(disk, directory, files))))
      const values = Object.fromEntries(found)
      check(values)
      await onEach('load', plan.workers, ({ info }) => noGrad(() => call(info, restore.loadStates, [token], limits)))
      // All have agreed: an end in the middle would leave some workers changed.
      await inAnyCase((unlimited) =>
        onEach('load', plan.workers, ({ info }) => noGrad(() => call(info, restore.commit, [token], unlimited))),
      )
      // A worker that has died since is as one that died after the load.
      await inAnyCase((unlimited) =>
        Promise.allSettled([...plan.workers.values()].map(({ info }) => noGrad(() => call(info, restore.end, [token], unlimited)))),
      )
      return values
    } catch (error) {
      const asked = [...plan.workers.values()]
      await inAnyCase((unlimited) =>
        Promise.allSettled(asked.map(({ info }) => noGrad(() => call(info, restore.abandon, [token], unlimited)))),
      )
      throw error
    }
  }

  /** After what was called before, however that ended. The promise that it gives has no handler of its own: a save that is forgotten and fails is an unhandled rejection. */
  private async inTurn<T>(op: 'save' | 'load', fn: () => Promise<T>): Promise<T> {
    const turn = this.last.then(fn)
    this.last = turn.catch(() => {})
    return await turn.catch((error: unknown) => {
      throw failedUnlessTyped(op, [currentRuntime().info.name], error)
    })
  }
}

/** How often a load begins again because another process has removed what it read. */
const TRIES_MAX = 10

function verifyOf(op: string, options: CheckpointLookOptions): boolean {
  checkOptions(op, options, ['verify'])
  const { verify = false } = options
  if (typeof verify !== 'boolean') throw refused('verify to be true or false', typeof verify)
  return verify
}

async function looking<T>(op: CheckpointOp, look: () => Promise<T>): Promise<T> {
  try {
    return await look()
  } catch (error) {
    throw failedUnlessTyped(op, [currentRuntime().info.name], error)
  }
}

/** Asks all workers and waits for all, so that none is at work when it rejects. */
async function onEach<W, T>(op: 'save' | 'load', workers: ReadonlyMap<string, W>, fn: (worker: W) => PromiseLike<T>): Promise<T[]> {
  const ends = await Promise.allSettled([...workers.values()].map(fn))
  const names = [...workers.keys()].filter((_, i) => ends[i]!.status === 'rejected')
  if (names.length === 0) return ends.map((end) => (end as PromiseFulfilledResult<T>).value)
  const { reason } = ends.find((end) => end.status === 'rejected') as PromiseRejectedResult
  throw isOwn(reason) ? reason : failed(op, names, reason)
}

const isOwn = (error: unknown): boolean =>
  ['CHECKPOINT_CORRUPT', 'CHECKPOINT_MISMATCH', 'CHECKPOINT_UNSUPPORTED'].some((code) => isPostgradError(error, code))

function checkWorkers(manifest: Manifest, plan: Plan): void {
  const [saved, here] = [Object.keys(manifest.workers), [...plan.workers.keys()]]
  const missing = saved.find((name) => !plan.workers.has(name))
  const more = here.find((name) => !Object.hasOwn(manifest.workers, name))
  if (missing === undefined && more === undefined) return
  throw mismatch(missing ?? more!, `the workers ${saved.join(', ')}`, here.join(', '))
}

function infoOf(directory: string, manifest: Manifest): CheckpointInfo {
  const bytes = filesOf(manifest).reduce((sum, file) => sum + file.bytes, 0)
  return { step: manifest.step, directory, bytes, workers: Object.keys(manifest.workers) }
}
