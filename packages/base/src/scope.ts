/**
 * The state around the running code: grad mode, device, generator, worker, distributed context, step after a pass, `noSync`, deadline, served call, call chain, module that is being loaded. One
 * `AsyncLocalStorage` carries all of it, so that it follows a program through its awaits and never leaks into a call that interleaves.
 * The slots are typed by the packages that own them (`currentDevice()` in tensor, `currentWorker()` in rpc, …); `base` only carries them.
 * Leaving a slot out of a patch keeps its value.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'

export class Scope {
  /** Whether operations record a graph. Owner: autograd. */
  readonly gradEnabled: boolean
  /** Anomaly mode: 'throw' explains errors of backward, 'nan' looks for NaN as well; null is off. Owner: autograd. */
  readonly anomaly: 'throw' | 'nan' | null
  /** Where kernels run; null is the thread's default device. Owner: tensor. */
  readonly device: object | null
  /** The seeded generator of random numbers; null is the thread's default. Owner: tensor. */
  readonly generator: object | null
  /** The WorkerRuntime that runs this code; null outside of any worker. Owner: rpc. */
  readonly worker: object | null
  /** The current distributed context; null outside of one. Owner: dist-autograd. */
  readonly context: object | null
  /** The context whose pass has ended and whose optimizers step now; null outside of such a step. Owner: dist-autograd. */
  readonly stepping: object | null
  /** The models whose passes are this rank's alone, by `noSync`; null outside of one. Owner: parallel. */
  readonly alone: object | null
  /** The job that is being run; null outside of one. Owner: jobs. */
  readonly job: object | null
  /** The module that is being loaded, if this code runs because of that; null otherwise. Owner: base. */
  readonly loading: object | null
  /** When the call that is being served must be done, in ms on its worker's clock; Infinity is never. Owner: rpc. */
  readonly deadlineMs: number
  /** The call that is being served; null outside of any. Owner: rpc. */
  readonly serving: object | null
  /** Where calls are noted for the `waitAll(fn)` around them; null outside of one. Owner: rpc. */
  readonly collected: object | null
  /** The chain of calls that the running code belongs to, which a serial actor lets in again while it serves it; null is none. Owner: rpc. */
  readonly chain: bigint | null

  constructor(from: ScopePatch, base: ScopePatch) {
    // Written out: a pass makes four scopes, so a function for a slot would be called 48 times.
    this.gradEnabled = from.gradEnabled ?? base.gradEnabled ?? true
    this.anomaly = from.anomaly !== undefined ? from.anomaly : (base.anomaly ?? null)
    this.device = from.device !== undefined ? from.device : (base.device ?? null)
    this.generator = from.generator !== undefined ? from.generator : (base.generator ?? null)
    this.worker = from.worker !== undefined ? from.worker : (base.worker ?? null)
    this.context = from.context !== undefined ? from.context : (base.context ?? null)
    this.stepping = from.stepping !== undefined ? from.stepping : (base.stepping ?? null)
    this.alone = from.alone !== undefined ? from.alone : (base.alone ?? null)
    this.job = from.job !== undefined ? from.job : (base.job ?? null)
    this.loading = from.loading !== undefined ? from.loading : (base.loading ?? null)
    this.deadlineMs = from.deadlineMs ?? base.deadlineMs ?? Number.POSITIVE_INFINITY
    this.serving = from.serving !== undefined ? from.serving : (base.serving ?? null)
    this.collected = from.collected !== undefined ? from.collected : (base.collected ?? null)
    this.chain = from.chain !== undefined ? from.chain : (base.chain ?? null)
  }
}

export type ScopePatch = { -readonly [K in keyof Scope]?: Scope[K] }

const storage = new AsyncLocalStorage<Scope>()
const outside = new Scope({}, {})

/** The scope of the running code; outside of any, grad mode is on and everything else is unset. */
export function currentScope(): Scope {
  return storage.getStore() ?? outside
}

/** Runs `fn` in the current scope with some slots changed, and returns what it returns. */
export function withScope<T>(patch: ScopePatch, fn: () => T): T {
  return storage.run(new Scope(patch, currentScope()), fn)
}

/** Runs `fn` in exactly this scope (a worker serves each call in a scope of its own, whatever scope the message arrived in). */
export function inScope<A extends unknown[], T>(scope: Scope, fn: (...args: A) => T, ...args: A): T {
  return storage.run(scope, fn, ...args)
}

/** As `inScope`, in an async context of its own: a store that `fn` enters (`AsyncLocalStorage.enterWith`) ends with it, where the next call would find it otherwise. */
export function inOwnScope<A extends unknown[], T>(scope: Scope, fn: (...args: A) => T, ...args: A): T {
  return storage.run(scope, () => new AsyncResource('Scope').runInAsyncScope(fn, undefined, ...args))
}
