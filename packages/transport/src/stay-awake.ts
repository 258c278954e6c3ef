/**
 * Keeps a thread's event loop turning for a moment after a post left or arrived, since an answer is often near: waking a thread that has
 * gone to sleep costs far more than the answer itself. Measured on two quiet virtual cores, bare ports, there and back: 78 µs when the threads
 * sleep on cores of their own, 9 when they happen to share one, 6 when both stay awake. The rules are in SPEC.md.
 *
 * It stops where it does not pay. A thread stays awake only while fewer others are awake than there are cores (`awake-threads.ts`): the system
 * lets one that turns keep its core for milliseconds, while those that have been posted to wait. Credit accounts for other programs on the
 * machine. A vigil that ends without a post costs one (calls that take long). A post that arrives in a vigil earns one, unless the loop was held up
 * before it: then another program had this core, and would have had it sooner without the vigil. Without credit some posts go by before the next
 * try. So a thread that waits in vain spends `VIGIL_MS` now and then, and one with nothing to do sleeps. One per thread, shared by its links.
 */
import { hrtime, now, setImmediate } from '@postgrad/base/internal'
import { AwakeThreads, processAwakeWords } from './awake-threads.js'

/** How long the loop turns after the last post: what Linux's haltpoll allows itself for the same reason. */
export const VIGIL_MS = 0.2
/** A turn of an idle loop takes 1 to 3 µs; one that took this long did not have its core. */
const STOOD_STILL_MS = 0.008
const CREDIT_MAX = 16
const CREDIT_START = 4
/** Without credit, so many posts go by before the next vigil. */
const PAUSE_POSTS = 64

export class StayAwake {
  private readonly threads: AwakeThreads
  /** Added to this thread's clock, which begins when the thread does, it gives the one that all threads read alike. */
  private readonly originMs = clockOriginMs()
  private endMs = 0
  private isAwake = false
  private credit = CREDIT_START
  private pause = 0
  /** When the loop turned last; 0 once a post has arrived since. */
  private turnedMs = 0

  private readonly turn = (): void => {
    const nowMs = now()
    const nowUs = this.toUs(nowMs)
    const isOver = nowMs >= this.endMs
    if (!isOver && this.threads.hasCore(nowUs)) {
      this.threads.renew(nowUs)
      this.turnedMs = nowMs
      setImmediate(this.turn)
      return
    }
    this.threads.leave()
    this.isAwake = false
    this.turnedMs = 0
    if (isOver && this.pause === 0) this.lose()
  }

  constructor(words = processAwakeWords()) {
    this.threads = new AwakeThreads(words)
  }

  /** This thread's word, sent in each post, so that its receiver can pass it to `onSend`. */
  get word(): number {
    return this.threads.own
  }

  /** A post leaves for the thread with that word; 0: nobody knows which it is. */
  onSend(word: number): void {
    if (this.isPaused()) return
    const nowMs = now()
    if (word !== 0) this.threads.wake(word, this.toUs(nowMs))
    this.stay(nowMs)
  }

  /** A post has arrived, and is read now. */
  onArrival(): void {
    if (this.isPaused() || this.turnedMs === 0) return
    if (now() - this.turnedMs > STOOD_STILL_MS) this.lose()
    else if (this.credit < CREDIT_MAX) this.credit++
    this.turnedMs = 0
  }

  /** Its frames have been handled. */
  onRead(): void {
    if (this.pause > 0) this.threads.leave()
    else this.stay(now())
  }

  /** Nothing comes any more: it lets go of what it looks at, and in a process that is one of several stays awake no more. A thread's end does the same. */
  close(): void {
    this.threads.close()
  }

  private stay(nowMs: number): void {
    this.endMs = nowMs + VIGIL_MS
    if (this.isAwake) return
    const nowUs = this.toUs(nowMs)
    if (!this.threads.hasCore(nowUs)) {
      this.threads.leave()
      return
    }
    this.isAwake = true
    this.threads.renew(nowUs)
    setImmediate(this.turn)
  }

  private isPaused(): boolean {
    if (this.pause === 0) return false
    this.pause--
    return true
  }

  private lose(): void {
    if (--this.credit > 0) return
    this.credit = 1
    this.pause = PAUSE_POSTS
    this.endMs = 0
  }

  private toUs(nowMs: number): number {
    return ((nowMs + this.originMs) * 1000) | 0
  }
}

/** When `performance.now()` of this thread was 0, on the clock of `process.hrtime`. */
function clockOriginMs(): number {
  let originMs = Number.NEGATIVE_INFINITY
  // The thread may lose its core between the two.
  for (let i = 0; i < 5; i++) {
    const [seconds, nanoseconds] = hrtime()
    originMs = Math.max(originMs, seconds * 1e3 + nanoseconds / 1e6 - now())
  }
  return originMs
}
