/**
 * The protocol's tables, with the holders of each reference, in a form that can be read, printed and sent. `rref-context.ts` fills them; the end of a
 * cluster finds leaked references here.
 */
import type { WorkerInfo } from '../common/worker-info.js'

/** A value of this worker that other workers have references to. */
export interface OwnedReference {
  /** The value's id. */
  readonly rrefId: bigint
  /** The value's class, or its type if it is not an object. 'error': the value could not be made. 'pending': it is still being made. */
  readonly type: string
  /** How long ago another worker first got a reference to the value, in ms. */
  readonly ageMs: number
  /** The workers that hold references to the value, with the id and age (in ms) of each reference. */
  readonly holders: readonly { readonly forkId: bigint; readonly worker: WorkerInfo; readonly ageMs: number }[]
  /** The stack of the code that made the reference on this worker; null without `referenceStacks`, or if another worker made the reference. */
  readonly madeAt: string | null
}

/** A reference that this worker holds to a value of another worker. */
export interface HeldReference {
  /** The value's id. */
  readonly rrefId: bigint
  /** The id of this reference. */
  readonly forkId: bigint
  /** The worker on which the value lives. */
  readonly owner: WorkerInfo
  /** Whether the owner has confirmed the reference. */
  readonly confirmed: boolean
  /** Whether the program has disposed of the reference. It is then listed until its owner has confirmed it, and its copies on other workers. */
  readonly disposed: boolean
  /** How many copies of the reference were sent to other workers that have not accepted them yet. */
  readonly children: number
  /** How long ago the reference was made here or arrived here, in ms. */
  readonly ageMs: number
  /** The stack of the code that made the reference; null without `referenceStacks`, or if the reference arrived in a message. */
  readonly madeAt: string | null
}

/** The references of a worker, in both directions. `WorkerRuntime.references` returns them. */
export interface References {
  /** The values of this worker that other workers refer to. */
  readonly owned: readonly OwnedReference[]
  /** The references of this worker to values of other workers. */
  readonly held: readonly HeldReference[]
}

/** A reference that a worker still held when its cluster ended. */
export interface ReferenceLeak {
  /** The value's id. */
  readonly rrefId: bigint
  /** The name of the worker on which the value lives. */
  readonly owner: string
  /** The name of the worker that holds the reference. */
  readonly holder: string
  /** The value's class, or its type if it is not an object; null if it is not known. */
  readonly type: string | null
  /** How long ago the holder made or received the reference, in ms. */
  readonly ageMs: number
  /** The stack of the code that made the reference, on its holder or on its owner; null without `referenceStacks`. */
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
