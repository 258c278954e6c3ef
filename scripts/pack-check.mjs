/**
 * Installs the tarball of `pack.mjs` as a user would, in a fresh folder outside this repository, and tries it: the library and its test tools
 * can be imported, their types resolve under strict settings, the command answers, and a program finds what it loads by place: kernels, the
 * entries of workers and processes, a dataset's module, gpu.js. First it packs twice at the same time, which must not break the tarball. The installed size has a bound, and documents have no dead links. Needs the
 * registry; run by `npm run pack:check`.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deadLinks } from './pack-docs.mjs'
import { wrongIn } from './pack-verify.mjs'
import { capture, root, timed } from './setup.mjs'

/** Bounds of one `npm install` of the tarball alone; 6 packages and 15 MB when this was written, 4.5 of them the library's source map. */
const PACKAGES_MAX = 8
const MEGABYTES_MAX = 17
/** Dependencies of gpu.js that are never loaded. */
const NEVER_LOADED = ['gpu.js', 'webgpu', 'gl']

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { version } = JSON.parse(readFileSync(join(root, 'packages/postgrad/package.json'), 'utf8'))
const tarball = join(root, `out/postgrad-${version}.tgz`)
if (!existsSync(tarball)) {
  console.error('there is no tarball to check.\n  Remedy: npm run pack')
  process.exit(1)
}

