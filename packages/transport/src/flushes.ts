import type { OnFlushed } from './link.js'

/** The callbacks to call when gathered frames have been flushed, or are dropped. Each link, and each batch of a socket link, has one. */
export class Flushes {
  private waiting: OnFlushed[] = []

  add(onFlushed: OnFlushed | null | undefined): void {
    if (onFlushed != null) this.waiting.push(onFlushed)
  }

  /** The callbacks of all frames until now, as one; null: none. */
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
