/**
 * What users write to act as a group: `barrier`, `allGather`, `leave`, `shutdown`. Every member calls the same; who leads is the one with the smallest name,
 * and needs no code of its own. PyTorch: `torch/distributed/rpc/api.py`.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { timeLimit } from '@postgrad/base/internal'
import type { Target, WorkerInfo } from '../common/worker-info.js'
import { arrive, type Coming, type GatherOp, type Met, meetingKey, NAMES_KEPT, STANDING_MS } from '../groups/gather.js'
import { byName, LEADER_GRACE_MS, leaderSilent } from '../groups/group-errors.js'
import { StandingRound } from '../groups/standing-round.js'
import type { ShutdownOptions, WorkerRuntime } from '../worker/worker-runtime.js'
import { currentRuntime } from './api.js'

/** Of `leave` and `drain`, and with a round of `barrier` and `allGather`. */
export interface GroupOptions {
  /** In ms; default the worker's `rpcTimeoutMs` (60,000), 0 is no limit. */
  readonly timeoutMs?: number
}

/** Of `barrier` and `allGather`. */
export interface RoundOptions extends GroupOptions {
  /**
   * Which round is meant, as `'epoch 3'` or 3: members meet only in rounds of the same name, so one that has missed some cannot meet the others in another
   * step than its own. Without it rounds are met in the order of the calls.
   */
  readonly round?: string | number
}

/**
 * Waits until every member has called it: all workers that this one knows to live, or those that are named, this one among them. Any subsets may meet at the
 * same time; two of one worker's barriers of the same members are counted in the order of the calls. When one member's time is over the round fails
 * for all. Who comes to it later gets the same error at once, with `values.late`, and its next call meets the others.
 * @throws (rejects) GROUP_TIMEOUT with the missing names and the round in `values`, for all who wait; WORKER_DIED when a member dies, at once; UNKNOWN_WORKER,
 *   INVALID_ARGUMENT, TIMEOUT_INVALID. PyTorch: `_barrier`; `monitored_barrier`, which names the missing ranks too.
 */
export async function barrier(names?: readonly Target[], options?: RoundOptions): Promise<void> {
  await gather('barrier', null, names, options)
}

/**
 * Gives every member the values of all, by name, in the order of the names. A value travels as an argument of a call does; everybody gets copies.
 * @throws (rejects) as `barrier`, and WIRE_UNSUPPORTED_VALUE. PyTorch: `_all_gather`.
 */
export async function allGather<T>(value: T, names?: readonly Target[], options?: RoundOptions): Promise<Map<string, T>> {
  const { members, values } = await gather('allGather', value, names, options)
  return new Map(members.map(({ name }, i) => [name, values[i] as T]))
}

/**
 * Ends this worker together with all others, once each has called it and no call is under way anywhere, nested ones and those that callbacks make
 * included; or at once with `graceful: false`. The local end comes about whatever goes wrong; nothing can be called after it. In a function that serves a
 * call it may be begun and not awaited: it waits for that call.
 * @throws (rejects) GROUP_TIMEOUT, WORKER_DIED, TIMEOUT_INVALID. PyTorch: `rpc.shutdown`, which waits for ever for one that has died
 */
export async function shutdown(options?: ShutdownOptions): Promise<void> {
  await currentRuntime().shutdown(options)
}

/**
 * Ends the worker that runs this by its own decision, without asking its peers: their later calls are refused with WORKER_DRAINING, what waits is
 * served. Not to be awaited by a function that is served. @throws (rejects) RPC_TIMEOUT, see `WorkerRuntime.drain`
 */
export async function drain(options?: { readonly timeoutMs?: number }): Promise<void> {
  await currentRuntime().drain(options)
}

/**
 * Ends this worker while the others go on: it waits for its own calls and for those that were made to it before its peers heard of it. They see
 * that it has left.
 * @throws (rejects) GROUP_TIMEOUT (it has left all the same), TIMEOUT_INVALID. PyTorch: `rpc.shutdown` of a dynamic group
 */
export async function leave(options?: GroupOptions): Promise<void> {
  await currentRuntime().leave(options)
}

