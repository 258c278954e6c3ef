/**
 * The typed handle of one worker: `cluster.on('worker0')`. It runs exposed functions there, as that worker's program (not as a call of another
 * worker), and checks arguments and result by the function's type.
 */
import { isSignal, timeLimit } from '@postgrad/base/internal'
import type { AnyFunction, Sendable, WorkerInfo } from '@postgrad/rpc'
import { threadRegistry } from '@postgrad/rpc/internal'
import { argumentText, invalidArgument } from '@postgrad/tensor/internal'
import { type PayloadCodec, transferables } from '@postgrad/wire/internal'
import { transfer } from 'comlink'
import type { RemoteWorker } from '../admin/remote-worker.js'
import { checkBoolean, checkNames } from '../options/check-options.js'
import type { Gate } from './gate.js'

/** Options of `cluster.on`. */
export interface ControllerOptions {
  /**
   * How long a run may take, in ms. Then the run rejects with RUN_TIMEOUT. On the worker the function's `currentSignal()` aborts, and the calls that the function
   * has made are cancelled. Default 0: as long as the worker lives.
   */
  readonly timeoutMs?: number
  /** When this signal aborts, the runs of the controller are cancelled in the same way, and reject with CALL_CANCELLED. */
  readonly signal?: AbortSignal
}

/** Options of `runMain`. */
export interface RunMainOptions {
  /**
   * Whether no other run follows on this worker. If true, and other workers still wait for this worker in a collective after its main has returned, the
   * collective fails with GROUP_BROKEN. Default false: they wait, because another run on this worker may still join the collective. `postgrad run` sets it.
   */
  readonly isLast?: boolean
}

/**
 * Runs functions on one worker, from the thread that called `launch`: `cluster.on('worker0')`.
 * @example
 * await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: 2 })
 * const controller = cluster.on('worker0', { timeoutMs: 10_000 })
 * const y = await controller.run(addOne, x) // the program has: expose({ addOne })
 * await controller.runMain(['--epochs=3']) // calls the program's default export
 */
export class Controller {
  /** The worker's name and id. */
  readonly info: WorkerInfo
  private readonly worker: RemoteWorker
  private readonly payloads: PayloadCodec
  private readonly limits: { readonly timeoutMs: number; readonly signal: AbortSignal | undefined }
  private readonly gate: Gate
  private readonly workers: () => readonly WorkerInfo[]

  /** @throws TIMEOUT_INVALID, INVALID_ARGUMENT */
  constructor(worker: RemoteWorker, payloads: PayloadCodec, options: ControllerOptions, gate: Gate, workers: () => readonly WorkerInfo[]) {
    checkNames('cluster.on', options, { timeoutMs: true, signal: true })
    this.info = worker.info
    this.worker = worker
    this.payloads = payloads
    this.limits = { timeoutMs: timeLimit('cluster.on', options.timeoutMs ?? 0), signal: checkSignal(options.signal) }
    this.gate = gate
    this.workers = workers
  }

  /** For `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Controller { ${this.info.name} }`
  }

  /**
   * Runs an exposed function on this worker, and resolves with its result. If this thread has not imported the function, pass its name. Arguments and result
   * are copied: they may contain structured-clone types and tensors, but no references. For references use `cluster.call` or `cluster.remote`. Tensors arrive as
   * leaves; a parameter still requires grad.
   * @throws the function's own error, with its class, code, cause, values and the stack on the worker; FUNCTION_NOT_EXPOSED; WIRE_UNSUPPORTED_VALUE if
   * an argument or the result cannot be copied; WORKER_DIED; RUN_TIMEOUT after `timeoutMs` of the controller; CALL_CANCELLED if its `signal` aborts; CLUSTER_CLOSED
   */
  run<F extends AnyFunction>(fn: F, ...args: Sendable<Parameters<F>>): Promise<Awaited<ReturnType<F>>>
  run(name: string, ...args: readonly unknown[]): Promise<unknown>
  run(fn: AnyFunction | string, ...args: readonly unknown[]): Promise<unknown> {
    return this.gate.through('run', () => {
      const call = this.payloads.encodeCall(typeof fn === 'string' ? fn : threadRegistry.nameOf(fn), args)
      return this.worker.run('run', transfer(call, transferables(call)), this.limits)
    })
  }

  /**
   * Runs the program's default export on this worker, as `main({ name, rank, worldSize, args })`. Resolves when main has ended; its result stays on the worker.
   * @throws MAIN_MISSING if the program has no default export, INVALID_ARGUMENT, and the errors of `run`
   */
  runMain(args: readonly string[] = [], options: RunMainOptions = {}): Promise<void> {
    return this.gate.through('runMain', async () => {
      checkNames('runMain', options, { isLast: true })
      const { isLast = false } = options
      checkBoolean('runMain', 'isLast', isLast)
      if (!Array.isArray(args))
        throw invalidArgument('runMain', 'the arguments in an array', argumentText(args), "Write ['--epochs', '3'].")
      const workers = this.workers()
      const rank = workers.findIndex(({ id }) => id === this.info.id)
      await this.worker.run('runMain', { context: { rank, worldSize: workers.length, args: [...args] }, isLast }, this.limits)
    })
  }
}

/** @throws INVALID_ARGUMENT */
function checkSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  if (signal === undefined || isSignal(signal)) return signal
  throw invalidArgument('cluster.on', 'an AbortSignal as { signal }', argumentText(signal), 'Pass the signal of an AbortController.')
}
