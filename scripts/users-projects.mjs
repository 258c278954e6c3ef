/**
 * Projects as users have them, outside this repository and with the packed tarball installed. Here are those of test runners: stock ts-jest (CommonJS), @swc/jest, babel-jest and
 * vitest. Each runs one program of its own under `simulate`, `inlined` and on threads, with the stock environment of its runner. `users/` has those of bundlers, compilers, other
 * package managers, the examples, and the templates of `postgrad new`. Needs the registry; `npm run pack:check` runs it after `pack-check.mjs`.
 * `node scripts/users-projects.mjs swc vitest` runs some of them, `--keep` leaves their folder.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { environmentOf, otherNode } from './other-node.mjs'
import { capture, root, timed } from './setup.mjs'
import { BUNDLERS } from './users/bundlers.mjs'
import { exampleProjects } from './users/examples.mjs'
import { managers } from './users/managers.mjs'
import { linters } from './users/publish.mjs'
import { templateProjects } from './users/templates.mjs'
import { typeProjects } from './users/types.mjs'

const { version } = JSON.parse(readFileSync(join(root, 'packages/postgrad/package.json'), 'utf8'))
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { devDependencies: cli } = JSON.parse(readFileSync(join(root, 'apps/cli/package.json'), 'utf8'))
/** Node 20 runs no TypeScript by itself. */
const TYPESCRIPT = { tsx: cli.tsx }
const tarball = join(root, `out/postgrad-${version}.tgz`)

/** The user's program, imported by the test and loaded by the workers' threads. */
const PROGRAM = `import { add, call, distAutograd, expose, ones, rand, type Tensor } from 'postgrad'
import type { TestCluster } from 'postgrad/testing'

export const myAdd = (a: Tensor, b: Tensor): Tensor => add(a, b)
export const twice = (x: Tensor): Tensor => x.mul(2)
export const refuse = (): never => {
  throw new RangeError('not here')
}

export async function main() {
  return distAutograd.context(async (ctx) => {
    const t1 = rand([3, 3], { requiresGrad: true })
    const t2 = rand([3, 3], { requiresGrad: true })
    const t3 = await call('worker1', myAdd, [t1, t2])
    const t4 = rand([3, 3], { requiresGrad: true })
    await ctx.backward([t3.mul(t4).sum()])
    const grads = ctx.gradients()
    return { t1: grads.get(t1)!, t2: grads.get(t2)!, t4: grads.get(t4)! }
  })
}

/** One MiB each way, through the heap that the threads share. */
export async function large(): Promise<number> {
  return (await call('worker1', twice, [ones([512, 512])])).sum().item()
}

/** For what loads the module by itself. */
export const body = (cluster: TestCluster) => cluster.on('worker0').run(main)

export const ask = async (): Promise<unknown> => call('worker1', refuse, [])

expose({ myAdd, twice, refuse, main, large, ask })
`

