/**
 * The time and the signal of one `saveModel` or `loadModel`, which asks several owners one after the other: they limit the call as a whole, also where the owner is this worker. Its errors name the user's call.
 */
import { noGrad } from '@postgrad/autograd'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { callCancelled, checkSignal, currentScope, outOfTime, timeLimit } from '@postgrad/base/internal'
import { type CallOptions, call, currentSignal, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { nameOp } from '../checkpoint/errors.js'

/** The functions that owners run for `saveModel` and `loadModel` have names that begin with this. */
export const PREFIX = 'postgrad.fullState.'

export class Limits {
  readonly op: string
  private readonly timeoutMs: number
  private readonly endMs: number
  private readonly signal: AbortSignal | undefined

  /** @throws TIMEOUT_INVALID, INVALID_ARGUMENT, CALL_CANCELLED */
  constructor(op: string, { timeoutMs = 0, signal }: Pick<CallOptions, 'timeoutMs' | 'signal'>) {
    this.op = op
    this.timeoutMs = timeLimit(op, timeoutMs)
    this.endMs = currentRuntime().clock.now() + this.timeoutMs
    this.signal = signal
    this.check()
  }

  /** @throws CALL_CANCELLED (by the signal, or with the call that is being served here), RPC_TIMEOUT */
  check(): void {
    checkSignal(this.signal, this.op, null)
    const served = currentSignal()
    if (served.aborted) throw callCancelled(this.op, null, served.reason)
    const now = currentRuntime().clock.now()
    if (now >= currentScope().deadlineMs) throw outOfTime(this.op, 'it has ended', {})
    if (now >= this.endMs) throw this.timedOut()
  }

  /** Runs a function of an owner, which may be this worker. */
  async ask<A extends readonly unknown[], T>(owner: WorkerInfo, fn: (...args: A) => T | Promise<T>, args: A): Promise<Awaited<T>> {
    this.check()
    const { clock } = currentRuntime()
    const timeoutMs = this.endMs === Number.POSITIVE_INFINITY ? 0 : this.endMs - clock.now()
    try {
      return await askOwner(owner, fn, args, this.signal === undefined ? { timeoutMs } : { timeoutMs, signal: this.signal })
    } catch (error) {
      if (!isPostgradError(error) || !error.op.startsWith(PREFIX)) throw error
      if (error.code === 'RPC_TIMEOUT' && error.values.inherited !== true) throw this.timedOut(owner)
      throw nameOp(error, this.op)
    }
  }

  private timedOut(owner?: WorkerInfo): PostgradError {
    const where = owner === undefined ? '' : `, and waited for worker '${owner.name}'`
    return new PostgradError('RPC_TIMEOUT', {
      op: this.op,
      message: `the call ran for more than its timeout (${Math.round(this.timeoutMs)} ms)${where}`,
      remedy: 'Pass a longer { timeoutMs } (0: without a limit).',
      values: { timeoutMs: this.timeoutMs, ...(owner === undefined ? {} : { worker: owner.name, workerId: owner.id }) },
    })
  }
}

/** The same without limits of a call. */
export async function askOwner<A extends readonly unknown[], T>(
  owner: WorkerInfo,
  fn: (...args: A) => T | Promise<T>,
  args: A,
  limits: CallOptions,
): Promise<Awaited<T>> {
  if (owner.id === currentRuntime().info.id) return await noGrad(() => fn(...args))
  return (await noGrad(() => call(owner, fn as never, args as never, limits))) as Awaited<T>
}
