/**
 * Supervised workers: actor's supervisor with workers as its children. It starts them in order, restarts dead ones by its strategy, and stops them in reverse
 * order. If they die too often it gives up, which ends the cluster. `lifecycle.ts` starts and ends single workers for it.
 */
import { type Child, type ChildSpec, type RestartOptions, Supervisor } from '@postgrad/actor/internal'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import type { Target, WorkerInfo } from '@postgrad/rpc'
import { unknownWorker } from '@postgrad/rpc/internal'
import { Generator } from '@postgrad/tensor'
import type { Clock } from '@postgrad/transport'
import type { RemoteWorker } from '../admin/remote-worker.js'
import { checkFunctions, checkNames, type OptionNames } from '../options/check-options.js'
import { nameTaken } from './cluster-errors.js'

/** Options of supervision: when `launch` starts a dead worker again, and when it gives up. */
export interface SupervisionOptions extends RestartOptions {
  /** How long a worker may take to end when the supervisor stops it, in ms. Then it is killed. Default 5000. 0 kills it at once. */
  readonly shutdownMs?: number
  /**
   * Runs on the main thread after a worker was started again and before the next worker is started. Use this function to restore the worker's state
   * (`cluster.on(worker).run(…)`). If the function throws, the restart has failed, and the supervisor tries again.
   */
  readonly onRestart?: (worker: WorkerInfo) => unknown
}

const OPTIONS: OptionNames<SupervisionOptions> = {
  strategy: true,
  intensity: true,
  periodMs: true,
  minBackoffMs: true,
  maxBackoffMs: true,
  randomFactor: true,
  shutdownMs: true,
  onRestart: true,
}

/** A worker as its supervisor holds it. */
interface WorkerChild extends Child {
  readonly worker: RemoteWorker
}

/** What it asks of the cluster. */
export interface SupervisionHost {
  readonly clock: Clock
  /** Of all of them at the launch, of each later. */
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

/** How it is started for the first time. */
interface FirstStart {
  readonly op: string
  readonly timeoutMs: () => number
}

export class WorkerSupervisor extends Supervisor<WorkerChild> {
  private readonly options: SupervisionOptions
  private readonly host: SupervisionHost

  /** @throws INVALID_ARGUMENT, TIMEOUT_INVALID */
  constructor(names: readonly string[], options: SupervisionOptions, host: SupervisionHost) {
    checkNames('supervision', options, OPTIONS)
    checkFunctions('supervision', { onRestart: options.onRestart })
    const { clock } = host
    // For `randomFactor`: clusters of several processes are not to come back at once.
    const generator = new Generator(process.pid)
    const endMs = clock.now() + host.launchTimeoutMs
    const first: FirstStart = { op: 'launch', timeoutMs: () => Math.max(1, endMs - clock.now()) }
    const children = names.map((name) => childSpec(name, options, host, first))
    super({ ...options, clock, children, random: () => generator.uniform() })
    this.options = options
    this.host = host
  }

  has(name: string): boolean {
    return this.names.includes(name)
  }

  /** Adds workers one by one, all or none. */
  async join(op: string, names: readonly string[], limitMs: number): Promise<readonly WorkerInfo[]> {
    const added: WorkerInfo[] = []
    try {
      for (const name of names) {
        // The name of a dead worker is taken as well: it is started again.
        if (this.has(name)) throw nameTaken(op, name, 'is supervised')
        const spec = childSpec(name, this.options, this.host, { op, timeoutMs: () => limitMs })
        added.push((await this.add(spec)).worker.info)
      }
      return added
    } catch (error) {
      for (const { name } of added) await this.removeWorker(name).catch(() => {})
      throw this.refusal(op, names[added.length]!, error)
    }
  }

  async leave(op: string, name: string, target: Target): Promise<void> {
    await this.removeWorker(name).catch((error) => Promise.reject(this.refusal(op, target, error)))
  }

  async restartWorker(op: string, name: string, target: Target): Promise<WorkerInfo> {
    const { worker } = await this.restart(name).catch((error) => Promise.reject(this.refusal(op, target, error)))
    return worker.info
  }

  private async removeWorker(name: string): Promise<void> {
    await this.remove(name)
    this.host.forget(name)
  }

  /** What is refused. Changes take turns here: meanwhile the cluster may have been closed, the worker have left, or the name have been taken. */
  private refusal(op: string, target: Target, error: unknown): unknown {
    const closed = this.host.closedError(op)
    if (closed !== null) return closed
    if (isPostgradError(error, 'UNKNOWN_CHILD')) return unknownWorker(op, target, this.host.workers())
    if (isPostgradError(error, 'CHILD_NAME_TAKEN')) return nameTaken(op, String(target), 'is supervised')
    return error
  }
}

function childSpec(name: string, options: SupervisionOptions, host: SupervisionHost, first: FirstStart): ChildSpec<WorkerChild> {
  const { shutdownMs, onRestart } = options
  let isFirst = true
  return {
    name,
    ...(shutdownMs === undefined ? {} : { shutdownMs }),
    start: async () => {
      const worker = await (isFirst
        ? host.start(first.op, name, first.timeoutMs())
        : host.start('cluster.restart', name, host.launchTimeoutMs))
      if (!isFirst && onRestart !== undefined) await untilDone(worker, onRestart)
      isFirst = false
      return {
        worker,
        exited: worker.ended.then(() => ({ normal: worker.isExpectedToEnd, reason: worker.death('cluster') })),
        stop: (deadlineMs) => host.stop(worker, deadlineMs),
        kill: () => {
          // At the end of the time that it had to leave, which may be none.
          worker.isExpectedToEnd = true
          void worker.terminate()
        },
      }
    },
  }
}

/**
 * A start must settle: one that waits for the worker that it prepares ends with that worker, or with the time that a cluster has to close. A worker that was
 * not prepared is ended.
 */
async function untilDone(worker: RemoteWorker, onRestart: (worker: WorkerInfo) => unknown): Promise<void> {
  try {
    await worker.whileAlive('onRestart', async () => onRestart(worker.info))
  } catch (error) {
    await worker.terminate()
    throw error
  }
}
