/**
 * Decides what a visitor of a group's store may do there, by its proven identity. Rank 0, which serves the store, asks it about each request
 * (`meeting-store.ts`). It reads the group's log (`group-log.ts`), which says who is in the group.
 *
 * Note [Who may write what]. All read one log, and no entry of it says who wrote it. So the guard checks each entry when it is written:
 * - A visitor may write that it has joined or left, but only of itself. Only rank 0 writes that a process has died.
 * - Roles that `rights` names are restricted. Their visitors may do what joining needs: count themselves once, at a free rank; join with the id that follows; leave.
 *   They may use the rest of the store only if their rights have `stores`.
 * - A restricted visitor may not take a name or a rank that a worker of another role has, has had, or wants. If it came first, the guard puts it out when the other
 *   comes: an entry says that it has died. Its counts stay, so the other gets a new id, as a process that takes the rank of a dead one.
 * - The writes of all restricted roles together are bounded, so that others find room; one identity may use half of what its role may.
 */

import { PostgradError } from '@postgrad/base'
import { TextDecoder, TextEncoder } from '@postgrad/base/internal'
import type { RoleRights } from '@postgrad/rpc'
import {
  Budget,
  type GuardedRequest,
  type Holder,
  NOBODY,
  type OverBudget,
  type Share,
  type StoreGuard,
} from '@postgrad/transport/internal'
import { NEXT_RANK, rankKey, SUCCESSORS, successorId } from './claim.js'
import { type Arrival, type Departure, type GroupEntry, isSaidBy, keyOf, parseEntry } from './group-log.js'
import type { Visitor } from './presence.js'

/** What the guard needs of the store that is served. */
export interface GuardedTable {
  valueOf(key: string): Uint8Array | undefined
  set(key: string, value: string): void
}

export interface MeetingGuardOptions {
  readonly table: GuardedTable
  /** Under which the group's log and counters lie. */
  readonly prefix: string
  readonly worldSize: number | null
  /** By roles; those that it names are restricted. */
  readonly rights: Readonly<Record<string, RoleRights>>
}

/** Of all groups in the store, whatever their round. */
const RESERVED = 'postgrad/'
/** Keys that a store holds. Restricted roles make a quarter as many changes, of which a visit needs four, and one identity half of those. */
const CHANGES_MAX = 65_536
/** Of an entry of a restricted role; it has some 300. */
const ENTRY_BYTES_MAX = 1024

const decoder = new TextDecoder()

/** What a visitor of a restricted role has counted. */
interface Counted {
  /** What it was given by NEXT_RANK. */
  given: number | null
  rank: number | null
  /** Null: it has to count itself among the successors first. */
  id: number | null
}

export class MeetingGuard {
  private readonly table: GuardedTable
  private readonly prefix: string
  private readonly worldSize: number | null
  private readonly rights: Readonly<Record<string, RoleRights>>
  /** The first place of the log that is free, as far as it was read. */
  private next = 0
  /** All that have ever come, by their ids; a second one of an id does not count. */
  private readonly known = new Map<number, Arrival>()
  private readonly living = new Set<Arrival>()
  /** Of workers whose roles are not restricted. Rank 0 serves the store. */
  private readonly names = new Set<string>()
  private readonly ranks = new Set<number>([0])
  /** By visitor. */
  private readonly counted = new Map<string, Counted>()
  private readonly changes = new Budget(CHANGES_MAX)

  constructor({ table, prefix, worldSize, rights }: MeetingGuardOptions) {
    this.table = table
    this.prefix = prefix
    this.worldSize = worldSize
    this.rights = rights
  }

  /** For a connection of this visitor. */
  of(visitor: Visitor, holder: Holder = NOBODY): StoreGuard {
    if (this.isRestricted(visitor.role)) {
      // Never given back: what was written stays.
      const changes = this.changes.share(holder, true)
      return { isRestricted: true, check: (request, segments) => this.checkRestricted(visitor, changes, request, segments) }
    }
    return { check: (request, segments) => this.checkOther(visitor, request, segments) }
  }

  private isRestricted(role: string): boolean {
    return Object.hasOwn(this.rights, role)
  }

