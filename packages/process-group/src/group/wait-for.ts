/** How each work of a group waits: by a deadline, a signal, and `cancel`. Every wait of a group is one of these. */
import type { PostgradError } from '@postgrad/base'
import { callCancelled, onAbort } from '@postgrad/base/internal'
import type { WaitAbout, WorkerRuntime } from '@postgrad/rpc/internal'
import type { Work } from './work.js'

/** Of whatever may wait. */
export interface WaitOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface Waiting {
  readonly op: string
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  about(): WaitAbout
  timedOut(): PostgradError
  /** Ends the work with this error, and the wait. */
  giveUp(error: unknown): void
}

/** Gives what ends the wait; `giveUp` is not called afterwards. @throws RPC_SHUT_DOWN */
export function waitFor(runtime: WorkerRuntime, work: Work<never> | Work<unknown>, waiting: Waiting): () => void {
  const { op, timeoutMs, signal, giveUp } = waiting
  const pending = {
    deadlineMs: Number.POSITIVE_INFINITY,
    parent: null,
    op,
    about: waiting.about,
    onReply: () => {},
    onError: giveUp,
    timedOut: waiting.timedOut,
  }
  const end = runtime.requests.wait(pending, timeoutMs, op)
  const canceller = { cancel: (reason: unknown) => giveUp(callCancelled(op, null, reason)) }
  const unlisten = signal && onAbort(signal, () => canceller.cancel(signal.reason))
  work.cancelWith(canceller)
  return () => {
    unlisten?.()
    end()
  }
}
