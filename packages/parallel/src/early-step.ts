/**
 * An owner's part of a step, computed before the step is called: when this worker's gradients of a pass are final, and the pass still runs elsewhere.
 *
 * Note [Overlap]
 * ~~~~~~~~~~~~~~
 * A pass may be aborted after some workers have their final gradients, so a parameter must not change before the pass has ended everywhere: it could be
 * written back, but other passes and callers would have seen it, and what a graph had saved would be known to have changed, so that the context could not run
 * another pass. Hence two phases. When the gradients are final the next values are computed as copies; the step, which comes when the pass has
 * ended, copies them. It does so only if it would compute the same: the same gradients, and no parameter, gradient, state or setting written to since
 * (by versions); otherwise it computes again. So the result is that of backward and then step, bit for bit, whatever happened in between, and an
 * abort or a death needs nothing undone. The price is memory for a copy of parameters and states, and the copying.
 */
import type { DistAutogradContext } from '@postgrad/dist-autograd/internal'
import type { OptimizerBase, ParamState } from '@postgrad/nn'
import { currentRuntime } from '@postgrad/rpc/internal'

/** An optimizer that can compute a step without taking it. */
// biome-ignore lint/suspicious/noExplicitAny: of any settings
export type StepsEarly = OptimizerBase<any, ParamState>
type Prepared = ReturnType<StepsEarly['prepare']>

/** Below all node tasks: gradients that others wait for go first. */
const PRIORITY = 0

export class EarlyStep {
  private readonly optimizer: StepsEarly
  private readonly context: DistAutogradContext
  private readonly changes: ReadonlyMap<number, object>
  private readonly stop: () => void
  private prepared: Prepared | null = null
  private isOver = false

  constructor(optimizer: StepsEarly, context: DistAutogradContext, changes: ReadonlyMap<number, object>) {
    this.optimizer = optimizer
    this.context = context
    this.changes = changes
    const worker = currentRuntime()
    // In a turn of its own, after the messages of this one: the worker's report must not wait for it.
    const prepare = { run: () => worker.run(async () => this.prepare()) }
    this.stop = context.onFinal(
      () => worker.pushTask(prepare, PRIORITY),
      () => this.take(),
    )
  }

  /** The computed step, if any; later, nothing is computed. */
  take(): Prepared | null {
    this.isOver = true
    this.stop()
    const { prepared } = this
    this.prepared = null
    return prepared
  }

  private prepare(): void {
    if (this.isOver || this.context.released) return
    try {
      this.prepared = this.optimizer.prepare(this.context.gradientsSoFar(), this.changes)
    } catch {
      // The step will meet the same error, and reports it.
      this.prepared = null
    }
  }
}
