/**
 * Errors of remote calls that no use of the reference has met. Nobody would notice them, so each becomes a dead letter when no use can come any more: with
 * the last reference, or when the worker closes. `rref-context.ts` says when a reference ends. Rule RREF-37.
 */
import { workerOf } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'
import type { WorkerCore } from '../core/worker-core.js'
import type { OwnerRRef } from './rref.js'

export class UnseenFailures {
  private readonly core: WorkerCore
  /** The texts of their letters, by the id of the reference. */
  private readonly texts = new Map<bigint, string>()
  /** This worker's own references are not counted; null: nothing may depend on the collector. */
  private readonly finalizer: FinalizationRegistry<bigint> | null

  constructor(core: WorkerCore) {
    this.core = core
    this.finalizer = core.options.finalizers === 'report' ? null : new FinalizationRegistry((rrefId) => this.tell(rrefId))
    core.onClose(() => {
      for (const rrefId of [...this.texts.keys()]) this.tell(rrefId)
    })
  }

  /** The value could not be made. `isHeld`: whether a use of it can still come. */
  add(rref: OwnerRRef, what: string, error: unknown, isHeld: boolean): void {
    const { rrefId } = rref
    if (!this.core.isClosed) {
      this.texts.set(rrefId, `${what}: ${plainText(error)}`)
      rref.onErrorMet = () => this.texts.delete(rrefId)
    }
    rref.setError(error)
    if (!isHeld) this.tell(rrefId)
    else if (this.texts.has(rrefId) && workerOf(rrefId) === this.core.info.id) this.finalizer?.register(rref, rrefId)
  }

  /** No use of it can come any more. */
  tell(rrefId: bigint): void {
    const text = this.texts.get(rrefId)
    if (text === undefined) return
    this.texts.delete(rrefId)
    this.core.letter('unwatched-crash', text)
  }
}
