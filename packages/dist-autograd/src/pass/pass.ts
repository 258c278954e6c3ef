/**
 * One backward pass as one worker sees it: the graph task, what it still waits for, what it sent, and the gradients it has gathered. All that a
 * pass changes is here and in its GraphTask, so passes that run at once over one graph share nothing (DA-19). The engine drives it.
 *
 *             first gradient, or backward()      nothing queued, no send function waits        the root says so
 *   (none) ────────────────────────────→ running ─────────────────────→ gathered ──────────────────→ in the context's gradients
 *                                          │  a node fails                 │
 *                                          └────────→ failed ──────────────┴──────→ dropped, when the root aborts it
 */
import assert from 'node:assert'
import { AsyncResource } from 'node:async_hooks'
import {
  type AwaitablePass,
  type GradSink,
  GraphTask,
  type HeldBack,
  keepable,
  type ReadyQueue,
  runPostAccumulateHooks,
} from '@postgrad/autograd/internal'
import { isPostgradError, type WorkerId, workerOf } from '@postgrad/base'
import { isEndedElsewhere, rejectTraced, type Scope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import type { SendRpcBackward } from '../functions/send-rpc-backward.js'
import { CREATE_GRAPH, KEEP_GRAPH } from '../lineage/gradient-field.js'
import { type MissingSend, PassLedger, type PassReport } from './pass-ledger.js'
import type { PassPlan } from './pass-plan.js'

/** A report names the send functions that wait, once they are this few: before, their number says enough and naming them costs. */
const MISSING_LISTED_MAX = 64
const MISSING_SAMPLE = 8

/** What a pass needs of its worker. */
export interface PassDriver {
  /** Where nodes go that are ready, and whether one runs, or a hook of it. */
  readonly ready: ReadyQueue & { readonly isRunning: boolean }
  /** Whether sums have their causal order; without it they go as gradients arrive. */
  readonly ordered: boolean
  /** Counts what waits for that order, over all passes of the worker. */
  readonly heldBack: HeldBack
  /** None of the pass's node tasks is queued or running any more. One function for all passes: with one for each V8 moves all that a pass has made to the old generation. */
  readonly onIdle: (task: GraphTask) => void
}

export class DistPass implements GradSink, AwaitablePass {
  readonly awaitable: AwaitablePass = this
  readonly id: bigint
  readonly contextId: bigint
  /** The worker that called `backward`. */
  readonly root: WorkerId
  readonly task: GraphTask
  /** Bits of `gradient-field.ts`, as every gradient message of the pass has them. */
  readonly how: number
  /** Null in FAST. */
  readonly plan: PassPlan | null
  /** The send functions that have no gradient yet, by autograd message id. */
  readonly missing: Map<bigint, SendRpcBackward>
  /** Gradient messages received and, by receiver, sent. */
  received = 0
  readonly sent = new Map<WorkerId, number>()
  /** This worker's contribution, complete for a leaf as soon as it is there. The context takes it over when the pass has ended. */
  readonly gradients = new Map<Tensor, Tensor>()
  /** It has let go of the graph's counts, though the root has not said yet how it ended. */
  gathered = false
  /** The scope of its nodes; made with the first. */
  scope: Scope | null = null
  /** The stores of the program's own AsyncLocalStorages, as they were where it called `backward`; null where it is another worker's pass. */
  readonly stores: AsyncResource | null = null
  private version = 0

  /**
   * @param how bits of `gradient-field.ts`
   * @param sends the send functions that the pass waits for here
   */
  constructor(id: bigint, contextId: bigint, how: number, plan: PassPlan | null, sends: Iterable<SendRpcBackward>, driver: PassDriver) {
    this.id = id
    this.contextId = contextId
    this.root = workerOf(id)
    this.plan = plan
    this.missing = new Map()
    for (const send of sends) this.missing.set(send.autogradId, send)
    const { ready: queue, ordered, heldBack } = driver
    this.how = how
    const createGraph = (how & CREATE_GRAPH) !== 0
    this.task = new GraphTask({ keepGraph: (how & KEEP_GRAPH) !== 0, createGraph, ordered, heldBack, sink: this, queue })
    this.task.onIdle = driver.onIdle
  }

  /** GradSink: called once per leaf, as a leaf's AccumulateGrad runs once per pass. */
  accumulate(variable: Tensor, grad: Tensor, exclusive: boolean): void {
    if (this.gradients.has(variable)) assert.fail('a leaf has one AccumulateGrad, which runs once per pass')
    this.gradients.set(variable, this.task.createGraph && grad.requiresGrad ? (exclusive ? grad : grad.clone()) : keepable(grad, exclusive))
    // They find it in `currentContext().gradients()`. PyTorch: DistAccumulateGradCaptureHook.
    runPostAccumulateHooks(variable)
  }

  /** AwaitablePass */
  gradOf(leaf: Tensor): Tensor | null {
    return this.gradients.get(leaf) ?? null
  }

  /** AwaitablePass */
  setGrad(leaf: Tensor, grad: Tensor): void {
    this.gradients.set(leaf, grad)
  }

  get failed(): boolean {
    return this.task.error !== null
  }

  /** Nothing queued, nothing running: the pass continues here only when a gradient comes. */
  get passive(): boolean {
    return this.task.outstanding === 0
  }

  countSent(to: WorkerId): void {
    this.sent.set(to, (this.sent.get(to) ?? 0) + 1)
  }

  /** For the first gradients to a worker: its part of the plan, if it may need one. Before `countSent`. */
  fieldFor(to: WorkerId, self: WorkerId): number[] | null {
    return this.plan === null || to === self || to === this.root || this.sent.has(to) ? null : this.plan.fieldFor(to, self)
  }

  /** Whether that worker has a part of a SMART pass, as far as is known here: it is in the plan, or gradients are awaited from it. */
  needs(worker: WorkerId): boolean {
    if (this.plan?.has(worker) === true) return true
    for (const { to } of this.missing.values()) if (to === worker) return true
    return false
  }

  /** The worker's row for the root's ledger; taken while passive. */
  report(): PassReport {
    const missingCount = this.missing.size
    const missingSample: MissingSend[] = []
    if (missingCount > 0 && missingCount <= MISSING_LISTED_MAX) {
      for (const [id, { to, what }] of this.missing) {
        if (missingSample.length === MISSING_SAMPLE) break
        missingSample.push([id, to, what])
      }
    }
    return { version: ++this.version, received: this.received, sent: [...this.sent], missingCount, missingSample }
  }

  /** All send functions have their gradients and everything has run: nothing can come any more, so the counts of the graph may go. */
  gather(): void {
    this.gathered = true
    this.task.dependencies.clear()
    this.task.notReady = null
  }
}

/** The pass at its root, where it is waited for. */
export class RootPass extends DistPass {
  readonly ledger = new PassLedger()
  readonly ended: Promise<void>
  /** Its program's promise: `ended`, or that the optimizers have stepped, too. */
  given: Promise<void>
  /** The scope of its beginning, which differs between programs. */
  readonly begunIn: Scope
  override readonly stores = new AsyncResource('BackwardPass')
  /** Ends the wait for a deadline, a signal, a call that is cancelled. */
  endWait: () => void = () => {}
  private settle!: { resolve: () => void; reject: (error: unknown) => void }

  constructor(
    id: bigint,
    contextId: bigint,
    how: number,
    plan: PassPlan | null,
    sends: Iterable<SendRpcBackward>,
    driver: PassDriver,
    begunIn: Scope,
  ) {
    super(id, contextId, how, plan, sends, driver)
    this.begunIn = begunIn
    this.ended = new Promise<void>((resolve, reject) => {
      this.settle = { resolve, reject }
    })
    this.given = this.ended
  }

  succeed(): void {
    this.endWait()
    this.settle.resolve()
  }

  /** Only the first failure counts. */
  fail(error: unknown): void {
    this.endWait()
    this.task.fail(error)
    rejectTraced(this.ended, this.settle.resolve, this.settle.reject, error, () => {
      // If it ends from outside, perhaps nobody awaits it, or ever will: it must not end the process.
      if (isEndedElsewhere(error) || isPostgradError(error, 'DIST_BACKWARD_CANCELLED')) this.ended.catch(() => {})
    })
  }
}
