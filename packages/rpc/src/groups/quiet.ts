/**
 * Notices when a worker has nothing under way any more: no call that it waits for or serves, nothing in its mailbox. Leaving and the end of a
 * group wait for that. It looks only while somebody watches, after every event that may have brought it about, and in a turn of its own, so
 * that calls by a callback of the last reply count as under way.
 */
import { Lane } from '@postgrad/base/internal'
import { CALL_SERVING, type CallServing } from '../calls/call-serving.js'
import type { WorkerCore } from '../core/worker-core.js'

/** The reports of a worker whenever it is quiet. */
export interface QuietReports {
  /** Says it now, if it is quiet and this is news. */
  look(): void
  /** Whatever was said before is forgotten. */
  repeat(): void
  stop(): void
}

export class Quiet {
  private readonly core: WorkerCore
  private readonly serving: CallServing
  private readonly watchers = new Set<() => void>()
  /** They end each `until`. */
  private readonly ends = new Set<() => void>()
  private scheduled = false

  constructor(core: WorkerCore) {
    this.core = core
    this.serving = CALL_SERVING.of(core)
  }

  get hasPending(): boolean {
    return this.core.requests.pendingCount > 0
  }

  get isBusy(): boolean {
    const { mailbox } = this.core.pump
    // Calls that are held (MB-21) do not count in the size.
    return this.hasPending || this.core.lateMessages > 0 || this.serving.count > 0 || mailbox.size > 0 || mailbox.depth(Lane.call) > 0
  }

  /** `fn` runs soon, and again after whatever may have changed the answer. Returns its removal. */
  watch(fn: () => void): () => void {
    this.watchers.add(fn)
    this.core.activity.listen(this.look)
    this.look()
    return () => {
      this.watchers.delete(fn)
      if (this.watchers.size === 0) this.core.activity.listen(null)
    }
  }

  /** `say` gets what `read` gives whenever this worker is quiet and that is news. */
  reports<T>(read: () => T, say: (news: T) => void): QuietReports {
    let said = ''
    const look = (): void => {
      if (this.isBusy) return
      const news = read()
      const text = JSON.stringify(news)
      if (text === said) return
      said = text
      say(news)
    }
    const stop = this.watch(look)
    const repeat = (): void => {
      said = ''
      look()
    }
    return { look, repeat, stop }
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
        const timer = limitMs === Number.POSITIVE_INFINITY ? null : this.core.clock.setTimer(limitMs, () => resolve(false))
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
    this.core.clock.defer(() => {
      this.scheduled = false
      for (const watcher of [...this.watchers]) watcher()
    })
  }
}
