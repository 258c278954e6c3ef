/**
 * Remembers the members that the last walk found in the places of a module (its fields, and items of collections in them). If another value replaced a parameter or a
 * module, that value would be neither trained nor saved, without an error. PyTorch refuses the assignment; a field has no setter, so here the next call that needs the
 * parameters or the state fails (`module.ts`), and the next step of an optimizer that has the parameter.
 *
 * A member that has moved to another place of the same module is not lost, and null gives a place up. A replaced member stays in memory until the next walk.
 */
import { PostgradError } from '@postgrad/base'
import { isTensor, type Tensor } from '@postgrad/tensor'
import { argumentText } from '@postgrad/tensor/internal'

/** The present value at a path. */
export interface Place {
  readonly value: unknown
  /** Whether it is a parameter, a buffer or a module. */
  readonly belongs: boolean
  /** Whether it is the field's own value, and no item of a collection in it. */
  readonly isField: boolean
}

/** How to look at a module. */
export interface Look {
  /** Looks at all places. @throws MEMBER_REPLACED */
  ensure(module: object, op: string): void
  /** Members in its fields. */
  members(module: object): ReadonlySet<unknown>
}

/** Where a parameter was seen: a field of a module. */
interface Holder {
  readonly owner: WeakRef<object>
  readonly look: Look
  readonly field: string
}

/** Of one parameter. */
interface Holders {
  readonly all: Set<Holder>
  /** At this size those of modules that are gone are taken out. */
  sweepAt: number
}

const SWEEP_AT = 8

/** Noted in the place of each buffer, since a buffer may be another tensor, with a history, after each forward. */
export const BUFFER = {}

const holders = new WeakMap<Tensor, Holders>()

/** A noted member. */
interface Held {
  readonly field: string
  readonly member: object
  /** The last walk that has seen it. */
  walk: number
}

export class HeldMembers {
  private readonly held = new Map<string, Held>()
  private readonly owner: WeakRef<object>
  private readonly look: Look
  /** This module as a holder, by field. */
  private readonly holders = new Map<string, Holder>()
  private walks = 0

  constructor(owner: object, look: Look) {
    this.owner = new WeakRef(owner)
    this.look = look
  }

  /** The number of a walk that begins. */
  begin(): number {
    return ++this.walks
  }

  /**
   * Notes a parameter, a module or BUFFER at `path`, which lies in `field`.
   * @returns whether it is the first one there in this walk
   */
  note(walk: number, field: string, path: string, member: object): boolean {
    const held = this.held.get(path)
    const isFirst = held?.walk !== walk
    if (held?.member === member && held.field === field) held.walk = walk
    else {
      this.held.set(path, { field, member, walk })
      if (isTensor(member)) this.holds(member, field)
    }
    return isFirst
  }

  private holds(p: Tensor, field: string): void {
    let holder = this.holders.get(field)
    if (holder === undefined) {
      holder = { owner: this.owner, look: this.look, field }
      this.holders.set(field, holder)
    }
    let known = holders.get(p)
    if (known === undefined) {
      known = { all: new Set(), sweepAt: SWEEP_AT }
      holders.set(p, known)
    }
    known.all.add(holder)
    if (known.all.size < known.sweepAt) return
    for (const each of known.all) if (each.owner.deref() === undefined) known.all.delete(each)
    known.sweepAt = Math.max(SWEEP_AT, 2 * known.all.size)
  }

  /** How many places held something. */
  get count(): number {
    return this.held.size
  }

  /**
   * Looks at all places, and forgets those that were given up.
   * @param name of the module's class
   * @throws MEMBER_REPLACED
   */
  check(op: string, name: string, places: ReadonlyMap<string, Place>): void {
    const there = new Set<unknown>()
    for (const { value, belongs } of places.values()) if (belongs) there.add(value)
    const lost: Lost[] = []
    for (const [path, { field, member: was }] of this.held) {
      const place = places.get(path)
      if (place?.belongs) continue
      const value = place?.value ?? null
      // Items of collections may have moved: there only a tensor where a parameter was counts as a replacement.
      const isSuspect = value !== null && (place!.isField || (isTensor(value) && isTensor(was)))
      if (isSuspect && !there.has(was)) lost.push({ path, field: place!.isField ? field : null, was, value })
      else this.held.delete(path)
    }
    if (lost.length > 0) throw replaced(op, name, lost)
  }
}

/** For a step that would train parameters which no module uses any more. @throws MEMBER_REPLACED */
export function ensureHeld(op: string, parameters: Iterable<Tensor>): void {
  const seen = new Map<object, ReadonlySet<unknown>>()
  for (const p of parameters) {
    const known = holders.get(p)
    if (known === undefined || isHeld(p, known.all, seen)) continue
    for (const { owner, look } of known.all) {
      const module = owner.deref()
      if (module !== undefined) look.ensure(module, op)
    }
  }
}

/** Whether a module holds it still. `seen`: what modules hold, of those that were looked at. */
function isHeld(p: Tensor, all: ReadonlySet<Holder>, seen: Map<object, ReadonlySet<unknown>>): boolean {
  // Nearly always in a field of its own.
  for (const { owner, field } of all) if ((owner.deref() as Record<string, unknown> | undefined)?.[field] === p) return true
  for (const { owner, look } of all) {
    const module = owner.deref()
    if (module === undefined) continue
    let members = seen.get(module)
    if (members === undefined) {
      members = look.members(module)
      seen.set(module, members)
    }
    if (members.has(p)) return true
  }
  return false
}

interface Lost {
  readonly path: string
  /** Null for an item of a collection. */
  readonly field: string | null
  readonly was: object
  readonly value: unknown
}

function replaced(op: string, name: string, lost: readonly Lost[]): PostgradError {
  const [first] = lost
  const kind = first!.was === BUFFER ? 'a buffer' : isTensor(first!.was) ? 'a parameter' : 'a module'
  const others =
    lost.length === 1
      ? ''
      : ` (and so do ${lost.length - 1} more: ${lost
          .slice(1)
          .map(({ path }) => path)
          .join(', ')})`
  return new PostgradError('MEMBER_REPLACED', {
    op,
    message: `'${first!.path}' of ${name} held ${kind}, and now holds ${textOf(first!.value)}, which would be neither trained nor saved${others}`,
    remedy: isTensor(first!.was)
      ? `Instead of assigning, write into the parameter${first!.field === null ? '' : `: noGrad(() => module.${first!.field}.copy_(values))`}. Or assign another one: parameter(values). If the parameter is not wanted any more, set the field to null first, or keep the result under another name.`
      : `Assign another ${kind === 'a buffer' ? 'tensor' : 'module'}, or null. Keep anything else under another name.`,
    values: { paths: lost.map(({ path }) => path) },
  })
}

function textOf(value: unknown): string {
  if (!isTensor(value)) return argumentText(value)
  // Not isLeaf, which a view without a way back refuses to say.
  return value.autograd === null ? 'a tensor that is not a parameter' : 'the result of an operation'
}
