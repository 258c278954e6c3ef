/**
 * The same programs in all places: on threads, in processes that a cluster starts and Unix sockets link, and in processes that join by themselves over TCP. Each suite that runs
 * on threads has one program here; its results must be the same everywhere, to the bit.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { ProgramGroup } from '@postgrad/cluster/suite'
import { cases, casesProgram, readGolden } from '@postgrad/testing-cases'
import { type Cluster, launch } from '../index.js'

/** An exposed function with its arguments, on worker0 or on all workers at once. */
interface Run {
  readonly name: string
  readonly args: readonly unknown[]
  readonly isOnAll?: true
}
const run = (name: string, ...args: readonly unknown[]): Run => ({ name, args })
const onAll = (name: string, ...args: readonly unknown[]): Run => ({ name, args, isOnAll: true })

const programOf = (path: string): URL => new URL(`../../../../${path}`, import.meta.url)
const RPC = programOf('packages/rpc/dist/worker/threads-programs.fixture.js')
const REFERENCES = programOf('packages/cluster/dist/fixtures/references.js')
const GROUPS = programOf('packages/cluster/dist/on-threads/fixtures/groups.js')
const PROCESS_GROUPS = programOf('packages/cluster/dist/on-threads/fixtures/data-parallel.js')
const RL = programOf('apps/examples/dist/rl/fixtures/whole-run.js')
const PARAMETER_SERVER = programOf('apps/examples/dist/parameter-server/program.js')

const golden = readGolden()
const caseOf = (name: string, exposed = name): Run => run(exposed, golden[name]!.inputs)
const PASSES = ['backward_rref_nested', 'ping_pong', 'two_passes']
const passes = [
  ...cases.documentationCases,
  ...cases.secondDerivativeCases,
  ...cases.backwardCases.filter(({ name }) => PASSES.includes(name)),
]
const OPTIMIZERS = ['dist_optim_adam', 'dist_optim_sgd_nesterov', 'dist_optim_rprop_none_grads']
const replicas = { options: { firstBucketMb: 0.01, bucketCapMb: 0.1 }, steps: [3, 1, 4], inContexts: true, isCut: true, overlaps: true }
const others = ['worker1', 'worker2']
const ratings = { mode: 'together', trainers: others, users: 60, items: 40, width: 4, batch: 8, steps: 4, lr: 0.3, seed: 2 }

/** @param runs given a folder that only one place has */
const SUITES: readonly (readonly [suite: string, program: URL, runs: (folder: string) => readonly Run[]])[] = [
  ['calls', RPC, () => [run('manyCalls')]],
  ['references', REFERENCES, () => [run('proxies', ...others), run('backwardThere', 'worker1'), run('moduleThere', 'worker2')]],
  ['actors', RPC, () => [run('manyEpisodes', 20)]],
  ['groups', GROUPS, () => [onAll('gatherNames'), run('setKey', 'k', 'v'), onAll('waitForKey', 'k')]],
  ['process groups', PROCESS_GROUPS, () => [onAll('programs', 1, 4), onAll('trained', replicas)]],
  ['distributed passes', casesProgram, () => [...passes.map(({ name, main }) => caseOf(name, main.name)), run('longPingPong', 100)]],
  ['optimizers', casesProgram, () => OPTIMIZERS.map((name) => caseOf(name))],
  [
    'checkpoints',
    casesProgram,
    (directory) => [
      run('trainWithCheckpoints', { directory, from: 0, to: 3, saveAt: [3] }),
      run('trainWithCheckpoints', { directory, from: 3, to: 6 }),
    ],
  ],
  ['reinforcement learning', RL, () => [run('wholeRun', { observers: others, seed: 1 }, 3)]],
  ['parameter server', PARAMETER_SERVER, () => [run('run', ratings)]],
]

const WORKERS = ['worker0', ...others]
let folder: string
/** On threads, over Unix sockets, over TCP. */
const clusters: (Cluster | ProgramGroup)[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'places-'))
  // All of them are one program: starting workers is what takes time.
  const program = pathToFileURL(join(folder, 'program.mjs'))
  await writeFile(program, [...new Set(SUITES.map(([, { href }]) => href))].map((href) => `import ${JSON.stringify(href)}\n`).join(''))
  const workers = WORKERS.length
  clusters.push(await launch(program, { workers }))
  clusters.push(await launch(program, { workers, processes: workers }))
  clusters.push(await ProgramGroup.start(program, workers, { transports: ['tcp'] }))
})
afterAll(async () => {
  await Promise.all(clusters.map((cluster) => cluster.close()))
  await rm(folder, { recursive: true })
})

async function resultsOf(runs: readonly Run[], cluster: Cluster | ProgramGroup): Promise<unknown[][]> {
  const results: unknown[][] = []
  for (const { name, args, isOnAll } of runs) {
    const on = isOnAll ? WORKERS : WORKERS.slice(0, 1)
    results.push(await Promise.all(on.map((worker) => cluster.on(worker).run(name, ...args))))
  }
  return results
}

test.each(SUITES)('CLU-91 INI-3 %s: over Unix sockets and over TCP the bits of threads', async (_suite, _program, runs) => {
  const [threads, unix, tcp] = await Promise.all(clusters.map((cluster, place) => resultsOf(runs(join(folder, `${place}`)), cluster)))
  expect({ unix, tcp }).toEqual({ unix: threads, tcp: threads })
})

test('CLU-91 INI-9 one place is linked by Unix sockets and has no TCP, one by TCP', async () => {
  const [, unix, tcp] = clusters as [Cluster, Cluster, ProgramGroup]
  const connections = (place: Cluster | ProgramGroup, kind: string) => place.on('worker0').run('connections', kind)
  // A Unix socket is opened with the first message.
  await resultsOf([onAll('gatherNames')], unix)
  expect(await connections(unix, 'PipeWrap')).toBeGreaterThanOrEqual(others.length)
  expect(await connections(unix, 'TCPSocketWrap')).toBe(0)
  expect(await connections(tcp, 'TCPSocketWrap')).toBeGreaterThanOrEqual(others.length)
})
