/**
 * Which workers are known to be dead, and who wants to hear of it. One register per worker; whoever notices a death (a closed link, a
 * thread's exit, a heartbeat) reports it, and everyone who waits for that worker learns so once, at once and by name.
 */
import { PostgradError, type WorkerHop } from '@postgrad/base'

/** How it was noticed. */
export type DeathCause = 'exited' | 'link-closed' | 'killed' | 'stalled' | 'left'

export interface WorkerDeath {
  readonly worker: WorkerHop
  readonly cause: DeathCause
  /** For a reader: an exit code, the link's detail, the error that ended the thread. */
  readonly detail: string
  /** When it was noticed, on the clock of the worker that noticed. */
  readonly atMs: number
}

export class Liveness {
  private readonly deaths = new Map<number, WorkerDeath>()
  private readonly watchers = new Set<(death: WorkerDeath) => void>()

  /**
   * Tells all watchers, unless this worker's death (its id; a restarted worker has a fresh one) is known already. Returns whether it was
   * news. What a watcher throws reaches the caller after all have been told (an AggregateError if several did).
   */
  report(death: WorkerDeath): boolean {
    if (this.deaths.has(death.worker.id)) return false
    this.deaths.set(death.worker.id, death)
    const errors: unknown[] = []
    for (const watcher of [...this.watchers]) {
      try {
        watcher(death)
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length === 1) throw errors[0]
    if (errors.length > 1) throw new AggregateError(errors, `${errors.length} watchers of the death of ${death.worker.name} threw`)
    return true
  }

  /** `fn` runs once for every death reported from now on. Returns its removal. */
  watch(fn: (death: WorkerDeath) => void): () => void {
    this.watchers.add(fn)
    return () => {
      this.watchers.delete(fn)
    }
  }

  /** The death of the worker with this id; undefined while nobody reported one. */
  deathOf(workerId: number): WorkerDeath | undefined {
    return this.deaths.get(workerId)
  }

  get all(): readonly WorkerDeath[] {
    return [...this.deaths.values()]
  }
}

/**
 * What everyone who waits for a dead worker gets. Code WORKER_DIED; values: worker, workerId, cause, detail, and restartedAs, the id under which
 * its name lives on, if it does.
 */
export function workerDied(op: string, death: WorkerDeath, restartedAs: number | null = null): PostgradError {
  const { worker, cause, detail } = death
  const how = cause === 'left' ? 'left the cluster' : `died: ${cause}${detail === '' ? '' : `, ${detail}`}`
  const after = restartedAs === null ? '' : `; its name lives on as a new worker (id ${restartedAs})`
  return new PostgradError('WORKER_DIED', {
    op,
    message: `worker '${worker.name}' (id ${worker.id}) ${how}${after}`,
    remedy:
      restartedAs === null && cause === 'left'
        ? 'Let nobody need a worker any more before it leaves; cluster.onWorkerLeft of launch tells of it.'
        : restartedAs === null
          ? 'What ended its thread is told to cluster.onWorkerDeath of launch; what it held is lost, and a worker started anew under its name has a fresh id.'
          : 'Call it by its name; what the former worker held is lost, so make values and references to them again.',
    values: { worker: worker.name, workerId: worker.id, cause, detail, ...(restartedAs === null ? {} : { restartedAs }) },
  })
}
