/**
 * A group whose members come and go, by a store: a list of events to which each adds behind the last, by `compareSet`, so that there is one order and no gap,
 * whoever dies when. Who adds has read all before it, so two never have one name. Who dies does not leave by itself: whoever notices says it. Groups of a
 * known size: `rendezvous.ts`.
 *
 *     members/<cluster>/<round>/0   {"join": {name, addresses, id: 0}, word}
 *                               1   {"join": {name, addresses, id: 1}, word}
 *                               2   {"leave": 0, word}                           word: a number that no other has
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { PrefixStore } from './prefix-store.js'
import { checkAddresses, parsed } from './rendezvous.js'
import type { Store } from './store.js'
import { textOf } from './store-values.js'

/** One worker of a group that has no fixed size. */
export interface GroupMember {
  readonly name: string
  /** As 'tcp://host:port' or 'unix:/path'. */
  readonly addresses: readonly string[]
  /** Counted from 0; never given twice in a round. */
  readonly id: number
}

/** What happened to a group. */
export type MemberEvent = { readonly join: GroupMember } | { readonly leave: GroupMember }

/** Which group it is. */
export interface GroupOptions {
  /** Keeps clusters apart that share a store. Default 'default'. */
  readonly cluster?: string
  /** Default 0. */
  readonly round?: number
}

/** Of `joinMembers`. */
export interface JoinOptions extends GroupOptions {
  /** Unique among those who are there. */
  readonly name: string
  /** Where others reach this worker: 'tcp://host:port' or 'unix:/path'. */
  readonly addresses: readonly string[]
}

/** What was read of a group so far. */
interface GroupLog {
  readonly there: Map<number, GroupMember>
  next: number
  /** The id of who comes next. */
  nextId: number
}

/**
 * Adds a member, and gives it with those who are there, itself among them.
 * @throws (rejects) RENDEZVOUS_CONFLICT for a name that one of them has, INVALID_ARGUMENT, and what the store says
 */
export async function joinMembers(store: Store, options: JoinOptions): Promise<{ self: GroupMember; members: readonly GroupMember[] }> {
  const { name, addresses } = options
  if (typeof name !== 'string' || name === '') {
    throw new PostgradError('INVALID_ARGUMENT', { op: 'joinMembers', expected: 'a name', got: JSON.stringify(name) ?? String(name) })
  }
  checkAddresses('joinMembers', addresses)
  const group = groupIn(store, options)
  // Who comes at the same time with the same name must not take the other's word for its own.
  const word = await group.add('words', 1)
  const log = emptyLog()
  for (;;) {
    const other = [...log.there.values()].find((member) => member.name === name)
    if (other !== undefined) {
      // It may have left further on.
      if (!(await group.check([`${log.next}`]))) throw nameTaken(name, addresses, other)
      read(log, await group.getText(`${log.next}`))
      continue
    }
    const self: GroupMember = { name, addresses: [...addresses], id: log.nextId }
    const own = JSON.stringify({ join: self, word })
    const text = textOf(await group.compareSet(`${log.next}`, '', own))
    read(log, text)
    if (text === own) return { self, members: [...log.there.values()] }
  }
}

/** Says that a member is gone: by itself, or by whoever noticed. Of several who say it, one has said it: true for that one. */
export async function leaveMembers(store: Store, id: number, options: GroupOptions = {}): Promise<boolean> {
  const group = groupIn(store, options)
  const log = emptyLog()
  const own = JSON.stringify({ leave: id, word: await group.add('words', 1) })
  for (;;) {
    const key = `${log.next}`
    if (log.there.has(id)) {
      const text = textOf(await group.compareSet(key, '', own))
      read(log, text)
      if (text === own) return true
    } else if (await group.check([key])) {
      read(log, await group.getText(key))
    } else {
      return false
    }
  }
}

/**
 * All joins and leaves from the first on, then those to come; ends when the signal says so.
 * @throws (rejects) what the store says, as when it is closed
 */
export async function* members(
  store: Store,
  options: GroupOptions & { readonly signal?: AbortSignal } = {},
): AsyncGenerator<MemberEvent, void, undefined> {
  const group = groupIn(store, options)
  const { signal } = options
  const log = emptyLog()
  for (;;) {
    let text: string
    try {
      text = await group.getText(`${log.next}`, signal === undefined ? { timeoutMs: 0 } : { timeoutMs: 0, signal })
    } catch (error) {
      if (signal?.aborted && isPostgradError(error, 'STORE_CANCELLED')) return
      throw error
    }
    const event = read(log, text)
    if (event !== null) yield event
  }
}

function groupIn(store: Store, { cluster = 'default', round = 0 }: GroupOptions): Store {
  return new PrefixStore(`members/${encodeURIComponent(cluster)}/${round}`, store)
}

const emptyLog = (): GroupLog => ({ there: new Map(), next: 0, nextId: 0 })

/** Null when it says nothing new: two may say of one that it is gone. */
function read(log: GroupLog, text: string): MemberEvent | null {
  const event = parsed<{ join: GroupMember } | { leave: number }>('members', text)
  log.next++
  if ('join' in event) {
    log.nextId++
    log.there.set(event.join.id, event.join)
    return { join: event.join }
  }
  const gone = log.there.get(event.leave)
  log.there.delete(event.leave)
  return gone === undefined ? null : { leave: gone }
}

function nameTaken(name: string, addresses: readonly string[], other: GroupMember): PostgradError {
  return new PostgradError('RENDEZVOUS_CONFLICT', {
    op: 'joinMembers',
    expected: 'a name that no other has',
    got: `'${name}' at ${addresses.join(', ')}, which is there already, at ${other.addresses.join(', ')}`,
    remedy: 'Give each worker a name of its own; of one that has died say first that it is gone: leaveMembers(store, id).',
    values: { name, id: other.id },
  })
}
