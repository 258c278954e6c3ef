/**
 * What the main thread asks of workers, by a call (`main-thread.ts`) or a run (`controller.ts`), goes through here: nothing is asked of a cluster that has
 * been closed, and whoever is answered with a death learns what ended the worker.
 */
import type { PostgradError } from '@postgrad/base'
import { quietAtOwnEnd } from '@postgrad/base/internal'
import { explainDeaths, type FindDeath } from './death-cause.js'

export class Gate {
  /** Null while the cluster takes work. */
  readonly closedError: (op: string) => PostgradError | null
  private readonly findDeath: FindDeath

  constructor(closedError: (op: string) => PostgradError | null, findDeath: FindDeath) {
    this.closedError = closedError
    this.findDeath = findDeath
  }

  get isOpen(): boolean {
    return this.closedError('cluster') === null
  }

  /** @throws CLUSTER_CLOSED */
  admit(op: string): void {
    const error = this.closedError(op)
    if (error !== null) throw error
  }

  /** What `work` gives, which begins at once. Rejects with CLUSTER_CLOSED, and with what `work` throws. */
  through<T>(op: string, work: () => T): Promise<Awaited<T>> {
    return quietAtOwnEnd(this.pass(op, work))
  }

  private async pass<T>(op: string, work: () => T): Promise<Awaited<T>> {
    this.admit(op)
    try {
      return await work()
    } catch (error) {
      await explainDeaths(error, this.findDeath)
      throw error
    }
  }
}
