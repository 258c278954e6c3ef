/**
 * `drain`: one worker ends by its own decision. It takes no more calls, serves those that wait, and closes. `leave.ts` refuses no call, since it first
 * asks all peers to make no more. The rules DRN-1 to DRN-4 and GRP-13 are in SPEC.md.
 */
import { PostgradError } from '@postgrad/base'
import type { GroupView } from './group-view.js'

export class Draining {
  private readonly view: GroupView
  private ending: Promise<void> | null = null

  constructor(view: GroupView) {
    this.view = view
  }

  drain(timeoutMs: number): Promise<void> {
    this.ending ??= this.run(timeoutMs)
    return this.ending
  }

  private async run(timeoutMs: number): Promise<void> {
    const { core, quiet } = this.view
    // From here on calls are refused.
    core.isDraining = true
    const inTime = await quiet.until(() => !quiet.isBusy && core.unread.length === 0, timeoutMs)
    core.end()
    if (!inTime) throw drainTimedOut(core.info.name, timeoutMs)
  }
}

function drainTimedOut(worker: string, timeoutMs: number): PostgradError {
  return new PostgradError('RPC_TIMEOUT', {
    op: 'drain',
    message: `worker '${worker}' still had calls under way, or results that nobody had read, after ${Math.round(timeoutMs)} ms, and has closed all the same`,
    remedy: 'Pass a longer { timeoutMs } (0: without a limit), or find out what keeps that worker busy.',
    values: { worker, timeoutMs },
  })
}
