/** Errors of what a group of workers does together. */
import { PostgradError } from '@postgrad/base'
import type { WorkerInfo } from './worker-info.js'

/**
 * How much longer than its own time a member waits for the one who leads, in ms: the leader counts the same time and knows who is missing. Only
 * if the leader itself does not answer, this passes.
 */
export const LEADER_GRACE_MS = 1000

/** GROUP_TIMEOUT; values: missing and busy, the names, and timeoutMs. */
export function groupTimeout(op: string, timeoutMs: number, missing: readonly string[], busy: readonly string[] = []): PostgradError {
  const parts = [
    missing.length > 0 && `${list(missing)} did not take part`,
    busy.length > 0 && `${list(busy)} still had calls under way`,
  ].filter(Boolean)
  return new PostgradError('GROUP_TIMEOUT', {
    op,
    message: `timed out after ${Math.round(timeoutMs)} ms: ${parts.join(', ') || 'the last word was still on its way'}`,
    remedy: `Every worker that is meant must call ${op}(); pass a longer { timeoutMs } (0 is no limit), or look at what keeps those busy.`,
    values: { missing, busy, timeoutMs },
  })
}

export function leaderSilent(op: string, timeoutMs: number, leader: WorkerInfo): PostgradError {
  return new PostgradError('GROUP_TIMEOUT', {
    op,
    message: `timed out after ${Math.round(timeoutMs)} ms: '${leader.name}', which leads, has not answered`,
    remedy: 'Look at what keeps that worker busy; a long stretch of computing lets nothing else in.',
    values: { missing: [leader.name], busy: [], timeoutMs },
  })
}

/** By order of code units, which is the same on every worker. */
export function byName(a: WorkerInfo, b: WorkerInfo): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

function list(names: readonly string[]): string {
  return `${names.length === 1 ? 'worker' : 'workers'} ${names.map((name) => `'${name}'`).join(', ')}`
}
