/**
 * Which workers are known to be dead, and who wants to hear of it. One register per worker; whoever notices a death (a closed link, a
 * thread's exit, a heartbeat) reports it, and everyone who waits for that worker learns so once, at once and by name.
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
   * Tells all watchers, unless this worker's death (its id; a restarted worker has a fresh one) is known already. Returns whether it was
   * news. What a watcher throws reaches the caller after all have been told (an AggregateError if several did).
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
