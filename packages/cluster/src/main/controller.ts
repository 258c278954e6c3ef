/**
 * The typed handle of one worker: `cluster.on('worker0')`. It runs exposed functions there, as that worker's program (not as a call of another
 * worker), and checks arguments and result by the function's type.
 */
import type { PostgradError } from '@postgrad/base'
import { timeLimit } from '@postgrad/base/internal'
import type { AnyFunction, Sendable, WorkerInfo } from '@postgrad/rpc'
import { threadRegistry } from '@postgrad/rpc/internal'
import { argumentText, invalidArgument } from '@postgrad/tensor/internal'
import { type PayloadCodec, transferables } from '@postgrad/wire/internal'
import { transfer } from 'comlink'
import type { RemoteWorker } from '../admin/remote-worker.js'
import { checkNames } from '../options/check-options.js'
import { explainDeaths } from './death-cause.js'

/** Of `cluster.on`. */
export interface ControllerOptions {
  /** How long a run may take, in ms; by default, and with 0, as long as its worker lives. The function is not stopped by it. */
  readonly timeoutMs?: number
}

/** What a controller asks of its cluster. */
export interface ClusterView {
  readonly workers: readonly WorkerInfo[]
  /** Throws when the cluster takes no more work. */
  admit(op: string): void
  /** See `FindDeath`. */
  endOf(workerId: number): Promise<PostgradError | null>
}

/** The handle of one worker, from outside: `cluster.on('worker0')`. */
export class Controller {
  /** The worker's name and id. */
  readonly info: WorkerInfo
  private readonly thread: RemoteWorker
  private readonly payloads: PayloadCodec
  private readonly timeoutMs: number
  private readonly cluster: ClusterView

  /** @throws TIMEOUT_INVALID, INVALID_ARGUMENT */
  constructor(thread: RemoteWorker, payloads: PayloadCodec, options: ControllerOptions, cluster: ClusterView) {
    checkNames('cluster.on', options, { timeoutMs: true })
    this.info = thread.info
    this.thread = thread
    this.payloads = payloads
    this.timeoutMs = timeLimit('cluster.on', options.timeoutMs ?? 0)
    this.cluster = cluster
  }

  /**
   * Runs an exposed function on this worker and gives its result. Arguments and result travel by value: structured-clone types and tensors (they
   * arrive as leaves; a parameter still requires grad), no references: `cluster.call` and `cluster.remote` have those. A function that this thread does not have may be named.
   * Rejects with the function's own error (class, code, cause, values and its stack there), FUNCTION_NOT_EXPOSED, WIRE_UNSUPPORTED_VALUE,
   * WORKER_DIED, RUN_TIMEOUT, CLUSTER_CLOSED.
   */
  run<F extends AnyFunction>(fn: F, ...args: Sendable<Parameters<F>>): Promise<Awaited<ReturnType<F>>>
  run(name: string, ...args: readonly unknown[]): Promise<unknown>
  async run(fn: AnyFunction | string, ...args: readonly unknown[]): Promise<unknown> {
    this.cluster.admit('run')
    const call = this.payloads.encodeCall(typeof fn === 'string' ? fn : threadRegistry.nameOf(fn), args)
    return this.explained(this.thread.ask('run', [transfer(call, transferables(call))], { op: 'run', timeoutMs: this.timeoutMs }))
  }

  /**
   * Runs the program's default export as `main({ name, rank, worldSize, args })`; its result stays on the worker.
   * Rejects as `run` does, and with MAIN_MISSING.
   */
  async runMain(args: readonly string[] = []): Promise<void> {
    this.cluster.admit('runMain')
    if (!Array.isArray(args)) throw invalidArgument('runMain', 'the arguments in an array', argumentText(args), "Write ['--epochs', '3'].")
    const { workers } = this.cluster
    const rank = workers.findIndex(({ id }) => id === this.info.id)
    await this.explained(
      this.thread.ask('runMain', [{ rank, worldSize: workers.length, args: [...args] }], { op: 'run', timeoutMs: this.timeoutMs }),
    )
  }

  private async explained(asked: Promise<unknown>): Promise<unknown> {
    try {
      return await asked
    } catch (error) {
      await explainDeaths(error, (workerId) => this.cluster.endOf(workerId))
      throw error
    }
  }
}
