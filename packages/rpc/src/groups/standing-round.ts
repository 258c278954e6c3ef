/**
 * A round of `meet` without a limit, at a member that waits in it: it ends when all have come, or when the program of a missing member is over
 * (Note [Programs that are over] in `standstill.ts`). The leader alone knows who is missing; the others wait for the leader.
 */
import { type Future, PostgradError, type WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '../common/worker-info.js'
import type { WorkerCore } from '../core/worker-core.js'
import { type Coming, GATHERS, meetingKey, whatOf } from './gather.js'
import { MEMBERSHIP } from './membership.js'

export class StandingRound {
  readonly end: () => void
  private readonly coming: Coming
  private call: Future<unknown> | null = null
  private over: PostgradError | null = null

  constructor(core: WorkerCore, coming: Coming, warnAfterMs: number) {
    this.coming = coming
    const { op, members, round } = coming
    const [leader] = members as readonly [WorkerInfo]
    const key = meetingKey(coming)
    this.end = MEMBERSHIP.of(core).standstill.onRound({
      group: { key, workers: members, warnAfterMs, onOver: (worker) => this.onOver(worker) },
      number: 0,
      sinceMs: core.clock.now(),
      what: whatOf(op, members, round),
      get on() {
        return leader.id === core.info.id ? GATHERS.of(core).missing(key) : [leader]
      },
    })
  }

  /** Rejects as the call does, and with PROGRAM_OVER. */
  async until(call: Future<unknown>): Promise<unknown> {
    this.call = call
    try {
      return await call
    } catch (error) {
      throw this.over ?? error
    }
  }

  private onOver(worker: WorkerId): void {
    if (this.over !== null) return
    const { op, members } = this.coming
    const name = members.find(({ id }) => id === worker)?.name ?? ''
    this.over = programOver(op, { name, id: worker })
    this.call?.cancel(this.over)
  }
}

function programOver(op: string, { name, id }: WorkerInfo): PostgradError {
  return new PostgradError('PROGRAM_OVER', {
    op,
    message: `worker '${name}' has returned from its main or called shutdown(), and every other worker waits in an operation of a group`,
    remedy: `Every member calls it equally often. Look at why worker '${name}' ended before this call.`,
    values: { worker: name, workerId: id },
  })
}
