/** One life of a supervised actor, as the child that `supervise.ts` gives to the supervisor. */
import type { Child, Exit } from '@postgrad/actor/internal'
import { PostgradError } from '@postgrad/base'
import { STOP_ACTOR, type Watch } from '../actors/watches.js'
import type { RRef, RRefOptions } from '../references/rref.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'

/** Time limit of the call that ends an actor at once: without it, a worker that does not answer would keep this one from ending. */
const KILL_MS = 5000

export class Incarnation implements Child {
  readonly exited: Promise<Exit>
  private readonly worker: WorkerRuntime
  private readonly rref: RRef
  private readonly stopping = new AbortController()
  private settle!: (exit: Exit) => void

  constructor(worker: WorkerRuntime, rref: RRef, watch: Watch) {
    this.worker = worker
    this.rref = rref
    this.exited = new Promise((resolve) => {
      this.settle = resolve
    })
    void watch.down.then((down) => this.settle(down))
  }

  stop(shutdownMs: number): Promise<unknown> {
    return this.ask(shutdownMs, { timeoutMs: 0, signal: this.stopping.signal })
  }

  /** Here the actor has ended now. No answer is awaited, since the call may never reach its worker. */
  kill(): void {
    this.stopping.abort()
    void this.ask(0, { timeoutMs: KILL_MS }).catch(() => {})
    this.settle({ normal: false, reason: killed(this.rref) })
  }

  private async ask(shutdownMs: number, options: RRefOptions): Promise<unknown> {
    return await this.worker.run(() => this.worker.caller.call(this.rref.owner(), STOP_ACTOR, [this.rref, shutdownMs], options))
  }
}

function killed(rref: RRef): PostgradError {
  return new PostgradError('ACTOR_KILLED', {
    op: 'supervise',
    message: `an actor on worker '${rref.ownerName()}' did not end in the time that it was given`,
    remedy: 'Give it a longer { shutdownMs } (0 ends it at once), or look at the method that it is in.',
    values: { worker: rref.ownerName() },
  })
}
