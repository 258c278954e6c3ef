/** Waits for a condition, and looks again at each piece of news: a worker came or went, has nothing under way any more, or reports counts. */
import type { Clock } from '@postgrad/transport'

export class News {
  private readonly clock: Clock
  private waiting: (() => void)[] = []

  constructor(clock: Clock) {
    this.clock = clock
  }

  tell(): void {
    for (const lookAgain of this.waiting.splice(0)) lookAgain()
  }

  /**
   * Looks now, and in a turn of its own after any news. True when `isSo` holds; false when the time is over before that.
   * @param deadlineMs by the clock; may come nearer, with news
   */
  async until(isSo: () => boolean, deadlineMs: () => number): Promise<boolean> {
    for (;;) {
      if (isSo()) return true
      const leftMs = deadlineMs() - this.clock.now()
      if (leftMs <= 0) return false
      await this.next(leftMs)
      // What the news sets off comes before the look.
      await new Promise<void>((resolve) => this.clock.defer(resolve))
    }
  }

  private next(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = limitMs === Number.POSITIVE_INFINITY ? null : this.clock.setTimer(limitMs, resolve)
      this.waiting.push(() => {
        timer?.cancel()
        resolve()
      })
    })
  }
}