  private checkOther(visitor: Visitor, request: GuardedRequest, segments: readonly Uint8Array[]): void {
    if (!isChange(request) || !request.key.startsWith(this.prefix)) return
    this.readOn()
    const key = request.key.slice(this.prefix.length)
    const place = placeIn(key)
    if (place !== null) {
      const entry = this.entryOf(visitor, request, place, segments)
      if (entry?.what === 'joined') this.makeRoom((one) => one.name === entry.name || one.rank === entry.rank)
      return
    }
    const rank = rankIn(key)
    if (rank === null || request.op !== 'add') return
    this.ranks.add(rank)
    this.makeRoom((one) => one.rank === rank)
  }

  private checkRestricted(visitor: Visitor, changes: Share, request: GuardedRequest, segments: readonly Uint8Array[]): void {
    const { op } = request
    if (op === 'numKeys') {
      if (!this.hasStores(visitor)) throw refused(visitor, op)
      return
    }
    for (const key of op === 'wait' || op === 'check' ? request.keys : [request.key]) {
      if (!this.isReached(visitor, request, key)) throw refused(visitor, op, key)
    }
    if (!isChange(request) || !request.key.startsWith(this.prefix)) return
    const over = changes.take(1)
    if (over !== null) throw full(visitor, op, over)
    let isMade = false
    try {
      isMade = this.isNextStep(visitor, request, segments)
    } finally {
      if (!isMade) changes.give(1)
    }
  }

  /** Whether anything is changed. @throws NOT_PERMITTED unless joining or leaving has it */
  private isNextStep(visitor: Visitor, request: Change, segments: readonly Uint8Array[]): boolean {
    this.readOn()
    const key = request.key.slice(this.prefix.length)
    const place = placeIn(key)
    if (place === null) {
      this.count(visitor, request, key)
      return true
    }
    const { op } = request
    const entry = this.entryOf(visitor, request, place, segments)
    if (entry === null) return false
    if (segments[1]!.length > ENTRY_BYTES_MAX) throw refused(visitor, op, request.key, `an entry of more than ${ENTRY_BYTES_MAX} bytes`)
    if (entry.what === 'joined') this.checkArrival(visitor, request, entry)
    return true
  }

  /** Whether it may reach a key: the program's with `stores`, its own group's log. Changes there are checked after this. */
  private isReached(visitor: Visitor, request: GuardedRequest, key: string): boolean {
    if (!key.startsWith(RESERVED)) return this.hasStores(visitor)
    return key.startsWith(this.prefix) && (isChange(request) || placeIn(key.slice(this.prefix.length)) !== null)
  }

  private hasStores({ role }: Visitor): boolean {
    return this.rights[role]!.stores === true
  }

  /**
   * The entry that this request would put into the log; null if its place is taken: that entry stays, and the client gets it.
   * @throws NOT_PERMITTED if it is not its own
   */
  private entryOf(visitor: Visitor, request: Change, place: number, [expected, text]: readonly Uint8Array[]): GroupEntry | null {
    const { op, key } = request
    if (op !== 'compareSet' || expected!.length > 0) throw refused(visitor, op, key, 'what changes an entry of the group’s log')
    if (place < this.next) return null
    if (place > this.next) throw refused(visitor, op, key, 'an entry after a place that is free')
    const entry = parseEntry(decoder.decode(text))
    if (entry === null) throw refused(visitor, op, key, 'something other than an entry')
    if (entry.what === 'joined' ? !isSaidBy(entry, visitor) : !this.isOwnEnd(visitor, entry)) {
      throw refused(visitor, op, key, `'${entry.what}' of another`)
    }
    return entry
  }

  private isOwnEnd(visitor: Visitor, { what, id }: Departure): boolean {
    const arrival = this.known.get(id)
    return what === 'left' && arrival !== undefined && this.living.has(arrival) && isSaidBy(arrival, visitor)
  }

  /** @throws NOT_PERMITTED unless it is what it has counted itself for, and nobody's */
  private checkArrival(visitor: Visitor, { op, key }: Change, { id, name, rank, worldSize }: Arrival): void {
    const counted = this.counted.get(keyOfVisitor(visitor))
    const isCounted = counted !== undefined && counted.rank === rank && counted.id === id && worldSize === this.worldSize
    if (!isCounted || this.known.has(id)) throw refused(visitor, op, key, 'an arrival at a place that it has not been given')
    const isTaken = this.names.has(name) || this.ranks.has(rank) || [...this.living].some((one) => one.name === name || one.rank === rank)
    if (isTaken) throw refused(visitor, op, key, 'the name or rank of another')
  }

