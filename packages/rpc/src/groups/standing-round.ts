/**
 * A round of `barrier` or `allGather` without a limit, as one that waits in it sees it: it ends when all have come, or when the program of one that has not is over
 * (Note [Programs that are over] in `standstill.ts`). The leader alone knows who is missing; the others wait for the leader.
 */
import { type Future, PostgradError, type WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '../common/worker-info.js'
import type { WorkerCore } from '../core/worker-core.js'
import { GATHERS, type GatherOp } from './gather.js'
import { MEMBERSHIP } from './membership.js'

export class StandingRound {
  readonly end: () => void
  private readonly op: GatherOp
  private readonly members: readonly WorkerInfo[]
  private call: Future<unknown> | null = null
  private over: PostgradError | null = null

  /** @param members sorted by name: the first one leads */
  constructor(core: WorkerCore, op: GatherOp, members: readonly WorkerInfo[], key: string, warnAfterMs: number) {
    this.op = op
    this.members = members
    const [leader] = members as readonly [WorkerInfo]
    this.end = MEMBERSHIP.of(core).standstill.onRound({
      group: { key, workers: members, warnAfterMs, onOver: (worker) => this.onOver(worker) },
      number: 0,
      sinceMs: core.clock.now(),
      what: `${op}() of ${members.length} workers`,
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
    const name = this.members.find(({ id }) => id === worker)?.name ?? ''
    this.over = programOver(this.op, { name, id: worker })
    this.call?.cancel(this.over)
  }
}

function programOver(op: GatherOp, { name, id }: WorkerInfo): PostgradError {
  return new PostgradError('PROGRAM_OVER', {
    op,
    message: `worker '${name}' has returned from its main or called shutdown(), and every other worker waits in an operation of a group`,
    remedy: `Call ${op}() equally often on every member. Look at why worker '${name}' ended before this call.`,
    values: { worker: name, workerId: id },
  })
}