/** @param here the name of a file next to the test */
const test = (here) => `import { defineKernel, jobs, launch, PostgradError, withDevice } from 'postgrad'
import { explore, inlined, simulate, simulateAgainstInlined, simulateProgram } from 'postgrad/testing'
import { matchers } from 'postgrad/testing/matchers'
import { ask, large, main, twice } from './program'
import { ones } from 'postgrad'

expect.extend(matchers)

const workers = ['worker0', 'worker1']
const oracle = () => inlined({ workers }, (cluster) => cluster.on('worker0').run(main))

test('the simulation, in any order and under faults, gives the gradients of the inlined program', async () => {
  const gradients = await oracle()
  for (let seed = 0; seed < 20; seed++) {
    const simulation = await simulate({ workers, seed, faults: [{ match: { probability: 0.2 }, do: 'drop', times: 5 }] }, (sim) =>
      sim.on('worker0').run(main),
    )
    expect(simulation).toMatchInlined(gradients)
    expect(simulation).toBeClean()
    expect(simulation).toBeSound()
    expect(simulation.result.t1).not.toHaveSameBitsAs(simulation.result.t4)
  }
  await simulateAgainstInlined({ workers, seed: 1 }, (cluster) => cluster.on('worker0').run(main))
})

test('all its orders of delivery are explored, and its module is simulated by its place', async () => {
  const { exhausted, orders } = await explore({ workers }, (cluster) => cluster.on('worker0').run(main))
  expect({ exhausted, some: orders > 0 }).toEqual({ exhausted: true, some: true })
  // Where the runner's own require loads it; elsewhere it would be a second copy, whose functions have the names of the first.
  if (${here === BESIDE_MODULE}) return
  const simulation = await simulateProgram({ program: ${here}, export: 'body' }, { workers, seed: 3 })
  expect(simulation).toMatchInlined(await oracle())
}, 60_000)

test('a refusal arrives as it was thrown', async () => {
  await simulate({ workers }, async (sim) => {
    await expect(sim.on('worker0').run(() => sim.on('nobody'))).toRejectWithCode('UNKNOWN_WORKER')
  })
  expect(() => expect({ t1: ones([2]) }).toHaveSameBitsAs({ t1: ones([2]).mul(3) })).toThrow('0x40400000')
})

test('threads give them too', async () => {
  const { t1 } = await oracle()
  const cluster = await launch(${here}, { workers })
  try {
    const result = await cluster.on('worker0').run(main)
    expect(result.t1).toHaveSameBitsAs(t1)
    expect(await cluster.on('worker0').run(large)).toBe(2 * 512 * 512)
    const error = await cluster.on('worker0').run(ask).then(() => null, (reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'RangeError', message: 'not here' })
    await expect(cluster.on('worker0').run(() => 1)).rejects.toBeInstanceOf(PostgradError)
    expect(await cluster.debugInfo()).toBeClean()
  } finally {
    await cluster.close()
  }
}, 60_000)

test('gpu.js compiles a kernel for each device', () => {
  const cube = defineKernel({ name: 'cube', inputs: ['x'], kernel: 'function (x) { const v = x[this.thread.x]; return v * v * v; }' })
  for (const device of ['wasm', 'js'] as const)
    expect(withDevice(device, () => cube(ones([2]).mul(3)).toArray())).toEqual([27, 27])
})

test('so does a job in a pool', async () => {
  const pool = jobs(${here}, { threads: 1 })
  try {
    expect((await pool.run(twice, [ones([2])])).toArray()).toEqual([2, 2])
  } finally {
    await pool.close()
  }
}, 60_000)
`

const BESIDE_COMMONJS = "require('node:path').join(__dirname, 'program.ts')"
const BESIDE_MODULE = "new URL('./program.ts', import.meta.url)"
const JEST = { ...TYPESCRIPT, jest: devDependencies.jest, '@types/jest': '30.0.0', '@types/node': devDependencies['@types/node'] }
const json = (value) => `${JSON.stringify(value, null, 2)}\n`
const compilerOptions = { target: 'es2022', strict: true, esModuleInterop: true, skipLibCheck: true }

/** Of these and later versions of vitest. */
const VITEST = {
  'program.test.ts': `import { expect, test } from 'vitest'\n${test(BESIDE_MODULE)}`,
  'tsconfig.json': json({ compilerOptions: { ...compilerOptions, module: 'esnext', moduleResolution: 'bundler' } }),
}
const VITEST_RUNS = [
  ['vitest', 'run'],
  ['tsc', '--noEmit', '-p', 'tsconfig.json'],
]

/**
 * Each one's files next to the program: nothing of ours in any configuration. The project's own tools run the commands in turn; for some, the test checks the output or the failure.
 * With `node`, the project, or one of its commands, runs on that Node; with `isAlone`, the package is not installed by npm.
 */
const PROJECTS = {
  'ts-jest': {
    dependencies: { ...JEST, 'ts-jest': '29.4.15', typescript: '5.9.3' },
    files: {
      'program.test.ts': test(BESIDE_COMMONJS),
      'jest.config.js': "module.exports = { preset: 'ts-jest' }\n",
      'tsconfig.json': json({ compilerOptions: { ...compilerOptions, module: 'commonjs' } }),
      'jest.nodenext.js': "module.exports = { transform: { '^.+\\\\.ts$': ['ts-jest', { tsconfig: 'tsconfig.nodenext.json' }] } }\n",
      'tsconfig.nodenext.json': json({ compilerOptions: { ...compilerOptions, module: 'nodenext', isolatedModules: true } }),
    },
    runs: [['jest'], ['jest', '-c', 'jest.nodenext.js'], ['tsc', '--noEmit', '-p', 'tsconfig.json']],
  },
  swc: {
    dependencies: { ...JEST, '@swc/core': '1.16.22', '@swc/jest': '0.2.39' },
    files: {
      'program.test.ts': test(BESIDE_COMMONJS),
      'jest.config.js': "module.exports = { transform: { '^.+\\\\.ts$': '@swc/jest' } }\n",
      '.swcrc': json({ jsc: { parser: { syntax: 'typescript' }, target: 'es2022' } }),
    },
    runs: [['jest']],
  },
  babel: {
    dependencies: {
      ...JEST,
      'babel-jest': devDependencies.jest,
      '@babel/core': '7.29.13',
      '@babel/preset-env': '7.29.14',
      '@babel/preset-typescript': '7.29.7',
    },
    files: {
      'program.test.ts': test(BESIDE_COMMONJS),
      'babel.config.js':
        "module.exports = { presets: [['@babel/preset-env', { targets: { node: 'current' } }], '@babel/preset-typescript'] }\n",
    },
    runs: [['jest']],
  },
  vitest: {
    dependencies: { ...TYPESCRIPT, vitest: '4.1.12', '@types/node': devDependencies['@types/node'], typescript: '5.9.3' },
    type: 'module',
    files: VITEST,
    runs: VITEST_RUNS,
  },
  'vitest-5': {
    dependencies: { ...TYPESCRIPT, vitest: '5.1.2', '@types/node': '22.20.5', typescript: '5.9.3' },
    node: 22,
    type: 'module',
    files: VITEST,
    runs: VITEST_RUNS,
  },
  ...BUNDLERS,
  ...typeProjects(tarball),
  ...managers(tarball),
  ...linters(tarball),
  ...exampleProjects,
  ...templateProjects,
}

