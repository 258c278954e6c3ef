/**
 * The distributed engine of one worker: runs its part of every pass, with the worker's mailbox as the ready queue, and speaks with the engines
 * of the other workers. PyTorch: `DistEngine` (FAST mode; ours has SMART, Note [SMART] in `lineage.ts`, as well); how a pass ends and how it fails differ, see below.
 *
 * Note [A distributed pass]
 * ~~~~~~~~~~~~~~~~~~~~~~~~~
 *   root                                                    participant
 *   backward(roots): dependencies over roots + sends of the plan (FAST: all)
 *   node tasks … → RecvRpcBackward
 *        ── PROPAGATE_GRADIENTS (grads) ──────────────────→ first one: dependencies over its sends of the plan
 *                                                           SendRpcBackward → node tasks … → RecvRpcBackward
 *        ←────────────── PROPAGATE_GRADIENTS ──────────────
 *        ←────────────── PASS_REPORT ────────────────────── at its end (FAST: each time that nothing is left to run)
 *   ledger balanced: the promise resolves
 *        ── PASS_COMMIT, before the next pass ────────────→ gradients join the context's
 *
 * Nobody waits for a reply: PyTorch answers a worker's first gradient only when that worker's part has ended, which makes a chain of waits as long
 * as the graph is deep. Here every worker tells the root by itself when it has nothing to do, and the root adds up (Note [Termination] in
 * `pass-ledger.ts`). A failure goes the same way, and comes back to all:
 *
 *        ←────────────── PASS_ERROR (error) ───────────────
 *        ── PASS_ABORT ───────────────────────────────────→ all of the plan drop the pass (FAST: tell the workers that they know)
 */
