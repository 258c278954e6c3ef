/** The workers of a cluster under a supervisor (`supervision.ts`): started, added, removed and started anew by it, and refused in the cluster's words. */
import type { Supervisor } from '@postgrad/actor/internal'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import type { Target, WorkerInfo } from '@postgrad/rpc'
import type { Clock } from '@postgrad/transport'
import type { RemoteWorker } from '../admin/remote-worker.js'
import { attempt } from '../membership/launch-failed.js'
import { nameTaken, unknownWorker } from './cluster-errors.js'
import { type SupervisionOptions, superviseWorkers, type WorkerChild, type WorkerStarter, workerSpec } from './supervision.js'

/** What it asks of the cluster. */
export interface SupervisedHost {
  readonly clock: Clock
  readonly launchTimeoutMs: number
  readonly workers: () => readonly WorkerInfo[]
  /** Starts a worker, which is a member then. */
  start(op: string, name: string, timeoutMs: number): Promise<RemoteWorker>
  stop(worker: RemoteWorker, deadlineMs: number): Promise<void>
  /** Forgets a name whose worker has ended. */
  forget(name: string): void
  /** Null while the cluster takes work. */
  closedError(op: string): PostgradError | null
}

export class Supervised {
  private readonly options: SupervisionOptions
  private readonly host: SupervisedHost
  private readonly supervisor: Supervisor<WorkerChild>
  private isLaunched = false

  /** @throws LAUNCH_FAILED for wrong options */
  constructor(names: readonly string[], options: SupervisionOptions, host: SupervisedHost) {
    const { clock, launchTimeoutMs } = host
    const endMs = clock.now() + launchTimeoutMs
    this.options = options
    this.host = host
    const starter = this.starter(() =>
      this.isLaunched ? ['cluster.restart', launchTimeoutMs] : ['launch', Math.max(1, endMs - clock.now())],
    )
    this.supervisor = attempt('launch', null, () => superviseWorkers(names, clock, options, starter))
  }

  /** Starts the first of them one by one. Resolves with what comes when it has ended: SUPERVISOR_GAVE_UP, or null. */
  async begin(): Promise<{ readonly exited: Promise<PostgradError | null> }> {
    try {
      await this.supervisor.start()
    } catch (error) {
      throw isPostgradError(error, 'SUPERVISOR_START_FAILED') ? error.cause : error
    }
    this.isLaunched = true
    return { exited: this.supervisor.exited.then(({ reason }) => (reason as PostgradError | undefined) ?? null) }
  }

  has(name: string): boolean {
    return this.supervisor.names.includes(name)
  }

  /** Dead, and not started anew. */
  isDown(name: string): boolean {
    return this.has(name) && this.supervisor.isDown(name)
  }

  /** It has started this worker and is done with it, `onRestart` included. */
  isDoneWith(worker: RemoteWorker): boolean {
    return this.supervisor.child(worker.info.name)?.thread === worker
  }

  /** Resolves when it has nothing to do: whether nothing comes of what it did. */
  settled(): Promise<boolean> {
    return this.supervisor.settled()
  }

  stop(): Promise<void> {
    return this.supervisor.stop()
  }

  /** Adds them one by one, all or none. */
  async add(op: string, names: readonly string[], limitMs: number): Promise<readonly WorkerInfo[]> {
    const added: WorkerInfo[] = []
    try {
      for (const name of names) {
        // The name of a dead worker is taken as well: its supervisor starts it anew.
        if (this.has(name)) throw nameTaken(op, name, 'is supervised')
        const starter = this.starter(() => [op, limitMs])
        added.push((await this.supervisor.add(workerSpec(name, this.options, starter))).thread.info)
      }
      return added
    } catch (error) {
      for (const { name } of added) await this.removeChild(name).catch(() => {})
      throw this.refusal(op, names[added.length]!, error)
    }
  }

  async remove(op: string, name: string, target: Target): Promise<void> {
    await this.asked(op, target, this.removeChild(name))
  }

  async restart(op: string, name: string, target: Target): Promise<WorkerInfo> {
    return (await this.asked(op, target, this.supervisor.restart(name))).thread.info
  }

  private async asked<T>(op: string, target: Target, asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } catch (error) {
      throw this.refusal(op, target, error)
    }
  }

  private async removeChild(name: string): Promise<void> {
    await this.supervisor.remove(name)
    this.host.forget(name)
  }

  /** What the supervisor refuses. Changes take turns there: meanwhile the cluster may have been closed, the worker have left, or the name have been taken. */
  private refusal(op: string, target: Target, error: unknown): unknown {
    const closed = this.host.closedError(op)
    if (closed !== null) return closed
    if (isPostgradError(error, 'UNKNOWN_CHILD')) return unknownWorker(op, target, this.host.workers())
    if (isPostgradError(error, 'CHILD_NAME_TAKEN')) return nameTaken(op, String(target), 'is supervised')
    return error
  }

  private starter(now: () => readonly [op: string, timeoutMs: number]): WorkerStarter {
    return {
      start: (name) => {
        const [op, timeoutMs] = now()
        return this.host.start(op, name, timeoutMs)
      },
      stop: (worker, deadlineMs) => this.host.stop(worker, deadlineMs),
    }
  }
}
