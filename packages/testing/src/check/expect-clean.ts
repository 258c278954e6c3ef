/** Leak check: when a program has ended, everything that it opened must be gone, on every worker. */
import { PostgradError } from '@postgrad/base'

/** Counts of all that each worker holds: `simulation.debugInfo`, or the result of `cluster.debugInfo()`. */
export type DebugInfos = Readonly<Record<string, Readonly<Record<string, number>>>>

const DISPOSE =
  'dispose() of every RRef that remote() returned or a call received, and of every RemoteModule and DistributedOptimizer, which hold some'

/** The counts that must be 0, and what to do about each. */
const HELD: Readonly<Record<string, string>> = {
  pendingCalls: 'await every call before the program ends',
  servingCalls: 'a served function has not returned; it waits for something',
  autogradContexts: 'a context was not released: distAutograd.context(fn) does so when fn settles',
  currentBackwardPasses: 'await ctx.backward(…)',
  gradientsHeldBack: 'a gradient waits for others to be summed in order, in a pass that has ended',
  ownerRRefs: `a value is still referred to: ${DISPOSE}`,
  userRRefs: DISPOSE,
  forks: DISPOSE,
  pendingUsers: 'a reference was never confirmed by its owner',
  pendingChildren: 'a reference was sent and never accepted',
  actors: 'dispose() of every reference to an actor; it ends with the last',
  monitors: 'dispose() of every monitor, or what it watches must have ended',
  watchers: 'somebody watches an actor of this worker, which has not ended',
  collectives: 'await every collective; not every rank has come to it, or a recv waits for what nobody sends',
  collectivesUnread: 'ranks have sent what this one has not called: all call the same collectives, and a recv for each send',
  gathers: 'not every member has called initProcessGroup',
  lateMessages: 'a message waits for the values of a device, which have not been computed',
  pendingJobs: 'await every job before the program ends',
  deadLetters: 'a message came for something that had ended, or an error was noticed by nobody; see the dead letters of the worker',
}

/** Options of `expectClean` and `leaks`. */
export interface CleanOptions {
  /** The names of workers to leave out, because they died. Default: none. */
  readonly except?: readonly string[]
  /** The names of counts that need not be 0, such as 'deadLetters'. Default: none. */
  readonly allow?: readonly string[]
}

/**
 * Returns what workers still hold: one line for each count that should be 0 and is not, with what to do about it. An empty list means that nothing is left.
 * @example
 * const run = await simulate({ workers: 2 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 * leaks(run.debugInfo) // []
 */
export function leaks(debugInfo: DebugInfos, { except = [], allow = [] }: CleanOptions = {}): string[] {
  const lines: string[] = []
  for (const [worker, info] of Object.entries(debugInfo)) {
    if (except.includes(worker)) continue
    for (const [key, remedy] of Object.entries(HELD)) {
      if ((info[key] ?? 0) !== 0 && !allow.includes(key)) lines.push(`worker '${worker}': ${key} ${info[key]} (${remedy})`)
    }
  }
  return lines
}

/**
 * Checks that no worker holds anything: after a simulation, or in a launched cluster at a moment without calls and runs.
 * @throws NOT_CLEAN if a worker holds something, with a list of it
 * @example
 * const run = await simulate({ workers: 2 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 * expectClean(run) // no worker holds a reference, a context or a call
 */
export function expectClean(
  { debugInfo, seed }: { readonly debugInfo: DebugInfos; readonly seed?: number },
  options: CleanOptions = {},
): void {
  const left = leaks(debugInfo, options)
  if (left.length === 0) return
  throw new PostgradError('NOT_CLEAN', {
    op: 'expectClean',
    message: `the program has not cleaned up:\n  ${left.join('\n  ')}\n`,
    values: { left, ...(seed === undefined ? {} : { seed }) },
  })
}