/** Names of functions and classes, and of the operation in an error; batches from threads, an operation of the kernels, 1 MiB there and back between two workers, and a job. */
const PROGRAM = {
  'squares.mjs': 'export const squares = (length) => ({ length, get: (i) => i * i })\n',
  'program.mjs': `import { call, expose, ones } from 'postgrad'
export const twice = (x) => x.mul(2)
export async function main() {
  const sum = (await call('worker1', twice, [ones([512, 512])])).sum()
  return sum.item()
}
expose({ twice, main })
`,
  'member.mjs': `import { init } from 'postgrad'
import { main } from './program.mjs'
const member = await init({ initMethod: new URL('./meeting', import.meta.url).href, rank: Number(process.argv[2]), worldSize: 2 })
if (member.rank === 0) console.log('init', await member.run(main))
await member.shutdown()
`,
  'run.mjs': `import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { jobs, launch, ones } from 'postgrad'
import { DataLoader, workerDataset } from 'postgrad/data'
import { main, twice } from './program.mjs'
import { squares } from './squares.mjs'
const dataset = await workerDataset(new URL('./squares.mjs', import.meta.url), squares, [6])
for await (const batch of new DataLoader(dataset, { batchSize: 3, workers: 2 })) console.log(batch.toArray().join())
const cluster = await launch(new URL('./program.mjs', import.meta.url), { workers: ['worker0', 'worker1'] })
console.log(await cluster.on('worker0').run(main))
await cluster.close()
const spread = await launch(new URL('./program.mjs', import.meta.url), { workers: ['worker0', 'worker1'], processes: 2 })
console.log(await spread.on('worker0').run(main))
await spread.close()
const [one] = await Promise.all([0, 1].map((rank) => promisify(execFile)(process.execPath, ['member.mjs', String(rank)])))
console.log(one.stdout.trim())
const pool = jobs(new URL('./program.mjs', import.meta.url), { threads: 1 })
console.log((await pool.run(twice, [ones([2])])).toArray().join())
await pool.close()
`,
  'called.mjs': `import { tensor } from 'postgrad'
const doors = ['', '/nn', '/optim', '/data', '/jobs', '/distributed', '/pipelining', '/training', '/testing', '/plugin']
const aliases = ['rpcAsync', 'rpcSync']
for (const door of doors) for (const [name, value] of Object.entries(await import('postgrad' + door)))
  if (typeof value === 'function' && value.name !== name && !aliases.includes(name)) console.log(door, name, 'is called', value.name)
const x = tensor([1, 2])
x.close()
try { x.add(1) } catch (error) { console.log(error.code, error.op) }
try { x.toArray() } catch (error) { console.log(/\\n  More: npx postgrad explain TENSOR_CLOSED\\n.*called.mjs:9:/.test(error.stack)) }
`,
  'one.mjs': `import * as imported from 'postgrad'
import { createRequire } from 'node:module'
const required = createRequire(import.meta.url)('postgrad')
console.log(Object.keys(imported).filter((name) => imported[name] !== required[name]).join() || 'one library')
`,
  // A debugger gets the library with its map.
  'debugged.mjs': `import { Session } from 'node:inspector'
const session = new Session()
session.connect()
session.on('Debugger.scriptParsed', ({ params: { url, sourceMapURL } }) => /library.cjs$/.test(url) && console.log(new URL(sourceMapURL, url).href === url + '.map'))
session.post('Debugger.enable')
await import('postgrad')
session.disconnect()
`,
  // Drawn by the parts of echarts that come with the package.
  'plot.mjs': `import { MetricsWriter, plot } from 'postgrad/training'
import { readFileSync } from 'node:fs'
const writer = new MetricsWriter('run.csv')
for (const step of [1, 2, 3]) writer.log({ loss: 1 / step, accuracy: step / 3 }, step)
await writer.close()
await plot('run.csv', 'run.svg', { smooth: 0.5, log: true, title: 'A run' })
const svg = readFileSync('run.svg', 'utf8')
console.log(['A run', 'accuracy', 'smoothed 0.5', '#1f4e8c'].every((text) => svg.includes(text)))
`,
  'door.mjs': "import { SGD } from 'postgrad/nn'\nexport default () => SGD\n",
  'wrong-door.mjs': `import { launch } from 'postgrad'
const error = await launch(new URL('./door.mjs', import.meta.url), { workers: 1 }).catch((error) => error)
console.log(/it is in '.*'/.exec(error.message)?.[0])
`,
  // Each thread says whether it took what another had compiled, and which other packages it has loaded.
  'threads.cjs': `const { expose } = require('postgrad')
const loaded = () => [...new Set(Object.keys(require.cache).flatMap((path) => /node_modules.((?!postgrad)[\\w-]+)/.exec(path)?.[1] ?? []))]
const look = () => [require(require.resolve('postgrad').replace(/cjs.index.cjs$/, 'base/load.cjs')).isShared(), ...loaded()].join()
expose({ look })
module.exports = { look }
`,
  'run-threads.cjs': `const { jobs, launch } = require('postgrad')
const path = require('node:path')
const { look } = require('./threads.cjs')
async function main() {
  const cluster = await launch(path.join(__dirname, 'threads.cjs'), { workers: ['only'] })
  console.log(await cluster.on('only').run(look))
  await cluster.close()
  const pool = jobs(path.join(__dirname, 'threads.cjs'), { threads: 1 })
  console.log(await pool.run(look))
  await pool.close()
}
main()
`,
  'kernel.mjs': `import { call, defineKernel, expose, tensor } from 'postgrad'
export const cube = defineKernel({
  name: 'cube',
  inputs: ['x'],
  kernel: 'function (x) { const v = x[this.thread.x]; return v * v * v; }',
  derivative: (grad, { x }) => grad.mul(x.mul(x).mul(3)),
})
export async function main() {
  const x = tensor([1, 2, -3], { requiresGrad: true })
  const there = await call('worker1', cube, [x.detach()])
  cube(x).sum().backward()
  const m = tensor([[1, 2], [3, 4]])
  return [...there.toArray(), ...x.grad.toArray(), ...m.matmul(m).reshape([4]).toArray()].join()
}
expose({ cube, main })
`,
  'run-kernel.mjs': `import { inlined } from 'postgrad/testing'
import { launch, withDevice } from 'postgrad'
import { main } from './kernel.mjs'
const workers = ['worker0', 'worker1']
for (const device of ['wasm', 'js']) {
  console.log(await withDevice(device, () => inlined({ workers }, (all) => all.on('worker0').run(main))))
  const cluster = await launch(new URL('./kernel.mjs', import.meta.url), { workers, device })
  console.log(await cluster.on('worker0').run(main))
  await cluster.close()
}
`,
}
/** Output of each. The last runs on two devices, in the main thread and in workers: the kernel's result, its gradient, a product of matrices. */
const EXPECTED = {
  'called.mjs': ['TENSOR_CLOSED add', 'true'],
  'debugged.mjs': ['true'],
  'one.mjs': ['one library'],
  'plot.mjs': ['true'],
  'wrong-door.mjs': ["it is in 'postgrad/optim'"],
  'run-threads.cjs': ['true', 'true,piscina'],
  'run.mjs': ['0,1,4', '9,16,25', '524288', '524288', 'init 524288', '2,2'],
  'run-kernel.mjs': Array.from({ length: 4 }, () => '1,8,-27,3,12,27,7,10,15,22'),
}

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const folder = mkdtempSync(join(tmpdir(), 'postgrad-pack-'))
try {
  await atOnce()
  for (const flags of [[], ['--ignore-scripts']]) await installed(flags)
  await check()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Two packs at the same time leave a whole tarball, with the same bits as the one before; what a pack looks at would show one that is not whole. */
async function atOnce() {
  const end = timed(console.log, 'pack-check: two packs at the same time')
  const before = readFileSync(tarball)
  const packs = await Promise.all([0, 1].map(() => capture(process.execPath, [join(root, 'scripts/pack.mjs')])))
  for (const { code, output } of packs) if (code !== 0) fail(`a pack next to another one failed:\n${output}`)
  if (!readFileSync(tarball).equals(before)) fail('the same sources were packed twice, and the tarballs have other bits')
  const stage = join(folder, 'whole', 'package')
  mkdirSync(join(folder, 'whole'))
  const { code, output } = await capture('tar', ['-xzf', tarball, '-C', join(folder, 'whole')])
  if (code !== 0) fail(`two packs at the same time left what cannot be unpacked:\n${output}`)
  const wrong = await wrongIn(tarball, stage, join(folder, 'unpacked'))
  writeFileSync(join(stage, 'dist/library.cjs'), 'half of it')
  rmSync(join(stage, 'LICENSE'))
  const found = await wrongIn(tarball, stage, join(folder, 'again'))
  if (wrong.length > 0 || found.length !== 2) fail(`a tarball is not seen as what it is:\n  ${[...wrong, ...found].join('\n  ')}`)
  end('done')
}

/** The tarball alone, in a folder of its own: how much it brings, and whether its documents lead somewhere. */
async function installed(flags) {
  const cwd = join(folder, ['only', ...flags].join('-'))
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'package.json'), '{ "private": true }')
  await step(['npm install', ...flags].join(' '), npm, ['install', ...flags, '--no-audit', '--no-fund', tarball], cwd)
  const lock = JSON.parse(readFileSync(join(cwd, 'node_modules/.package-lock.json'), 'utf8'))
  const fetched = Object.entries(lock.packages).filter(([, { inBundle }]) => !inBundle)
  const names = fetched.map(([path]) => path.split('node_modules/').at(-1))
  const megabytes = Math.ceil(bytesOf(join(cwd, 'node_modules')) / 1e6)
  console.log(`pack-check: ${names.length} packages (at most ${PACKAGES_MAX}), ${megabytes} MB (at most ${MEGABYTES_MAX})`)
  if (names.length > PACKAGES_MAX || megabytes > MEGABYTES_MAX) fail(`an installation takes too much: ${names.sort().join(' ')}`)
  const needless = NEVER_LOADED.filter((name) => names.includes(name))
  if (needless.length > 0) fail(`installed, and never loaded: ${needless.join(', ')}`)
  const place = join(cwd, 'node_modules/postgrad')
  const { files } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
  const wrong = wrongLines(join(place, 'dist'))
  if (wrong.length > 0) fail(`the source map leads to other lines:\n  ${wrong.join('\n  ')}`)
  const dead = deadLinks(place, files)
  if (dead.length > 0) fail(`links that lead nowhere:\n  ${dead.join('\n  ')}`)
}

