/**
 * `meet`, at a member: it calls the leader, the member with the smallest name, and remembers which rounds were abandoned. Process groups are made with it.
 * The leader's side is `gather.ts`; the rules GRP-6 to GRP-10 and GRP-15 to GRP-17 are in SPEC.md.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { timeLimit } from '@postgrad/base/internal'
import type { Target, WorkerInfo } from '../common/worker-info.js'
import { currentCore, WorkerSlot } from '../core/slots.js'
import type { WorkerCore } from '../core/worker-core.js'
import { REFERENCES } from '../references/references.js'
import { ARRIVE, type Coming, type Met, meetingKey, NAMES_KEPT, STANDING_MS } from './gather.js'
import { byName, LEADER_GRACE_MS, leaderSilent } from './group-errors.js'
import { StandingRound } from './standing-round.js'

export interface MeetOptions {
  /** The operation of users that it is part of, which errors name: those of different ones do not meet. Default 'meet'. */
  readonly op?: string
  /** In ms; default the worker's `rpcTimeoutMs`, 0: no limit. */
  readonly timeoutMs?: number
  /**
   * Which round is meant: members meet only in rounds of the same name, so one that has missed some cannot meet the others in another step than its own. Without
   * it rounds are met in the order of the calls.
   */
  readonly round?: string | number
  /** A round of 30 minutes, or with no limit, says after so many ms for whom it waits: see `standstill.ts`. Default 0, never. */
  readonly warnAfterMs?: number
}

/**
 * Waits until every member has called it: all workers that this one knows to live, or those that are named, this one among them. Gives each the values of all,
 * by name, in the order of the names, as copies. Any subsets may meet at the same time. When one member's time is over the round fails for all. A
 * member that comes later gets the same error at once, with `values.late`, and its next call meets the others.
 * @throws (rejects) GROUP_TIMEOUT with the missing names and the round in `values`, for all who wait; WORKER_DIED when a member dies, at once; PROGRAM_OVER,
 *   UNKNOWN_WORKER, INVALID_ARGUMENT, TIMEOUT_INVALID, WIRE_UNSUPPORTED_VALUE. PyTorch: `_all_gather`
 */
export async function meet<T>(value: T, names?: readonly Target[], options: MeetOptions = {}): Promise<Map<string, T>> {
  const worker = currentCore()
  const { op = 'meet' } = options
  const limitMs = timeLimit(op, options.timeoutMs ?? worker.rpcTimeoutMs)
  const hasLimit = limitMs !== Number.POSITIVE_INFINITY
  const round = options.round === undefined ? null : String(options.round)
  const members = membersOf(worker, op, names)
  const leader = members[0]!
  const abandoned = ABANDONED.of(worker)
  const key = meetingKey({ op, members, round })
  const known = abandoned.get(key) ?? { members, isNamed: round !== null, era: 0, failures: 0 }
  const { era, failures } = known
  const coming: Coming = { op, members, round, era, from: worker.info.name, value, timeoutMs: hasLimit ? limitMs : 0 }
  const stands = limitMs < STANDING_MS ? null : new StandingRound(worker, coming, options.warnAfterMs ?? 0)
  try {
    const call = REFERENCES.of(worker).caller.call(leader, ARRIVE, [coming], { timeoutMs: hasLimit ? limitMs + LEADER_GRACE_MS : 0 }, op)
    const met = (await (stands === null ? call : stands.until(call))) as Met
    if (failures === known.failures) known.era = met.era
    if (known.era === 0 && abandoned.get(key) === known) abandoned.delete(key)
    return new Map(members.map(({ name }, i) => [name, met.values[i] as T]))
  } catch (error) {
    const isSilent = isPostgradError(error, 'RPC_TIMEOUT')
    if (isSilent || isPostgradError(error, 'GROUP_TIMEOUT')) noteAbandoned(abandoned, key, known)
    throw isSilent ? leaderSilent(op, limitMs, leader) : error
  } finally {
    stands?.end()
  }
}

/** A meeting as a member knows it: see Note [Abandoned rounds] in `gather.ts`. */
interface Known {
  readonly members: readonly WorkerInfo[]
  readonly isNamed: boolean
  /** 0 at first; null after a failure, until an answer says it. */
  era: number | null
  failures: number
}

/** By meeting. */
const ABANDONED = new WorkerSlot('abandoned', (worker) => {
  const abandoned = new Map<string, Known>()
  // Its members never meet again: a restarted worker is another.
  worker.onPeerDeath((peer) => {
    for (const [key, { members }] of abandoned) if (members.some(({ id }) => id === peer.id)) abandoned.delete(key)
  })
  return abandoned
})

/** It becomes the newest. Of named rounds there may be any number; what is known of the others stays. */
function noteAbandoned(abandoned: Map<string, Known>, key: string, own: Known): void {
  const known = abandoned.get(key) ?? own
  known.era = null
  known.failures++
  abandoned.delete(key)
  abandoned.set(key, known)
  if (!known.isNamed) return
  const named = [...abandoned].filter(([, { isNamed }]) => isNamed)
  for (const [old] of named.slice(0, -NAMES_KEPT)) abandoned.delete(old)
}

/** Sorted by name, each once. */
function membersOf(worker: WorkerCore, op: string, names: readonly Target[] | undefined): readonly WorkerInfo[] {
  const infos = names === undefined ? worker.workers() : names.map((name) => worker.resolve(name, op))
  const members = [...new Map(infos.map((info) => [info.id, info])).values()].sort(byName)
  if (!members.some(({ id }) => id === worker.info.id)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: `worker '${worker.info.name}', which calls it, among the names`,
      got: members.length === 0 ? 'none' : members.map(({ name }) => `'${name}'`).join(', '),
      remedy: 'Only members call it, and every member does.',
    })
  }
  return members
}
