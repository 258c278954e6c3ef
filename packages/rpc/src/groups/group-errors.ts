/** Errors of `meet`, `leave` and `shutdown` of a group. */
import { PostgradError } from '@postgrad/base'
import type { WorkerInfo } from '../common/worker-info.js'

/**
 * How much longer than its own time a member waits for the leader, in ms: the leader counts the same time and knows who is missing. This passes
 * only if the leader itself does not answer.
 */
export const LEADER_GRACE_MS = 1000

/** Of `meet`: which round it was. */
export interface GivenUpRound {
  readonly round: string | number
  /** Where the missing members wait instead. */
  readonly elsewhere?: readonly string[]
  /** A member that came too late. */
  readonly late?: string
}

/** GROUP_TIMEOUT; values: missing and busy, the names, timeoutMs, and of a round its name or number, whether this call came too late for it, and where the missing wait. */
export function groupTimeout(
  op: string,
  timeoutMs: number,
  missing: readonly string[],
  busy: readonly string[] = [],
  givenUp: GivenUpRound | null = null,
): PostgradError {
  const { elsewhere = [] } = givenUp ?? {}
  const parts = [
    missing.length > 0 && `${list(missing)} did not take part`,
    busy.length > 0 && `${list(busy)} still had calls under way`,
    ...elsewhere,
    givenUp?.late !== undefined && `this call of worker '${givenUp.late}' came after that`,
  ].filter(Boolean)
  const round = givenUp === null ? '' : `round ${givenUp.round} `
  return new PostgradError('GROUP_TIMEOUT', {
    op,
    message: `${round}timed out after ${Math.round(timeoutMs)} ms: ${parts.join(', ') || 'the last message was still on its way'}`,
    remedy: remedyOf(op, givenUp),
    values: {
      missing,
      busy,
      timeoutMs,
      ...(givenUp === null ? {} : { round: givenUp.round, late: givenUp.late !== undefined, elsewhere }),
    },
  })
}

function remedyOf(op: string, givenUp: GivenUpRound | null): string {
  if (givenUp?.late !== undefined) {
    return 'Call it again: the next call of this worker joins the round in which the others are then.'
  }
  if ((givenUp?.elsewhere ?? []).length > 0) return 'All members must give the same name.'
  const longer = 'a longer { timeoutMs } (0: without a limit), or find out what keeps those workers busy.'
  // One worker leaves alone: the others need not call it.
  return op === 'leave' ? `Pass ${longer}` : `Every member must call ${op}(). If all do, pass ${longer}`
}

export function leaderSilent(op: string, timeoutMs: number, leader: WorkerInfo): PostgradError {
  return new PostgradError('GROUP_TIMEOUT', {
    op,
    message: `timed out after ${Math.round(timeoutMs)} ms: '${leader.name}', which counts the members, has not answered`,
    remedy: 'Find out what keeps that worker busy; during a long computation it answers nothing.',
    values: { missing: [leader.name], busy: [], timeoutMs },
  })
}

/** For a worker whose role may not take part in the end of all: as `notPermitted`, it says nothing of the rights of others. */
export function mayNotEnd({ name }: WorkerInfo, role: unknown, self: WorkerInfo): PostgradError {
  return new PostgradError('NOT_PERMITTED', {
    op: 'shutdown',
    message: `worker '${name}', whose role is '${String(role)}', may not end together with worker '${self.name}'`,
    remedy: 'Call leave() instead: it ends this worker alone. Or give the role the right `groups` at every worker. This worker has left.',
    values: { caller: name, role, kind: 'built-in', name: 'GROUP_UPDATE', worker: self.name },
  })
}

/** By order of code units, which is the same on every worker. */
export function byName(a: WorkerInfo, b: WorkerInfo): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

function list(names: readonly string[]): string {
  return `${names.length === 1 ? 'worker' : 'workers'} ${names.map((name) => `'${name}'`).join(', ')}`
}
