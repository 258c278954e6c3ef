/**
 * How a program says how far it is: `reportProgress` reaches whoever launched the cluster (`LaunchOptions.onProgress`, the command line's
 * lines), at most one report per interval, the last one always.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import type { WorkerRuntime } from '@postgrad/rpc'
import type { Clock, Timer } from '@postgrad/transport'
import type { Progress } from './protocol.js'

/** A program may report at every step of a hot loop; nobody reads faster than this, in ms. */
const INTERVAL_MS = 50

const SLOT = Symbol('postgrad.progress')

/** Lets the first report of an interval through, keeps the latest of the others for its end. */
export class ProgressReporter {
  private readonly clock: Clock
  private readonly post: (progress: Progress) => void
  private waiting: Progress | null = null
  private timer: Timer | null = null

  constructor(clock: Clock, post: (progress: Progress) => void) {
    this.clock = clock
    this.post = post
  }

  report(progress: Progress): void {
    if (this.timer !== null) {
      this.waiting = progress
      return
    }
    this.post(progress)
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

/** The reporter of a worker; one that was not attached to a launcher (in the simulation) says nothing. */
export function progressOf(runtime: WorkerRuntime, attach?: (progress: Progress) => void): ProgressReporter {
  return runtime.slot(SLOT, () => new ProgressReporter(runtime.clock, attach ?? (() => {})))
}

/**
 * Says how far this worker's program is, in units of its own; outside of a launched worker it does nothing, so that programs run unchanged in the
 * simulation. Reports come through in order, the last one always, those between them at most every 50 ms.
 * @throws INVALID_ARGUMENT
 */
export function reportProgress({ done, total, text }: Progress): void {
  if (
    typeof done !== 'number' ||
    !Number.isFinite(done) ||
    (total !== undefined && (typeof total !== 'number' || !Number.isFinite(total)))
  ) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'reportProgress',
      expected: 'finite numbers { done, total? }',
      got: `{ done: ${String(done)}, total: ${String(total)} }`,
      remedy: 'Leave total out when it is not known.',
    })
  }
  const worker = currentScope().worker as WorkerRuntime | null
  if (worker === null) return
  progressOf(worker).report({ done, ...(total === undefined ? {} : { total }), ...(text === undefined ? {} : { text: String(text) }) })
}
