/** A run's snapshot for `ps` and `top`: plain data, a line of JSON each. `run-status.ts` sends it, `status-client.ts` reads it. */

import type { Progress } from 'postgrad/jobs'
import type { WorkerMetrics } from 'postgrad/types'
import type { Standing } from '../output/tracked-display.js'

/** Of the lines below: a reader of another one says so instead of guessing. */
export const SNAPSHOT_VERSION = 1

/** How long `ps` waits for a run's snapshot. A run that computes without end does not answer. */
export const CLIENT_WAIT_MS = 3000

export interface Snapshot {
  readonly version: number
  readonly pid: number
  readonly program: string
  readonly args: readonly string[]
  readonly upMs: number
  /** How often it was started again. */
  readonly restarts: number
  readonly workers: readonly WorkerRow[]
}

export interface WorkerRow {
  readonly name: string
  readonly id: number
  readonly state: string
  readonly progress: Progress | null
  /** Null: it has not said anything yet. */
  readonly counts: WorkerCounts | null
  /** False: it is too busy to answer, and `counts` are older. */
  readonly isFresh: boolean
  /** Null while nobody watches: it costs something to count. */
  readonly traffic: Traffic | null
}

export interface WorkerCounts {
  /** Calls that wait in the mailbox, now and at most. */
  readonly waiting: number
  readonly waitingMax: number
  /** Calls that it has begun to serve, and those that failed. */
  readonly served: number
  readonly failed: number
  /** Own calls without an answer. */
  readonly pending: number
  readonly contexts: number
  readonly passes: number
  /** RRefs to its values, and those that it holds to others'. */
  readonly owned: number
  readonly held: number
  readonly actors: number
  readonly heapBytes: number
  readonly buffersBytes: number
}

/** Messages since somebody watches. */
export interface Traffic {
  readonly sent: number
  readonly received: number
}

export function countsOf(debug: Readonly<Record<string, number>>, metrics: WorkerMetrics | undefined): WorkerCounts {
  const count = (key: string): number => debug[key] ?? 0
  return {
    waiting: metrics?.depth ?? 0,
    waitingMax: metrics?.depthMax ?? 0,
    served: metrics?.messages ?? 0,
    failed: metrics?.failed ?? 0,
    pending: count('pendingCalls'),
    contexts: count('autogradContexts'),
    passes: count('currentBackwardPasses'),
    owned: count('ownerRRefs'),
    held: count('userRRefs'),
    actors: count('actors'),
    heapBytes: count('heapUsedBytes'),
    buffersBytes: count('arrayBuffersBytes'),
  }
}

/** Where a snapshot's workers come from. */
export interface StatusSource {
  readonly restarts: number
  /** Never rejects: workers without an answer in time have older counts. */
  workers(): Promise<readonly WorkerRow[]>
  /** Counts messages from now on, until the returned function is called. Never rejects. */
  watch(): Promise<() => void>
}

export interface Board {
  standingOf(worker: string): Standing
}
