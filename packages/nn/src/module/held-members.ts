/**
 * What the places of a module (its fields, and items of collections in them) held when it was last walked, so that a parameter or a module whose place is given something
 * else is missed: it would be neither trained nor saved, in silence. PyTorch refuses the assignment; a field has no setter, so here the next call that needs the
 * parameters or the state refuses (`module.ts`), and the next step of an optimizer that has the parameter.
 *
 * What has moved to another place of the same module is not lost, and null gives a place up. Members are held until the next walk, so that is how long one that was replaced stays in memory.
 */
import { PostgradError } from '@postgrad/base'
import { isTensor, type Tensor } from '@postgrad/tensor'
import { argumentText } from '@postgrad/tensor/internal'

/** What there is at a path now. */
export interface Place {
  readonly value: unknown
  /** Whether it is a parameter, a buffer or a module. */
  readonly belongs: boolean
  /** Whether it is the field's own value, and no item of a collection in it. */
  readonly isField: boolean
}

/** Looks at all places of a module. @throws MEMBER_REPLACED */
type Ensure = (owner: object, op: string) => void

/** Where a parameter was seen. */
interface Holder {
  readonly owner: WeakRef<object>
  readonly ensure: Ensure
  readonly field: string
}

/** Noted in the place of each buffer, since a buffer may be another tensor, with a history, after each forward. */
export const BUFFER = {}

const holders = new WeakMap<Tensor, Holder[]>()

export class HeldMembers {
  private readonly held = new Map<string, object>()
  private readonly owner: WeakRef<object>
  private readonly ensure: Ensure

  constructor(owner: object, ensure: Ensure) {
    this.owner = new WeakRef(owner)
    this.ensure = ensure
  }

  /** Notes a parameter, a module or BUFFER at `path`, which lies in `field`. */
  note(field: string, path: string, member: object): void {
    if (this.held.get(path) === member) return
    this.held.set(path, member)
    if (isTensor(member)) {
      const all = holders.get(member) ?? []
      if (all.length === 0) holders.set(member, all)
      if (!all.some(({ owner, field: known }) => owner === this.owner && known === field))
        all.push({ owner: this.owner, ensure: this.ensure, field })
    }
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
    const lost: { path: string; was: object; value: unknown }[] = []
    for (const [path, was] of this.held) {
      const place = places.get(path)
      if (place?.belongs) continue
      const value = place?.value ?? null
      // An item may have moved, and another one be where it was: of collections only a tensor in the place of a parameter is no doubt.
      const isSuspect = value !== null && (place!.isField || (isTensor(value) && isTensor(was)))
      if (isSuspect && !there.has(was)) lost.push({ path, was, value })
      else this.held.delete(path)
    }
    if (lost.length > 0) throw replaced(op, name, lost)
  }
}

/** For a step that would train parameters which their modules do not use any more. @throws MEMBER_REPLACED */
export function ensureHeld(op: string, parameters: Iterable<Tensor>): void {
  let checked: Set<object> | null = null
  for (const p of parameters) {
    const all = holders.get(p)
    if (all === undefined) continue
    for (const { owner, ensure, field } of all) {
      const module = owner.deref()
      if (module === undefined || (module as unknown as Record<string, unknown>)[field] === p || checked?.has(module)) continue
      checked ??= new Set()
      checked.add(module)
      ensure(module, op)
    }
  }
}

function replaced(op: string, name: string, lost: readonly { path: string; was: object; value: unknown }[]): PostgradError {
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
      ? `Write the values into the parameter: noGrad(() => module.${first!.path}.copy_(values)). Or assign another one: parameter(values). If the parameter is not wanted any more, set the field to null first, or keep the result under another name.`
      : `Assign another ${kind === 'a buffer' ? 'tensor' : 'module'}, or null. Keep anything else under another name.`,
    values: { paths: lost.map(({ path }) => path) },
  })
}

function textOf(value: unknown): string {
  if (!isTensor(value)) return argumentText(value)
  return value.isLeaf ? 'a tensor that is no parameter' : 'the result of an operation'
}
