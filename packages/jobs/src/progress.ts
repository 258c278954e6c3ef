/** Reports of progress to the code that waits: thinned out, in order, the last one always. */
import { PostgradError } from '@postgrad/base'
import type { Clock, Timer } from '@postgrad/transport'

/** The progress of a program or a job, in units of its choice. */
export interface Progress {
  /** How many units are done. */
  readonly done: number
  /** How many units there are. Leave it out if this is unknown. */
  readonly total?: number
  /** A text to show next to the numbers, such as a loss or a rate. */
  readonly text?: string
}

/** A program may report at every step of a hot loop; nobody reads faster than this, in ms. */
const INTERVAL_MS = 50

/** Lets the first report of an interval through, keeps the latest of the others for its end. */
export class ProgressReporter {
  private readonly clock: Clock
  private readonly post: (progress: Progress) => void
  private waiting: Progress | null = null
  private timer: Timer | null = null
  private postedMs = 0

  constructor(clock: Clock, post: (progress: Progress) => void) {
    this.clock = clock
    this.post = post
  }

  report(progress: Progress): void {
    if (this.timer !== null) {
      this.waiting = progress
      // In a loop without an await no timer fires.
      if (this.clock.now() - this.postedMs < INTERVAL_MS) return
      this.timer.cancel()
      this.waiting = null
    }
    this.post(progress)
    this.postedMs = this.clock.now()
    this.timer = this.clock.setTimer(INTERVAL_MS, () => {
      this.timer = null
      const latest = this.waiting
      this.waiting = null
      if (latest !== null) this.report(latest)
    })
  }

  /** Posts what waits and stops the timer: at the end of a run, and before the thread ends. */
  flush(): void {
    this.timer?.cancel()
    this.timer = null
    const latest = this.waiting
    this.waiting = null
    if (latest !== null) this.post(latest)
  }
}

/** A report as it may be sent. @throws INVALID_ARGUMENT */
export function checkProgress(op: string, { done, total, text }: Progress): Progress {
  if (
    typeof done !== 'number' ||
    !Number.isFinite(done) ||
    (total !== undefined && (typeof total !== 'number' || !Number.isFinite(total)))
  ) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: 'finite numbers { done, total? }',
      got: `{ done: ${String(done)}, total: ${String(total)} }`,
      remedy: 'Leave total out when it is not known.',
    })
  }
  return { done, ...(total === undefined ? {} : { total }), ...(text === undefined ? {} : { text: String(text) }) }
}