/** What a member knows of a meeting: see Note [Abandoned rounds] in `gather.ts`. */
interface Standing {
  readonly members: readonly WorkerInfo[]
  readonly isNamed: boolean
  /** 0 at first; null after a failure, until an answer says it. */
  era: number | null
  failures: number
}
/** Of this worker, by meeting. */
const STANDINGS = Symbol('postgrad.standings')

/** As `allGather`, of a round that says after `warnAfterMs` for whom it waits: see `Standstill`. */
export async function gatherAsGroup<T>(
  value: T,
  members: readonly WorkerInfo[],
  options: RoundOptions & { readonly warnAfterMs: number },
): Promise<Map<string, T>> {
  const met = await gather('allGather', value, members, options)
  return new Map(met.members.map(({ name }, i) => [name, met.values[i] as T]))
}

async function gather(
  op: GatherOp,
  value: unknown,
  names: readonly Target[] | undefined,
  options: RoundOptions & { readonly warnAfterMs?: number } = {},
): Promise<{ members: readonly WorkerInfo[]; values: readonly unknown[] }> {
  const worker = currentRuntime()
  const limitMs = timeLimit(op, options.timeoutMs ?? worker.rpcTimeoutMs)
  const round = roundName(op, options.round)
  const members = membersOf(worker, op, names)
  const leader = members[0]!
  const hasLimit = limitMs !== Number.POSITIVE_INFINITY
  const standings = worker.slot(STANDINGS, () => makeStandings(worker))
  const key = meetingKey(op, members, round)
  const standing = standings.get(key) ?? { members, isNamed: round !== null, era: 0, failures: 0 }
  const { era, failures } = standing
  const stands = limitMs < STANDING_MS ? null : new StandingRound(worker, op, members, key, options.warnAfterMs ?? 0)
  const coming: Coming = { op, members, round, era, from: worker.info.name, value, timeoutMs: hasLimit ? limitMs : 0 }
  try {
    const call = worker.call(leader, arrive, [coming], { timeoutMs: hasLimit ? limitMs + LEADER_GRACE_MS : 0 })
    const met = (await (stands === null ? call : stands.until(call))) as Met
    if (failures === standing.failures) standing.era = met.era
    if (standing.era === 0 && standings.get(key) === standing) standings.delete(key)
    return { members, values: met.values }
  } catch (error) {
    const isSilent = isPostgradError(error, 'RPC_TIMEOUT')
    if (isSilent || isPostgradError(error, 'GROUP_TIMEOUT')) {
      const known = standings.get(key) ?? standing
      known.era = null
      known.failures++
      standings.delete(key)
      standings.set(key, known)
      if (known.isNamed) forgetOldNames(standings)
    }
    throw isSilent ? leaderSilent(op, limitMs, leader) : error
  } finally {
    stands?.end()
  }
}

function makeStandings(worker: WorkerRuntime): Map<string, Standing> {
  const standings = new Map<string, Standing>()
  // Its members never meet again: who is started again is another.
  worker.onPeerDeath((peer) => {
    for (const [key, { members }] of standings) if (members.some(({ id }) => id === peer.id)) standings.delete(key)
  })
  return standings
}

/** Of named rounds there may be any number; what is known of the others stays. */
function forgetOldNames(standings: Map<string, Standing>): void {
  const named = [...standings].filter(([, { isNamed }]) => isNamed)
  for (const [key] of named.slice(0, -NAMES_KEPT)) standings.delete(key)
}

function roundName(op: GatherOp, round: string | number | undefined): string | null {
  if (round === undefined) return null
  if (typeof round === 'string' || Number.isFinite(round)) return String(round)
  const got = typeof round === 'number' ? String(round) : round === null ? 'null' : typeof round
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'a string or a finite number as `round`',
    got,
    remedy: "Give all members the same name, such as { round: 'epoch 3' }, or leave it out.",
  })
}

/** Sorted by name, each once. */
function membersOf(worker: WorkerRuntime, op: GatherOp, names: readonly Target[] | undefined): readonly WorkerInfo[] {
  if (names !== undefined && !Array.isArray(names)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: 'a list of workers',
      got: names === null ? 'null' : typeof names === 'string' ? `'${names}'` : typeof names,
      remedy: `Name all that take part, this one among them: ${op === 'barrier' ? 'barrier(' : 'allGather(value, '}['a', 'b'], options); undefined is all workers.`,
    })
  }
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
