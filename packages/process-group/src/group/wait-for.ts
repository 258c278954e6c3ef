/** Each work of a group waits here: until its deadline, a signal, or `cancel`. rpc's `standstill-watch.ts` watches every such wait. */
import type { PostgradError } from '@postgrad/base'
import { callCancelled, onAbort } from '@postgrad/base/internal'
import { standstillOf, type WaitAbout, type WorkerRuntime } from '@postgrad/rpc/internal'
import type { Work } from './work.js'

/** PyTorch's default of gloo, in ms. */
export const GROUP_TIMEOUT_MS = 30 * 60 * 1000

/** Of whatever may wait. */
export interface WaitOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface Waiting {
  readonly op: string
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  /** @param sinceMs when the wait began, on the worker's clock */
  about(sinceMs: number): WaitAbout
  timedOut(): PostgradError
  /** Ends the work with this error, and the wait. */
  giveUp(error: unknown): void
}

/** Gives what ends the wait; `giveUp` is not called afterwards. @throws RPC_SHUT_DOWN */
export function waitFor(runtime: WorkerRuntime, work: Work<never> | Work<unknown>, waiting: Waiting): () => void {
  const { op, timeoutMs, signal, giveUp } = waiting
  const sinceMs = runtime.clock.now()
  const wait = { op, about: () => waiting.about(sinceMs), onError: giveUp, timedOut: waiting.timedOut }
  const end = runtime.requests.wait(wait, timeoutMs)
  standstillOf(runtime).onWait()
  const canceller = { cancel: (reason: unknown) => giveUp(callCancelled(op, null, reason)) }
  const unlisten = signal && onAbort(signal, () => canceller.cancel(signal.reason))
  work.cancelWith(canceller)
  return () => {
    unlisten?.()
    end()
  }
}
