/**
 * The form of a reference in a message: its owner, its id, and the fork that its receiver gets. `rref-context.ts` writes and uses
 * the numbers; this file checks them when they come from another worker.
 */
import assert from 'node:assert'
import type { WorkerId } from '@postgrad/base'
import { WORKER_ID_MAX } from '@postgrad/base/internal'
import type { WorkerInfo } from '../common/worker-info.js'

/** The tag under which references travel. */
export const RREF_TAG = 0x20

/** A reference as a message carries it. */
export interface Fork {
  readonly owner: WorkerId
  readonly rrefId: bigint
  /** New for each place in each message. */
  readonly forkId: bigint
  /** Its sender. */
  readonly parent: WorkerId
}

export type PlainFork = readonly [owner: WorkerId, rrefId: bigint, forkId: bigint, parent: WorkerId]

/** An assertion that fails here makes the message unreadable: no worker that runs this code writes anything else. */
export function readFork(plain: unknown, peer: WorkerInfo): Fork {
  assert(Array.isArray(plain) && plain.length === 4)
  const [owner, rrefId, forkId, parent] = plain as unknown[]
  assert(Number.isInteger(owner) && (owner as number) >= 0 && (owner as number) <= WORKER_ID_MAX)
  assert(isId(rrefId) && isId(forkId))
  assert(parent === peer.id, 'a reference comes from who sends it')
  return { owner: owner as WorkerId, rrefId, forkId, parent: peer.id }
}

function isId(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= 0n && value < 1n << 64n
}
