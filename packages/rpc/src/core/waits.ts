/**
 * The waits of one worker: what its programs and the calls that it serves wait for, and on which workers. They explain a run that hangs (package
 * `testing` makes the graph of a whole cluster from them). Nothing is kept for it: all is read when it is asked for.
 */

import type { WorkerInfo } from '../common/worker-info.js'
import type { Peer } from './peer.js'
import type { PendingCall, PendingCalls } from './pending-calls.js'
import { OwnCall, type ServedCall } from './served-call.js'

/** A call as both its ends know it: who made it, and its number there. */
export interface CallKey {
  readonly caller: WorkerInfo
  readonly requestId: number
}

/** Something that is waited for. */
export interface Wait {
  readonly kind: 'call' | 'stream' | 'value' | 'room' | 'gather' | 'pass' | 'job' | 'collective'
  /** For a reader: the function, or what else. */
  readonly what: string
  /** Workers that would end it; empty: none is known here. */
  readonly on: readonly WorkerInfo[]
  /** The number under which the callee serves it; null if it is not a request. */
  readonly requestId: number | null
  /** The value that is waited for, where it is made. */
  readonly rrefId?: bigint
  /** The call that is being served here while this is waited for; null: none, a program of the worker's own. */
  readonly within: CallKey | null
}

/** A call that has come and not ended. */
export interface Serving extends CallKey {
  /** The value that it makes. */
  readonly rrefId: bigint | null
  /** It waits for its turn at a serial actor, which serves another call (null: a call of its own worker). */
  readonly turn: { readonly actor: string; readonly holder: CallKey | null } | null
}

export interface Waits {
  readonly waits: readonly Wait[]
  readonly serving: readonly Serving[]
}

export function keyOf(served: ServedCall | null): CallKey | null {
  return served === null || served instanceof OwnCall ? null : { caller: served.caller, requestId: served.requestId }
}

/** Requests to a peer that are not answered. */
export function* requestsTo({ info, pending }: Peer): Generator<Wait> {
  for (const [requestId, { op, parent, onItem }] of pending.entries()) {
    yield { kind: onItem === undefined ? 'call' : 'stream', what: op, on: [info], requestId, within: keyOf(parent) }
  }
}

/** Waits of a worker for itself. */
export function* ownWaits(pending: PendingCalls): Generator<Wait> {
  for (const [, call] of pending.entries()) yield ownWait(call)
}

function ownWait(call: PendingCall): Wait {
  const { kind, what, on = [], rrefId } = call.about?.() ?? { kind: 'value', what: call.op }
  return { kind, what, on, requestId: null, ...(rrefId === undefined ? {} : { rrefId }), within: keyOf(call.parent) }
}

/** Calls of a peer that have not ended here. */
export function* servedFor({ served }: Peer): Generator<Serving> {
  for (const [, call] of served.entries()) {
    const turn = call.turnAt === null ? null : { actor: call.turnAt.what, holder: keyOf(call.turnAt.holder) }
    yield { caller: call.caller, requestId: call.requestId, rrefId: call.owner?.rrefId ?? null, turn }
  }
}
