/**
 * A call as the code that serves it knows it: whether somebody still waits for it, and the AbortSignal that says so. The scope has it as
 * `serving`, so that calls made while it is served are cancelled with it. `incoming-call.ts` has the call of a peer with its message and its
 * states. The rules CAN-1 to CAN-12 are in SPEC.md; `pending-calls.ts` is the caller's side.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, onAbort, type Scope, ScopedAbort } from '@postgrad/base/internal'
import type { WorkerInfo } from '../common/worker-info.js'

/** How the callee of a call that is a stream continues, or ends. */
export interface Outlet {
  /** The caller has taken so many items in all. False, and without effect, if not so many were sent. */
  onTaken(items: number): boolean
  stop(): void
  /** Its actor ends: the caller gets the error at once, after the items already sent; the generator is ended. */
  fail(error: PostgradError): void
  /** Whether the generator's `finally` threw this, after the caller had left the stream. */
  isOfCleanUp(error: unknown): boolean
  /** Resolves when the generator has ended. */
  readonly ended: Promise<void>
}

/** One that serves one chain of calls at a time. */
export interface SerialActor {
  readonly what: string
  /** The first call of the chain that it serves. */
  readonly holder: ServedCall | null
}

export class ServedCall {
  readonly caller: WorkerInfo
  readonly requestId: number
  /** On this worker's clock; Infinity is never. */
  readonly expiresMs: number
  /** The function or the method; '' of a fetch. */
  readonly functionName: string
  /** Why nobody waits for it any more; null while somebody does. */
  givenUp: PostgradError | null = null
  /** Where the value of a remote call goes, from its turn on. */
  owner: { readonly rrefId: bigint; setError(error: unknown): void } | null = null
  outlet: Outlet | null = null
  /** Its actor has crashed: once its caller has the error, nobody waits for it. */
  crash: PostgradError | null = null
  /** Whether calls were made while it was served, or something was waited for. */
  hasCalled = false
  private controller: ScopedAbort | null = null
  private stopped: PostgradError | null = null

  constructor(caller: WorkerInfo, requestId: number, expiresMs: number, functionName = '') {
    this.caller = caller
    this.requestId = requestId
    this.expiresMs = expiresMs
    this.functionName = functionName
  }

  /** The actor for whose turn it waits; for a reader. */
  get turnAt(): SerialActor | null {
    return null
  }

  /** A serial actor puts it off, … */
  putOff(_actor: SerialActor): void {}

  /** … and begins it when its turn has come. */
  begin(): void {}

  /** The actor that it was for does not take it: nobody has the references in it. */
  refuse(): void {}

  /** The first reason counts. Listeners of the signal run now, in the scope in which it was asked for. */
  giveUp(reason: PostgradError): void {
    if (this.givenUp !== null) return
    this.givenUp = reason
    this.owner?.setError(reason)
    this.stop(reason)
  }

  /** The signal aborts, and a stream ends; somebody may still wait for the answer. */
  stop(reason: PostgradError): void {
    this.stopped ??= reason
    this.controller?.abort(reason)
    this.outlet?.stop()
  }

  /** Whether `stop` was called, before there was an outlet to stop as well. */
  get isStopped(): boolean {
    return this.stopped !== null
  }

  /** Made when it is first asked for; its listeners run in the scope of that moment. */
  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new ScopedAbort()
      if (this.stopped !== null) this.controller.abort(this.stopped)
    }
    return this.controller.signal
  }
}

/** A self-send of an actor: a call without a caller. Its signal aborts at the actor's end and at its worker's. */
export class OwnCall extends ServedCall {
  private readonly shutdownSignal: () => AbortSignal
  private unlisten: (() => void) | null = null

  constructor(worker: WorkerInfo, shutdownSignal: () => AbortSignal) {
    super(worker, 0, Number.POSITIVE_INFINITY)
    this.shutdownSignal = shutdownSignal
  }

  override get signal(): AbortSignal {
    if (this.unlisten === null) {
      const shutdown = this.shutdownSignal()
      if (shutdown.aborted) this.stop(shutdown.reason)
      this.unlisten = onAbort(shutdown, () => this.stop(shutdown.reason))
    }
    return super.signal
  }

  /** Its method has ended. */
  close(): void {
    this.unlisten?.()
    this.unlisten = null
  }
}

/** The call that is being served here; null outside of any. */
export function currentServing(): ServedCall | null {
  return servedIn(currentScope())
}

/** The call that is served in this scope. */
export function servedIn({ serving }: Scope): ServedCall | null {
  return serving as ServedCall | null
}

/** The signal's reason, for the function that serves the call. */
export function cancelledByCaller(caller: WorkerInfo): PostgradError {
  return new PostgradError('CALL_CANCELLED', {
    op: 'currentSignal',
    message: `worker '${caller.name}' does not wait for this call any more: it was cancelled, or its deadline passed`,
    remedy: 'End what the function does, soon; its result goes to nobody.',
    values: { worker: caller.name, workerId: caller.id },
  })
}
