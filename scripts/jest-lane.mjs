/** Runs one lane of jest in a process of its own and counts the results; `test.mjs` and `soak.mjs` use it. */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import { environmentOf } from './other-node.mjs'
import { endTree, read, root, spawnWithUs } from './setup.mjs'

/** Not a named import: on a Node that lacks it, that would fail before set-up can say that Node is too old. */
const cores = os.availableParallelism?.() ?? os.cpus().length

/** A test run that has written its results and does not end has left something open. */
const LINGER_MS_MAX = 15_000

/**
 * Jest frees no module of a file that has run, and a process whose heap is full collects garbage most of the time. One with more than this in use after a
 * file ends, and a new one takes its place: unit tests took 88 s without that and 73 with it, simulated ones 118 and 93.
 */
const HEAP_MAX = '300MB'

/** Tests leave much garbage that is young, and their processes take all cores: it is collected seldom, and by one thread. */
const GARBAGE = ['--max-semi-space-size=64', '--single-threaded-gc']

/** Tests on threads and processes wait for a part of their time: with one process more than there are cores two cores took 123 and 138 s for those of threads, and 150 and 158 without. */
const processesOf = (lane) => Math.min(4, lane === 'real' ? cores + 2 : cores)

/** Tests are found in dist, so a source file's name means its output. */
const toPattern = (arg, tree) =>
  arg.startsWith('-')
    ? arg
    : arg
        .replace(root, tree)
        .replace(/(^|\/)src\//, '$1dist/')
        .replace(/\.ts$/, '.js')

/**
 * Runs the tests of `lane` that match `args` (jest's own arguments, paths among them), for at most `limitMs`.
 * `tree` is where they are: the repository, or `bundledTree()`. `node` is the Node that runs them, this one by default. With `renews` processes are renewed before
 * their heaps are full (`HEAP_MAX`): they are killed for that, and their coverage is lost. A file that cannot be loaded, and a process that is left
 * hanging, each count as one failed test. Without `reports` jest prints nothing.
 * `failedTests` leaves those two out: only tests that have run and failed.
 * @returns {Promise<{ passed: number, failed: number, failedTests: number, skipped: number, trouble: string | null }>}
 */
export async function runLane(lane, args, { env = {}, limitMs, node = process.execPath, tree, renews = false, reports = true }) {
  // Of this process alone: another may run the same lane here at the same time.
  const results = join(root, `.cache/jest-${lane}-${process.pid}.json`)
  mkdirSync(join(root, '.cache'), { recursive: true })
  rmSync(results, { force: true })
  const command = [
    ...(lane === 'unit' || lane === 'sim' ? GARBAGE : []),
    join(root, 'node_modules/jest/bin/jest.js'),
    `--selectProjects=${lane}`,
    `--maxWorkers=${processesOf(lane)}`,
    ...(renews ? [`--workerIdleMemoryLimit=${HEAP_MAX}`] : []),
    '--passWithNoTests',
    '--json',
    `--outputFile=${results}`,
    ...args.map((arg) => toPattern(arg, tree)),
  ]
  const child = spawnWithUs(node, command, {
    cwd: root,
    env: {
      ...process.env,
      ...environmentOf(node),
      ...env,
      POSTGRAD_TREE: tree,
      NODE_OPTIONS: nodeOptions(),
      ...(tree === root ? {} : { NODE_COMPILE_CACHE: join(tree, 'compiled') }),
    },
    // Jest reports on stderr; on stdout it only says where the JSON is, and soaks print their figures.
    stdio: ['ignore', lane === 'soak' && reports ? 'inherit' : 'ignore', reports ? 'inherit' : 'ignore'],
  })
  const { code, trouble } = await ended(child, lane, results, limitMs)
  const json = JSON.parse(read(results) ?? 'null')
  rmSync(results, { force: true })
  if (json === null)
    return { passed: 0, failed: 1, failedTests: 0, skipped: 0, trouble: trouble ?? `jest ended with code ${code} and no results` }
  const counts = {
    passed: json.numPassedTests,
    failed: json.numFailedTests + json.numRuntimeErrorTestSuites + (trouble === null ? 0 : 1),
    failedTests: json.numFailedTests,
    skipped: json.numPendingTests + json.numTodoTests,
  }
  const unexplained = code !== 0 && counts.failed === 0
  return { ...counts, failed: counts.failed + (unexplained ? 1 : 0), trouble: unexplained ? `jest ended with code ${code}` : trouble }
}

/** Waits for the end, and brings it about when it is overdue. */
function ended(child, lane, results, limitMs) {
  return new Promise((resolve, reject) => {
    const start = performance.now()
    let written = 0
    let trouble = null
    const watch = setInterval(() => {
      const now = performance.now()
      if (written === 0 && existsSync(results)) written = now
      if (written > 0 && now - written > LINGER_MS_MAX)
        trouble ??= `lane ${lane}: jest did not end ${LINGER_MS_MAX / 1000} s after its last test: something was left open`
      else if (now - start > limitMs) trouble ??= `lane ${lane}: stopped after ${Math.round(limitMs / 1000)} s`
      if (trouble !== null) endTree(child)
    }, 500)
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      clearInterval(watch)
      resolve({ code: code ?? signal, trouble })
    })
  })
}

function nodeOptions() {
  const options = [process.env.NODE_OPTIONS ?? '', '--experimental-vm-modules']
  // That the flag is experimental is known; the word is not needed once per file. Node 20 has had the option since 20.11.
  if (process.allowedNodeEnvironmentFlags.has('--disable-warning')) options.push('--disable-warning=ExperimentalWarning')
  return options.join(' ').trim()
}
