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
  t(
    'late-reply-call',
    'packages/dist-autograd/src/context/unawaited.sim.test.ts',
    'CAN-14',
    'packages/base/src/futures/cancelling.ts',
    '  if (isOwnEnd(error)) return true\n',
    '',
    'a call whose context has ended rejects as any other',
  ),
  t(
    'late-reply-wire',
    'packages/dist-autograd/src/context/unawaited.sim.test.ts',
    'CAN-14',
    'packages/rpc/src/core/requests.ts',
    "    if (isPostgradError(error, 'CONTEXT_RELEASED')) ownEnd(error)\n",
    '',
    'what another worker says of the end of a context counts as a failure',
  ),
  t(
    'late-reply-async',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-14',
    'packages/base/src/futures/own-ends.ts',
    "    process.on('unhandledRejection', onUnhandled)\n",
    '',
    'a promise that an async function makes of a call that was given up ends the process',
  ),
  t(
    'late-reply-others',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-14',
    'packages/base/src/futures/own-ends.ts',
    '  void Promise.reject(reason)\n',
    '',
    'after an end of its own a program hears of no unhandled rejection',
  ),
  t(
    'late-reply-warned',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-14',
    'packages/base/src/futures/own-ends.ts',
    '      if (isOwnEnd(error)) quiet.catch(() => {})\n',
    '',
    'who awaits a run after the close is warned',
  ),
  t(
    'late-reply-cluster',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-14',
    'packages/cluster/src/main/cluster-errors.ts',
    'gaveUp === null ? ownEnd(error) : error',
    'error',
    'CLUSTER_CLOSED hides the error of the program',
  ),
  t(
    'late-reply-shutdown',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-14',
    'packages/rpc/src/core/requests.ts',
    'pending.failAll((op) => ownEnd(shutDownError(op, this.host.info)))',
    'pending.failAll((op) => shutDownError(op, this.host.info))',
    'RPC_SHUT_DOWN of a call under way hides the error of the program',
  ),
  t(
    'late-reply-store',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-14',
    'packages/transport/src/store/store-errors.ts',
    "ownEnd(storeEnded(op, 'the store has been closed'))",
    "storeEnded(op, 'the store has been closed')",
    'STORE_CLOSED of a store that the program has closed ends the worker',
  ),
  t(
    'late-reply-jobs',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-14',
    'packages/jobs/src/jobs.ts',
    "isPostgradError(error, 'JOBS_CLOSED') ? ownEnd(error) : error",
    'error',
    'a pool that the main thread has closed ends workers',
  ),
  t(
    'late-reply-group',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-14',
    'packages/process-group/src/common/errors.ts',
    '  return ownEnd(\n',
    '  return ((error) => error)(\n',
    'a group that the program has destroyed ends the worker',
  ),
  t(
    'unhandled-no-callee',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-15',
    'packages/rpc/src/core/requests.ts',
    '  markHop(error, from.name, op)',
    '  markHop(error, from.name)',
    'an error says not what was called',
  ),
  t(
    'unhandled-no-lines',
    'packages/cluster/src/main/late-replies.real.test.ts',
    'CAN-15',
    'packages/cluster/src/main/cluster-events.ts',
    "...(typeof stack === 'string' ? { detail: stack } : {})",
    '',
    'the warning of a death has no line of the program',
  ),
  // ---- pipelines and collectives
  // ---- replicas
  // ---- ranks that return
  // ---- what a peer may send
  // ---- budgets
  // ---- checkpoints
]

function t(id, test, rule, file, find, replace, what) {
  return { id, test, rule, file, find, replace, what }
}
