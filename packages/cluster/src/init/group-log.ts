/**
 * The log of a group in its store: who has joined, left and died. All processes append, and all read the same entries in the same order. `group.ts` makes
 * links of it. `compareSet` puts an entry at the first free place, so the log has no holes, even if a process dies while appending.
 */
import { PostgradError } from '@postgrad/base'
import { TextDecoder, WORKER_ID_MAX } from '@postgrad/base/internal'
import type { Store } from '@postgrad/transport'
import { isRole, isWorkerName, parseAddress } from '@postgrad/transport/internal'
import type { Visitor } from './presence.js'

/** A process that has come: its worker, and where it listens. */
export interface Arrival {
  readonly what: 'joined'
  readonly id: number
  readonly name: string
  readonly rank: number
  /** Null: the group has no fixed size. */
  readonly worldSize: number | null
  readonly addresses: readonly string[]
  /** The id with which it dials rank 0 or the keeper, so they know whose connection has ended. */
  readonly visitor: number
  /** Its role, proven to rank 0 when it dialled the store; all its connections have this role. */
  readonly role: string
}

/** A process whose worker is no longer a member. */
export interface Departure {
  readonly what: 'left' | 'died'
  readonly id: number
  /** For a reader. */
  readonly detail: string
}

export type GroupEntry = Arrival | Departure

const decoder = new TextDecoder()
/** Of one process. */
const ADDRESSES_MAX = 64

export class GroupLog {
  private readonly store: Store
  private next = 0

  /** @param store of this group alone */
  constructor(store: Store) {
    this.store = store
  }

  /** Rejects as the store does. */
  async append(entry: GroupEntry): Promise<void> {
    const text = JSON.stringify(entry)
    for (let place = this.next; ; place++) {
      const there = await this.store.compareSet(keyOf(place), '', text)
      if (decoder.decode(there) === text) return
    }
  }

  /** The next entry, when there is one. Rejects as the store does, and with GROUP_LOG_INVALID; the next call then reads the entry after it. */
  async read(options: { readonly timeoutMs: number; readonly signal?: AbortSignal }): Promise<GroupEntry> {
    const key = keyOf(this.next)
    const text = await this.store.getText(key, options)
    this.next++
    const entry = parseEntry(text)
    if (entry === null) throw invalid(key, text)
    return entry
  }
}

export const keyOf = (place: number): string => `entry/${place}`

/** Whether the entry is about the visitor itself. */
export function isSaidBy({ name, visitor, role }: Arrival, by: Visitor): boolean {
  return name === by.name && visitor === by.id && role === by.role
}

/** Null if the text is not an entry. Nothing in it is trusted. */
export function parseEntry(text: string): GroupEntry | null {
  let entry: unknown
  try {
    entry = JSON.parse(text)
  } catch {
    return null
  }
  return isArrival(entry) || isDeparture(entry) ? entry : null
}

function isArrival(value: unknown): value is Arrival {
  const { what, id, name, rank, worldSize, addresses, visitor, role } = Object(value) as Partial<Arrival>
  if (what !== 'joined' || !isId(id) || !isWorkerName(name) || !isCount(rank) || !isCount(visitor) || !isRole(role)) return false
  return (
    (worldSize === null || (isCount(worldSize) && (rank as number) < (worldSize as number))) &&
    Array.isArray(addresses) &&
    addresses.length <= ADDRESSES_MAX &&
    addresses.every(isAddress)
  )
}

function isDeparture(value: unknown): value is Departure {
  const { what, id, detail } = Object(value) as Partial<Departure>
  return (what === 'left' || what === 'died') && isId(id) && typeof detail === 'string'
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

const isId = (value: unknown): boolean => isCount(value) && (value as number) <= WORKER_ID_MAX

function isAddress(value: unknown): boolean {
  try {
    return typeof value === 'string' && parseAddress(value) !== null
  } catch {
    return false // whatever is wrong with it
  }
}

function invalid(key: string, text: string): PostgradError {
  return new PostgradError('GROUP_LOG_INVALID', {
    op: 'init',
    expected: `who has joined, left or died, under '${key}' of the store`,
    got: JSON.stringify(text.slice(0, 100)),
    remedy: 'Use a store of its own for each group, and the same version of postgrad in all processes.',
    values: { key },
  })
}
