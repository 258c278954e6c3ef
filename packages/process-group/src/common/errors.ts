/** The errors of process groups, worded once. */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { ownEnd } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'

/** A group as errors name it. */
export interface GroupName {
  readonly name: string
  readonly workers: readonly WorkerInfo[]
}

/** Rank 2 (worker2) */
export function rankText({ workers }: GroupName, rank: number): string {
  return `rank ${rank} (${workers[rank]?.name ?? 'unknown'})`
}

const ranksText = (group: GroupName, ranks: readonly number[]): string => ranks.map((rank) => rankText(group, rank)).join(', ')

/** For remedies. */
const thoseRanks = (missing: readonly number[]): string => (missing.length === 1 ? 'that rank' : 'those ranks')

const LONGER = 'or pass a longer { timeoutMs } (0: without a limit)'

/** COLLECTIVE_TIMEOUT; values: group, sequence, call, missing (ranks), missingWorkers, timeoutMs. */
export function collectiveTimedOut(
  op: string,
  group: GroupName,
  {
    sequence,
    head,
    missing,
    isThrough,
    timeoutMs,
    recent,
    remedy = `All ranks must call the same collectives in the same order. ${missing.length === 0 ? 'Await the earlier collectives' : `Find out why ${thoseRanks(missing)} did not take part`}, ${LONGER}.`,
  }: {
    readonly sequence: number
    readonly head: string
    readonly missing: readonly number[]
    /** This rank has done its part, and not all of what it has sent is flushed. */
    readonly isThrough: boolean
    readonly timeoutMs: number
    readonly recent: readonly string[]
    readonly remedy?: string
  },
): PostgradError {
  const who =
    missing.length === 0
      ? 'nobody is missing, but earlier collectives have not ended'
      : `${ranksText(group, missing)} ${isThrough ? 'did not read what was sent' : 'did not come'}`
  const last = recent.length === 0 ? '' : `; before it: ${recent.join('; ')}`
  return new PostgradError('COLLECTIVE_TIMEOUT', {
    op,
    message: `${head}, number ${sequence} of group '${group.name}', timed out after ${Math.round(timeoutMs)} ms: ${who}${last}`,
    remedy,
    values: {
      group: group.name,
      sequence,
      call: head,
      missing,
      missingWorkers: missing.map((rank) => group.workers[rank]!.name),
      timeoutMs,
      ...(recent.length === 0 ? {} : { recent }),
    },
  })
}

/** COLLECTIVE_TIMEOUT of `send` and `recv`; values: group, call, tag, missing, missingWorkers, timeoutMs. */
export function directTimedOut(
  op: string,
  group: GroupName,
  {
    call,
    tag,
    missing,
    timeoutMs,
  }: { readonly call: string; readonly tag: number; readonly missing: readonly number[]; readonly timeoutMs: number },
): PostgradError {
  const isSend = op === 'send'
  return new PostgradError('COLLECTIVE_TIMEOUT', {
    op,
    message: `${call} of group '${group.name}' timed out after ${Math.round(timeoutMs)} ms: ${ranksText(group, missing)} ${isSend ? 'takes nothing of what it was sent' : 'sent nothing with this tag'}`,
    remedy: `Each tensor that is sent must be received, with the same tag. Find out why ${thoseRanks(missing)} did not take part, ${LONGER}.`,
    values: { group: group.name, call, tag, missing, missingWorkers: missing.map((rank) => group.workers[rank]!.name), timeoutMs },
  })
}

/** Of `initProcessGroup`: GROUP_TIMEOUT, whose cause is that of the meeting, with its values. */
export function notMet(name: string, cause: PostgradError): PostgradError {
  const { missing, timeoutMs, late, elsewhere } = cause.values
  const parts = [
    Array.isArray(missing) && missing.length > 0 && `${missing.map((worker) => `'${worker}'`).join(', ')} did not come`,
    ...(Array.isArray(elsewhere) ? elsewhere : []),
    late === true && 'this call came after that',
  ].filter(Boolean)
  return new PostgradError('GROUP_TIMEOUT', {
    op: 'initProcessGroup',
    message: `the members of group '${name}' have not met in ${Math.round(Number(timeoutMs))} ms${parts.length === 0 ? '' : `: ${parts.join(', ')}`}`,
    remedy:
      late === true
        ? 'Call initProcessGroup() again: it meets those that call it again.'
        : `Every member must call initProcessGroup() with the same { name, ranks, debug }. Find out why those members did not, ${LONGER}.`,
    cause,
    values: { ...cause.values, group: name },
  })
}

/** Of `initProcessGroup`: GROUP_BROKEN, since a member has returned without having called it. */
export function neverMet(group: GroupName, worker: number): PostgradError {
  const rank = group.workers.findIndex(({ id }) => id === worker)
  return groupBroken('initProcessGroup', group, overText(group, rank), programOver(group, rank))
}

/** Of monitoredBarrier, in PyTorch's words. */
export function barrierFailed(group: GroupName, missing: readonly number[], timeoutMs: number, sequence: number): PostgradError {
  return new PostgradError('COLLECTIVE_TIMEOUT', {
    op: 'monitoredBarrier',
    message: `${ranksText(group, missing)} failed to pass monitoredBarrier in ${Math.round(timeoutMs)} ms`,
    remedy: `All ranks of the group must call it. Find out why ${thoseRanks(missing)} did not.`,
    values: {
      group: group.name,
      sequence,
      call: 'monitoredBarrier',
      missing,
      missingWorkers: missing.map((rank) => group.workers[rank]!.name),
      timeoutMs,
    },
  })
}

