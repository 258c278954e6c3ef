/**
 * Runs the programs of all pages, unchanged: each `ts` block is a file, named in its first comment, of one project that has the packed tarball installed. All are compiled under
 * strict settings, tests run by vitest, and programs by the `npx` commands of the `sh` blocks. A block with variables is run whole. A block that no command reaches fails.
 * In a section of an error's code, a `ts` block is a program without its imports that ends with this code, and with the message of the next block.
 *
 *   node scripts/snippets.mjs                         all pages, on this Node
 *   node scripts/snippets.mjs --node this --node 24   on this Node, then on that one: as `npm run pack:check` does last; needs the registry
 *   node scripts/snippets.mjs docs/start.md           these pages; `--keep` leaves the folder
 *   node scripts/snippets.mjs --list                  runs nothing: counts the programs, and fails for one that is neither run nor marked as not run (`npm test`)
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { environmentOf, otherNode, VERSIONS } from './other-node.mjs'
import { allPages, blocksOf, programsOf } from './pages.mjs'
import { capture, root, timed } from './setup.mjs'

const { version } = JSON.parse(readFileSync(join(root, 'packages/postgrad/package.json'), 'utf8'))
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const tarball = join(root, `out/postgrad-${version}.tgz`)
const { devDependencies: cli } = JSON.parse(readFileSync(join(root, 'apps/cli/package.json'), 'utf8'))
const TOOLS = { tsx: cli.tsx, '@types/node': devDependencies['@types/node'], typescript: '5.9.3', vitest: '4.1.12' }
/** In turn, each in a folder of its own with the files of the first: a later one may import them, or have its own under the same name. */
const FIRST = 'README.md'
const { values: options, positionals } = parseArgs({
  options: { list: { type: 'boolean' }, keep: { type: 'boolean' }, node: { type: 'string', multiple: true, default: ['this'] } },
  allowPositionals: true,
})
/** The heading of an error's section. */
const OF_CODE = /^### `([A-Z][A-Z0-9_]+)`$/
/** Runs programs that fail on purpose, one after the other, and compares their errors. */
const FAILING = `for (const { file, code, message } of CASES) {
  const error = await import(file).then(() => null, (error) => error)
  const is = error === null ? 'nothing failed' : [error.code, error.message].join(': ')
  if (is !== [code, message].join(': ')) {
    console.error(\`\${file}: expected \${code}: \${message}\\n  got \${is}\`)
    process.exitCode = 1
  }
}
`
prove()
const pages = [FIRST, ...allPages().filter((path) => path !== FIRST)]
const wrong = [
  ...positionals.filter((path) => !pages.includes(path)).map((path) => `expected the path of a page, got '${path}'`),
  ...options.node
    .filter((one) => one !== 'this' && !Object.hasOwn(VERSIONS, one))
    .map((one) => `--node: expected this or ${Object.keys(VERSIONS).join(', ')}, got '${one}'`),
]
if (wrong.length > 0) {
  console.error(`snippets: ${wrong.join('\n  ')}`)
  process.exit(2)
}
if (options.list) {
  list()
  process.exit()
}
if (!existsSync(tarball)) {
  console.error('expected a packed tarball, found none.\n  Remedy: npm run pack')
  process.exit(1)
}
const folder = mkdtempSync(join(tmpdir(), 'postgrad-snippets-'))
const failed = []
/** The files of the first page. */
const shown = new Map()
const compiled = new Set()
/** Of the Node that runs the programs. */
let nodeEnv = {}
let nodeName = ''
try {
  await prepare()
  for (const version of options.node) {
    nodeName = `node-${version}`
    nodeEnv = version === 'this' ? {} : environmentOf(await otherNode(version))
    const where =
      options.node.length === 1 && version === 'this' ? '' : ` on Node ${version === 'this' ? process.versions.node : VERSIONS[version]}`
    for (const path of pages) if (path === FIRST || positionals.length === 0 || positionals.includes(path)) await runPage(path, where)
  }
} finally {
  if (options.keep) console.log(`snippets: kept in ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
}
for (const one of failed) console.log(`snippets: FAILED: ${one}`)
if (failed.length === 0) console.log('snippets: all passed')
process.exitCode = failed.length === 0 ? 0 : 1

/** Runs nothing: the programs that a run would run, those that it would not, and why. */
function list() {
  const programs = pages.flatMap((path) => programsOf(path, readFileSync(join(root, path), 'utf8')))
  const run = programs.filter((one) => one.isRun)
  const marked = programs.filter((one) => !one.isRun && one.reason !== null)
  console.log(`snippets: ${run.length} programs are run, ${marked.length} are marked as not run:`)
  const counts = new Map()
  for (const { reason } of marked) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  for (const [reason, count] of [...counts].sort(([, a], [, b]) => b - a)) console.log(`  ${String(count).padStart(4)}  ${reason}`)
  const bare = programs.filter((one) => !one.isRun && one.reason === null)
  for (const { page, line, language } of bare)
    console.error(
      `${page}:${line}: a block of ${language} that is not run. Make it a \`ts\` block with a name, or write the line before it: <!-- not run: the reason -->`,
    )
  const problems = pages.flatMap((path) => projectOf(path, readFileSync(join(root, path), 'utf8')).problems)
  for (const problem of problems) console.error(problem)
  if (bare.length + problems.length > 0) process.exitCode = 1
}

