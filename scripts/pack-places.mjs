/**
 * The packed tarball in the places where users start programs: from the command line, compiled, with another loader, under a limit of virtual memory, without a temporary folder, with an
 * inspector, in jsdom and in Deno. Needs the registry; run by `npm run pack:check`. `node scripts/pack-places.mjs input-type jsdom` runs some of them.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { capture, root, timed } from './setup.mjs'

const { version } = JSON.parse(readFileSync(join(root, 'packages/postgrad/package.json'), 'utf8'))
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { devDependencies: cli } = JSON.parse(readFileSync(join(root, 'apps/cli/package.json'), 'utf8'))
const tarball = join(root, `out/postgrad-${version}.tgz`)
const ON_LINUX = process.platform === 'linux'

/** Two workers and one call: 'sum 4'. */
const PROGRAM = `import { call, expose, ones } from 'postgrad'
export const twice = (x) => x.mul(2)
export const main = async () => (await call('worker1', twice, [ones([2])])).sum().item()
expose({ main, twice })
`
const run = (options = '', program = './program.mjs') => `import { launch } from 'postgrad'
import { main } from './program.mjs'
const cluster = await launch(${JSON.stringify(program)}, { workers: ['worker0', 'worker1'] ${options} })
console.log('sum', await cluster.on('worker0').run(main))
console.log(cluster)
await cluster.close()
`
const RAN = /^sum 4\nCluster \{ worker0: alive, worker1: alive \}\n$/
const FAILS = `import { launch } from 'postgrad'
const error = await launch('./program.mjs', { workers: 2, processes: 2 }).catch((error) => error)
console.log(error.code, error.cause?.code)
`

