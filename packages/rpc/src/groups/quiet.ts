/**
 * Tells when a worker may have nothing under way any more: no call that it waits for or serves, nothing in its mailbox. Leaving and the end of a
 * group wait for that. It looks only while somebody watches, after everything that may have brought it about, and in a turn of its own, so
 * that what the last reply set off (a callback that calls again) counts as under way.
 */
import type { Clock } from '@postgrad/transport'
import type { Activity } from '../core/pending-calls.js'

export interface QuietHost {
  readonly clock: Clock
  /** Calls that this worker waits for. */
  pending(): number
  /** Calls that it serves, and what waits in its mailbox. */
  serving(): number
  /** Hears of every end of a call, every message sent and every emptied mailbox. */
  readonly activity: Activity
}

export class Quiet {
  private readonly host: QuietHost
  private readonly watchers = new Set<() => void>()
  /** What ends each `until`. */
  private readonly ends = new Set<() => void>()
  private scheduled = false

  constructor(host: QuietHost) {
    this.host = host
  }

  get hasPending(): boolean {
    return this.host.pending() > 0
  }

  get isBusy(): boolean {
    return this.hasPending || this.host.serving() > 0
  }

  /** `fn` runs soon, and again after whatever may have changed the answer. Returns its removal. */
  watch(fn: () => void): () => void {
    this.watchers.add(fn)
    this.host.activity.listen(this.look)
    this.look()
    return () => {
      this.watchers.delete(fn)
      if (this.watchers.size === 0) this.host.activity.listen(null)
    }
  }

  /** Waits until `isDone` holds after something has happened, or the worker closes: true. When the time is over before that: false. */
  async until(isDone: () => boolean, limitMs: number): Promise<boolean> {
    let release = () => {}
    try {
      return await new Promise<boolean>((resolve) => {
        const end = () => resolve(true)
        const unwatch = this.watch(() => {
          if (isDone()) end()
        })
        const timer = limitMs === Number.POSITIVE_INFINITY ? null : this.host.clock.setTimer(limitMs, () => resolve(false))
        this.ends.add(end)
        release = () => {
          this.ends.delete(end)
          unwatch()
          timer?.cancel()
        }
      })
    } finally {
      release()
    }
  }

  /** The worker closes: nobody waits for it to become quiet any more. */
  stop(): void {
    for (const end of [...this.ends]) end()
  }

  private readonly look = (): void => {
    if (this.scheduled) return
    this.scheduled = true
    this.host.clock.defer(() => {
      this.scheduled = false
      for (const watcher of [...this.watchers]) watcher()
    })
  }
}
