/**
 * The actors of one worker: it finds the cell of an object (`actor-cell.ts`), and stops an actor when its last reference ends. An object
 * gets a cell if it is serial, extends `Actor`, or is watched or stopped. Other objects cost one look-up per call.
 */

import type { Exit } from '@postgrad/actor/internal'
import { PostgradError, workerOf } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'
import type { AnyClass } from '../common/function-registry.js'
import { WorkerSlot } from '../core/slots.js'
import type { WorkerCore } from '../core/worker-core.js'
import { OBSERVATION, type Observation } from '../observe/observation.js'
import { actorName, nameOfActor } from '../references/actor-name.js'
import { REFERENCES } from '../references/references.js'
import type { OwnerRRef } from '../references/rref.js'
import type { RRefContext } from '../references/rref-context.js'
import { typeName } from '../references/rref-table.js'
import { ActorCell, isSerialClass } from './actor-cell.js'

/** Members of `Actor` that are for its subclasses alone: others may not call them. */
const ACTOR_WORDS: ReadonlySet<string> = new Set(['self', 'send', 'setTimer', 'stash', 'unstashAll', 'stop', 'onStop'])

export class Actors {
  private readonly core: WorkerCore
  private readonly rrefs: RRefContext
  private readonly observation: Observation
  private readonly cells = new WeakMap<object, ActorCell>()
  /** Actors that other workers made, by the reference that they end with. */
  private readonly bound = new Map<bigint, ActorCell>()
  private readonly references = new WeakMap<ActorCell, OwnerRRef>()
  /** The reference of the instance of this class that is being made. */
  private making: { readonly target: AnyClass; readonly owner: OwnerRRef } | null = null

  constructor(core: WorkerCore) {
    this.core = core
    this.rrefs = REFERENCES.of(core)
    this.observation = OBSERVATION.of(core)
    this.rrefs.construct = (...made) => this.construct(...made)
    this.rrefs.onReleased = (rref) => this.onReleased(rref)
    core.contribute(() => ({ actors: this.count }))
  }

  /** Actors that end with the last reference to them. */
  get count(): number {
    return this.bound.size
  }

  /** Makes the instance for `remote` of a class. */
  construct(target: AnyClass, args: readonly unknown[], owner: OwnerRRef, isWatched = false): object {
    const before = this.making
    this.making = { target, owner }
    owner.isActor = true
    const name = nameOfActor(target.name, owner.rrefId)
    this.observation.inspection?.actorStarted(name)
    let value: object
    try {
      value = new target(...args)
    } catch (reason) {
      const cell = this.bound.get(owner.rrefId)
      if (cell === undefined) this.observation.inspection?.actorEnded(name, { normal: false, reason })
      else cell.end({ normal: false, reason }, { isKnown: true })
      throw reason
    } finally {
      this.making = before
    }
    const cell = isSerialClass(target) ? this.adopt(value) : this.cells.get(value)
    if (cell !== undefined) {
      cell.isMakerWatching = isWatched
      this.bind(cell, owner)
    }
    return value
  }

  /** Called by the constructor of `Actor`: the new actor knows its reference from then on. */
  adoptNew(value: object, target: unknown): ActorCell {
    const cell = this.adopt(value)
    cell.hidden = ACTOR_WORDS
    if (this.making !== null && this.making.target === target) {
      const { owner } = this.making
      // Its constructor may make more instances of its class: the reference is not to these.
      this.making = null
      this.bind(cell, owner)
    }
    return cell
  }

  private adopt(value: object): ActorCell {
    let cell = this.cells.get(value)
    if (cell === undefined) {
      cell = new ActorCell(this.core, value, (...ended) => this.onEnded(...ended))
      this.cells.set(value, cell)
    }
    return cell
  }

  /** The cell of an object whose method is called; null if it needs none. */
  find(value: object): ActorCell | null {
    return this.cells.get(value) ?? (isSerialClass(value.constructor) ? this.adopt(value) : null)
  }

  /** The cell of what a reference refers to, to watch or to stop it. */
  private of(rref: OwnerRRef, value: object): ActorCell {
    const cell = this.adopt(value)
    if (rref.isActor) this.bind(cell, rref)
    return cell
  }

  /** The same for whatever a reference refers to. `op` is what its user called. @throws NOT_AN_ACTOR */
  cellOf(rref: OwnerRRef, value: unknown, op: string): ActorCell {
    if (typeof value === 'object' && value !== null && this.core.registry.isInstance(value)) return this.of(rref, value)
    throw notAnActor(op, `a reference to ${kindOf(value)}`)
  }

  /** The reference that it was made with, or one of its own. */
  referenceTo(cell: ActorCell): OwnerRRef {
    let rref = this.references.get(cell)
    if (rref === undefined) {
      rref = this.rrefs.createOwner({ value: cell.value })
      this.references.set(cell, rref)
    }
    return rref
  }

  /** Nobody elsewhere refers to this value any more. */
  onReleased(rref: OwnerRRef): void {
    const cell = this.bound.get(rref.rrefId)
    if (cell !== undefined) void cell.stop(Number.POSITIVE_INFINITY, { endsStreams: false })
    else if (rref.isActor && rref.hasValue && !this.cells.has(rref.localValue() as object) && this.isElsewhere(rref)) {
      this.observation.inspection?.actorEnded(actorName(rref), { normal: true })
    }
  }

  /** An actor that another worker made ends with its last reference. Of its own actors this worker may hold uncounted references. */
  private bind(cell: ActorCell, owner: OwnerRRef): void {
    if (!this.references.has(cell)) this.references.set(cell, owner)
    if (!this.isElsewhere(owner) || this.bound.has(owner.rrefId) || cell.exit !== null) return
    this.bound.set(owner.rrefId, cell)
    if (!this.rrefs.isShared(owner.rrefId)) this.onReleased(owner)
  }

  private isElsewhere({ rrefId }: OwnerRRef): boolean {
    return workerOf(rrefId) !== this.core.info.id
  }

  private onEnded(cell: ActorCell, exit: Exit, isKnown: boolean): void {
    const { normal, reason } = exit
    const rref = this.references.get(cell)
    if (rref !== undefined) {
      this.bound.delete(rref.rrefId)
      this.observation.inspection?.actorEnded(nameOfActor(cell.what, rref.rrefId), exit)
    }
    if (!normal && !isKnown) this.core.letter('unwatched-crash', `${cell.what}: ${plainText(reason)}`)
  }
}

export function notAnActor(op: string, got: string): PostgradError {
  return new PostgradError('NOT_AN_ACTOR', {
    op,
    expected: 'a reference to an instance of an exposed class',
    got,
    remedy: 'Make the actor with remote(to, Class, args), and expose the class.',
  })
}

/** A value in a few words, for `notAnActor`. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value !== 'object') return `a ${typeof value}`
  const name = typeName(value)
  return name === 'object' ? 'an object' : `an instance of ${name}`
}

export const ACTORS = new WorkerSlot('actors', (core) => new Actors(core))
