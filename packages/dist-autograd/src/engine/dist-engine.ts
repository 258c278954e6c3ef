/**
 * The distributed engine of one worker: does its part of every pass, together with other workers' engines. Nodes run in `ready-nodes.ts`, passes
 * begin and end in `root-passes.ts`. PyTorch: `DistEngine` (FAST mode; ours also has SMART, Note [SMART] in `lineage.ts`); how a pass ends and how it fails differ, see below.
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
 * as the graph is deep. Here every worker reports to the root by itself when it has nothing to do, and the root adds up (Note [Termination] in
 * `pass-ledger.ts`). A failure goes to the root as well, which sends it to all:
 *
 *        ←────────────── PASS_ERROR (error) ───────────────
 *        ── PASS_ABORT ───────────────────────────────────→ all of the plan drop the pass (FAST: and forward it to all they know)
 */
import assert from 'node:assert'
import { Engine, GraphTask, HeldBack, InputBuffer, type NodeTask } from '@postgrad/autograd/internal'
import { type PostgradError, type WorkerId, workerOf } from '@postgrad/base'
import { globalId } from '@postgrad/base/internal'
import { currentWorker, type WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { sameShape } from '@postgrad/tensor/internal'
import { type Message, MessageType, type PassHead } from '@postgrad/wire/internal'
import type { DistAutogradContainer } from '../context/dist-autograd-container.js'
import { type DistAutogradContext, releasedUnderWay } from '../context/dist-autograd-context.js'
import { postIfAlive, tellLineage } from '../context/notices.js'
import type { GradientCarrier, RecvRpcBackward } from '../functions/recv-rpc-backward.js'
import type { SendRpcBackward } from '../functions/send-rpc-backward.js'
import { type RecordedSend, readGradientField, writeGradientField } from '../lineage/gradient-field.js'
import { DistPass, type PassDriver, RootPass } from '../pass/pass.js'
import { crossesWorkers, foreignContext, located, passAborted, passUnreadable, unexpectedGradients } from '../pass/pass-errors.js'
import { type PassPlan, readPlan } from '../pass/pass-plan.js'
import { recordRecv, recordSend, unrecordSend } from './attach.js'
import { ReadyNodes } from './ready-nodes.js'
import { RootPasses } from './root-passes.js'

export class DistEngine implements GradientCarrier, PassDriver {
  /** False only to measure what the order of sums costs, and to prove that tests of it can fail. */
  ordered = true
  readonly heldBack = new HeldBack()
  readonly ready: ReadyNodes
  /** The passes that begin here. */
  readonly roots: RootPasses
  private readonly runtime: WorkerRuntime
  private readonly container: DistAutogradContainer
  private readonly graph = new Engine()
  private readonly self: WorkerId

  constructor(runtime: WorkerRuntime, container: DistAutogradContainer) {
    this.runtime = runtime
    this.container = container
    this.self = runtime.info.id
    this.ready = new ReadyNodes(runtime, container, this.graph, (pass, nodeTask) => this.nodeFailed(pass, nodeTask))
    this.roots = new RootPasses(runtime, container, this.graph, this)
  }

  // --- nodes

  /** A hook may have ended the pass from outside, by its signal or the release of the context: the node did not fail then. */
  private nodeFailed(pass: DistPass, { node }: NodeTask): void {
    const isUnderWay = this.container.find(pass.contextId)?.passes.has(pass.id) === true
    if (isUnderWay) this.fail(pass, located(pass.task.error, node, currentWorker().info))
  }

  /** GradientCarrier: a gradient leaves for the worker that the tensors came from. */
  carry(node: RecvRpcBackward, grads: readonly (Tensor | null)[], task: object): void {
    const pass = task instanceof GraphTask ? task.sink : null
    // A hook, of this node or of another, may run a local backward in the middle of a pass.
    if (!(pass instanceof DistPass)) throw crossesWorkers()
    if (pass.contextId !== node.contextId) throw foreignContext(pass.contextId, node.contextId)
    const { from } = node
    const post = (sent: readonly (Tensor | null)[], lineage: number[] | null) =>
      this.runtime.post(from, MessageType.PROPAGATE_GRADIENTS, [sent, pass.how], {
        context: pass.contextId,
        autogradId: node.autogradId,
        pass: pass.id,
        lineage,
      })
    const plan = pass.fieldFor(from, this.self)
    const context = pass.task.createGraph ? this.container.find(pass.contextId) : undefined
    if (context === undefined) post(grads, plan)
    else this.postRecorded(context, grads, from, (recorded) => post(grads, writeGradientField(recorded, plan)))
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

  /** PassDriver: this worker is passive, and reports to the root how far it has come; in SMART only at its end. */
  readonly onIdle = ({ sink }: GraphTask): void => {
    if (!(sink instanceof DistPass)) assert.fail('what a worker runs is of its passes')
    this.idle(sink)
  }

  private idle(pass: DistPass): void {
    if (pass.failed) return
    if (pass instanceof RootPass) {
      this.roots.idle(pass)
      return
    }
    if (pass.plan !== null && pass.missing.size > 0) return
    this.tellRoot(pass)
    if (pass.missing.size > 0) return
    pass.gather()
    this.container.find(pass.contextId)?.passes.tellFinal(pass)
  }

  private tellRoot(pass: DistPass): void {
    const { version, received, sent, missingCount, missingSample } = pass.report()
    const body = [version, received, sent, missingCount, missingSample]
    this.postIfAlive(pass.root, MessageType.PASS_REPORT, body, pass.contextId, pass.id)
  }

  /** A pass fails here. Its root decides; this worker only stops. */
  private fail(pass: DistPass, error: unknown): void {
    const context = this.container.find(pass.contextId)
    if (context?.passes.get(pass.id) !== pass) return
    if (pass instanceof RootPass) {
      this.roots.fail(context, pass, error)
      return
    }
    pass.task.fail(error)
    this.postIfAlive(pass.root, MessageType.PASS_ERROR, [error], pass.contextId, pass.id)
  }

  // --- messages

  /** PROPAGATE_GRADIENTS: gradients of tensors that this worker sent. */
  onGradients(message: Message, from: WorkerInfo, context: DistAutogradContext | undefined): void {
    const { context: contextId, pass: passId, autogradId, body } = message
    if (contextId === null || passId === null || autogradId === null) assert.fail('PROPAGATE_GRADIENTS without its ids')
    const [grads, how] = body as readonly [readonly (Tensor | null)[], number]
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
    const { recorded } = readGradientField(message, from)
    if (recorded !== null) recordRecv(context, recorded.autogradId, message, recorded.field, from, this)
  }

  /** This worker's part of a pass begins with the first gradient; null if the pass is over already, or cannot begin. */
  private join(context: DistAutogradContext, passId: bigint, how: number, message: Message, from: WorkerId): DistPass | null {
    const root = workerOf(passId)
    if (context.passes.aborted.has(passId) || root === this.self || this.runtime.deathOf(root) !== null) return null
    let plan: PassPlan | null
    let sends: SendRpcBackward[]
    try {
      plan = context.mode === 'fast' ? null : readPlan(readGradientField(message, from).plan)
      sends = context.awaitedBy(plan)
    } catch (error) {
      context.passes.refuse(passId)
      this.postIfAlive(root, MessageType.PASS_ERROR, [error], context.contextId, passId)
      return null
    }
    for (const counter of plan?.aborted ?? []) context.passes.abort(globalId(root, counter), passAborted())
    const pass = new DistPass(passId, context.contextId, how, plan, sends, this)
    this.graph.computeDependencies(pass.task, sends)
    context.passes.set(passId, pass)
    for (const worker of context.knownWorkerIds) {
      const death = this.runtime.deathOf(worker)
      if (death !== null && concerns(context, pass, worker)) this.fail(pass, death)
    }
    return pass
  }

  /**
   * Drops the pass. In FAST the abort spreads along the edges of the context: this worker knows all that got gradients from it. In SMART it answers the root,
   * so that later plans need not name the pass.
   */
  onAbort({ context: contextId, pass: passId, body }: Message, from: WorkerInfo, context: DistAutogradContext | undefined): void {
    if (context === undefined || passId === null) return
    if (context.mode === 'smart') this.postIfAlive(from.id, MessageType.PASS_REPORT, NOTHING_DONE, context.contextId, passId)
    if (context.passes.aborted.has(passId)) return
    context.passes.abort(passId, body[0])
    if (context.mode === 'smart') return
    for (const worker of context.knownWorkerIds) {
      if (worker !== from.id && worker !== workerOf(passId)) this.postIfAlive(worker, MessageType.PASS_ABORT, body, contextId, passId)
    }
  }

  onCommit({ pass: passId }: Message, context: DistAutogradContext | undefined): void {
    const pass = passId === null ? undefined : context?.passes.get(passId)
    if (pass !== undefined) context!.passes.absorb(pass)
  }

  /** A message about a pass that cannot be read: the pass fails, and its root learns that at once. */
  onUnreadable({ context: contextId, pass: passId }: PassHead, cause: unknown, from: WorkerInfo, isFailure: boolean): void {
    const error = isFailure ? cause : passUnreadable(cause, from, this.runtime.info)
    const pass = this.container.find(contextId)?.passes.get(passId)
    if (pass !== undefined) this.fail(pass, error)
    else if (workerOf(passId) !== this.self) this.postIfAlive(workerOf(passId), MessageType.PASS_ERROR, [error], contextId, passId)
  }

  // --- ends

  /** A worker that was started again may be the root of passes that have come here by others, before this worker knew it. */
  onPeerConnect(peer: WorkerInfo): void {
    for (const context of this.container.values()) {
      for (const pass of context.passes.values()) {
        if (pass.root !== peer.id) continue
        if (pass.failed) this.postIfAlive(peer.id, MessageType.PASS_ERROR, [pass.task.error], context.contextId, pass.id)
        else if (pass.passive && (pass.plan === null || pass.missing.size === 0)) this.tellRoot(pass)
      }
    }
  }

  /** The context is being released: its passes end, here. Other workers learn of the release. */
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
      for (const counter of [...context.passes.abortsUnderWay.keys()]) context.passes.heardOfAbort(peer.id, counter)
      for (const pass of [...context.passes.values()]) {
        if (pass.root === peer.id) context.passes.abort(pass.id, error)
        else if (concerns(context, pass, peer.id)) {
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
}

const NONE: readonly never[] = Object.freeze([])

/** The body of a PASS_REPORT that says only that its sender knows of an abort. */
const NOTHING_DONE = [0, 0, NONE, 0, NONE]

/** Whether a pass cannot do without that worker. */
function concerns(context: DistAutogradContext, pass: DistPass, worker: WorkerId): boolean {
  if (pass.plan !== null) return pass.needs(worker)
  return context.knownWorkerIds.has(worker) || (pass instanceof RootPass && pass.ledger.participants().has(worker))
}

const NO_FIT = 'they do not fit its tensors'

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
  if (grads.length !== inputMeta.length) return NO_FIT
  for (let i = 0; i < grads.length; i++) {
    const grad = grads[i]
    const { shape, dtype } = inputMeta[i]!
    if (grad !== null && !(sameShape(grad!.shape, shape) && grad!.dtype === dtype)) return NO_FIT
  }
  return null
}
