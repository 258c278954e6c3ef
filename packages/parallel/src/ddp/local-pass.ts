/**
 * A backward pass of this worker alone that can be awaited: its nodes run in the mailbox, as those of distributed passes do, so that messages of collectives
 * come in between; and it also waits for work that is not a node (`GraphTask.waitFor`). Gradients go to `.grad`. PyTorch's backend has
 * threads; here `loss.backward()`, which is one turn, could not wait for other ranks. The reducer attaches to it.
 */
import { AsyncResource } from 'node:async_hooks'
import {
  type AwaitablePass,
  dotGradSink,
  Engine,
  type GradSink,
  type GraphRoot,
  GraphTask,
  graphRoot,
  HIGHEST_PRIORITY,
  InputBuffer,
  type NodeTask,
  validateRoots,
} from '@postgrad/autograd/internal'
import { currentScope, inScope, Scope, timeLimit } from '@postgrad/base/internal'
import { MailboxQueue } from '@postgrad/dist-autograd/internal'
import { Future } from '@postgrad/rpc'
import { currentRuntime, type WorkerRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { backwardTimedOut } from './ddp-errors.js'

/** Options of `DistributedDataParallel.backward`. */
export interface LocalBackwardOptions {
  /** A gradient for each root, in the shape of that root. null, or left out, means 1, which requires a scalar root. */
  readonly gradTensors?: readonly (Tensor | null)[]
  /** Whether to keep the tensors that the graph saved, so that another pass can run over it; default false. */
  readonly retainGraph?: boolean
  /** The time limit of the whole pass, in ms. Default 0: only the deadlines of its collectives apply. */
  readonly timeoutMs?: number
}

const engine = new Engine()

/** Of all workers of this thread: a pass that was begun earlier goes first where it can, so that what passes add to one `.grad` is added in the order of the program. */
let begun = 0

export class LocalPass implements GradSink, AwaitablePass {
  readonly awaitable: AwaitablePass = this
  /** Gradients go to `.grad`. */
  readonly contextId = null
  readonly ended = new Future<void>()
  private readonly queue: MailboxQueue
  private readonly task: GraphTask
  private readonly worker: WorkerRuntime

  private constructor(worker: WorkerRuntime, keepGraph: boolean) {
    this.worker = worker
    const scope = new Scope({ gradEnabled: false }, currentScope())
    // The stores of the program's own AsyncLocalStorages, for its hooks.
    const stores = new AsyncResource('BackwardPass')
    const run = (first: NodeTask): void => stores.runInAsyncScope(() => inScope(scope, () => this.run(first)))
    this.queue = new MailboxQueue(worker, HIGHEST_PRIORITY - ++begun, run)
    this.task = new GraphTask({ keepGraph, sink: this, queue: this.queue })
  }

  /**
   * Begins one. `onTask` is called when its graph has been counted and no node has run, with what settles at its end; what it throws, it throws.
   * @throws NO_ROOTS, ROOT_REQUIRES_NO_GRAD, ROOT_NOT_SCALAR, ROOT_GRADIENT_MISMATCH, TIMEOUT_INVALID, RPC_NOT_INITIALIZED
   */
  static start(
    roots: readonly Tensor[],
    { gradTensors, retainGraph = false, timeoutMs = 0 }: LocalBackwardOptions,
    onTask: (task: GraphTask, ended: Future<void>) => void,
  ): LocalPass {
    validateRoots(roots, { op: 'backward', ...(gradTensors && { grads: gradTensors }) })
    const limitMs = timeLimit('backward', timeoutMs)
    const pass = new LocalPass(currentRuntime(), retainGraph)
    const root = graphRoot(roots, gradTensors)
    engine.computeDependencies(pass.task, [root])
    onTask(pass.task, pass.ended)
    pass.begin(root, limitMs)
    return pass
  }

  private begin(root: GraphRoot, timeoutMs: number): void {
    const { task, ended } = this
    const fail = (error: unknown): void => {
      task.fail(error)
      if (!ended.done) ended.reject(error)
    }
    const endWait = this.worker.requests.wait(
      {
        op: 'backward',
        about: () => ({ kind: 'pass', what: 'a backward pass of this worker, and the reduction of its gradients', on: [] }),
        onError: fail,
        timedOut: () => backwardTimedOut(timeoutMs),
      },
      timeoutMs,
    )
    task.onIdle = () => {
      endWait()
      if (ended.done) return
      if (task.error === null) ended.resolve()
      else ended.reject(task.error)
    }
    engine.start(task, root, new InputBuffer(0))
  }

  /** GradSink */
  accumulate(variable: Tensor, grad: Tensor, exclusive: boolean): void {
    dotGradSink.accumulate(variable, grad, exclusive)
  }

  /** AwaitablePass */
  gradOf(leaf: Tensor): Tensor | null {
    return leaf.grad
  }

  /** AwaitablePass */
  setGrad(leaf: Tensor, grad: Tensor): void {
    leaf.grad = grad
  }

  private run(first: NodeTask): void {
    for (let next: NodeTask | undefined = first; next !== undefined; next = this.queue.next()) {
      engine.evaluate(next)
      // Work that it also waits for may take long.
      if (this.task.error !== null && !this.ended.done) this.ended.reject(this.task.error)
    }
  }
}
