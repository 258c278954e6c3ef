/**
 * How the workers of a pipeline exchange values: a value stays with its maker until the worker that needs it asks. Asking is a call, so a death, a deadline, a cancellation and a failure at
 * the other end each end it, as they end all calls, and no worker needs a notice. A pipeline asks for everything when its step begins, so values leave as soon as they are made.
 *
 *     rank 1    take(step 7, 0SEND_F3) ─────────▸ rank 0     not made yet: the call waits here
 *               ◂──────────── activations ─────── rank 0     stage 0 has run micro-batch 3
 *
 * For `pipeline.ts`. Values are tensors outside of any distributed context; large ones stay where they are, as in all calls between threads.
 */
import { Future, PostgradError } from '@postgrad/base'
import { onAbort } from '@postgrad/base/internal'
import { type CallOptions, call, currentSignal, expose, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime, WorkerSlot } from '@postgrad/rpc/internal'
import { invalidArgument } from '@postgrad/tensor/internal'
import { mismatch, type Plan } from './plan.js'

/** One step, as one worker sees it. Another way to carry values (a process group's send and receive) would be another of these. */
export interface StageLink {
  /** Makes a value ready for the one worker that asks for it. Waits for nothing. */
  send(key: string, value: unknown): void
  /** A worker's value under that key. Rejects with the error of its step, its death, the step's deadline or signal. */
  receive(from: WorkerInfo, key: string): PromiseLike<unknown>
  /** This worker has done its part. */
  done(): void
  /** Resolves when that worker has done its part, and thus taken all that it needs; rejects as `receive`, and with PIPELINE_MISMATCH if its plan is another. Asked of all when a step begins, so each learns of any failure at once. */
  doneAt(worker: WorkerInfo): PromiseLike<void>
  /** The step has ended here; with an error, everybody who still asks gets that. */
  end(error: PostgradError | null): void
}

interface Box {
  /** With the plan of this worker's own step, when it begins. */
  readonly begun: Future<Plan>
  readonly values: Map<string, Future<unknown>>
  readonly done: Future<void>
}

/** A worker's values for the others of one pipeline. */
class Outbox {
  private readonly boxes = new Map<number, Box>()
  /** Steps before this one have ended here. */
  private next = 0
  /** The last step that failed here. */
  private failure: { readonly step: number; readonly error: PostgradError } | null = null

  /** Whether steps are counted by another pipeline of this name already. */
  private isTaken = false

  /** @throws INVALID_ARGUMENT for a second pipeline of the name */
  claim(pipeline: string): void {
    if (this.isTaken)
      throw invalidArgument(
        'Pipeline',
        'a name that no other pipeline of this worker has had',
        `'${pipeline}'`,
        "Pass { name: 'second' } or another name, the same on all workers; without one it is 'pipeline'.",
      )
    this.isTaken = true
  }

  begin(step: number, plan: Plan): void {
    this.box(step).begun.setResult(plan)
  }

  done(step: number): void {
    this.box(step).done.setResult()
  }

  end(step: number, error: PostgradError | null): void {
    this.next = step + 1
    if (error !== null) this.failure = { step, error }
    const box = this.boxes.get(step)
    this.boxes.delete(step)
    if (box === undefined || error === null) return
    for (const each of [box.done, ...box.values.values()]) if (!each.done) each.setException(error)
  }

  /** @throws (rejects) what ended the step, PIPELINE_STEP_OVER */
  async take(step: number, hash: string, key: string): Promise<unknown> {
    const value = this.value(step, key)
    const stop = onAbort(currentSignal(), () => this.drop(step, key))
    try {
      // `doneAt` reports it, and ends the step.
      if ((await this.otherPlan(step, hash)) !== null) await this.boxes.get(step)?.done
      return await value
    } finally {
      stop()
      this.drop(step, key)
    }
  }

  /** Null when it is done, else this worker's plan, which is another. @throws (rejects) what ended the step */
  async doneAt(step: number, hash: string): Promise<Plan | null> {
    if (step < this.next) {
      if (this.failure?.step === step) throw this.failure.error
      return null
    }
    const { done } = this.box(step)
    const other = await this.otherPlan(step, hash)
    if (other === null) await done
    return other
  }

  /** Null where it is the one that was hashed. */
  private async otherPlan(step: number, hash: string): Promise<Plan | null> {
    const own = await this.boxes.get(step)?.begun
    return own === undefined || own.hash === hash ? null : own
  }

  value(step: number, key: string): Future<unknown> {
    const found = this.boxes.get(step)?.values.get(key)
    if (found !== undefined) return found
    if (step < this.next) return quiet(Future.rejected(this.failure?.step === step ? this.failure.error : stepOver(step, key)))
    const value = quiet(new Future<unknown>())
    this.box(step).values.set(key, value)
    return value
  }

  private box(step: number): Box {
    let box = this.boxes.get(step)
    if (box === undefined) {
      box = { begun: new Future(), values: new Map(), done: quiet(new Future()) }
      this.boxes.set(step, box)
    }
    return box
  }

  private drop(step: number, key: string): void {
    this.boxes.get(step)?.values.delete(key)
  }
}

/** It may fail while nobody waits for it. */
function quiet<T>(future: Future<T>): Future<T> {
  future.catch(() => {})
  return future
}

const OUTBOXES = new WorkerSlot('pipelines', () => new Map<string, Outbox>())

function outboxHere(pipeline: string): Outbox {
  const outboxes = OUTBOXES.here
  let outbox = outboxes.get(pipeline)
  if (outbox === undefined) {
    outbox = new Outbox()
    outboxes.set(pipeline, outbox)
  }
  return outbox
}

const takeThere = (pipeline: string, step: number, hash: string, key: string): Promise<unknown> =>
  outboxHere(pipeline).take(step, hash, key)
const doneThere = (pipeline: string, step: number, hash: string): Promise<Plan | null> => outboxHere(pipeline).doneAt(step, hash)

expose({ 'postgrad.pipeline.take': takeThere, 'postgrad.pipeline.done': doneThere })

/** Before the first step. @throws INVALID_ARGUMENT */
export function claimName(pipeline: string): void {
  outboxHere(pipeline).claim(pipeline)
}

/** A link by calls. Of a name the steps are counted by the pipeline: all of its workers must count alike, and have the same plan. */
export function openStageLink(pipeline: string, step: number, plan: Plan, options: CallOptions): StageLink {
  const outbox = outboxHere(pipeline)
  outbox.begin(step, plan)
  return {
    send: (key, value) => outbox.value(step, key).setResult(value),
    receive: (from, key) => call(from, takeThere, [pipeline, step, plan.hash, key], options),
    done: () => outbox.done(step),
    doneAt: async (worker) => {
      const other = await call(worker, doneThere, [pipeline, step, plan.hash], options)
      if (other !== null) throw mismatch(currentRuntime().info.name, plan, worker.name, other)
    },
    end: (error) => outbox.end(step, error),
  }
}

function stepOver(step: number, key: string): PostgradError {
  return new PostgradError('PIPELINE_STEP_OVER', {
    op: 'Pipeline.step',
    expected: `the worker that runs ${key} to be in step ${step}`,
    got: 'a later step',
    remedy: 'Let every worker of the pipeline take each step; after a failure make a pipeline of another name on all of them.',
    values: { step, key },
  })
}
