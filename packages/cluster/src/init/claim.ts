/**
 * How a process gets its rank and its id, by counters in the group's store: `init.ts` counts, and `meeting-guard.ts` checks which process counts what.
 *
 *     next-rank     how many processes have asked for any rank; rank 0 never asks
 *     rank/R        how many have wanted rank R
 *     successors    how many have wanted a rank after another process did
 */
import type { WorkerId } from '@postgrad/base'
import { checkWorkerId } from '@postgrad/base/internal'
import type { Store } from '@postgrad/transport'
import type { Place } from './init-method.js'

export interface Claim {
  readonly id: WorkerId
  readonly rank: number
  /** How many have wanted the rank before. */
  readonly before: number
}

export const NEXT_RANK = 'next-rank'
export const SUCCESSORS = 'successors'
export const rankKey = (rank: number): string => `rank/${rank}`

/** Where the group has no size, successors have ids that no rank will. */
const SUCCESSORS_FROM = 2 ** 14

/** The id of the n-th successor, from 1. */
export const successorId = (worldSize: number | null, n: number): WorkerId => (worldSize ?? SUCCESSORS_FROM) - 1 + n

/** A worker's id: its rank, and for one that takes the rank of another, one that nobody has had. Rejects as the store does, and with WORKER_ID_OUT_OF_RANGE if no id is left. */
export async function claim(store: Store, { rank, worldSize }: Pick<Place, 'rank' | 'worldSize'>): Promise<Claim> {
  // The first count is 1: rank 0 never asks.
  const place = rank ?? (await store.add(NEXT_RANK, 1))
  const before = (await store.add(rankKey(place), 1)) - 1
  const id = before === 0 ? place : successorId(worldSize, await store.add(SUCCESSORS, 1))
  checkWorkerId(id)
  return { id, rank: place, before }
}
