/**
 * All calls (`main-thread.ts`) and runs (`controller.ts`) from the main thread to workers pass through here: a closed cluster refuses them, and an error
 * with the death of a worker gets the cause of that death.
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
