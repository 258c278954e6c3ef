/**
 * The actors of one worker: which object has which cell, and what ends with the last reference to it. An object gets a cell when it needs
 * one: it is serial, it extends `Actor`, somebody watches it or stops it. All others cost one look-up per call.
 */

import type { DeadLetterReason, Exit } from '@postgrad/actor/internal'
import { workerOf } from '@postgrad/base'
import type { AnyClass } from '../core/function-registry.js'
import type { Inspection } from '../observe/inspection.js'
import { actorName, nameOfActor } from '../references/actor-name.js'
import type { OwnerRRef } from '../references/rref.js'
import { ActorCell, type CellHost, isSerialClass } from './actor-cell.js'

/** What the table needs of its worker. */
export interface ActorsHost extends Omit<CellHost, 'onDropped' | 'onEnded'> {
  readonly workerId: number
  letter(reason: DeadLetterReason, what: string): void
  /** Whether others refer to it, or are about to. */
  isShared(rrefId: bigint): boolean
  makeOwner(value: object): OwnerRRef
  /** Null while nobody listens. */
  inspection(): Inspection | null
}

/** What `Actor` gives to its subclasses for themselves: no methods that others may call. */
const ACTOR_WORDS: ReadonlySet<string> = new Set(['self', 'send', 'setTimer', 'stash', 'unstashAll', 'stop', 'onStop'])

export class Actors {
  private readonly host: ActorsHost
  private readonly cellHost: CellHost
  private readonly cells = new WeakMap<object, ActorCell>()
  /** Actors that other workers made, by the reference that they end with. */
  private readonly bound = new Map<bigint, ActorCell>()
  private readonly references = new WeakMap<ActorCell, OwnerRRef>()
  /** The reference of the instance of this class that is being made. */
  private making: { readonly target: AnyClass; readonly owner: OwnerRRef } | null = null

  constructor(host: ActorsHost) {
    this.host = host
    this.cellHost = {
      clock: host.clock,
      scope: host.scope,
      takeId: () => host.takeId(),
      ownCall: () => host.ownCall(),
      giveUp: (served, reason) => host.giveUp(served, reason),
      later: (fn) => host.later(fn),
      onDropped: (reason, what) => host.letter(reason, what),
      onEnded: (cell, exit, isKnown) => this.onEnded(cell, exit, isKnown),
    }
  }

  /** Actors that end with the last reference to them. */
  get count(): number {
    return this.bound.size
  }

  /** Makes what `remote` of a class leaves here. */
  construct(target: AnyClass, args: readonly unknown[], owner: OwnerRRef, isWatched = false): object {
    const before = this.making
    this.making = { target, owner }
    owner.isActor = true
    const name = nameOfActor(target.name, owner.rrefId)
    this.host.inspection()?.actorStarted(name)
    let value: object
    try {
      value = new target(...args)
    } catch (reason) {
      const cell = this.bound.get(owner.rrefId)
      if (cell === undefined) this.host.inspection()?.actorEnded(name, { normal: false, reason })
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

  /** In the constructor of `Actor`: what is being made here knows its reference from then on. */
  adoptNew(value: object, target: unknown): ActorCell {
    const cell = this.adopt(value)
    cell.hidden = ACTOR_WORDS
    if (this.making !== null && this.making.target === target) {
      const { owner } = this.making
      // Its constructor may make more of its class: these are not what the reference is to.
      this.making = null
      this.bind(cell, owner)
    }
    return cell
  }

  private adopt(value: object): ActorCell {
    let cell = this.cells.get(value)
    if (cell === undefined) {
      cell = new ActorCell(this.cellHost, value)
      this.cells.set(value, cell)
    }
    return cell
  }

  /** The cell of an object whose method is called; null if it needs none. */
  find(value: object): ActorCell | null {
    return this.cells.get(value) ?? (isSerialClass(value.constructor) ? this.adopt(value) : null)
  }

  /** The cell of what a reference refers to, to watch or to stop it. */
  of(rref: OwnerRRef, value: object): ActorCell {
    const cell = this.adopt(value)
    if (rref.isActor) this.bind(cell, rref)
    return cell
  }

  /** The reference that it was made with, or one of its own. */
  referenceTo(cell: ActorCell): OwnerRRef {
    let rref = this.references.get(cell)
    if (rref === undefined) {
      rref = this.host.makeOwner(cell.value)
      this.references.set(cell, rref)
    }
    return rref
  }

  /** Nobody elsewhere refers to this value any more. */
  onReleased(rref: OwnerRRef): void {
    const cell = this.bound.get(rref.rrefId)
    if (cell !== undefined) void cell.stop(Number.POSITIVE_INFINITY, { endsStreams: false })
    else if (rref.isActor && rref.hasValue && !this.cells.has(rref.localValue() as object) && this.isElsewhere(rref)) {
      this.host.inspection()?.actorEnded(actorName(rref), { normal: true })
    }
  }

  /** What another worker made ends with the last reference to it. Of what this worker made itself it may hold more than are counted. */
  private bind(cell: ActorCell, owner: OwnerRRef): void {
    if (!this.references.has(cell)) this.references.set(cell, owner)
    if (!this.isElsewhere(owner) || this.bound.has(owner.rrefId) || cell.exit !== null) return
    this.bound.set(owner.rrefId, cell)
    if (!this.host.isShared(owner.rrefId)) this.onReleased(owner)
  }

  private isElsewhere({ rrefId }: OwnerRRef): boolean {
    return workerOf(rrefId) !== this.host.workerId
  }

  private onEnded(cell: ActorCell, exit: Exit, isKnown: boolean): void {
    const { normal, reason } = exit
    const rref = this.references.get(cell)
    if (rref !== undefined) {
      this.bound.delete(rref.rrefId)
      this.host.inspection()?.actorEnded(nameOfActor(cell.what, rref.rrefId), exit)
    }
    if (!normal && !isKnown)
      this.host.letter('unwatched-crash', `${cell.what}: ${reason instanceof Error ? reason.message : String(reason)}`)
  }
}