  /** @throws NOT_PERMITTED unless it is the next step of joining */
  private count(visitor: Visitor, request: Change, key: string): void {
    const { op } = request
    if (op !== 'add' || request.amount !== 1) throw refused(visitor, op, request.key)
    const known = this.counted.get(keyOfVisitor(visitor))
    const counted = known ?? { given: null, rank: null, id: null }
    const number = Number(decoder.decode(this.table.valueOf(request.key) ?? ZERO)) + 1
    const rank = rankIn(key)
    if (key === NEXT_RANK && this.worldSize === null && counted.given === null) counted.given = number
    else if (key === SUCCESSORS && counted.rank !== null && counted.id === null) counted.id = successorId(this.worldSize, number)
    else if (rank !== null && counted.rank === null && this.isOpen(rank, counted)) {
      counted.rank = rank
      if (number === 1) counted.id = rank
    } else throw refused(visitor, op, request.key, 'what it was not given, or has had')
    if (known === undefined) this.counted.set(keyOfVisitor(visitor), counted)
  }

  /** In a group of no fixed size ranks that nobody was given would be in the way of who comes later. */
  private isOpen(rank: number, { given }: Counted): boolean {
    return (this.worldSize === null ? rank === given : rank < this.worldSize) && !this.ranks.has(rank)
  }

  /** Puts out the restricted workers that are in the way. */
  private makeRoom(isInTheWay: (one: Arrival) => boolean): void {
    for (const one of [...this.living]) {
      if (!this.isRestricted(one.role) || !isInTheWay(one)) continue
      const entry: Departure = { what: 'died', id: one.id, detail: 'its name or rank is that of a worker of another role, which has come' }
      this.table.set(`${this.prefix}${keyOf(this.next)}`, JSON.stringify(entry))
      this.readOn()
    }
  }

  private readOn(): void {
    for (;;) {
      const bytes = this.table.valueOf(`${this.prefix}${keyOf(this.next)}`)
      if (bytes === undefined) return
      this.next++
      const entry = parseEntry(decoder.decode(bytes))
      if (entry !== null) this.note(entry)
    }
  }

  private note(entry: GroupEntry): void {
    const known = this.known.get(entry.id)
    if (entry.what !== 'joined') {
      if (known !== undefined) this.living.delete(known)
      return
    }
    if (known !== undefined) return
    this.known.set(entry.id, entry)
    this.living.add(entry)
    if (this.isRestricted(entry.role)) return
    this.names.add(entry.name)
    this.ranks.add(entry.rank)
  }
}

type Change = Extract<GuardedRequest, { done: number }>

const isChange = (request: GuardedRequest): request is Change => 'done' in request

const ZERO = new TextEncoder().encode('0')

const keyOfVisitor = ({ name, id, role }: Visitor): string => `${name}#${id}#${role}`

/** Which place of the log it is; null: none. A number has one way to be written. */
function placeIn(key: string): number | null {
  const place = Number(key.slice(key.indexOf('/') + 1))
  return Number.isSafeInteger(place) && place >= 0 && key === keyOf(place) ? place : null
}

function rankIn(key: string): number | null {
  const rank = Number(key.slice(key.indexOf('/') + 1))
  return Number.isSafeInteger(rank) && rank >= 0 && key === rankKey(rank) ? rank : null
}

/** For who has asked: what it wanted, and nothing of what others may. */
function refused({ name, role }: Visitor, op: string, key?: string, what?: string): PostgradError {
  const wanted = key === undefined ? op : `${op} of ${JSON.stringify(key.slice(0, 100))}`
  return new PostgradError('NOT_PERMITTED', {
    op,
    expected: 'what a worker of its role may have done in the store of the group',
    got: `${wanted} by '${name}', whose role is '${role}'${what === undefined ? '' : `: ${what}`}`,
    remedy:
      'The process that serves the store says what a role may do, by { rights }; its { stores } is for keys of the program. Nothing was changed.',
    values: { caller: name, role, ...(key === undefined ? {} : { key: key.slice(0, 100) }) },
  })
}

function full({ name, role }: Visitor, op: string, { level, limit }: OverBudget): PostgradError {
  return new PostgradError('STORE_LIMIT', {
    op,
    expected: `at most ${limit} changes of the group’s log by ${level === 'identity' ? 'one identity in a role' : 'all workers of roles'} that { rights } names`,
    got: `one more, by '${name}', whose role is '${role}'`,
    remedy: 'Look at who comes and goes so often. A group that is started again has a new log.',
    values: { limit, caller: name, role },
  })
}
