/**
 * One worker ends by its own decision: it takes no more calls, serves what waits, closes. `leave.ts` is the way to end on which no call is refused, with
 * the word of all peers. The rules DRN-1 to DRN-4 and GRP-13 are in SPEC.md.
 */
import { PostgradError } from '@postgrad/base'
import type { Quiet } from '../core/quiet.js'
import type { WorkerInfo } from '../core/worker-info.js'

export interface DrainHost {
  readonly name: string
  readonly quiet: Quiet
  /** From here on calls are refused. */
  begin(): void
  /** See `LeaveHost`. */
  unread(): WorkerInfo[]
  close(): Promise<void>
}

export class Draining {
  private readonly host: DrainHost
  private ending: Promise<void> | null = null

  constructor(host: DrainHost) {
    this.host = host
  }

  drain(timeoutMs: number): Promise<void> {
    this.ending ??= this.run(timeoutMs)
    return this.ending
  }

  private async run(timeoutMs: number): Promise<void> {
    const { host } = this
    host.begin()
    const inTime = await host.quiet.until(() => !host.quiet.isBusy && host.unread().length === 0, timeoutMs)
    await host.close()
    if (!inTime) throw drainTimedOut(host.name, timeoutMs)
  }
}

function drainTimedOut(worker: string, timeoutMs: number): PostgradError {
  return new PostgradError('RPC_TIMEOUT', {
    op: 'drain',
    message: `worker '${worker}' still had calls under way, or results that nobody had read, after ${Math.round(timeoutMs)} ms, and has closed all the same`,
    remedy: 'Pass a longer { timeoutMs } (0 is no limit), or look at what keeps that worker busy.',
    values: { worker, timeoutMs },
  })
}
