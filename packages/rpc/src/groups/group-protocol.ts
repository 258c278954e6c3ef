/**
 * The messages that the workers of a group exchange about it, to be read alone: the body of GROUP_UPDATE is `[what, data, error]`.
 *
 *     leaving                               the end of all
 *     L → each   LEAVE                      member → leader   JOIN [timeoutMs]           it has called shutdown()
 *     each → L   SEEN                       member → leader   REPORT [phase, counts]     it is quiet, and what it has sent and received
 *                                           leader → member   RELEASE [ids]              all of these are quiet: references are disposed
 *                                           leader → member   DONE                       all are quiet again: everybody closes
 *                                           leader → member   FAILED error               it cannot come about: everybody closes
 *
 *     is anything under way?
 *     W → each   ASK [round, groups]        W waits in an operation of these groups
 *     each → W   ANSWER [round, said]       see `standstill.ts`
 *     W → group  OVER [group, worker]       nothing is under way, and that worker calls nothing more
 *
 * A worker that says SEEN makes no more calls to L, and its earlier ones arrive before SEEN. `leave.ts` and `shutdown.ts` have the two sides.
 */
import type { WorkerId } from '@postgrad/base'
import type { Counts } from './traffic.js'

export const GroupWhat = {
  LEAVE: 0,
  SEEN: 1,
  JOIN: 2,
  REPORT: 3,
  RELEASE: 4,
  DONE: 5,
  FAILED: 6,
  ASK: 7,
  ANSWER: 8,
  OVER: 9,
} as const

export type GroupWhat = (typeof GroupWhat)[keyof typeof GroupWhat]

/** 0: until all are quiet; 1: after the references were disposed. */
export type Phase = 0 | 1

/** 0 for no limit. */
export type JoinData = readonly [timeoutMs: number]
/** The workers that end together. */
export type ReleaseData = readonly WorkerId[]
export type ReportData = readonly [phase: Phase, counts: Counts]
export type AskData = readonly [round: number, groups: readonly string[]]
/** A group in an operation of which a worker waits, for whom, and of which operation it is known that a line was printed (-1: none). */
export type Waiting = readonly [group: string, on: readonly WorkerId[], told: number]
/** An answer to ASK: whether the worker's program is over, its waits, and the counts of its messages. Null: something is under way there. */
export type Said = readonly [isOver: boolean, waits: readonly Waiting[], counts: Counts] | null
export type OverData = readonly [group: string, worker: WorkerId]
export type AnswerData = readonly [round: number, said: Said]

export function isJoin(data: unknown): data is JoinData {
  return Array.isArray(data) && data.length === 1 && isNumber(data[0])
}

export function isRelease(data: unknown): data is ReleaseData {
  return Array.isArray(data) && data.every(isCount)
}

export function isReport(data: unknown): data is ReportData {
  return Array.isArray(data) && (data[0] === 0 || data[0] === 1) && isCounts(data[1])
}

export function isAsk(data: unknown): data is AskData {
  return Array.isArray(data) && isCount(data[0]) && Array.isArray(data[1]) && data[1].every((group) => typeof group === 'string')
}

export function isAnswer(data: unknown): data is AnswerData {
  return Array.isArray(data) && isCount(data[0]) && isSaid(data[1])
}

export function isOver(data: unknown): data is OverData {
  return Array.isArray(data) && typeof data[0] === 'string' && isCount(data[1])
}

function isSaid(said: unknown): said is Said {
  if (said === null) return true
  if (!Array.isArray(said)) return false
  const [isOver, waits, counts] = said as readonly unknown[]
  return typeof isOver === 'boolean' && Array.isArray(waits) && waits.every(isWaiting) && isCounts(counts)
}

function isWaiting(wait: unknown): boolean {
  if (!Array.isArray(wait)) return false
  const [group, on, told] = wait as readonly unknown[]
  return typeof group === 'string' && Array.isArray(on) && on.every(isCount) && Number.isSafeInteger(told)
}

function isCounts(counts: unknown): counts is Counts {
  return Array.isArray(counts) && counts.every((row) => Array.isArray(row) && row.length === 3 && row.every(isCount))
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
