/**
 * Installs the tarball of `pack.mjs` as a user would, in a fresh folder outside this repository, and tries it: the library and its test tools
 * can be imported, their types resolve under strict settings, the command answers, and a program finds what it loads by place: kernels, the
 * worker's entries, a dataset's module. Needs the registry; run by `npm run pack:check`.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { capture, root, timed } from './setup.mjs'

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { version } = JSON.parse(readFileSync(join(root, 'packages/postgrad/package.json'), 'utf8'))
const tarball = join(root, `out/postgrad-${version}.tgz`)
if (!existsSync(tarball)) {
  console.error('there is no tarball to check.\n  Remedy: npm run pack')
  process.exit(1)
}

/** Batches from threads, an operation of the kernels, 1 MiB there and back between two workers, and a job. */
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
  'run.mjs': `import { DataLoader, jobs, launch, ones, workerDataset } from 'postgrad'
import { main, twice } from './program.mjs'
import { squares } from './squares.mjs'
const dataset = await workerDataset(new URL('./squares.mjs', import.meta.url), squares, [6])
for await (const batch of new DataLoader(dataset, { batchSize: 3, workers: 2 })) console.log(batch.toArray().join())
const cluster = await launch(new URL('./program.mjs', import.meta.url), { workers: ['worker0', 'worker1'] })
console.log(await cluster.on('worker0').run(main))
await cluster.close()
const pool = jobs(new URL('./program.mjs', import.meta.url), { threads: 1 })
console.log((await pool.run(twice, [ones([2])])).toArray().join())
await pool.close()
`,
}
const EXPECTED = ['0,1,4', '9,16,25', '524288', '2,2'].join('\n')

const folder = mkdtempSync(join(tmpdir(), 'postgrad-pack-'))
try {
  await check()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function check() {
  const write = (name, text) => writeFileSync(join(folder, name), typeof text === 'string' ? text : JSON.stringify(text))
  const names = ['typescript', '@types/node']
  write('package.json', {
    private: true,
    type: 'module',
    devDependencies: Object.fromEntries(names.map((name) => [name, manifest.devDependencies[name]])),
  })
  const program = ['postgrad', 'postgrad/testing']
    .map(
      (door) =>
        `import * as ${door.replace('/', '_')} from '${door}'\nconsole.log('${door}:', Object.keys(${door.replace('/', '_')}).sort().join(' '))\n`,
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

  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  // The compiler's own binary is an optional package, so `--omit=optional` is not possible; scripts are what `gl` would build with.
  await step('npm install', npm, ['install', '--ignore-scripts', '--no-audit', '--no-fund', tarball])
  console.log((await step('import', process.execPath, ['names.mjs'])).trimEnd())
  await step('types', process.execPath, [join(folder, 'node_modules/typescript/bin/tsc'), '-p', '.'])
  for (const [name, text] of Object.entries(PROGRAM)) write(name, text)
  const output = (await step('a program', process.execPath, ['run.mjs'])).trim()
  if (output !== EXPECTED) {
    console.error(`pack-check: the program printed\n${output}\ninstead of\n${EXPECTED}`)
    rmSync(folder, { recursive: true, force: true })
    process.exit(1)
  }
  console.log((await step('postgrad --help', join(folder, 'node_modules/.bin/postgrad'), ['--help'])).trimEnd())
}

async function step(title, command, args) {
  const done = timed(console.log, `pack-check: ${title}`)
  const env = { ...process.env, npm_config_loglevel: 'error' }
  const { code, output } = await capture(command, args, { cwd: folder, env, shell: process.platform === 'win32' })
  done(code === 0 ? 'passed' : 'FAILED')
  if (code === 0) return output
  console.error(output)
  rmSync(folder, { recursive: true, force: true })
  process.exit(1)
}
