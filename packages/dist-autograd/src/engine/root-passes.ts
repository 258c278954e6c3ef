/**
 * The passes that begin at this worker: makes their plan, keeps their deadline, notices that they have ended (Note [Termination] in `pass-ledger.ts`), and drops failed
 * ones everywhere. `dist-engine.ts` does this worker's part of them, as of all passes.
 */
import { type Engine, type GraphRoot, graphRoot, InputBuffer, validateRoots } from '@postgrad/autograd/internal'
import { isPostgradError, localOf, type PostgradError, type WorkerId, workerOf } from '@postgrad/base'
import { currentScope, onAbort, type Scope, timeLimit, withScope } from '@postgrad/base/internal'
import { Future, type WorkerInfo } from '@postgrad/rpc'
import { type OwnWait, type ServedCall, servedIn, type WaitAbout, type WorkerRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions } from '@postgrad/tensor/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import type { DistAutogradContainer } from '../context/dist-autograd-container.js'
import {
  type BackwardRunner,
  contextReleased,
  type DistAutogradContext,
  type DistBackwardOptions,
  type PassOptimizer,
} from '../context/dist-autograd-context.js'
import { postIfAlive } from '../context/notices.js'
import { CREATE_GRAPH, KEEP_GRAPH } from '../lineage/gradient-field.js'
import { lineageBehind } from '../lineage/lineage-walk.js'
import { type PassDriver, RootPass } from '../pass/pass.js'
import { createGraphNeedsSmart, passCancelled, passGivenUp, passTimedOut, unusedSend } from '../pass/pass-errors.js'
import type { MissingSend, PassReport } from '../pass/pass-ledger.js'
import { type PassPlan, planOf } from '../pass/pass-plan.js'

const OPTIONS = ['retainGraph', 'createGraph', 'timeoutMs', 'gradTensors', 'signal', 'optimizer'] as const

export class RootPasses implements BackwardRunner {
  private readonly runtime: WorkerRuntime
  private readonly container: DistAutogradContainer
  private readonly graph: Engine
  private readonly driver: PassDriver
  private readonly self: WorkerId

  constructor(runtime: WorkerRuntime, container: DistAutogradContainer, graph: Engine, driver: PassDriver) {
    this.runtime = runtime
    this.container = container
    this.graph = graph
    this.driver = driver
    this.self = runtime.info.id
  }

  /** See `DistAutogradContext.backward`. Never throws: it rejects. */
  backward(context: DistAutogradContext, roots: readonly Tensor[], options: DistBackwardOptions): Promise<void> {
    try {
      const optimizers = [options.optimizer ?? NONE].flat()
      for (const optimizer of optimizers) optimizer.announce(context)
      const pass = this.begin(context, roots, options)
      if (optimizers.length > 0) pass.given = stepsAfter(pass, context, optimizers)
      return pass.given
    } catch (error) {
      // As one that fails later is: with the line that awaits it.
      return Future.rejected(error)
    }
  }

  get isInNode(): boolean {
    return this.driver.ready.isRunning
  }

  release({ contextId }: DistAutogradContext): void {
    this.container.release(contextId)
  }

  private begin(context: DistAutogradContext, roots: readonly Tensor[], options: DistBackwardOptions): RootPass {
    if (context.released) throw contextReleased(context.contextId, 'backward')
    checkOptions('backward', options, OPTIONS)
    const { createGraph = false, retainGraph = createGraph, gradTensors, signal } = options
    if (createGraph && context.mode === 'fast') throw createGraphNeedsSmart()
    validateRoots(roots, { op: 'backward', needGradFn: true, ...(gradTensors && { grads: gradTensors }) })
    const root = graphRoot(roots, gradTensors)
    const plan = context.mode === 'fast' ? null : this.plan(context, root)
    const death = this.deathAmong(plan === null ? context.knownWorkerIds : plan.workers())
    if (death !== null) throw death
    const scope = currentScope()
    const timeoutMs = this.timeLeft(options.timeoutMs ?? this.runtime.rpcTimeoutMs, scope)
    const serving = servedIn(scope)
    const givenUp = serving?.givenUp ?? null
    if (givenUp !== null) throw passGivenUp(givenUp)
    if (signal?.aborted === true) throw passCancelled(signal.reason)
    this.commitEnded(context)

    const sends = context.awaitedBy(plan)
    const how = (retainGraph ? KEEP_GRAPH : 0) | (createGraph ? CREATE_GRAPH : 0)
    const pass = new RootPass(this.runtime.ids.take(), context.contextId, how, plan, sends, this.driver, scope)
    this.graph.computeDependencies(pass.task, [root, ...sends])
    pass.endWait = this.awaitEnd(context, pass, timeoutMs, serving, signal)
    context.passes.set(pass.id, pass)
    this.graph.start(pass.task, root, new InputBuffer(0))
    return pass
  }

  /** Ends a pass from outside: by its deadline, its caller's signal, or the cancellation of the call that it is in. Returns what ends the wait. */
  private awaitEnd(
    context: DistAutogradContext,
    pass: RootPass,
    timeoutMs: number,
    serving: ServedCall | null,
    signal: AbortSignal | undefined,
  ): () => void {
    const wait: OwnWait = {
      op: 'backward',
      about: () => this.whatIsMissing(context, pass),
      onError: (error) => this.fail(context, pass, isPostgradError(error, 'CALL_CANCELLED') ? passGivenUp(error.cause) : error),
      timedOut: () => this.timedOut(pass, timeoutMs),
    }
    const endWait = this.runtime.requests.wait(wait, timeoutMs, serving)
    if (signal === undefined) return endWait
    const unlisten = onAbort(signal, () => this.fail(context, pass, passCancelled(signal.reason)))
    return () => {
      unlisten()
      endWait()
    }
  }

