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
    'death-heard-by-close',
    'packages/cluster/src/main/ends.real.test.ts',
    'CLU-24',
    'packages/cluster/src/admin/remote-worker.ts',
    'isRun: onGivenUp !== undefined',
    'isRun: true',
    'what close asks of a worker counts as somebody who hears of its death',
  ),
  t(
    'death-exit-code',
    'packages/cluster/src/main/ends.real.test.ts',
    'CLU-24',
    'packages/base/src/worker-death.ts',
    '  if (error.values.exitCode !== 0) process.exitCode ??= 1\n',
    '',
    'a process whose worker died without a word ends with exit code 0',
  ),
  t(
    'job-thread-silent',
    'packages/jobs/src/jobs.real.test.ts',
    'JOB-16',
    'packages/jobs/src/thread-places.ts',
    "warnOfDeath(died('jobs', {}, thrown))",
    'void thrown',
    'what a thread of a pool throws between two jobs is lost',
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
    'packages/base/src/worker-death.ts',
    "...(typeof stack === 'string' ? { detail: stack } : {})",
    '',
    'the warning of a death has no line of the program',
  ),
  t(
    'member-shutdown-inside',
    'packages/cluster/src/init/init.real.test.ts',
    'INI-19',
    'packages/cluster/src/init/member.ts',
    '    runtime.onClose(() => queueMicrotask(() => this.endWith(async () => {})))\n',
    '',
    'a process whose program calls shutdown() within member.run lives for ever',
  ),
  t(
    'not-initialized-remedy',
    'packages/cluster/src/init/init.real.test.ts',
    'INI-19',
    'packages/rpc/src/core/slots.ts',
    'member.run(fn) after init, ',
    '',
    'outside of member.run nothing says where shutdown() belongs',
  ),
  t(
    'launch-shutdown-inside',
    'packages/cluster/src/main/launch.real.test.ts',
    'CLU-25',
    'packages/cluster/src/main/lifecycle.ts',
    '    worker.onClosed = () => void this.leaveByItself(worker).catch(() => {})\n',
    '',
    'a worker that has ended itself stays a member of its cluster',
  ),
  t(
    'launch-shutdown-supervised',
    'packages/cluster/src/main/launch.real.test.ts',
    'CLU-25',
    'packages/cluster/src/main/lifecycle.ts',
    "    if (supervisor !== null) return this.change(() => supervisor.leave('cluster', name, name))\n",
    '',
    'a supervisor starts a worker again that has ended itself',
  ),
  t(
    'launch-shutdown-exit',
    'packages/cluster/src/main/launch.real.test.ts',
    'CLU-25',
    'packages/cluster/src/admin/remote-worker.ts',
    '    if (this.hasClosed && thrown === undefined && exitCode === 0) this.isExpectedToEnd = true\n',
    '',
    'process.exit(0) after shutdown() counts as a death',
  ),
  t(
    'run-late-death',
    'apps/cli/src/run/run-cluster.test.ts',
    'CLU-24',
    'apps/cli/src/run/run-cluster.ts',
    'failure ?? this.lateFailure((await cluster.closed).deaths)',
    'failure',
    'postgrad run ends well although a worker has thrown when its main was done',
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
