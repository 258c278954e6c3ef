/**
 * A worker's register of dead workers. Code that notices a death (a closed link, a thread's exit, a heartbeat) reports it here, and the
 * register notifies all watchers at once, and once per death.
 */
import type { WorkerHop } from '@postgrad/base'
import type { WorkerDeath } from '@postgrad/base/internal'

/** A death with its time on the clock of the worker that noticed. */
export interface NoticedDeath extends WorkerDeath {
  readonly worker: WorkerHop
  readonly atMs: number
}

export class Liveness {
  private readonly deaths = new Map<number, NoticedDeath>()
  private readonly watchers = new Set<(death: NoticedDeath) => void>()

  /**
   * Notifies all watchers, unless the death of this id is known already (a restarted worker has a fresh one). Returns whether it was
   * news. If a watcher throws, the caller gets that after all have run (an AggregateError if several threw).
   */
  report(death: NoticedDeath): boolean {
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
  watch(fn: (death: NoticedDeath) => void): () => void {
    this.watchers.add(fn)
    return () => {
      this.watchers.delete(fn)
    }
  }

  /** The death of the worker with this id; undefined while nobody reported one. */
  deathOf(workerId: number): NoticedDeath | undefined {
    return this.deaths.get(workerId)
  }

  get all(): readonly NoticedDeath[] {
    return [...this.deaths.values()]
  }
}
