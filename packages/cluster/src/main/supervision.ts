/**
 * Supervised workers: actor's supervisor with worker threads as its children. It starts them in order, starts anew what dies as its strategy has it,
 * stops them in reverse order, and gives up when that happens too often, which ends the cluster. `cluster.ts` above starts and ends single workers.
 */
import { type Child, type ChildSpec, type RestartOptions, Supervisor } from '@postgrad/actor/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import { Generator } from '@postgrad/tensor'
import type { Clock } from '@postgrad/transport'
import type { RemoteWorker } from '../admin/remote-worker.js'
import { checkFunctions, checkNames, type OptionNames } from '../options/check-options.js'

/** When `launch` starts a worker anew that has died. */
export interface SupervisionOptions extends RestartOptions {
  /** How long a worker may take to end in peace when it is stopped, in ms, before it is killed; 0 kills at once. Default 5000. */
  readonly shutdownMs?: number
  /**
   * Runs on the main thread after a worker was started anew and before the next one is: the place to give it back what it needs
   * (`cluster.on(worker).run(…)`). What it throws fails the restart, which is tried again.
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
export interface WorkerChild extends Child {
  readonly thread: RemoteWorker
}

export interface WorkerStarter {
  /** Starts a worker and says what is to be done before the next one. */
  start(name: string): Promise<RemoteWorker>
  stop(thread: RemoteWorker, deadlineMs: number): Promise<void>
}

export function workerSpec(name: string, { shutdownMs, onRestart }: SupervisionOptions, starter: WorkerStarter): ChildSpec<WorkerChild> {
  let isFirst = true
  return {
    name,
    ...(shutdownMs === undefined ? {} : { shutdownMs }),
    start: async () => {
      const thread = await starter.start(name)
      if (!isFirst && onRestart !== undefined) await untilDone(thread, onRestart)
      isFirst = false
      return {
        thread,
        exited: thread.ended.then(() => ({ normal: thread.isExpectedToEnd, reason: thread.death('cluster') })),
        stop: (deadlineMs) => starter.stop(thread, deadlineMs),
        kill: () => {
          // At the end of the time that it had to leave, which may be none.
          thread.isExpectedToEnd = true
          void thread.terminate()
        },
      }
    },
  }
}

/** @throws INVALID_ARGUMENT, TIMEOUT_INVALID */
export function superviseWorkers(
  names: readonly string[],
  clock: Clock,
  options: SupervisionOptions,
  starter: WorkerStarter,
): Supervisor<WorkerChild> {
  checkNames('supervision', options, OPTIONS)
  checkFunctions('supervision', { onRestart: options.onRestart })
  // For `randomFactor`: clusters of several processes are not to come back at once.
  const generator = new Generator(process.pid)
  const children = names.map((name) => workerSpec(name, options, starter))
  return new Supervisor({ ...options, clock, children, random: () => generator.uniform() })
}

/**
 * A start must settle: one that waits for the worker that it prepares ends with that worker, or with the time that a cluster has to close. A worker that was
 * not prepared is ended.
 */
async function untilDone(thread: RemoteWorker, onRestart: (worker: WorkerInfo) => unknown): Promise<void> {
  try {
    await thread.whileAlive('onRestart', async () => onRestart(thread.info))
  } catch (error) {
    await thread.terminate()
    throw error
  }
}
