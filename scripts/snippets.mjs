/**
 * Runs what README.md, the guide, docs/testing.md and SECURITY.md show, unchanged: each `ts` block is a file, named in its first comment, of one project that has the
 * packed tarball installed. All are compiled under strict settings, tests run by vitest, and programs by the `npx` commands of the `sh` blocks. A block with variables is run whole.
 * A block that no command reaches fails. Needs the registry; `npm run pack:check` runs it last.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { capture, root, timed } from './setup.mjs'

const { version } = JSON.parse(readFileSync(join(root, 'packages/postgrad/package.json'), 'utf8'))
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const tarball = join(root, `out/postgrad-${version}.tgz`)
const { devDependencies: cli } = JSON.parse(readFileSync(join(root, 'apps/cli/package.json'), 'utf8'))
const TOOLS = { tsx: cli.tsx, '@types/node': devDependencies['@types/node'], typescript: '5.9.3', vitest: '4.1.12' }
/** In turn, each in a folder of its own with the files of the first: a later one may import them, or have its own under the same name. */
const DOCUMENTS = [
  'README.md',
  ...readdirSync(join(root, 'docs/guide'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/guide/${name}`),
  'docs/testing.md',
  'SECURITY.md',
]

if (!existsSync(tarball)) {
  console.error('there is no tarball to try.\n  Remedy: npm run pack')
  process.exit(1)
}
const folder = mkdtempSync(join(tmpdir(), 'postgrad-snippets-'))
const failed = []
/** The files of the first document. */
const shown = new Map()
try {
  await prepare()
  for (const path of DOCUMENTS) await runDocument(path)
} finally {
  if (process.argv.includes('--keep')) console.log(`snippets: kept in ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
}
for (const one of failed) console.log(`snippets: FAILED: ${one}`)
if (failed.length === 0) console.log('snippets: all passed')
process.exitCode = failed.length === 0 ? 0 : 1

/** One installation above all documents. */
async function prepare() {
  write('package.json', { private: true, type: 'module', devDependencies: TOOLS })
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  await step('npm install', npm, ['install', '--no-audit', '--no-fund', tarball], folder)
}

async function runDocument(path) {
  const text = readFileSync(join(root, path), 'utf8')
  const files = new Map()
  const before = path === DOCUMENTS[0] ? [] : [...shown]
  for (const [, block] of text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)) {
    const name = /^\/\/ ([\w-]+(?:\.test)?\.ts)\b/.exec(block)?.[1]
    if (name === undefined || files.has(name)) {
      failed.push(
        `${path}: a block ${name === undefined ? 'without a name' : `with the name of another, ${name}`}: ${block.split('\n', 1)[0]}`,
      )
    } else files.set(name, block)
  }
  const place = path.replace(/\W/g, '_')
  const cwd = join(folder, place)
  if (path === DOCUMENTS[0]) for (const [name, block] of files) shown.set(name, block)
  for (const [name, block] of [...before.filter(([name]) => !name.endsWith('.test.ts')), ...files]) write(join(place, name), block)
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    lib: ['ES2023', 'ESNext.Disposable'],
    strict: true,
    noEmit: true,
    types: ['node'],
  }
  write(join(place, 'tsconfig.json'), { compilerOptions })
  write(join(place, 'package.json'), { private: true, type: 'module' })
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block)
  const commands = blocks.flatMap((block) => [...block.matchAll(/^npx ([^#\n]+)/gm)].map(([, command]) => command.trim().split(/\s+/)))
  // A shell runs commands that need variables, or that run at the same time, unchanged.
  const together = blocks.filter((block) => /^(\w+=\S+ )+npx /m.test(block))
  const programs = commands.filter((command) => command.some((word) => files.has(word)))
  const tests = [...files.keys()].filter((name) => name.endsWith('.test.ts'))
  const words = [...programs.flat(), ...together.flatMap((block) => block.split(/\s+/))]
  const reached = reach(files, [...tests, ...words.filter((word) => files.has(word))])
  for (const name of files.keys()) if (!reached.has(name)) failed.push(`${path}: nothing runs ${name}`)
  const run = ([command, ...args]) =>
    step(`${path}: npx ${[command, ...args].join(' ')}`, join(folder, 'node_modules/.bin', command), args, cwd)
  await run(['tsc', '-p', '.'])
  if (tests.length > 0) await run(['vitest', 'run'])
  for (const program of programs) await run(program)
  const PATH = [join(folder, 'node_modules/.bin'), process.env.PATH].join(delimiter)
  for (const block of together)
    await step(`${path}: ${block.trim().split('\n').at(-1)}`, 'bash', ['-ec', `${block.replaceAll('npx ', '')}\nwait`], cwd, { PATH })
}

/** The files that `starts` import, and load by URL. */
function reach(files, starts) {
  const reached = new Set(starts)
  for (const name of reached) {
    for (const [, other] of (files.get(name) ?? '').matchAll(/'\.\/([\w-]+)(?:\.[jt]s)?'/g))
      if (files.has(`${other}.ts`)) reached.add(`${other}.ts`)
  }
  return reached
}

function write(path, text) {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), typeof text === 'string' ? text : JSON.stringify(text))
}

async function step(title, command, args, cwd, more = {}) {
  const done = timed(console.log, `snippets: ${title}`)
  const env = { ...process.env, ...more, npm_config_loglevel: 'error', NODE_OPTIONS: '' }
  const { code, output } = await capture(command, args, { cwd, env, shell: process.platform === 'win32' })
  done(code === 0 ? 'passed' : 'FAILED')
  if (code === 0) return
  console.error(output)
  failed.push(title)
}