  /** The error of a pass at its deadline. */
  timedOut(pass: RootPass, timeoutMs: number): PostgradError {
    return passTimedOut(
      timeoutMs,
      pass.ledger.unbalanced().map((worker) => this.nameOf(worker)),
    )
  }

  /** In ms: never longer than what is left to the call that is being served. @throws TIMEOUT_INVALID */
  private timeLeft(timeoutMs: number, { deadlineMs }: Scope): number {
    const limitMs = timeLimit('backward', timeoutMs)
    return deadlineMs === Number.POSITIVE_INFINITY ? limitMs : Math.min(limitMs, Math.max(0, deadlineMs - this.runtime.clock.now()))
  }

  /** @throws LINEAGE_INCOMPLETE */
  private plan({ lineage, recvFunctions, passes: { abortsUnderWay } }: DistAutogradContext, root: GraphRoot): PassPlan {
    const messages = recvFunctions.size === 0 ? NONE : lineageBehind(root.nextEdges, lineage)
    return planOf(lineage, messages, abortsUnderWay.size === 0 ? NONE : [...abortsUnderWay.keys()])
  }

  /** A pass in which a dead worker has a part cannot be complete. */
  private deathAmong(workers: Iterable<WorkerId>): PostgradError | null {
    for (const worker of workers) {
      const death = this.runtime.deathOf(worker)
      if (death !== null) return death
    }
    return null
  }

  /** This worker has nothing to do in its own pass for now. */
  idle(pass: RootPass): void {
    pass.ledger.report(this.self, pass.report())
    const context = this.container.find(pass.contextId)
    if (context === undefined) return
    this.checkEnd(context, pass)
    if (pass.missing.size === 0 && context.passes.get(pass.id) === pass) context.passes.tellFinal(pass)
  }

  /** PASS_REPORT: how far a worker has come. */
  onReport({ pass: passId, body }: Message, from: WorkerInfo, context: DistAutogradContext | undefined): void {
    if (context === undefined || passId === null) return
    const pass = context.passes.get(passId)
    if (!(pass instanceof RootPass)) {
      context.passes.heardOfAbort(from.id, localOf(passId))
      return
    }
    const [version, received, sent, missingCount, missingSample] = body as [number, number, PassReport['sent'], number, MissingSend[]]
    pass.ledger.report(from.id, { version, received, sent, missingCount, missingSample })
    this.checkEnd(context, pass)
  }

  /** PASS_ERROR: a worker has failed. */
  onError({ pass: passId, body }: Message, context: DistAutogradContext | undefined): void {
    const pass = passId === null ? undefined : context?.passes.get(passId)
    if (pass instanceof RootPass) this.fail(context!, pass, body[0])
  }

  /** Once the root itself is passive: is everybody? */
  private checkEnd(context: DistAutogradContext, pass: RootPass): void {
    if (pass.failed || !pass.passive || !pass.ledger.balanced) return
    const incomplete = pass.ledger.incomplete()
    if (incomplete.length > 0) {
      this.fail(
        context,
        pass,
        unusedSend(incomplete, (worker) => this.nameOf(worker)),
      )
      return
    }
    context.passes.absorb(pass)
    context.passes.ended.push({ id: pass.id, ledger: pass.ledger })
    // The context outlives a root that did not make it: if this worker dies, what the others gathered is to stay (DA-28).
    if (workerOf(context.contextId) !== this.self) this.commitEnded(context)
    pass.succeed()
  }

  /**
   * The others learn that a pass ended well when the next one begins: nothing needs it before (their `gradients()` count it already), and most
   * contexts have one pass only.
   */
  private commitEnded(context: DistAutogradContext): void {
    for (const { id, ledger } of context.passes.ended.splice(0)) {
      for (const worker of ledger.participants()) {
        if (worker !== this.self) postIfAlive(this.runtime, worker, MessageType.PASS_COMMIT, [], context.contextId, id)
      }
    }
  }

  /** Drops the pass, notifies its workers, rejects. */
  fail(context: DistAutogradContext, pass: RootPass, error: unknown): void {
    if (context.passes.get(pass.id) !== pass) {
      // Its entry is gone, but its program must get an error; without effect if it had an end before.
      pass.fail(error)
      return
    }
    context.passes.abortHere(pass, error)
    const told = pass.plan === null ? new Set([...context.knownWorkerIds, ...pass.ledger.participants()]) : pass.plan.workers()
    for (const worker of told) {
      if (worker !== this.self) postIfAlive(this.runtime, worker, MessageType.PASS_ABORT, [error], context.contextId, pass.id)
    }
    pass.fail(error)
  }

  /** Says what a pass waits for. */
  whatIsMissing(context: DistAutogradContext, pass: RootPass): WaitAbout {
    const open = pass.ledger.unbalanced()
    const on = (open.length > 0 ? open : [...context.knownWorkerIds]).filter((id) => id !== this.self)
    const known = on.flatMap((id) => this.runtime.peers.infoOf(id) ?? [])
    const what = `backward pass ${pass.id} of context ${context.contextId}, ${pass.missing.size} send functions of this worker without a gradient`
    return { kind: 'pass', what, on: known }
  }

  private nameOf(worker: WorkerId): string {
    return this.runtime.peers.infoOf(worker)?.name ?? `worker id ${worker}`
  }
}

const NONE: readonly never[] = Object.freeze([])

async function stepsAfter(pass: RootPass, context: DistAutogradContext, optimizers: readonly PassOptimizer[]): Promise<void> {
  await pass.ended
  for (const optimizer of optimizers) await withScope({ stepping: context }, () => optimizer.step(context))
}
