/**
 * The protocol's tables, with the holders of each reference, in a form that can be read, printed and sent. `rref-context.ts` fills them; the end of a
 * cluster finds leaked references here.
 */
import type { WorkerInfo } from '../common/worker-info.js'

/** A value of a worker that other workers have references to. */
export interface OwnedReference {
  /** The value's id. */
  readonly rrefId: bigint
  /** The class of the value, or its type; 'error' if it could not be made, 'pending' while it is being made. */
  readonly type: string
  /** How long ago its first reference was shared or mentioned, in ms. */
  readonly ageMs: number
  /** The workers that hold references to it, with the id and age of each reference. */
  readonly holders: readonly { readonly forkId: bigint; readonly worker: WorkerInfo; readonly ageMs: number }[]
  /** The stack at which its reference was made, if the worker keeps stacks (`referenceStacks`) and it was made here. */
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
  /** Whether the owner has it in its table. */
  readonly confirmed: boolean
  /** Whether the program has disposed of it; it then waits for a message of its owner, or for its children. */
  readonly disposed: boolean
  /** How many references were made from it that their receivers have not accepted yet. */
  readonly children: number
  /** How long ago it was made or arrived here, in ms. */
  readonly ageMs: number
  /** The stack at which it was made, if the worker keeps stacks (`referenceStacks`) and it was made here. */
  readonly madeAt: string | null
}

/** The references of a worker: those to its own values, and those that it holds to values of others. */
export interface References {
  /** References of others to values of this worker. */
  readonly owned: readonly OwnedReference[]
  /** References of this worker to values of others. */
  readonly held: readonly HeldReference[]
}

/** One reference that was not disposed of when a cluster ended, as far as its owner and its holder know of it. */
export interface ReferenceLeak {
  /** The value's id. */
  readonly rrefId: bigint
  /** The worker on which the value lives. */
  readonly owner: string
  /** The worker that holds the reference. */
  readonly holder: string
  /** The class of the value, or its type; null where it is not known. */
  readonly type: string | null
  /** How long ago it was made or arrived at the holder, in ms. */
  readonly ageMs: number
  /** The stack at which its holder made it, else the stack at which its owner did; null if neither is known. */
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

/** The name of a value in the table. */
export function typeName(value: unknown): string {
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name
  return typeof name === 'string' && name !== '' ? name : 'object'
}