/** Commands, with the files and packages that they need, and what they must print. Each has its own folder. */
const CASES = {
  'input-type': { command: [process.execPath, '--input-type=module', '-e', run()], prints: RAN },
  compiled: { files: { 'run.mjs': run('', './program.ts') }, command: [process.execPath, 'run.mjs'], prints: RAN },
  'without-arguments': {
    files: {
      'run.mjs': `import { isMainThread } from 'node:worker_threads'
import { DataLoader, workerDataset } from 'postgrad/data'
export const numbers = () => [1, 2, 3]
if (isMainThread) for await (const batch of new DataLoader(await workerDataset(import.meta.url, numbers), { batchSize: 3, workers: 1 })) console.log(batch.toArray().join())
`,
    },
    command: [process.execPath, 'run.mjs'],
    prints: /^1,2,3\n$/,
  },
  'own-loader': {
    packages: { '@swc-node/register': '1.11.1', '@swc/core': '1.16.22', typescript: '5.9.3' },
    files: {
      'program.ts': `${PROGRAM.replace('(x)', '(x: Tensor)').replace('ones }', 'ones, type Tensor }')}export enum Kind { one = 1 }\n`,
      'run.mjs': run('', './program.ts').replace("'./program.mjs'\nconst", "'./program.ts'\nconst"),
      'tsconfig.json': '{ "compilerOptions": { "module": "nodenext", "target": "es2022" } }',
    },
    command: [process.execPath, '--import', '@swc-node/register/esm-register', 'run.mjs'],
    prints: RAN,
  },
  // 3 million KiB are enough for two plain threads of Node up to 24, 4 million for those of Node 26.
  ...(ON_LINUX && {
    'limited-addresses': {
      files: { 'run.mjs': run() },
      command: ['bash', '-c', `for kib in 4000000 5000000 6000000 7000000; do (ulimit -v $kib; "${process.execPath}" run.mjs); done`],
      prints: new RegExp(`^(${RAN.source.slice(1, -1)}){4}$`),
    },
    'no-temporary-folder': {
      files: { 'run.mjs': FAILS },
      command: ['bash', '-c', `TMPDIR=/proc "${process.execPath}" run.mjs`],
      prints: /^LAUNCH_FAILED SOCKET_FOLDER_UNAVAILABLE\n$/,
    },
  }),
  inspector: {
    files: { 'run.mjs': run(', processes: 2') },
    command: [process.execPath, '--inspect=0', 'run.mjs'],
    prints: /^(?:(?:Debugger listening|For help|Debugger ending|sum 4|Cluster \{ worker0: alive).*\n)+$/,
  },
  'names-the-line': {
    files: {
      'thrower.mjs': `import { expose } from 'postgrad'
export const later = () => void setTimeout(() => { throw new Error('in a timer') }, 5)
expose({ later })
`,
      'run.mjs': `import { launch } from 'postgrad'
import { later } from './thrower.mjs'
process.on('warning', ({ message }) => console.log(/thrower.mjs:2:\\d+/.test(message)))
const cluster = await launch('./thrower.mjs', { workers: 1 })
await cluster.on('worker0').run(later)
await cluster.closed
process.exitCode = 0
`,
    },
    command: [process.execPath, '--no-warnings', 'run.mjs'],
    prints: /^true\n$/,
  },
  // Above the message is a line of Node at most, below it the program's own, whose TypeScript Node has stripped or tsx has mapped.
  uncaught: {
    packages: { tsx: cli.tsx },
    files: {
      'thrower.ts': `import { ones, type Tensor } from 'postgrad'
interface Unused { a: number }
const step = (x: Tensor): Tensor => x.matmul(ones([3]))
if (process.argv[2] === 'later') void Promise.resolve().then(() => step(ones([2, 2])))
else step(ones([2, 2]))
`,
      'run.mjs': `import { spawnSync } from 'node:child_process'
for (const args of [[], ['later']]) {
  const { stderr } = spawnSync(process.execPath, ['--import', 'tsx', 'thrower.ts', ...args], { encoding: 'utf8' })
  const [head, more, frame] = stderr.slice(stderr.indexOf('PostgradError: ')).split('\\n')
  console.log(head.includes('matmul'), more, /thrower\\.ts:3:/.test(frame), stderr.includes('library.cjs'))
}
`,
    },
    command: [process.execPath, 'run.mjs'],
    prints: /^(true {3}More: npx postgrad explain SHAPE_MISMATCH true false\n){2}$/,
  },
  jsdom: {
    packages: { jest: devDependencies.jest, 'jest-environment-jsdom': devDependencies.jest },
    files: {
      'a.test.js': `const { ones } = require('postgrad')
const { SGD } = require('postgrad/optim')
test('it computes, and steps', () => {
  const x = ones([2], { requiresGrad: true })
  const optimizer = new SGD([x], { lr: 1 })
  x.sum().backward()
  optimizer.step()
  expect(Array.from(x.toArray())).toEqual([0, 0])
  optimizer.loadStateDict(optimizer.stateDict())
})
`,
    },
    type: 'commonjs',
    command: ['node_modules/.bin/jest', '--env=jsdom'],
    prints: /1 passed, 1 total/,
  },
  deno: {
    packages: { deno: '2.9.6' },
    files: { 'run.mjs': `${run()}${FAILS.slice(FAILS.indexOf('const'))}` },
    command: ['node_modules/.bin/deno', 'run', '-A', 'run.mjs'],
    prints: /^sum 4\nCluster .*\nPROCESSES_UNSUPPORTED undefined\n$/,
  },
}

if (!existsSync(tarball)) {
  console.error('there is no tarball to try.\n  Remedy: npm run pack')
  process.exit(1)
}
const wanted = process.argv.slice(2)
for (const name of wanted) if (CASES[name] === undefined) throw new Error(`no case '${name}': ${Object.keys(CASES).join(', ')}`)
const folder = mkdtempSync(join(tmpdir(), 'postgrad-places-'))
const failed = []
try {
  for (const [name, one] of Object.entries(CASES)) if (wanted.length === 0 || wanted.includes(name)) await tryOne(name, one)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`places: ${failed.length === 0 ? 'all passed' : `FAILED: ${failed.join(', ')}`}`)
process.exitCode = failed.length === 0 ? 0 : 1

async function tryOne(name, { packages = {}, files = {}, type = 'module', command: [command, ...args], prints }) {
  const cwd = join(folder, name)
  const all = { 'package.json': JSON.stringify({ private: true, type, dependencies: packages }), 'program.mjs': PROGRAM, ...files }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true })
    writeFileSync(join(cwd, path), text)
  }
  const done = timed(console.log, `places: ${name}`)
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const env = { ...process.env, npm_config_loglevel: 'error', NODE_OPTIONS: '' }
  const shell = process.platform === 'win32'
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts=false', tarball]
  const installed = await capture(npm, install, { cwd, env, shell })
  const { code, output } = installed.code === 0 ? await capture(command, args, { cwd, env, shell }) : installed
  const isRight = code === 0 && prints.test(output)
  done(isRight ? 'passed' : 'FAILED')
  if (isRight) return
  console.error(output)
  failed.push(name)
}
