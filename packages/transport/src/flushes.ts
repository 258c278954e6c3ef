import type { OnFlushed } from './link.js'

/** Who is told when frames that are gathered have been flushed, or are dropped: each link, and each batch of a socket's, has one. */
export class Flushes {
  private waiting: OnFlushed[] = []

  add(onFlushed: OnFlushed | null | undefined): void {
    if (onFlushed != null) this.waiting.push(onFlushed)
  }

  /** Those of all frames until now, as one; null: nobody waits. */
  take(): OnFlushed | null {
    const { waiting } = this
    if (waiting.length === 0) return null
    this.waiting = []
    return (isFlushed) => {
      for (const onFlushed of waiting) onFlushed(isFlushed)
    }
  }

  run(isFlushed: boolean): void {
    this.take()?.(isFlushed)
  }
}