import assert from 'node:assert'
import { Engine, type GraphRoot, graphRoot, HeldBack, InputBuffer, type NodeTask, validateRoots } from '@postgrad/autograd/internal'
import { isPostgradError, localOf, PostgradError, type WorkerId, workerOf } from '@postgrad/base'
import { currentScope, globalId, inScope, onAbort, Scope, timeLimit } from '@postgrad/base/internal'
import { Future, type WorkerInfo } from '@postgrad/rpc'
import { currentServing, type WaitAbout, type WorkerRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { sameShape } from '@postgrad/tensor/internal'
import { type Message, MessageType, type PassHead } from '@postgrad/wire/internal'
import type { DistAutogradContainer } from '../context/dist-autograd-container.js'
import { contextReleased, type DistAutogradContext, type DistBackwardOptions, releasedUnderWay } from '../context/dist-autograd-context.js'
import { postIfAlive, tellLineage } from '../context/notices.js'
import type { GradientCarrier, RecvRpcBackward } from '../functions/recv-rpc-backward.js'
import type { SendRpcBackward } from '../functions/send-rpc-backward.js'
import { CREATE_GRAPH, KEEP_GRAPH, type RecordedSend, readGradientRoom, writeGradientRoom } from '../lineage/gradient-room.js'
import { lineageBehind } from '../lineage/lineage-walk.js'
import { DistPass, type PassDriver, RootPass } from '../pass/pass.js'
import { createGraphNeedsSmart, located, passCancelled, passGivenUp, passUnreadable } from '../pass/pass-errors.js'
import type { MissingSend, PassReport } from '../pass/pass-ledger.js'
import { type PassPlan, planOf, readPlan } from '../pass/pass-plan.js'
import { recordRecv, recordSend, unrecordSend } from './attach.js'

/** A node task in the mailbox. */
class QueuedNode {
  private readonly engine: DistEngine
  private readonly pass: DistPass
  private readonly nodeTask: NodeTask

  constructor(engine: DistEngine, pass: DistPass, nodeTask: NodeTask) {
    this.engine = engine
    this.pass = pass
    this.nodeTask = nodeTask
  }

  run(): void {
    this.engine.evaluate(this.pass, this.nodeTask)
  }
}

export class DistEngine implements GradientCarrier, PassDriver {
  /** False only to measure what the order of sums costs, and to prove that tests of it can fail. */
  ordered = true
  readonly heldBack = new HeldBack()
  private readonly runtime: WorkerRuntime
  private readonly container: DistAutogradContainer
  private readonly graph = new Engine()
  private readonly self: WorkerId
  /** What node tasks run in, but for the context: this worker's scope without grad mode. */
  private readonly scope: Scope
  /** The pass whose node is being evaluated; evaluation is synchronous, so there is at most one. */
  private running: DistPass | null = null

  constructor(runtime: WorkerRuntime, container: DistAutogradContainer) {
    this.runtime = runtime
    this.container = container
    this.self = runtime.info.id
    this.scope = new Scope({ gradEnabled: false }, runtime.scope)
  }

  // --- at the root

  /** See `DistAutogradContext.backward`. What it throws at once, it rejects with. */
  backward(context: DistAutogradContext, roots: readonly Tensor[], options: DistBackwardOptions): Promise<void> {
    try {
      return this.begin(context, roots, options).ended
    } catch (error) {
      // As one that fails later is: with the line that awaits it.
      return Future.rejected(error)
    }
  }

  private begin(context: DistAutogradContext, roots: readonly Tensor[], options: DistBackwardOptions): RootPass {
    if (context.released) throw contextReleased(context.contextId, 'backward')
    const { createGraph = false, retainGraph = createGraph, gradTensors, signal } = options
    if (createGraph && context.mode === 'fast') throw createGraphNeedsSmart()
    validateRoots(roots, { op: 'backward', needGradFn: true, ...(gradTensors && { grads: gradTensors }) })
    const root = graphRoot(roots, gradTensors)
    const plan = context.mode === 'fast' ? null : this.plan(context, root)
    const death = this.deathAmong(plan === null ? context.knownWorkerIds : plan.workers())
    if (death !== null) throw death
    const timeoutMs = this.timeLeft(options.timeoutMs ?? this.runtime.rpcTimeoutMs)
    const givenUp = currentServing()?.givenUp ?? null
    if (givenUp !== null) throw passGivenUp(givenUp)
    if (signal?.aborted === true) throw passCancelled(signal.reason)
    this.commitEnded(context)

    const sends = this.awaited(context, plan)
    const how = (retainGraph ? KEEP_GRAPH : 0) | (createGraph ? CREATE_GRAPH : 0)
    const pass = new RootPass(this.runtime.ids.take(), context.contextId, how, plan, sends, this)
    this.graph.computeDependencies(pass.task, [root, ...sends])
    pass.endWait = this.awaitEnd(context, pass, timeoutMs, signal)
    context.passes.set(pass.id, pass)
    this.graph.start(pass.task, root, new InputBuffer(0))
    return pass
  }

  /** What ends a pass from outside: its deadline, its caller's signal, and that the call which it is part of was given up. Returns what ends the wait. */
  private awaitEnd(context: DistAutogradContext, pass: RootPass, timeoutMs: number, signal: AbortSignal | undefined): () => void {
    const fail = (error: unknown) => this.failAtRoot(context, pass, error)
    const unlisten = signal && onAbort(signal, () => fail(passCancelled(signal.reason)))
    const waiting = {
      deadlineMs: Number.POSITIVE_INFINITY,
      parent: null,
      op: 'backward',
      about: () => this.whatIsMissing(context, pass),
      onReply: () => {},
      onError: (error: unknown) => fail(isPostgradError(error, 'CALL_CANCELLED') ? passGivenUp(error.cause) : error),
      timedOut: () => this.timedOut(pass, timeoutMs),
    }
    const endWait = this.runtime.requests.wait(waiting, timeoutMs, 'backward')
    return () => {
      unlisten?.()
      endWait()
    }
  }

  /** In ms: never longer than what is left to the call that is being served. @throws TIMEOUT_INVALID */
  private timeLeft(timeoutMs: number): number {
    return Math.min(timeLimit('backward', timeoutMs), Math.max(0, currentScope().deadlineMs - this.runtime.clock.now()))
  }

  /** @throws LINEAGE_INCOMPLETE */
  private plan({ lineage, recvFunctions, abortsUnderWay }: DistAutogradContext, root: GraphRoot): PassPlan {
    const messages = recvFunctions.size === 0 ? NONE : lineageBehind(root.nextEdges, lineage)
    return planOf(lineage, messages, abortsUnderWay.size === 0 ? NONE : [...abortsUnderWay.keys()])
  }

  /** The send functions that a pass waits for here. @throws LINEAGE_MALFORMED */
  private awaited(context: DistAutogradContext, plan: PassPlan | null): SendRpcBackward[] {
    return plan === null ? [...context.sendFunctions.values()] : plan.sendsOf(context.lineage)
  }

  /** A pass in which a dead worker has a part cannot be complete. */
  private deathAmong(workers: Iterable<WorkerId>): PostgradError | null {
    for (const worker of workers) {
      const death = this.runtime.deathOf(worker)
      if (death !== null) return death
    }
    return null
  }

  /** Once the root itself is passive: is everybody? */
  private checkEnd(context: DistAutogradContext, pass: RootPass): void {
    if (pass.failed || !pass.passive || !pass.ledger.balanced) return
    const incomplete = pass.ledger.incomplete()
    if (incomplete.length > 0) {
      this.failAtRoot(context, pass, this.unusedSend(incomplete))
      return
    }
    context.passes.delete(pass.id)
    context.absorb(pass)
    context.endedPasses.push({ id: pass.id, ledger: pass.ledger })
    // The context outlives a root that did not make it: if this worker dies, what the others gathered is to stay (DA-28).
    if (workerOf(context.contextId) !== this.self) this.commitEnded(context)
    pass.succeed()
  }

  /**
   * The others hear that a pass ended well when the next one begins: nothing hangs on it before (their `gradients()` count it already), and most
   * contexts have one pass only.
   */
  private commitEnded(context: DistAutogradContext): void {
    for (const { id, ledger } of context.endedPasses.splice(0)) {
      for (const worker of ledger.participants()) {
        if (worker !== this.self) this.postIfAlive(worker, MessageType.PASS_COMMIT, [], context.contextId, id)
      }
    }
  }

  private failAtRoot(context: DistAutogradContext, pass: RootPass, error: unknown): void {
    if (context.passes.get(pass.id) !== pass) {
      // Whatever has become of its entry, who waits is told; without effect where that was told before.
      pass.fail(error)
      return
    }
    context.passes.delete(pass.id)
    context.abortedPasses.add(pass.id)
    context.noteAbort(pass)
    const told = pass.plan === null ? new Set([...context.knownWorkerIds, ...pass.ledger.participants()]) : pass.plan.workers()
    for (const worker of told) {
      if (worker !== this.self) this.postIfAlive(worker, MessageType.PASS_ABORT, [error], context.contextId, pass.id)
    }
    pass.fail(error)
  }

  // --- at every worker

  /** PassDriver: a node is ready. */
  queue(pass: DistPass, nodeTask: NodeTask): void {
    this.runtime.pushTask(new QueuedNode(this, pass, nodeTask), nodeTask.sequenceNr)
  }

  /** Runs one node task, in its turn. */
  evaluate(pass: DistPass, nodeTask: NodeTask): void {
    const { task } = nodeTask
    if (task.error !== null) {
      this.graph.evaluate(nodeTask)
      return
    }
    this.running = pass
    pass.scope ??= this.scopeOf(pass)
    inScope(pass.scope, evaluateNode, this.graph, nodeTask)
    this.running = null
    // A hook may have ended the pass from outside, by its signal or the release of the context: the node did not fail then.
    if (task.error !== null && this.isUnderWay(pass)) this.fail(pass, located(task.error, nodeTask.node, this.runtime.info))
  }

  private isUnderWay({ id, contextId }: DistPass): boolean {
    return this.container.find(contextId)?.passes.has(id) === true
  }

  /**
   * Hooks find the context of the pass as the current one. What they call takes no context with it, since gradients are off (DA-9); under createGraph it is
   * recorded, as everything else is.
   */
  private scopeOf({ contextId, task }: DistPass): Scope {
    return new Scope({ context: this.container.find(contextId) ?? null, gradEnabled: task.createGraph }, this.scope)
  }

  /** GradientCarrier: a gradient leaves for the worker that the tensors came from. */
  carry(node: RecvRpcBackward, grads: readonly (Tensor | null)[], task: object): void {
    const pass = this.running
    // A hook, of this node or of another, may run a local backward in the middle of a pass.
    if (pass?.task !== task) throw crossesWorkers()
    if (pass.contextId !== node.contextId) throw foreignContext(pass.contextId, node.contextId)
    const { from } = node
    const post = (sent: readonly (Tensor | null)[], lineage: number[] | null) =>
      this.runtime.post(from, MessageType.PROPAGATE_GRADIENTS, [sent, pass.how], {
        context: pass.contextId,
        autogradId: node.autogradId,
        pass: pass.id,
        lineage,
      })
    const plan = pass.roomFor(from, this.self)
    const context = pass.task.createGraph ? this.container.find(pass.contextId) : undefined
    if (context === undefined) post(grads, plan)
    else this.postRecorded(context, grads, from, (recorded) => post(grads, writeGradientRoom(recorded, plan)))
    pass.countSent(from)
  }

  /** Under createGraph: a later pass may go back through these gradients, as through any message of the context. */
  private postRecorded(
    context: DistAutogradContext,
    grads: readonly (Tensor | null)[],
    to: WorkerId,
    post: (recorded: RecordedSend | null) => void,
  ): void {
    const recorded = recordSend(context, this.runtime.ids, grads, to, (...told) => tellLineage(this.runtime, ...told))
    try {
      post(recorded)
    } catch (error) {
      if (recorded !== null) unrecordSend(context, recorded)
      throw error
    }
  }

  /** PassDriver: this worker is passive; the root hears how far it has come, in SMART only when that is to the end. */
  idle(pass: DistPass): void {
    if (pass.failed) return
    if (pass instanceof RootPass) {
      pass.ledger.report(this.self, pass.report())
      const context = this.container.find(pass.contextId)
      if (context === undefined) return
      this.checkEnd(context, pass)
      if (pass.missing.size === 0 && context.passes.get(pass.id) === pass) context.tellFinal(pass)
      return
    }
    if (pass.plan !== null && pass.missing.size > 0) return
    this.tellRoot(pass)
    if (pass.missing.size > 0) return
    pass.gather()
    this.container.find(pass.contextId)?.tellFinal(pass)
  }

  private tellRoot(pass: DistPass): void {
    const { version, received, sent, missingCount, missingSample } = pass.report()
    const body = [version, received, sent, missingCount, missingSample]
    this.postIfAlive(pass.root, MessageType.PASS_REPORT, body, pass.contextId, pass.id)
  }

  /** A pass cannot go on here. Its root decides; this worker only stops. */
  private fail(pass: DistPass, error: unknown): void {
    const context = this.container.find(pass.contextId)
    if (context?.passes.get(pass.id) !== pass) return
    if (pass instanceof RootPass) {
      this.failAtRoot(context, pass, error)
      return
    }
    pass.task.fail(error)
    this.postIfAlive(pass.root, MessageType.PASS_ERROR, [error], pass.contextId, pass.id)
  }

  // --- messages

  /** PROPAGATE_GRADIENTS: gradients of tensors that this worker sent. */
  onGradients(message: Message, from: WorkerInfo): void {
    const { context: contextId, pass: passId, autogradId, body } = message
    assert(contextId !== null && passId !== null && autogradId !== null, 'PROPAGATE_GRADIENTS without its ids')
    const [grads, how] = body as readonly [readonly (Tensor | null)[], number]
    const context = this.container.find(contextId)
    if (context === undefined) {
      this.postIfAlive(workerOf(passId), MessageType.PASS_ERROR, [this.container.absent(contextId, 'backward')], contextId, passId)
      return
    }
    const pass = context.passes.get(passId) ?? this.join(context, passId, how, message, from.id)
    if (pass === null || pass.failed) return
    pass.received++
    const send = context.sendFunctions.get(autogradId)
    const problem = send === undefined ? 'no send function has that id' : misfit(send, pass, grads, how, from.id)
    if (send === undefined || problem !== null || !pass.missing.delete(autogradId)) {
      this.fail(pass, unexpectedGradients(autogradId, problem ?? 'it has its gradients already'))
      return
    }
    try {
      if (pass.task.createGraph) this.giveHistory(context, message, from.id)
    } catch (error) {
      this.fail(pass, error)
      return
    }
    const inputs = new InputBuffer(grads.length)
    for (let i = 0; i < grads.length; i++) {
      const grad = grads[i]
      if (grad !== null && grad !== undefined) inputs.add(i, grad, true)
    }
    this.graph.start(pass.task, send, inputs)
  }

  /** @throws LINEAGE_MALFORMED */
  private giveHistory(context: DistAutogradContext, message: Message, from: WorkerId): void {
    const { recorded } = readGradientRoom(message, from)
    if (recorded !== null) recordRecv(context, recorded.autogradId, message, recorded.room, from, this)
  }

  /** This worker's part of a pass begins with the first gradient; null if the pass is over already, or cannot begin. */
  private join(context: DistAutogradContext, passId: bigint, how: number, message: Message, from: WorkerId): DistPass | null {
    const root = workerOf(passId)
    if (context.abortedPasses.has(passId) || root === this.self || this.runtime.deathOf(root) !== null) return null
    let plan: PassPlan | null
    let sends: SendRpcBackward[]
    try {
      plan = context.mode === 'fast' ? null : readPlan(readGradientRoom(message, from).plan)
      sends = this.awaited(context, plan)
    } catch (error) {
      context.abortedPasses.add(passId)
      this.postIfAlive(root, MessageType.PASS_ERROR, [error], context.contextId, passId)
      return null
    }
    for (const counter of plan?.aborted ?? []) context.abort(globalId(root, counter), passAborted())
    const pass = new DistPass(passId, context.contextId, how, plan, sends, this)
    this.graph.computeDependencies(pass.task, sends)
    context.passes.set(passId, pass)
    for (const worker of context.knownWorkerIds) {
      const death = this.runtime.deathOf(worker)
      if (death !== null && concerns(context, pass, worker)) this.fail(pass, death)
    }
    return pass
  }

  onReport({ context: contextId, pass: passId, body }: Message, from: WorkerInfo): void {
    const [context, pass] = this.rootPass(contextId, passId)
    if (context === null || pass === null) {
      if (contextId !== null && passId !== null) this.container.find(contextId)?.heardOfAbort(from.id, localOf(passId))
      return
    }
    const [version, received, sent, missingCount, missingSample] = body as [number, number, PassReport['sent'], number, MissingSend[]]
    pass.ledger.report(from.id, { version, received, sent, missingCount, missingSample })
    this.checkEnd(context, pass)
  }

  onError({ context: contextId, pass: passId, body }: Message): void {
    const [context, pass] = this.rootPass(contextId, passId)
    if (context !== null && pass !== null) this.failAtRoot(context, pass, body[0])
  }

  /**
   * Drops the pass. In FAST the word spreads along the edges of the context: whoever received gradients from here is known here. In SMART the root is answered,
   * so that later plans need not name the pass.
   */
  onAbort({ context: contextId, pass: passId, body }: Message, from: WorkerInfo): void {
    const context = contextId === null ? undefined : this.container.find(contextId)
    if (context === undefined || passId === null) return
    if (context.mode === 'smart') this.postIfAlive(from.id, MessageType.PASS_REPORT, NOTHING_DONE, context.contextId, passId)
    if (context.abortedPasses.has(passId)) return
    context.abort(passId, body[0])
    if (context.mode === 'smart') return
    for (const worker of context.knownWorkerIds) {
      if (worker !== from.id && worker !== workerOf(passId)) this.postIfAlive(worker, MessageType.PASS_ABORT, body, contextId, passId)
    }
  }

  onCommit({ context: contextId, pass: passId }: Message): void {
    const context = contextId === null ? undefined : this.container.find(contextId)
    const pass = passId === null ? undefined : context?.passes.get(passId)
    if (pass !== undefined) context!.absorb(pass)
  }

  /** A message about a pass that cannot be read: nobody can go on, and the root learns so at once. */
  onUnreadable({ context: contextId, pass: passId }: PassHead, cause: unknown, from: WorkerInfo): void {
    const error = passUnreadable(cause, from, this.runtime.info)
    const pass = this.container.find(contextId)?.passes.get(passId)
    if (pass !== undefined) this.fail(pass, error)
    else if (workerOf(passId) !== this.self) this.postIfAlive(workerOf(passId), MessageType.PASS_ERROR, [error], contextId, passId)
  }

  private rootPass(contextId: bigint | null, passId: bigint | null): [DistAutogradContext, RootPass] | [null, null] {
    const context = contextId === null ? undefined : this.container.find(contextId)
    const pass = passId === null ? undefined : context?.passes.get(passId)
    return pass instanceof RootPass ? [context!, pass] : [null, null]
  }

  /** What a pass waits for, for a reader. */
  private whatIsMissing(context: DistAutogradContext, pass: RootPass): WaitAbout {
    const open = pass.ledger.unbalanced()
    const on = (open.length > 0 ? open : [...context.knownWorkerIds]).filter((id) => id !== this.self)
    const known = on.flatMap((id) => this.runtime.peers.get(id)?.info ?? [])
    const what = `backward pass ${pass.id} of context ${context.contextId}, ${pass.missing.size} send functions of this worker without a gradient`
    return { kind: 'pass', what, on: known }
  }

  // --- ends

  /** A worker that was started anew may be the root of passes that have come here by others, before this worker knew it. */
  onPeerConnect(peer: WorkerInfo): void {
    for (const context of this.container.values()) {
      for (const pass of context.passes.values()) {
        if (pass.root !== peer.id) continue
        if (pass.failed) this.postIfAlive(peer.id, MessageType.PASS_ERROR, [pass.task.error], context.contextId, pass.id)
        else if (pass.passive && (pass.plan === null || pass.missing.size === 0)) this.tellRoot(pass)
      }
    }
  }

  /** The context is being released: its passes end, here. The others hear of the release itself. */
  abandon(context: DistAutogradContext, error: PostgradError | null): void {
    for (const pass of context.passes.values()) {
      if (pass.gathered) continue
      const reason = error ?? releasedUnderWay(context.contextId)
      if (pass instanceof RootPass) pass.fail(reason)
      else pass.task.fail(reason)
    }
  }

  /** Nothing comes from that worker any more: passes in which it may have a part fail, passes that it began are over. */
  onPeerDeath(peer: WorkerInfo, error: PostgradError): void {
    for (const context of this.container.values()) {
      for (const counter of [...context.abortsUnderWay.keys()]) context.heardOfAbort(peer.id, counter)
      for (const pass of [...context.passes.values()]) {
        if (pass.root === peer.id) {
          context.passes.delete(pass.id)
          context.abortedPasses.add(pass.id)
          pass.task.fail(error)
        } else if (concerns(context, pass, peer.id)) {
          // A gathered pass is only called into question: if it has ended, the root knows, and this worker's part stays.
          if (pass.gathered) this.postIfAlive(pass.root, MessageType.PASS_ERROR, [error], context.contextId, pass.id)
          else this.fail(pass, error)
        }
      }
    }
  }

  onClose(closedBy: () => PostgradError): void {
    for (const context of this.container.values()) this.abandon(context, closedBy())
  }

  /** Passes of which something is still queued, running or awaited here. PyTorch: `num_current_backward_passes`. */
  get currentBackwardPasses(): number {
    let count = 0
    for (const context of this.container.values()) {
      for (const pass of context.passes.values()) if (!pass.gathered && !pass.failed) count++
    }
    return count
  }

  private postIfAlive(to: WorkerId, type: MessageType, body: readonly unknown[], context: bigint | null, pass: bigint): void {
    postIfAlive(this.runtime, to, type, body, context, pass)
  }

  // --- errors

  private nameOf(worker: WorkerId): string {
    return this.runtime.peers.get(worker)?.info.name ?? `worker id ${worker}`
  }

  private unusedSend(incomplete: readonly [WorkerId, PassReport][]): PostgradError {
    const misses = incomplete.map(([worker, { missingCount, missingSample }]) => ({
      worker: this.nameOf(worker),
      count: missingCount,
      messages: missingSample.map(([id]) => String(id)),
      sends: missingSample.map(([, to, what]) => `${what} to worker '${this.nameOf(to)}'`),
    }))
    const list = misses.map(
      ({ worker, count, sends }) =>
        `${count} message${count === 1 ? '' : 's'} of worker '${worker}'${sends.length === 0 ? '' : ` (${[...new Set(sends)].join(', ')})`}`,
    )
    return new PostgradError('UNUSED_SEND', {
      op: 'backward',
      message: `the pass reached its end, but ${list.join(' and ')} sent tensors that no root depends on: their gradients would be incomplete`,
      remedy:
        'Let every tensor that a call takes or returns in this context enter the loss, detach() those that should not, or call under noGrad. After a call that failed, try again in a context of its own.',
      values: { misses },
    })
  }

  private timedOut(pass: RootPass, timeoutMs: number): PostgradError {
    const waiting = pass.ledger.unbalanced().map((worker) => this.nameOf(worker))
    return new PostgradError('DIST_BACKWARD_TIMEOUT', {
      op: 'backward',
      message: `the pass ran for more than its timeout (${Math.round(timeoutMs)} ms)${waiting.length === 0 ? '' : `; it waits for ${waiting.map((name) => `'${name}'`).join(', ')}`}`,
      remedy: 'Pass { timeoutMs } to backward (0 is no limit), or look at what keeps that worker busy.',
      values: { timeoutMs, waitingFor: waiting },
    })
  }
}

const NONE: readonly never[] = Object.freeze([])

/** The body of a PASS_REPORT that says only that its sender knows of an abort. */
const NOTHING_DONE = [0, 0, NONE, 0, NONE]

/** Whether a pass cannot do without that worker. */
function concerns(context: DistAutogradContext, pass: DistPass, worker: WorkerId): boolean {
  if (pass.plan !== null) return pass.needs(worker)
  return context.knownWorkerIds.has(worker) || (pass instanceof RootPass && pass.ledger.participants().has(worker))
}

/** Why these cannot be the gradients of what that send function has sent; null: they can. */
function misfit(
  { to, inputMeta }: SendRpcBackward,
  pass: DistPass,
  grads: readonly (Tensor | null)[],
  how: number,
  from: WorkerId,
): string | null {
  if (to !== from) return 'its tensors went to another worker'
  if (how !== pass.how) return 'the pass runs in another way'
  const fits = (grad: Tensor | null, i: number) =>
    grad === null || (sameShape(grad.shape, inputMeta[i]!.shape) && grad.dtype === inputMeta[i]!.dtype)
  return grads.length === inputMeta.length && grads.every(fits) ? null : 'they do not fit its tensors'
}

function evaluateNode(graph: Engine, nodeTask: NodeTask): void {
  graph.evaluate(nodeTask)
}

function passAborted(): PostgradError {
  return new PostgradError('PASS_ABORTED', { op: 'backward', message: 'the root has given the pass up' })
}

function crossesWorkers(): PostgradError {
  return new PostgradError('BACKWARD_CROSSES_WORKERS', {
    op: 'backward',
    message: 'this graph goes on at another worker, where a local backward cannot follow',
    remedy: 'Use ctx.backward([loss]) inside of distAutograd.context, or detach() what was received.',
  })
}

function foreignContext(running: bigint, recorded: bigint): PostgradError {
  return new PostgradError('FOREIGN_CONTEXT', {
    op: 'backward',
    message: `a pass of context ${running} reached a tensor that was received in context ${recorded}`,
    remedy: 'Compute the loss in one context, or detach() what comes from another.',
    values: { contextId: String(running), receivedIn: String(recorded) },
  })
}

function unexpectedGradients(autogradId: bigint, why: string): PostgradError {
  return new PostgradError('UNEXPECTED_GRADIENTS', {
    op: 'backward',
    message: `gradients arrived for message ${autogradId}, but ${why}`,
    remedy: 'Start backward only when the forward pass of its context is done on all workers; otherwise report this as a bug.',
    values: { autogradId: String(autogradId) },
  })
}