if (!existsSync(tarball)) {
  console.error('there is no tarball to try.\n  Remedy: npm run pack')
  process.exit(1)
}
const args = process.argv.slice(2)
const isKept = args.includes('--keep')
const wanted = args.filter((arg) => !arg.startsWith('--'))
for (const name of wanted) if (PROJECTS[name] === undefined) throw new Error(`no project '${name}': ${Object.keys(PROJECTS).join(', ')}`)
const folder = mkdtempSync(join(tmpdir(), 'postgrad-users-'))
const failed = []
try {
  for (const [name, project] of Object.entries(PROJECTS)) if (wanted.length === 0 || wanted.includes(name)) await tryOne(name, project)
} finally {
  if (isKept) console.log(`users: kept in ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
}
console.log(`users: ${failed.length === 0 ? 'all passed' : `FAILED: ${failed.join(', ')}`}`)
process.exitCode = failed.length === 0 ? 0 : 1

async function tryOne(name, { dependencies, files, runs, type, node, isAlone = false }) {
  const cwd = join(folder, name)
  const manifest = { private: true, ...(type !== undefined && { type }), devDependencies: dependencies }
  const program = files['program.test.ts'] === undefined ? {} : { 'program.ts': PROGRAM }
  for (const [path, text] of Object.entries({ 'package.json': json(manifest), ...program, ...files })) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true })
    writeFileSync(join(cwd, path), text)
  }
  const more = node === undefined ? {} : environmentOf(await otherNode(node))
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const install = [npm, 'install', '--ignore-scripts=false', '--no-audit', '--no-fund', ...(isAlone ? [] : [tarball])]
  if (!(await step(`${name}: npm install`, install, cwd, more))) return
  for (const run of runs) {
    const { command, node, ...wanted } = Array.isArray(run) ? { command: run } : run
    const [tool, ...rest] = command
    const path = tool === 'node' ? tool : tool === 'npm' ? npm : join(cwd, 'node_modules/.bin', tool)
    const [on, where] = node === undefined ? [more, ''] : [environmentOf(await otherNode(node)), `, on Node ${node}`]
    if (!(await step(`${name}: ${command.join(' ')}${where}`, [path, ...rest], cwd, on, wanted))) return
  }
}

/** @param prints a line of what it prints @param shows a part of it @param fails it fails, and says this */
async function step(title, [command, ...commandArgs], cwd, more, { prints, shows, fails } = {}) {
  const done = timed(console.log, `users: ${title}`)
  const env = { ...process.env, ...more, npm_config_loglevel: 'error', NODE_OPTIONS: '' }
  const { code, output } = await capture(command, commandArgs, { cwd, env, shell: process.platform === 'win32' })
  const isAsWanted =
    (code === 0) === (fails === undefined) &&
    (prints === undefined || output.split('\n').includes(prints)) &&
    (shows === undefined || output.includes(shows)) &&
    (fails === undefined || output.includes(fails))
  done(isAsWanted ? 'passed' : 'FAILED')
  if (isAsWanted) return true
  console.error(
    `${output}\n(exit code ${code}${prints === undefined ? '' : `, expected '${prints}'`}${shows === undefined ? '' : `, expected '${shows}'`}${fails === undefined ? '' : `, expected '${fails}'`})`,
  )
  failed.push(title)
  return false
}
