/** `ready`: waits until another worker has room for a call. Rules CRE-1 to CRE-12 in SPEC.md; `call-credits.ts` counts. */
import { Future } from '@postgrad/base'
import { callCancelled, checkSignal } from '@postgrad/base/internal'
import { type CallOptions, checkCallOptions } from '../common/call-options.js'
import { noCredit } from '../common/rpc-errors.js'
import type { Target } from '../common/worker-info.js'
import type { CreditWaiter } from '../core/call-credits.js'
import type { OwnWait } from '../core/pending-calls.js'
import type { WorkerCore } from '../core/worker-core.js'

/** The place is kept until the end of this turn. Rejects with UNKNOWN_WORKER, RPC_TIMEOUT, RPC_SHUT_DOWN, WORKER_DIED, CALL_CANCELLED. */
export function whenReady(core: WorkerCore, to: Target, options: CallOptions): Future<void> {
  const future = new Future<void>()
  try {
    begin(core, to, options, future)
  } catch (error) {
    future.reject(error)
  }
  return future
}

function begin({ peers, requests, messages, observer }: WorkerCore, to: Target, options: CallOptions, future: Future<void>): void {
  checkCallOptions('ready', options)
  const { signal } = options
  const peer = peers.resolve(to)
  const timeoutMs = requests.timeLeft(options.timeoutMs, 'ready', peer.info)
  messages.checkOpen(peer, 'ready')
  checkSignal(signal, 'ready', peer.info)
  const { outgoing } = peer.ledger
  if (outgoing.waiters.size === 0 && outgoing.reserve()) {
    future.resolve()
    return
  }
  const end = () => {
    endWait()
    outgoing.waiters.delete(waiter)
  }
  const waiter: CreditWaiter = {
    resolve: () => {
      end()
      future.resolve()
    },
    reject: (error) => {
      end()
      future.reject(error)
    },
  }
  const wait: OwnWait = {
    op: 'ready',
    about: () => ({ kind: 'room', what: `room for a call to worker '${peer.info.name}'`, on: [peer.info] }),
    onError: waiter.reject,
    timedOut: () => noCredit(peer.info, timeoutMs),
  }
  const endWait = requests.wait(wait, timeoutMs)
  observer?.noCredit('credit-stall', peer.info.name, '', outgoing)
  outgoing.waiters.add(waiter)
  future.cancelWith({ cancel: (reason) => waiter.reject(callCancelled('ready', peer.info, reason)) })
  if (signal !== undefined) future.cancelOn(signal)
}
