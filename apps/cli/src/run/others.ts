/**
 * How the workers of several processes hear that one of them has failed: they wait for each other, so the others could not finish. Whoever fails says so in
 * the store of the group before it leaves; one that could not is noticed by its death.
 */
import { isPostgradError, monitor, PostgradError } from 'postgrad'
import type { JoinedMember } from '../bridge.js'

/** In the store of the group: the first failure, as JSON. */
const FAILED_KEY = 'postgrad run/failed'
/** Who fails is not held up by a store that is gone. */
const TELL_MS = 1000

export class Others {
  /** Resolves with what has ended another one, PEER_FAILED or WORKER_DIED. It may never. */
  readonly trouble: Promise<unknown>
  private readonly member: JoinedMember
  private readonly waiting = new AbortController()

  constructor(member: JoinedMember) {
    this.member = member
    this.trouble = new Promise((resolve) => {
      void this.untilTold(resolve)
      void member.run(() => this.watch(resolve))
    })
  }

  /** To the others, before this one leaves. */
  async tell(reason: string): Promise<void> {
    const { store, worker } = this.member
    const text = JSON.stringify({ worker: worker.info.name, reason })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, TELL_MS)
    })
    // A store that is gone tells the others by itself.
    await Promise.race([late, store.compareSet(FAILED_KEY, '', text).catch(() => {})])
    clearTimeout(timer)
  }

  stop(): void {
    this.waiting.abort()
  }

  private async untilTold(resolve: (error: unknown) => void): Promise<void> {
    const { store, worker } = this.member
    try {
      const text = await store.getText(FAILED_KEY, { timeoutMs: 0, signal: this.waiting.signal })
      const failed = JSON.parse(text) as { worker: string; reason: string }
      if (failed.worker !== worker.info.name) resolve(peerFailed(failed.worker, failed.reason))
    } catch {
      // The store is closed, or nobody waits any more; a death is noticed in the other way.
    }
  }

  /** Runs as this worker. */
  private watch(resolve: (error: unknown) => void): void {
    const { worker } = this.member
    for (const { id } of worker.workers().filter((one) => one.id !== worker.info.id)) {
      const watching = monitor(id)
      this.waiting.signal.addEventListener('abort', () => watching.dispose(), { once: true })
      // At its own end this worker hears RPC_SHUT_DOWN of all others. One that ends in order says LEAVE: all have ended together, or it has told why before.
      void watching.down.then(({ reason }) => {
        if (isPostgradError(reason, 'WORKER_DIED') && reason.values.cause !== 'left' && !this.waiting.signal.aborted) resolve(reason)
      })
    }
  }
}

function peerFailed(worker: string, reason: string): PostgradError {
  return new PostgradError('PEER_FAILED', {
    op: 'run',
    message: `worker '${worker}' has failed, and the others end with it: ${reason}`,
    remedy: 'Its own output says more.',
    values: { worker },
  })
}