/**
 * The project of a page: its files by name, the `npx` commands that run them, the blocks that a shell runs whole, the programs that fail on purpose as { code, text, message },
 * and what is wrong with them.
 */
function projectOf(path, text) {
  const blocks = blocksOf(path, text)
  const [files, failing, problems] = [new Map(), [], []]
  for (const [index, { language, text: block, heading, line }] of blocks.entries()) {
    if (language !== 'ts') continue
    const code = OF_CODE.exec(heading)?.[1]
    if (code !== undefined) {
      const { language: next, text: message, heading: of } = blocks[index + 1] ?? {}
      if (next === 'text' && of === heading) failing.push({ code, text: block, message: message.trim() })
      else problems.push(`${path}:${line}: expected the message of ${code} in the next block`)
      continue
    }
    const name = /^\/\/ ([\w-]+(?:\.test)?\.ts)\b/.exec(block)?.[1]
    if (name !== undefined && !files.has(name)) files.set(name, block)
    else problems.push(`${path}:${line}: a block ${name === undefined ? 'without a name' : `with the name of another, ${name}`}`)
  }
  const shells = blocks.filter(({ language }) => language === 'sh').map((block) => block.text)
  const commands = shells.flatMap((block) => [...block.matchAll(/^npx ([^#\n]+)/gm)].map(([, command]) => command.trim().split(/\s+/)))
  // A shell runs commands that need variables, or that run at the same time, unchanged.
  const together = shells.filter((block) => /^(\w+=\S+ )+npx /m.test(block))
  const programs = commands.filter((command) => command.some((word) => files.has(word)))
  const tests = [...files.keys()].filter((name) => name.endsWith('.test.ts'))
  const words = [...programs.flat(), ...together.flatMap((block) => block.split(/\s+/))]
  const reached = reach(files, [...tests, ...words.filter((word) => files.has(word))])
  problems.push(...[...files.keys()].filter((name) => !reached.has(name)).map((name) => `${path}: nothing runs ${name}`))
  return { files, programs, together, tests, failing, problems }
}

function prove() {
  const section = '### `A_B`\n\n~~~ts\nf()\n~~~\n\n~~~text\nf: it failed.\n~~~\n'
  const page = `\`\`\`ts\n// a.ts: a program\nimport './b.js'\n\`\`\`\n\n~~~ts\n// b.ts\n~~~\n\n\`\`\`sh\nnpx tsx a.ts\n\`\`\`\n\n${section}`
  const { files, programs, failing, problems } = projectOf('a.md', page)
  assert.deepEqual([[...files.keys()], programs, problems], [['a.ts', 'b.ts'], [['tsx', 'a.ts']], []])
  assert.deepEqual(failing, [{ code: 'A_B', text: 'f()\n', message: 'f: it failed.' }])
  for (const [wrong, pattern] of [
    [page.replace('npx', 'node'), /nothing runs a\.ts/],
    [page.replace('b.ts', 'a.ts'), /a\.md:6: a block with the name of another/],
    [page.replace('// b.ts', 'g()'), /a\.md:6: a block without a name/],
    [section.replace('~~~text', '~~~sh'), /a\.md:3: expected the message of A_B/],
  ])
    assert.match(projectOf('a.md', wrong).problems.join('\n'), pattern)
  const names = { tensor: 'postgrad', view: 'postgrad', Linear: 'postgrad/nn', x: 'postgrad' }
  assert.equal(
    withImports('const x = tensor([1]).view([1])\nnew Linear(x)\n', names),
    "import { tensor } from 'postgrad'\nimport { Linear } from 'postgrad/nn'\nconst x = tensor([1]).view([1])\nnew Linear(x)\n",
  )
}

/** A program with the imports of all public names that it uses and does not declare. @param names name → the door that exports it */
function withImports(text, names) {
  const declared = new Set([...text.matchAll(/\b(?:const|let|class|function) (\w+)/g)].map(([, name]) => name))
  const used = new Set([...text.matchAll(/(?<![.\w])[A-Za-z_]\w*/g)].map(([name]) => name))
  const byDoor = new Map()
  for (const name of used)
    if (Object.hasOwn(names, name) && !declared.has(name)) byDoor.set(names[name], [...(byDoor.get(names[name]) ?? []), name])
  return `${[...byDoor].map(([door, some]) => `import { ${some.join(', ')} } from '${door}'\n`).join('')}${text}`
}

/** Name → door, of all that a program can import, in the order of the doors in package.json. */
async function publicNames() {
  const { exports } = JSON.parse(readFileSync(join(folder, 'node_modules/postgrad/package.json'), 'utf8'))
  const doors = Object.keys(exports).filter((door) => door !== './package.json')
  const script = `const names = {}
for (const door of ${JSON.stringify(doors.map((door) => `postgrad${door.slice(1)}`))})
  for (const name of Object.keys(await import(door).catch(() => ({})))) names[name] ??= door
console.log(JSON.stringify(names))`
  const { output } = await capture(process.execPath, ['--input-type=module', '-e', script], { cwd: folder })
  return JSON.parse(output.trim().split('\n').at(-1))
}

/** One installation above all documents. */
async function prepare() {
  write('package.json', { private: true, type: 'module', devDependencies: TOOLS })
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  await step('npm install', npm, ['install', '--no-audit', '--no-fund', tarball], folder)
}

/** @param where ' on Node 24.…', for the titles */
async function runPage(path, where) {
  const { files, programs, together, tests, failing, problems } = projectOf(path, readFileSync(join(root, path), 'utf8'))
  if (!compiled.has(path)) failed.push(...problems)
  const before = path === FIRST ? [] : [...shown]
  // A folder for each Node: a page may make files that it makes once only, such as keys.
  const place = `${nodeName}/${path.replace(/\W/g, '_')}`
  const cwd = join(folder, place)
  if (path === FIRST) for (const [name, block] of files) shown.set(name, block)
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
  if (failing.length > 0) {
    const names = await publicNames()
    const cases = failing.map(({ code, text, message }) => {
      const file = `${code.toLowerCase()}.ts`
      write(join(place, file), withImports(text, names))
      return { file: `./${file}`, code, message }
    })
    write(
      join(place, 'failing.mjs'),
      FAILING.replace('CASES', () => JSON.stringify(cases)),
    )
  }
  const run = ([command, ...args]) =>
    step(`${path}${where}: npx ${[command, ...args].join(' ')}`, join(folder, 'node_modules/.bin', command), args, cwd)
  if (!compiled.has(path)) await run(['tsc', '-p', '.'])
  compiled.add(path)
  if (tests.length > 0) await run(['vitest', 'run'])
  for (const program of programs) await run(program)
  if (failing.length > 0) await run(['tsx', 'failing.mjs'])
  const PATH = [join(folder, 'node_modules/.bin'), nodeEnv.PATH ?? process.env.PATH].join(delimiter)
  for (const block of together)
    await step(`${path}${where}: ${block.trim().split('\n').at(-1)}`, 'bash', ['-ec', `${block.replaceAll('npx ', '')}\nwait`], cwd, {
      PATH,
    })
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
  const env = { ...process.env, ...nodeEnv, ...more, npm_config_loglevel: 'error', NODE_OPTIONS: '' }
  const { code, output } = await capture(command, args, { cwd, env, shell: process.platform === 'win32' })
  done(code === 0 ? 'passed' : 'FAILED')
  if (code === 0) return
  console.error(output)
  failed.push(title)
}
