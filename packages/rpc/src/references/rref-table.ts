/**
 * Who holds what, and since when: the protocol's tables in a form that can be read, printed and sent. `rref-context.ts` fills them; whoever ends a
 * cluster looks here for what nobody has given up.
 */
import type { WorkerInfo } from '../common/worker-info.js'

/** A value of a worker that others refer to. */
export interface OwnedReference {
  /** The value's id. */
  readonly rrefId: bigint
  /** The class of the value, or its type; 'error' if it could not be made, 'pending' while it is being made. */
  readonly type: string
  /** Since it was first shared or spoken of, in ms. */
  readonly ageMs: number
  /** Who holds references to it. */
  readonly holders: readonly { readonly forkId: bigint; readonly worker: WorkerInfo; readonly ageMs: number }[]
  /** The stack of where its reference was made, if the worker keeps them (`referenceStacks`) and it was made here. */
  readonly madeAt: string | null
}

/** A reference that a worker holds to a value elsewhere. */
export interface HeldReference {
  /** The value's id. */
  readonly rrefId: bigint
  /** The id of this reference. */
  readonly forkId: bigint
  /** The worker on which the value lives. */
  readonly owner: WorkerInfo
  /** The owner has it in its table. */
  readonly confirmed: boolean
  /** Its program has given it up; it waits for its owner's word or for its children. */
  readonly disposed: boolean
  /** References made from it which their receivers have not accepted yet. */
  readonly children: number
  /** Since it was made or came here, in ms. */
  readonly ageMs: number
  /** The stack of where it was made, if the worker keeps them (`referenceStacks`) and it was made here. */
  readonly madeAt: string | null
}

/** The references of a worker: to values of its own, and those it holds to values of others. */
export interface References {
  /** To values that live here. */
  readonly owned: readonly OwnedReference[]
  /** To values of other workers. */
  readonly held: readonly HeldReference[]
}

/** One reference that nobody had given up when a cluster ended, as far as its owner and its holder know of it. */
export interface ReferenceLeak {
  /** The value's id. */
  readonly rrefId: bigint
  /** The worker on which the value lives. */
  readonly owner: string
  /** The worker that holds the reference. */
  readonly holder: string
  /** The class of the value, or its type; null where it is not known. */
  readonly type: string | null
  /** Since it was made or came there, in ms. */
  readonly ageMs: number
  /** Where its holder made it, else where its owner did. */
  readonly madeAt: string | null
}

/** Puts together what owners and holders say, by name of the worker, each reference once. */
export function referenceLeaks(tables: Readonly<Record<string, References>>): ReferenceLeak[] {
  const leaks = new Map<bigint, ReferenceLeak>()
  for (const [owner, { owned }] of Object.entries(tables)) {
    for (const { rrefId, type, holders, madeAt } of owned) {
      for (const { forkId, worker, ageMs } of holders) leaks.set(forkId, { rrefId, owner, holder: worker.name, type, ageMs, madeAt })
    }
  }
  for (const [holder, { held }] of Object.entries(tables)) {
    for (const { rrefId, forkId, owner, ageMs, madeAt } of held) {
      const known = leaks.get(forkId)
      const leak = { rrefId, owner: owner.name, holder, type: known?.type ?? null, ageMs, madeAt: madeAt ?? known?.madeAt ?? null }
      leaks.set(forkId, leak)
    }
  }
  return [...leaks.values()]
}

/** A line for each of the first `max`. */
export function describeLeaks(leaks: readonly ReferenceLeak[], max = 10): string {
  const lines = leaks.slice(0, max).map(({ rrefId, owner, holder, type, ageMs, madeAt }) => {
    const of = `  RRef ${rrefId}${type === null ? '' : ` (${type})`} of worker '${owner}', held by '${holder}' for ${Math.round(ageMs)} ms`
    // The nearest line; the leak itself has the others.
    return madeAt === null ? of : `${of}, made ${madeAt.split('\n', 1)[0]}`
  })
  if (leaks.length > max) lines.push(`  and ${leaks.length - max} more`)
  return lines.join('\n')
}

/** What to call a value in the table. */
export function typeName(value: unknown): string {
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name
  return typeof name === 'string' && name !== '' ? name : 'object'
}
