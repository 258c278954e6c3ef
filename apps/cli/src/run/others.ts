/**
 * How the workers of several processes learn that one has failed: they wait for each other, so the others could not finish. A failing worker writes that to the
 * group's store before it leaves; if it cannot, the others notice its death.
 */
import { isPostgradError, monitor, PostgradError } from 'postgrad'
import type { JoinedMember } from '../bridge.js'
import { within } from '../within.js'
import { deathIn } from './exit-code.js'

/** In the store of the group: the first failure, as JSON. */
const FAILED_KEY = 'postgrad run/failed'
/** A lost store does not hold up a failing worker. */
const TELL_MS = 1000
/** How long to wait for a dead worker's last word, which comes by another connection: after an answer of the store, whose server may be busy. */
const WORD_MS = 300
const ANSWER_MS = 5000

/** The part of a member that is used here. */
export type MemberOfRun = Pick<JoinedMember, 'worker' | 'store' | 'run' | 'onStoreLost'>

export class Others {
  /** Resolves, if ever, with what has ended another one: PEER_FAILED, WORKER_DIED, or STORE_LOST, by which workers without a connection to rank 0 learn of its death. */
  readonly trouble: Promise<unknown>
  /** PEER_FAILED; null: nobody will report that now. */
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

  /** The written reason of a death, or the death itself. */
  async why(death: unknown): Promise<unknown> {
    const answer = this.member.store.check([FAILED_KEY]).catch(() => null)
    await within(Promise.race([this.told, answer]), ANSWER_MS)
    return (await within(this.told, WORD_MS)) ?? death
  }

  /** Writes why this one ends: by itself, or since another died, which some may not learn in another way. */
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
    // If the store is gone, the others notice that.
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
      // At its own end this worker gets RPC_SHUT_DOWN for all others. LEAVE is harmless: either all end together, or the reason is in the store.
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