/** Functions of the library that its map has in a line without their name, or that it does not have. */
function wrongLines(dist) {
  const payload = JSON.parse(readFileSync(join(dist, 'library.cjs.map'), 'utf8'))
  const map = new SourceMap(payload)
  const texts = new Map(payload.sources.map((source, index) => [source, payload.sourcesContent[index].split('\n')]))
  const lines = readFileSync(join(dist, 'library.cjs'), 'latin1').split('\n')
  const functions = lines.flatMap((text, line) => {
    const name = /^(?:async )?function\*? (\w+?)\d*\(/.exec(text)?.[1]
    const { originalSource, originalLine, generatedLine } = map.findEntry(line, 0)
    return name === undefined
      ? []
      : [{ name, line, originalSource, isOurs: generatedLine === line, text: texts.get(originalSource)?.[originalLine] }]
  })
  // Helpers of esbuild, and functions of other packages, have no source.
  const ours = functions.filter((one) => one.isOurs)
  if (ours.length < 0.95 * functions.length) return [`of ${functions.length} functions it has ${ours.length}`]
  return ours
    .filter(({ name, text }) => !text?.includes(name))
    .map(({ name, line, originalSource }) => `${name}, line ${line + 1}: ${originalSource}`)
}

/** On the disk: a file with two names (esbuild links its binary) counts once, a link not at all. */
function bytesOf(place) {
  const files = readdirSync(place, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const stats = files.map(({ name, parentPath }) => statSync(join(parentPath, name)))
  return [...new Map(stats.map(({ ino, size }) => [ino, size])).values()].reduce((sum, size) => sum + size, 0)
}

function fail(text) {
  console.error(`pack-check: ${text}`)
  rmSync(folder, { recursive: true, force: true })
  process.exit(1)
}

async function check() {
  const write = (name, text) => writeFileSync(join(folder, name), typeof text === 'string' ? text : JSON.stringify(text))
  const names = ['typescript', '@types/node']
  write('package.json', {
    private: true,
    type: 'module',
    devDependencies: Object.fromEntries(names.map((name) => [name, manifest.devDependencies[name]])),
  })
  const program = [
    'postgrad',
    'postgrad/nn',
    'postgrad/nn/functional',
    'postgrad/optim',
    'postgrad/data',
    'postgrad/jobs',
    'postgrad/distributed',
    'postgrad/pipelining',
    'postgrad/training',
    'postgrad/types',
    'postgrad/plugin',
    'postgrad/testing',
  ]
    .map(
      (door) =>
        `import * as ${door.replaceAll('/', '_')} from '${door}'\nconsole.log('${door}:', Object.keys(${door.replaceAll('/', '_')}).sort().join(' '))\n`,
    )
    .join('')
  write('names.mjs', program)
  mkdirSync(join(folder, 'src'))
  write('src/names.ts', `${program}export type { Tensor } from 'postgrad'\n`)
  const compilerOptions = {
    module: 'NodeNext',
    target: 'ES2022',
    lib: ['ES2023', 'ESNext.Disposable'],
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    types: ['node'],
  }
  write('tsconfig.json', { compilerOptions, include: ['src'] })

  // The compiler's own binary is an optional package, so `--omit=optional` is not possible.
  await step('npm install with a compiler', npm, ['install', '--no-audit', '--no-fund', tarball])
  console.log((await step('import', process.execPath, ['names.mjs'])).trimEnd())
  await step('types', process.execPath, [join(folder, 'node_modules/typescript/bin/tsc'), '-p', '.'])
  for (const [name, text] of Object.entries(PROGRAM)) write(name, text)
  for (const [name, expected] of Object.entries(EXPECTED)) {
    const output = (await step(name, process.execPath, [name])).trim()
    if (output !== expected.join('\n')) fail(`${name} printed\n${output}\ninstead of\n${expected.join('\n')}`)
  }
  console.log((await step('postgrad --help', join(folder, 'node_modules/.bin/postgrad'), ['--help'])).trimEnd())
  const plotted = await step('postgrad plot', join(folder, 'node_modules/.bin/postgrad'), [
    'plot',
    'run.csv',
    '--tags',
    'loss',
    '-o',
    'loss.svg',
  ])
  if (!plotted.startsWith('loss.svg: loss\n')) fail(`postgrad plot printed\n${plotted}`)
  const explained = await step('postgrad explain', join(folder, 'node_modules/.bin/postgrad'), ['explain', 'WORKER_DIED'])
  if (!/^WORKER_DIED\n\n.+\nWhat to do: /s.test(explained)) fail(`postgrad explain printed\n${explained}`)
}

async function step(title, command, args, cwd = folder) {
  const done = timed(console.log, `pack-check: ${title}`)
  const env = { ...process.env, npm_config_loglevel: 'error' }
  const { code, output } = await capture(command, args, { cwd, env, shell: process.platform === 'win32' })
  done(code === 0 ? 'passed' : 'FAILED')
  return code === 0 ? output : fail(output)
}
