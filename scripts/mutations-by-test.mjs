/**
 * The mutations of `npm run mutate` that a test catches: each takes one repair out again, by one exact change of a source file, and names the test file and the rule
 * (or the words) with which the names of its tests begin. `find` occurs once in the file. Those that a suite catches from a seed stand in `mutations.mjs`.
 *
 *   t(id, test, rule, file, find, replace, what)
 *
 * `test` and `file` are paths of sources, from the repository: a test of any lane, a module of a package or an app.
 */
export const MUTATIONS_BY_TEST = [
  // ---- files that others own, and folders that others may write
  // ---- the end of a worker, of a call, of a program
  // ---- pipelines and collectives
  // ---- replicas
  // ---- ranks that return
  t(
    'over-unnoticed',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-40',
    'packages/rpc/src/groups/standstill-watch.ts',
    '        group.onOver(worker)\n      }',
    '      }',
    'a rank whose main has returned is found, and its group is not broken',
  ),
  t(
    'over-by-main-alone',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-40: a rank that returns early who has called shutdown',
    'packages/rpc/src/groups/standstill-watch.ts',
    'this.isMainOver || this.hasCalledShutdown()',
    'this.isMainOver',
    'a worker that has called shutdown() is still waited for in collectives',
  ),
  t(
    'over-once-said',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-41: no right program is refused one that does something else',
    'packages/rpc/src/groups/standstill-watch.ts',
    "text !== '' && text === this.former",
    "text !== ''",
    'what all workers say once is taken for a standstill',
  ),
  t(
    'over-while-serving',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-41',
    'packages/rpc/src/groups/standstill-watch.ts',
    'CALL_SERVING.of(core).count > GATHERS.of(core).standing || core.pump.mailbox.size > 0',
    'core.pump.mailbox.size > 0',
    'a worker that serves a call counts as one that does nothing',
  ),
  t(
    'over-while-sent',
    'packages/rpc/src/groups/standstill.test.ts',
    'STA-1',
    'packages/rpc/src/groups/standstill.ts',
    'if (tally.unsettled(ids).length > 0 || ids',
    'if (ids',
    'messages that are under way do not count',
  ),
  t(
    'over-unseen-worker',
    'packages/rpc/src/groups/standstill.test.ts',
    'STA-1',
    'packages/rpc/src/groups/standstill.ts',
    'tally.unsettled(ids).length > 0 || ids.some((id) => tally.seesOthers(id, ids))',
    'tally.unsettled(ids).length > 0',
    'a worker that was not asked may still call, and does not count',
  ),
  t(
    'over-while-others-run',
    'packages/rpc/src/groups/standstill.test.ts',
    'STA-1',
    'packages/rpc/src/groups/standstill.ts',
    '    else return []\n  }\n  if',
    '  }\n  if',
    'a program that goes on does not keep one that is over from being gone',
  ),
  t(
    'over-short-recv',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-41',
    'packages/process-group/src/group/point-to-point.ts',
    'signal !== undefined || timeoutMs < GROUP_TIMEOUT_MS || waiter.isSent',
    'waiter.isSent',
    'a recv that ends by itself counts as one that waits for ever',
  ),
  t(
    'over-told-by-all',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-42',
    'packages/rpc/src/groups/standstill-watch.ts',
    'if (group.workers.some((worker, rank) => rank < own && waitsToo(worker))) return',
    '',
    'each rank that waits prints the line',
  ),
  t(
    'over-told-never-off',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-42',
    'packages/rpc/src/groups/standstill-watch.ts',
    'group.warnAfterMs === 0 || waitedMs',
    'waitedMs',
    'warnAfterMs: 0 does not turn the line off',
  ),
  t(
    'over-answer-unasked',
    'packages/rpc/src/worker/odd-messages.sim.test.ts',
    'RPC-16, STA-4',
    'packages/rpc/src/groups/standstill-watch.ts',
    'if (number > this.rounds) return false',
    '',
    'an answer that nobody has asked for is taken',
  ),
  t(
    'over-before-group',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-40: a rank that returns early before initProcessGroup',
    'packages/rpc/src/groups/standing-round.ts',
    'this.call?.cancel(this.over)',
    '',
    'a rank that returns before initProcessGroup is waited for there',
  ),
  t(
    'over-by-strangers',
    'packages/process-group/src/standstill.sim.test.ts',
    'PG-41: no right program is refused PG-43',
    'packages/rpc/src/groups/standstill-watch.ts',
    'if (rankIn(group, from) < 0 || rankIn(group, worker) < 0 || worker === this.view.info.id) return false',
    '',
    'a worker that is no member breaks a group by saying that a rank is over',
  ),
  // ---- what a peer may send
  // ---- budgets
  // ---- checkpoints
]

function t(id, test, rule, file, find, replace, what) {
  return { id, test, rule, file, find, replace, what }
}
