/** The protocol's entries for values and references (`rref-context.ts` fills them), and how they are shown (`rref-table.ts`). */
import { framesOnStack, isOwnFrame } from '@postgrad/base/internal'
import type { WorkerCore } from '../core/worker-core.js'
import type { OwnerRRef, RRef, UserRRef } from './rref.js'
import { type HeldReference, type OwnedReference, type References, typeName } from './rref-table.js'

/** A reference in a message that is sent. */
export interface SentFork {
  readonly rref: RRef
  readonly forkId: bigint
}

/** A reference in a message that waits in the mailbox. */
export interface ReceivedFork {
  readonly rref: RRef
  readonly forkId: bigint
}

/** A live reference of this worker to a value elsewhere, so that it may be collected. */
export interface TrackedUser {
  readonly ref: WeakRef<UserRRef>
  readonly rrefId: bigint
  readonly forkId: bigint
  readonly owner: number
  /** It must not hold the reference. */
  onEnd: (() => void) | null
}

/** One value of this worker that others refer to, or are about to. */
export class Owned {
  readonly rref: OwnerRRef
  /** Its holders, by fork id. */
  readonly forks = new Map<bigint, Holder>()
  readonly sinceMs: number
  /** False while only others have spoken of it, and the REMOTE_CALL that makes it is still on its way. Until then it stays, counted or not. */
  admitted: boolean
  /** References in messages, and calls of its methods, that arrived while it is not admitted: they wait here, or have had their turn. Null: none. */
  mentions: Set<object> | null = null

  constructor(rref: OwnerRRef, admitted: boolean, sinceMs: number) {
    this.rref = rref
    this.admitted = admitted
    this.sinceMs = sinceMs
  }
}

export interface Holder {
  readonly worker: number
  /** The number of the message, among those to that worker, in which this worker sent the fork; 0: it came about otherwise. */
  message: number
  readonly sinceMs: number
}

/** A reference that was sent on and whose receiver has not accepted it. */
export interface PendingChild {
  readonly parent: UserRRef
  readonly receiver: number
  message: number
}

export interface Tables {
  readonly owned: ReadonlyMap<bigint, Owned>
  readonly users: ReadonlyMap<bigint, TrackedUser>
  readonly pendingUsers: ReadonlyMap<bigint, UserRRef>
  readonly pendingChildren: ReadonlyMap<bigint, PendingChild>
}

/** PyTorch's keys (`rref_context_debug_info`), in camelCase. */
export function countsOf({ owned, users, pendingUsers, pendingChildren }: Tables): {
  ownerRRefs: number
  userRRefs: number
  forks: number
  pendingUsers: number
  pendingChildren: number
} {
  let forks = 0
  for (const of of owned.values()) forks += of.forks.size
  return {
    ownerRRefs: owned.size,
    userRRefs: users.size,
    forks,
    pendingUsers: pendingUsers.size,
    pendingChildren: pendingChildren.size,
  }
}

/** The tables as they are now. */
export function tablesOf(tables: Tables, core: WorkerCore, stacks: WeakMap<RRef, string> | null): References {
  const nowMs = core.clock.now()
  const owned: OwnedReference[] = [...tables.owned.values()].map(({ rref, forks, sinceMs }) => ({
    rrefId: rref.rrefId,
    type: rref.hasValue ? typeName(rref.localValue()) : rref.hasFailed ? 'error' : 'pending',
    ageMs: nowMs - sinceMs,
    holders: [...forks].map(([forkId, holder]) => ({
      forkId,
      worker: core.resolve(holder.worker),
      ageMs: nowMs - holder.sinceMs,
    })),
    madeAt: stacks?.get(rref) ?? null,
  }))
  // Disposed references that cannot end yet are in those tables alone.
  const users = new Set<UserRRef>([...tables.pendingUsers.values(), ...[...tables.pendingChildren.values()].map(({ parent }) => parent)])
  for (const { ref } of tables.users.values()) {
    const user = ref.deref()
    if (user !== undefined) users.add(user)
  }
  const held: HeldReference[] = [...users].map((user) => ({
    rrefId: user.rrefId,
    forkId: user.forkId,
    owner: user.owner(),
    confirmed: user.confirmed,
    disposed: user.deleted,
    children: user.children,
    ageMs: nowMs - user.sinceMs,
    madeAt: stacks?.get(user) ?? null,
  }))
  return { owned, held }
}

/** The frames of the program that have called this. */
export function stackOfProgram(): string {
  return framesOnStack()
    .filter((line) => !isOwnFrame(line))
    .join('\n')
}