/** COLLECTIVE_MISMATCH; values: group, sequence, calls: by rank. */
export function mismatch(
  group: GroupName & { readonly debug: string },
  sequence: number,
  calls: readonly (readonly [rank: number, call: string])[],
): PostgradError {
  const sides = calls.map(([rank, call]) => `${rankText(group, rank)} calls ${call}`).join(', ')
  const [[, first]] = calls as readonly [readonly [number, string]]
  return new PostgradError('COLLECTIVE_MISMATCH', {
    op: /^\w+/.exec(first)?.[0] ?? 'collective',
    message: `number ${sequence} of group '${group.name}' is not the same on all ranks: ${sides}`,
    remedy: `All ranks must call the same collectives in the same order, with the same shapes and dtypes.${group.debug === 'detail' ? '' : " With initProcessGroup({ debug: 'detail' }), ranks compare calls before anything begins."}`,
    values: { group: group.name, sequence, calls: calls.map(([rank, call]) => ({ rank, call })) },
  })
}

/** COLLECTIVE_MISMATCH of `recv`: what came is another tensor; values: group, tag, rank, sent, received. */
export function directMismatch(
  group: GroupName & { readonly rank: number },
  { rank, tag, sent, received }: { readonly rank: number; readonly tag: number; readonly sent: string; readonly received: string },
): PostgradError {
  return new PostgradError('COLLECTIVE_MISMATCH', {
    op: 'recv',
    message: `${rankText(group, rank)} sends ${sent} with tag ${tag}, and ${rankText(group, group.rank)} receives ${received}`,
    remedy:
      'Receive into a tensor of the same shape and dtype, in the order in which they were sent, or give them different tags ({ tag }). That tensor is gone; the group continues.',
    values: { group: group.name, tag, rank, sent, received },
  })
}

/** GROUP_BROKEN, whose cause is what broke it; values: group, and what identifies the cause. */
export function groupBroken(op: string, group: GroupName, why: string, cause: unknown): PostgradError {
  const values = isPostgradError(cause) ? { because: cause.code, ...cause.values } : {}
  const isOver = isPostgradError(cause, 'PROGRAM_OVER')
  // Of a death `why` says all, as it does of a program that is over.
  const because = isOver || why.includes('has ended') ? '' : causeText(cause)
  return new PostgradError('GROUP_BROKEN', {
    op,
    message: `process group '${group.name}' is broken: ${why}${because}`,
    remedy: isOver ? SAME_STEPS : 'destroyProcessGroup(), then initProcessGroup({ ranks }) with the workers that live.',
    cause,
    values: { ...values, group: group.name },
  })
}

function causeText(cause: unknown): string {
  if (isPostgradError(cause)) return `, because of ${cause.code} (${cause.message})`
  if (typeof cause === 'string') return `, because of ${cause}`
  const { name, message } = Object(cause) as Partial<Error>
  return typeof message === 'string' ? `, because of ${name}: ${message}` : ''
}

const SAME_STEPS =
  'All ranks must call the same collectives. Give each rank the same number of steps, with a backward in each, or train inside join() if the data is uneven.'

/** Why a group is broken of which one rank calls nothing any more. */
export function overText(group: GroupName, rank: number): string {
  return `${rankText(group, rank)} has returned from its main, and every rank whose main still runs waits in a collective`
}

/** The cause of that; values: rank, worker. */
export function programOver(group: GroupName, rank: number): PostgradError {
  return new PostgradError('PROGRAM_OVER', {
    op: 'collective',
    message: overText(group, rank),
    remedy: SAME_STEPS,
    values: { group: group.name, rank, worker: group.workers[rank]!.name, workerId: group.workers[rank]!.id },
  })
}

/** The cause if `abort` got no reason. */
export function groupAborted(group: GroupName): PostgradError {
  return new PostgradError('GROUP_ABORTED', {
    op: 'abort',
    message: `process group '${group.name}' was aborted`,
    values: { group: group.name },
  })
}

export function groupExists(): PostgradError {
  return new PostgradError('PROCESS_GROUP_EXISTS', {
    op: 'initProcessGroup',
    message: 'this worker has a default process group already, or is making one',
    remedy: 'destroyProcessGroup() first; newGroup() makes further groups.',
  })
}

/** `way`: how the caller names a group in place of the default one. */
export function notInitialized(op: string, way = '{ group }'): PostgradError {
  return new PostgradError('PROCESS_GROUP_NOT_INITIALIZED', {
    op,
    message: 'the default process group has not been initialized on this worker',
    remedy: `Await initProcessGroup() on every worker that takes part, or pass ${way}.`,
  })
}

export function notMember(op: string, group: GroupName, worker: string): PostgradError {
  return new PostgradError('PROCESS_GROUP_NOT_MEMBER', {
    op,
    expected: `a member of group '${group.name}' (${group.workers.map(({ name }) => name).join(', ')})`,
    got: `worker '${worker}'`,
    remedy: 'Only members call its collectives: ask getRank(group) first, which is -1 elsewhere.',
    values: { group: group.name, worker },
  })
}

export function destroyed(op: string, group: GroupName): PostgradError {
  return ownEnd(
    new PostgradError('PROCESS_GROUP_DESTROYED', {
      op,
      message: `process group '${group.name}' was destroyed on this worker`,
      remedy: 'Make a new one: initProcessGroup() or newGroup().',
      values: { group: group.name },
    }),
  )
}

/** Errors that end a group, and many works of it that perhaps nobody awaits: none of them may end the process. */
export function endsGroup(error: unknown): boolean {
  return isPostgradError(error) && ENDS.has(error.code)
}

const ENDS: ReadonlySet<string> = new Set(['GROUP_BROKEN', 'COLLECTIVE_MISMATCH', 'COLLECTIVE_TIMEOUT', 'PROCESS_GROUP_DESTROYED'])
