/**
 * A worker as another one knows it, itself included: the link to it, the requests to it, the calls served for it, and its `Standing`.
 * `peers.ts` has all of them.
 */
import type { Source } from '@postgrad/actor/internal'
import type { Link } from '@postgrad/transport'
import type { WorkerInfo } from '../common/worker-info.js'
import type { PeerDevices } from './device-map.js'
import type { Inflow } from './inflow.js'
import type { Outbox } from './outbox.js'
import type { PeerLedger } from './peer-ledger.js'
import type { PendingCalls } from './pending-calls.js'
import type { RequestTable } from './request-table.js'
import type { ServedCall } from './served-call.js'

/** How close a peer is to its end, as far as it has said. A peer never goes back. Its death is known to `Liveness`. */
export const Standing = {
  member: 0,
  /** The whole group ends, so its end will be no accident; until then it is a member. See `shutdown.ts`. */
  ending: 1,
  /** It will close its link. It still answers, but nobody should begin anything with it. */
  leaving: 2,
  /** It serves no more calls. See `leave.ts`. */
  closed: 3,
} as const
export type Standing = (typeof Standing)[keyof typeof Standing]

export interface Peer {
  readonly info: WorkerInfo
  /** Null: this worker itself, reached through encode, mailbox, decode like any other. */
  link: Link | null
  /** It calls and is called, and no group counts it. */
  readonly isGuest: boolean
  /** Decides what it may do here; see `Authority`. */
  role: string
  standing: Standing
  readonly source: Source
  readonly env: CodecEnv
  readonly pending: PendingCalls
  /** Its calls to this worker, by request id, from when they are received until they have ended. */
  readonly served: RequestTable<ServedCall>
  /** Counts the messages between it and this worker. */
  readonly ledger: PeerLedger
  /** Messages to it that wait for bytes of devices. */
  readonly outbox: Outbox
  /** Bounds its waiting messages; null: it is trusted, since its link cannot be paused. */
  readonly inflow: Inflow | null
}

/** Passed through the codec: who is at the other end, and what was noted of the references in the message that is being written or read. */
export interface CodecEnv {
  readonly peer: WorkerInfo
  readonly devices: PeerDevices
  sending: unknown[] | null
  received: unknown[] | null
}
