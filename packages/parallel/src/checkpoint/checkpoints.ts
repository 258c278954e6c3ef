/**
 * Checkpoints of a whole cluster in the middle of a training: what every worker owns, in a file of its own, and a manifest that is written last. Training goes
 * on from one with the same bits, in another cluster of the same workers.
 *
 *     const checkpoints = new Checkpoints('checkpoints', { keep: 3 })
 *     await checkpoints.save(step, { model, optimizer, scheduler, epoch })
 *     …
 *     const { step, values } = await checkpoints.load({ model, optimizer, scheduler })     // values.epoch
 *
 * Note [Saved whole, or not at all]
 * Every file is written under another name, synced, and renamed; the manifest, which names all of them with their hashes, comes when all are there. Whoever dies
 * before that leaves a directory without a manifest, which is no checkpoint: `list` does not show it, and the next `save` removes it. Of an older checkpoint
 * that has had its time the manifest goes first.
 *
 * PyTorch: `torch.distributed.checkpoint`, which knows process groups and not workers that own different things.
 */
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { noGrad } from '@postgrad/autograd'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { type CallOptions, call, getWorkerInfo, getWorkerInfos, stream, type Target, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { checkOptions } from '@postgrad/tensor/internal'
import { type CheckpointDisk, checkpointDiskOf } from './disk.js'
import {
  attemptsIn,
  MANIFEST,
  type Manifest,
  manifestIfAny,
  readManifest,
  stepDirectory,
  stepOf,
  type WorkerFile,
  writeManifest,
} from './manifest.js'
import { type CheckpointParts, type Plan, type PlannedWorker, planOf, refused } from './parts.js'
import { isCheckpointError, mismatch, workerFile } from './worker-file.js'

/** Of `Checkpoints`. */
export interface CheckpointsOptions {
  /** Keep so many of the newest ones; default all. */
  readonly keep?: number
  /** Whose generators are saved, beside the owners of what is saved; default all workers of the cluster. */
  readonly workers?: readonly Target[]
  /** Called while files are written. */
  readonly onProgress?: (progress: CheckpointProgress) => void
}

/** How far the writing of a checkpoint is. */
export interface CheckpointProgress {
  /** The number that it is saved under. */
  readonly step: number
  /** By worker; `total` is 0 until the worker has begun. */
  readonly workers: Readonly<Record<string, { readonly bytes: number; readonly total: number }>>
}

/** A checkpoint that lies on disk. */
export interface CheckpointInfo {
  /** The number that it was saved under. */
  readonly step: number
  /** Where it lies. */
  readonly directory: string
  /** Of all files together. */
  readonly bytes: number
  /** Who wrote a part of it. */
  readonly workers: readonly string[]
}

/** What `load` found and put in place. */
export interface LoadedCheckpoint extends CheckpointInfo {
  /** The tensors and plain data that were saved, by name. */
  readonly values: Readonly<Record<string, unknown>>
}

/** What the rounds may take: no limit by default, since files may be large; a worker's death ends them in any case. */
export type CheckpointCallOptions = Pick<CallOptions, 'timeoutMs' | 'signal'>

/**
 * Saves and loads modules, optimizers and generators of all workers as one: every worker writes its part, and a checkpoint is there whole or not at
 * all. PyTorch: `torch.distributed.checkpoint`.
 */
export class Checkpoints {
  /** Where they lie, one folder for each. */
  readonly directory: string
  private readonly options: CheckpointsOptions
  /** One save or load at a time. */
  private last: Promise<unknown> = Promise.resolve()

  /** @param directory which all workers reach under this name. @throws INVALID_ARGUMENT */
  constructor(directory: string | URL, options: CheckpointsOptions = {}) {
    checkOptions('Checkpoints', options, ['keep', 'workers', 'onProgress'])
    const { keep = Number.POSITIVE_INFINITY } = options
    if (!(keep >= 1)) throw refused('to keep at least 1', String(keep))
    this.directory = resolve(directory instanceof URL ? fileURLToPath(directory) : directory)
    this.options = options
  }

  /**
   * Saves `parts` and the generators of all workers under the number `step`. Let no step or call change what is saved meanwhile: await them first. A
   * checkpoint of that step is replaced at the end. What is saved stays as it is. One worker calls it, for all: PyTorch's is called by every rank.
   * Rejects with INVALID_ARGUMENT, CHECKPOINT_UNSUPPORTED (something that is no state), CHECKPOINT_FAILED (values: workers; cause: the first one's error, such as
   * WORKER_DIED, SAFETENSORS_CHANGED or ENOSPC of the disk; also where the worker that keeps others from saving meanwhile, the one of the smallest id, ends or leaves),
   * CHECKPOINT_BUSY (another save in this directory is under way): there is no new checkpoint then, and those before are as they were.
   */
  save(step: number, parts: CheckpointParts, options: CheckpointCallOptions = {}): Promise<CheckpointInfo> {
    return this.alone(step, options, async (stillAlone) => {
      const plan = await this.plan(parts)
      const disk = checkpointDiskOf(currentRuntime())
      const directory = stepDirectory(this.directory, step)
      const before = { steps: await disk.list(this.directory), files: await disk.list(directory) }
      await disk.makeDirectory(directory)
      // A writer of a saver that has died may still be at work: no other attempt has its names.
      const attempt = `${attemptsIn(before.files) + 1}-${currentRuntime().ids.take().toString(36)}`
      let manifest: Manifest
      try {
        const files = await this.writeAll(plan, step, directory, attempt, options)
        manifest = { format: 'postgrad checkpoint', version: 1, step, parts: Object.keys(parts), workers: Object.fromEntries(files) }
        await stillAlone()
        await writeManifest(disk, directory, manifest)
      } catch (error) {
        await removeAttempt(disk, directory, attempt)
        throw isPostgradError(error) ? error : failed('save', [currentRuntime().info.name], error)
      } finally {
        for (const ref of plan.made) ref.dispose()
      }
      await this.clean(disk, step, manifest, before).catch((error: unknown) => {
        throw failed('clean', [currentRuntime().info.name], error)
      })
      return infoOf(directory, manifest)
    })
  }

  /**
   * Brings a checkpoint back, by default the newest: into the modules and objects of `parts`, the generators of all workers. Everything is read and checked on all
   * workers before anything is changed; where an object refuses its state, all are as they were.
   * @returns what of it was tensors and plain data; these names may be left out of `parts`
   * Rejects with CHECKPOINT_NOT_FOUND, CHECKPOINT_CORRUPT (a file is missing, shorter, or has other bytes), CHECKPOINT_MISMATCH (other workers, names, shapes, dtypes),
   * CHECKPOINT_FAILED (values: workers; cause: the first one's error, such as STATE_DICT_MISMATCH).
   */
  load(parts: CheckpointParts, given: CheckpointCallOptions & { readonly step?: number } = {}): Promise<LoadedCheckpoint> {
    return this.inTurn(async () => {
      checkOptions('Checkpoints.load', given, ['step', 'timeoutMs', 'signal'])
      const { step, ...options } = given
      const disk = checkpointDiskOf(currentRuntime())
      const chosen = step ?? (await this.stepsOf(disk)).at(-1)
      const directory = chosen === undefined ? this.directory : stepDirectory(this.directory, chosen)
      const manifest = await readManifest(disk, directory)
      const plan = await this.plan(parts)
      try {
        checkWorkers(manifest, plan)
        const values = await this.loadAll(plan, manifest, directory, options)
        return { ...infoOf(directory, manifest), values }
      } finally {
        for (const ref of plan.made) ref.dispose()
      }
    })
  }

  /** The checkpoints that are there whole, the newest last. Whether the bytes of their files are still those is seen by `load`. */
  async list(): Promise<CheckpointInfo[]> {
    const disk = checkpointDiskOf(currentRuntime())
    const found: CheckpointInfo[] = []
    for (const step of await this.stepsOf(disk)) {
      const directory = stepDirectory(this.directory, step)
      const manifest = await manifestIfAny(disk, directory)
      if (manifest !== null) found.push(infoOf(directory, manifest))
    }
    return found
  }

  /** The newest, null when there is none. */
  async latest(): Promise<CheckpointInfo | null> {
    return (await this.list()).at(-1) ?? null
  }

  /** Of directories with a manifest that is one. */
  private async stepsOf(disk: CheckpointDisk): Promise<number[]> {
    const steps: number[] = []
    for (const name of await disk.list(this.directory)) {
      const step = stepOf(name)
      if (step !== null && (await manifestIfAny(disk, join(this.directory, name))) !== null) steps.push(step)
    }
    return steps.sort((a, b) => a - b)
  }

  private async plan(parts: CheckpointParts): Promise<Plan> {
    const workers = this.options.workers?.map((target) => getWorkerInfo(target)) ?? getWorkerInfos()
    // Nothing of it belongs to the context that may be current.
    return await noGrad(() => planOf(parts, workers))
  }

  private async writeAll(
    plan: Plan,
    step: number,
    directory: string,
    attempt: string,
    options: CheckpointCallOptions,
  ): Promise<[string, WorkerFile][]> {
    const { onProgress } = this.options
    const workers: Record<string, { bytes: number; total: number }> = {}
    for (const name of plan.workers.keys()) workers[name] = { bytes: 0, total: 0 }
    return await onEach('save', plan, async ({ info, entries }) => {
      const file = `${encodeURIComponent(info.name)}.${attempt}.safetensors`
      const items = noGrad(() => stream(info, workerFile.write, [directory, file, entries], { timeoutMs: 0, ...options }))
      let last = { bytes: 0, sha256: '' }
      for await (const { bytes, written, sha256 } of items) {
        last = { bytes, sha256 }
        workers[info.name] = { bytes: written, total: bytes }
        onProgress?.({ step, workers: structuredClone(workers) })
      }
      return [info.name, { file, ...last }]
    })
  }

  private async loadAll(
    plan: Plan,
    manifest: Manifest,
    directory: string,
    options: CheckpointCallOptions,
  ): Promise<Record<string, unknown>> {
    const token = currentRuntime().ids.take()
    const limits = { timeoutMs: 0, ...options }
    try {
      await onEach('load', plan, ({ info, entries }) => {
        // What is given back needs nothing to be put into.
        const wanted = entries.filter(({ kind }) => kind !== 'value')
        return noGrad(() => call(info, workerFile.stage, [token, directory, manifest.workers[info.name]!, wanted], limits))
      })
      const values = await onEach('load', plan, ({ info }) => noGrad(() => call(info, workerFile.loadStates, [token], limits)))
      await onEach('load', plan, ({ info }) => noGrad(() => call(info, workerFile.commit, [token], limits)))
      return Object.fromEntries(values.flat())
    } catch (error) {
      await Promise.allSettled([...plan.workers.values()].map(({ info }) => noGrad(() => call(info, workerFile.abandon, [token], limits))))
      throw error
    }
  }

  /**
   * What is not needed any more: other files of this step, incomplete checkpoints before it, complete ones beyond `keep`. Of this step only files that were there before this
   * save: as soon as its manifest is written another save may begin, if the worker that holds the save lock ends. Folders of earlier steps go whole.
   */
  private async clean(
    disk: CheckpointDisk,
    step: number,
    manifest: Manifest,
    before: { readonly steps: readonly string[]; readonly files: readonly string[] },
  ): Promise<void> {
    const directory = stepDirectory(this.directory, step)
    const needed = new Set([MANIFEST, ...Object.values(manifest.workers).map(({ file }) => file)])
    for (const name of before.files) if (!needed.has(name)) await disk.remove(join(directory, name))
    const complete = new Set(await this.stepsOf(disk))
    const { keep = Number.POSITIVE_INFINITY } = this.options
    // The one that has just been saved is kept, also where it goes on from an old step with newer ones still there.
    const old = [...complete].filter((each) => each !== step).slice(0, Math.max(0, complete.size - keep))
    for (const each of old) await disk.remove(join(stepDirectory(this.directory, each), MANIFEST))
    for (const name of before.steps) {
      const other = stepOf(name)
      if (other !== null && other < step && (old.includes(other) || !complete.has(other))) await disk.remove(join(this.directory, name))
    }
  }

  /**
   * While `fn` runs nobody else saves in the directory: the worker of the smallest id, which is the same for all, sees to it. When that one ends or leaves, another one is asked by
   * those who come then: so `fn` calls what it is given before it makes anything last, which rejects with CHECKPOINT_FAILED.
   */
  private alone<T>(step: number, options: CheckpointCallOptions, fn: (stillAlone: () => Promise<void>) => Promise<T>): Promise<T> {
    return this.inTurn(async () => {
      checkOptions('Checkpoints.save', options, ['timeoutMs', 'signal'])
      if (!Number.isSafeInteger(step) || step < 0 || step > 1e15 - 1) throw refused('an integer from 0 as step', String(step))
      const { info: self, clock } = currentRuntime()
      const asked = (): WorkerInfo => getWorkerInfos().reduce((a, b) => (a.id < b.id ? a : b), self)
      const holder = asked()
      const lost = (cause: unknown): PostgradError => failed('save', [holder.name], cause)
      const claim = noGrad(() => stream(holder, workerFile.claim, [this.directory, self.name], { timeoutMs: 0, ...options }))
      const next = () =>
        claim.next().catch((error: unknown) => {
          throw isPostgradError(error, 'CHECKPOINT_BUSY') ? error : lost(error)
        })
      await next()
      try {
        return await fn(async () => {
          if (!claim.isOpen) await next()
          if (!claim.isOpen || asked().id !== holder.id) throw lost('it keeps nobody else from saving any more')
        })
      } finally {
        // Awaited, so that whoever hears of this save's end may begin one; but that worker may be computing, and this save has ended.
        await new Promise<unknown>((resolve) => {
          const timer = clock.setTimer(RELEASE_MS, () => resolve(null))
          void claim
            .return()
            .catch(() => {})
            .then(resolve)
            .then(() => timer.cancel())
        })
      }
    })
  }

  private inTurn<T>(fn: () => Promise<T>): Promise<T> {
    const turn = this.last.then(fn, fn)
    this.last = turn.catch(() => {})
    return turn
  }
}

/** How long a save waits at its end until others may save. */
const RELEASE_MS = 1_000

/** Asks all workers and waits for all, so that nothing goes on when it rejects. */
async function onEach<T>(op: 'save' | 'load', plan: Plan, fn: (worker: PlannedWorker) => PromiseLike<T>): Promise<T[]> {
  const workers = [...plan.workers.values()]
  const ends = await Promise.allSettled(workers.map(fn))
  const names = workers.filter((_, i) => ends[i]!.status === 'rejected').map(({ info }) => info.name)
  if (names.length === 0) return ends.map((end) => (end as PromiseFulfilledResult<T>).value)
  const { reason } = ends.find((end) => end.status === 'rejected') as PromiseRejectedResult
  throw isCheckpointError(reason) ? reason : failed(op, names, reason)
}

function failed(op: 'save' | 'load' | 'clean', workers: readonly string[], cause: unknown): PostgradError {
  const remedies = {
    save: 'See the cause; earlier checkpoints are as they were.',
    load: 'See the cause; nothing was changed, unless a worker died in the middle.',
    clean: 'The new checkpoint is there; see the cause why older ones could not be removed.',
  }
  return new PostgradError('CHECKPOINT_FAILED', {
    op,
    message: `the checkpoint failed on ${workers.map((name) => `'${name}'`).join(', ')}: ${cause instanceof Error ? cause.message : String(cause)}`,
    remedy: remedies[op],
    cause,
    values: { workers },
  })
}

async function removeAttempt(disk: CheckpointDisk, directory: string, attempt: string): Promise<void> {
  try {
    for (const name of await disk.list(directory)) {
      if (name.includes(`.${attempt}.safetensors`)) await disk.remove(join(directory, name))
    }
  } catch {
    // The first error is the one to report; what is left is no checkpoint.
  }
}

function checkWorkers(manifest: Manifest, plan: Plan): void {
  const [saved, here] = [Object.keys(manifest.workers), [...plan.workers.keys()]]
  const missing = saved.find((name) => !plan.workers.has(name))
  const more = here.find((name) => manifest.workers[name] === undefined)
  if (missing === undefined && more === undefined) return
  throw mismatch(missing ?? more!, `the workers ${saved.join(', ')}`, here.join(', '))
}

function infoOf(directory: string, { step, workers }: Manifest): CheckpointInfo {
  return { step, directory, bytes: Object.values(workers).reduce((sum, { bytes }) => sum + bytes, 0), workers: Object.keys(workers) }
}
