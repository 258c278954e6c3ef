/**
 * The passes of one context at one worker, and what they gave its leaves. As a map it holds those under way; its fields hold those that were aborted and those that
 * ended well. The engine fills it; `pass.ts` is one of them, `gradient-sums.ts` adds up.
 *
 *     set ─→ under way ─┬─ absorb ─→ in the sums; at its root `ended`, until the others are notified
 *                       └─ abort ──→ `aborted`; at its root `abortsUnderWay`, until the others have said that they know
 */
import { localOf, type WorkerId, workerOf } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { GradientSums, type PassGradients } from './gradient-sums.js'
import { type DistPass, RootPass } from './pass.js'
import type { PassLedger } from './pass-ledger.js'

/** A pass that ended well at its root, of which the others do not know yet. */
export interface EndedPass {
  readonly id: bigint
  /** Knows who took part. */
  readonly ledger: PassLedger
}

const NONE: readonly PassGradients[] = Object.freeze([])
const NO_PASSES: readonly RootPass[] = Object.freeze([])
// Contexts are many and small, and few abort a pass: nothing is put into these two.
const NO_IDS = new Set<bigint>()
const NO_ABORTS = new Map<number, Set<WorkerId>>()

/** By id: passes that this worker takes part in and does not know to have ended. */
export class ContextPasses extends Map<bigint, DistPass> {
  /** Messages of these are dropped. Freed with the context; an aborted pass costs one entry. */
  aborted = NO_IDS
  /** Of aborted passes of this root, by the low 48 bits of their ids: who took part in SMART and has not said yet that it knows. */
  abortsUnderWay = NO_ABORTS
  /** Of those whose root this worker is. */
  ended: EndedPass[] = []
  /** Called when this worker's gradients of a pass are final (DA-60); null until somebody asks. */
  private finalListeners: Map<(pass: DistPass) => void, () => void> | null = null
  /** Of all passes so far. */
  private readonly sums = new GradientSums()

  /** Those that the running program (the served call, or code outside of all calls) has begun here: it awaits them, as in a `Promise.all`, or has forgotten to. */
  ownUnderWay({ worker, serving } = currentScope()): readonly RootPass[] {
    if (this.size === 0) return NO_PASSES
    const isOwn = ({ begunIn }: RootPass): boolean => begunIn.worker === worker && begunIn.serving === serving
    return [...this.values()].filter((pass) => pass instanceof RootPass && !pass.failed && isOwn(pass)) as RootPass[]
  }

  /** The sums over ended and running passes. */
  gradients(): Map<Tensor, Tensor> {
    if (this.size === 0) return this.sums.over(NONE)
    return this.sums.over([...this.values()].filter(({ failed }) => !failed).map(({ gradients }) => gradients))
  }

  /** The pass has ended well: its gradients stay. */
  absorb(pass: DistPass): void {
    this.delete(pass.id)
    // Not the pass itself, which has the counts of a whole graph.
    this.sums.add(pass.gradients)
  }

  /** Messages of that pass are dropped from now on. */
  refuse(passId: bigint): void {
    if (this.aborted === NO_IDS) this.aborted = new Set()
    this.aborted.add(passId)
  }

  /** Whatever comes of that pass is dropped from now on. */
  abort(passId: bigint, error: unknown): void {
    this.refuse(passId)
    this.get(passId)?.task.fail(error)
    this.delete(passId)
  }

  /** The root aborts a pass of its own. */
  abortHere({ id, plan }: DistPass, error: unknown): void {
    this.abort(id, error)
    const unaware = new Set(plan?.workers())
    unaware.delete(workerOf(id))
    if (unaware.size === 0) return
    if (this.abortsUnderWay === NO_ABORTS) this.abortsUnderWay = new Map()
    this.abortsUnderWay.set(localOf(id), unaware)
  }

  /** That worker knows of the abort, or has died. */
  heardOfAbort(worker: WorkerId, counter: number): void {
    const unaware = this.abortsUnderWay.get(counter)
    unaware?.delete(worker)
    if (unaware?.size === 0) this.abortsUnderWay.delete(counter)
  }

  /** See `DistAutogradContext.onFinal`. */
  onFinal(listener: (pass: DistPass) => void, onRelease: () => void): () => void {
    this.finalListeners ??= new Map()
    this.finalListeners.set(listener, onRelease)
    for (const pass of this.values()) if (pass.gathered && !pass.failed) listener(pass)
    return () => this.finalListeners?.delete(listener)
  }

  /** Nothing of the pass can come to this worker any more. */
  tellFinal(pass: DistPass): void {
    if (this.finalListeners !== null) for (const listener of this.finalListeners.keys()) listener(pass)
  }

  /** The context is released. */
  override clear(): void {
    super.clear()
    this.sums.clear()
    this.ended = []
    for (const onRelease of this.finalListeners?.values() ?? []) onRelease()
    this.finalListeners = null
  }
}
