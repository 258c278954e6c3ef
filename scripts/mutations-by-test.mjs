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
  t(
    'sweep-without-marker',
    'packages/cluster/src/processes/socket-folder.real.test.ts',
    'CLU-95 the folder',
    'packages/cluster/src/processes/socket-folder.ts',
    'if (!isLockLeft(join(folder, MARKER))) return false',
    '',
    'the sweep removes folders of the temporary folder by their names, whoever made them',
  ),
  t(
    'sweep-takes-files',
    'packages/cluster/src/processes/socket-folder.real.test.ts',
    'CLU-95 the folder',
    'packages/cluster/src/processes/socket-folder.ts',
    'if (!others.every(({ path }) => isSocket(path))) return false',
    '',
    'the sweep takes a file for a socket on which nobody listens',
  ),
  t(
    'socket-folder-with-all-in-it',
    'packages/cluster/src/processes/socket-folder.real.test.ts',
    'CLU-95 at its end',
    'packages/cluster/src/processes/socket-folder.ts',
    'if (name === MARKER || isSocket(path)) rmSync(path, { force: true })',
    'rmSync(path, { recursive: true, force: true })',
    'a process removes whatever lies in the folder of its sockets',
  ),
  t(
    'listen-replaces-file',
    'packages/transport/src/socket/exchange.real.test.ts',
    'EXC-14 what is at the path',
    'packages/transport/src/socket/listener.ts',
    'there?.isSocket() === false',
    'there === undefined',
    'who listens on a path removes the file of a user that is there',
  ),
  t(
    'store-replaces-new',
    'packages/transport/src/store/tcp-store.test.ts',
    'STO-19: a user’s file',
    'packages/transport/src/store/store-file.ts',
    "    left.read('serve', () => {})\n",
    '',
    'a server that writes its file anew removes a user’s file with the name of the new one',
  ),
  t(
    'status-removes-by-name',
    'apps/cli/src/status/status.real.test.ts',
    'CLI-51 the socket of a run that lives',
    'apps/cli/src/status/runtime-dir.ts',
    '  if (isSocket(path)) rmSync',
    '  rmSync',
    'a run, or `ps`, removes a file that has the name of a status socket',
  ),
  t(
    'status-takes-live-socket',
    'apps/cli/src/status/status.real.test.ts',
    'CLI-51 the socket of a run that lives',
    'apps/cli/src/status/run-status.ts',
    'await removeDeadSocket(this.path)',
    'removeSocket(this.path)',
    'a run takes the status socket of a living one with the same number, of another container',
  ),
  t(
    'hangup-leaves-socket',
    'apps/cli/src/cli.real.test.ts',
    'CLI-51 SIGHUP closes',
    'apps/cli/src/exit-codes.ts',
    ', SIGHUP: 129',
    '',
    'a run whose terminal closes leaves its status socket',
  ),
  t(
    'threads-keep-code',
    'packages/cluster/src/main/compiled.real.test.ts',
    'SEC-14 no thread',
    'packages/cluster/src/worker/worker-entry.ts',
    "import { runWorker } from './worker.js'",
    "import { runWorker } from './worker.js'\nimport nodeModule from 'node:module'\n;(nodeModule as any).enableCompileCache?.()",
    'each thread has Node run compiled code from the temporary folder, unasked',
  ),
  t(
    'kept-code-of-others',
    'packages/base/src/load.real.test.ts',
    'CLU-66 code is kept',
    'packages/base/src/load.cts',
    'uid !== process.geteuid() || ',
    '',
    'the library runs compiled code that another user has put into its cache',
  ),
  t(
    'no-files-raw',
    'packages/base/src/errors.test.ts',
    'CLU-67',
    'packages/base/src/worker-death.ts',
    'const files = tooManyOpenFiles(op, thrown)',
    'const files = null as ReturnType<typeof tooManyOpenFiles>',
    'a worker for which there were no open files dies of a raw EMFILE, and its remedy is to catch it',
  ),
  t(
    'no-files-by-word',
    'packages/base/src/errors.test.ts',
    'CLU-67',
    'packages/base/src/errors.ts',
    '[code, message].flatMap',
    '[code].flatMap',
    'EMFILE of a thread that could not begin, which has it in its words alone, is not seen',
  ),
  t(
    'no-files-for-program',
    'packages/cluster/src/main/launch.real.test.ts',
    'CLU-67',
    'packages/cluster/src/membership/launch-failed.ts',
    '(tooManyOpenFiles(op, error) ?? error)',
    'error',
    'a launch without open files rejects with a raw EMFILE as its cause',
  ),
  t(
    'no-files-to-listen',
    'packages/transport/src/socket/socket-errors.test.ts',
    'CLU-67',
    'packages/transport/src/socket/socket-errors.ts',
    '  if (files !== null) return files\n',
    '',
    'a process without open files blames the address that it is to listen on',
  ),
  t(
    'no-files-for-command',
    'apps/cli/src/cli.real.test.ts',
    'CLU-67',
    'apps/cli/src/main.ts',
    "if (code !== 'EMFILE' && code !== 'ENFILE') throw error",
    'throw error',
    'the command dies of a raw EMFILE with a stack of Node when its modules cannot be opened',
  ),
  // ---- the end of a worker, of a call, of a program
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
