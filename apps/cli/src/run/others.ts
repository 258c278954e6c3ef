/**
 * How the workers of several processes hear that one of them has failed: they wait for each other, so the others could not finish. Whoever fails says so in
 * the store of the group before it leaves; one that could not is noticed by its death.
 */
import { isPostgradError, monitor, PostgradError } from 'postgrad'
import type { JoinedMember } from '../bridge.js'
import { within } from '../within.js'
import { deathIn } from './exit-code.js'

/** In the store of the group: the first failure, as JSON. */
const FAILED_KEY = 'postgrad run/failed'
/** Who fails is not held up by a store that is gone. */
const TELL_MS = 1000
/** How long to wait for a worker's last word after its death was heard of, which came by another connection: behind an answer of the store, whose keeper may be busy. */
const WORD_MS = 300
const ANSWER_MS = 5000

/** The part of a member that is used here. */
export type MemberOfRun = Pick<JoinedMember, 'worker' | 'store' | 'run' | 'onStoreLost'>

export class Others {
  /** Resolves with what has ended another one: PEER_FAILED, WORKER_DIED, or STORE_LOST of rank 0, whose death those without a connection to it learn by nothing else. It may never. */
  readonly trouble: Promise<unknown>
  /** PEER_FAILED; null: nobody will say so any more. */
  private readonly told: Promise<PostgradError | null>
  private readonly member: MemberOfRun
  private readonly waiting = new AbortController()
  private hasTold = false

  constructor(member: MemberOfRun) {
    this.member = member
    this.told = this.untilTold()
    this.trouble = new Promise((resolve) => {
      void this.told.then((error) => {
        if (error !== null) resolve(error)
      })
      member.onStoreLost(resolve)
      void member.run(() => this.watch(resolve))
    })
  }

  /** Of a death, what has been said about it; else the death itself. */
  async why(death: unknown): Promise<unknown> {
    const answer = this.member.store.check([FAILED_KEY]).catch(() => null)
    await within(Promise.race([this.told, answer]), ANSWER_MS)
    return (await within(this.told, WORD_MS)) ?? death
  }

  /** Why this one ends: by itself, or since another one has died, of which some may not hear in another way. */
  async tellOf(error: unknown): Promise<void> {
    const { worker, cause, detail = '' } = deathIn(error)?.values ?? {}
    if (typeof worker === 'string')
      await this.tell(cause === 'left' ? 'it has left' : `it has died (${cause}${detail === '' ? '' : `: ${detail}`})`, worker)
    else await this.tell(error instanceof Error ? error.message : String(error))
  }

  /** To the others, before this one leaves: who has failed, and why. The first word counts. */
  async tell(reason: string, name = this.member.worker.info.name): Promise<void> {
    if (this.hasTold) return
    this.hasTold = true
    const { store } = this.member
    const text = JSON.stringify({ worker: name, reason })
    // A store that is gone tells the others by itself.
    await within(
      store.compareSet(FAILED_KEY, '', text).catch(() => null),
      TELL_MS,
    )
  }

  stop(): void {
    this.waiting.abort()
  }

  private async untilTold(): Promise<PostgradError | null> {
    const { store, worker } = this.member
    try {
      const text = await store.getText(FAILED_KEY, { timeoutMs: 0, signal: this.waiting.signal })
      const failed = JSON.parse(text) as { worker: string; reason: string }
      return failed.worker === worker.info.name ? null : peerFailed(failed.worker, failed.reason)
    } catch {
      // The store is closed, or nobody waits any more; a death is noticed in the other way.
      return null
    }
  }

  /** Runs as this worker. */
  private watch(resolve: (error: unknown) => void): void {
    const { worker } = this.member
    for (const { id } of worker.workers().filter((one) => one.id !== worker.info.id)) {
      const watching = monitor(id)
      this.waiting.signal.addEventListener('abort', () => watching.dispose(), { once: true })
      // At its own end this worker hears RPC_SHUT_DOWN of all others. LEAVE is no trouble: either all end together, or the reason is in the store.
      void watching.down.then(({ reason }) => {
        if (isPostgradError(reason, 'WORKER_DIED') && reason.values.cause !== 'left' && !this.waiting.signal.aborted)
          resolve(this.why(reason))
      })
    }
  }
}

function peerFailed(worker: string, reason: string): PostgradError {
  return new PostgradError('PEER_FAILED', {
    op: 'run',
    message: `worker '${worker}' has failed, so all others end: ${reason}`,
    remedy: 'Its own output says more.',
    values: { worker },
  })
}
