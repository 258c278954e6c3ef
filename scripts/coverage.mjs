/**
 * `npm run coverage`: line and branch coverage of the packages that carry a gradient, by V8's own counters (an instrumenter would rewrite gpu.js's
 * kernels, and would not see worker threads). Every test file runs in a process of its own, so that what V8 writes stays small.
 * `scripts/coverage-explained.md` lists uncovered lines with their reasons; a line that is missing there, or one that is covered by now, fails the run.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { runLane } from './jest-lane.mjs'
import { read, root, setupOrExit, timed, walk } from './setup.mjs'

const MEASURED = ['dist-autograd', 'rpc', 'actor']
/** Whose tests run: the measured packages and those that are built on them. */
const RUN = [...MEASURED, 'parallel', 'cluster', 'testing', 'postgrad']
const AIM = 95
const FILE_LIMIT_MS = 10 * 60_000
const EXPLAINED = join(root, 'scripts/coverage-explained.md')

const HELP = `npm run coverage                     measure ${MEASURED.join(', ')} with the tests of ${RUN.join(', ')}
npm run coverage -- --only rpc       only test files whose path contains this; may be repeated. Judges nothing
npm run coverage -- --again rpc      these test files again, and what the other ones wrote before, where the measured file is still the same
npm run coverage -- --report         no tests: report what the last run wrote`

const { values } = parsed()

function parsed() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean' },
        only: { type: 'string', multiple: true },
        again: { type: 'string', multiple: true },
        report: { type: 'boolean' },
      },
    })
  } catch (error) {
    console.error(`npm run coverage: ${error.message.split('. ')[0]}\nTry: npm run coverage -- --help`)
    process.exit(2)
  }
}

if (values.help) {
  console.log(HELP)
  process.exit(0)
}

const raw = join(root, '.cache/coverage/raw')
const scratch = join(root, '.cache/coverage/scratch')
const isMeasured = (url) => MEASURED.some((name) => url.includes(`/packages/${name}/dist/`)) && !/\.(test|suite|fixture)\.js$/.test(url)

await setupOrExit()
// Set-up installs them.
const [{ Report }, { default: istanbul }] = await Promise.all([import('c8'), import('istanbul-lib-coverage')])
const digests = new Map()
if (!values.report) await runTests()
dropStale()
const uncovered = await report()
if (values.only === undefined) judge(uncovered)

async function runTests() {
  if (values.again === undefined) rmSync(raw, { recursive: true, force: true })
  mkdirSync(raw, { recursive: true })
  const parts = values.again ?? values.only
  const files = RUN.flatMap((name) => [...walk(join(root, 'packages', name, 'dist'))].map(({ path }) => path))
    .filter((file) => file.endsWith('.test.js') && !file.endsWith('.soak.test.js'))
    .filter((file) => parts === undefined || parts.some((part) => file.includes(part)))
  const done = timed(console.log, `coverage: ${files.length} test files`)
  for (const file of files) {
    rmSync(scratch, { recursive: true, force: true })
    const lane = file.match(/\.(sim|real)\.test\.js$/)?.[1] ?? 'unit'
    const { failed, trouble } = await runLane(lane, ['--runTestsByPath', '--silent', file], {
      env: { NODE_V8_COVERAGE: scratch },
      limitMs: FILE_LIMIT_MS,
      tree: root,
    })
    if (failed > 0) {
      console.log(`FAILED: ${relative(root, file)} ${trouble ?? ''}`)
      process.exitCode = 1
    }
    keepMeasured(relative(root, file))
  }
  done()
}

/** A process writes what it knows of every module; one file in a hundred is ours. */
function keepMeasured(test) {
  const name = test.replaceAll(/[^\w.-]/g, '_')
  for (const old of readdirSync(raw)) if (old.startsWith(`${name}-`)) rmSync(join(raw, old))
  if (!existsSync(scratch)) return
  for (const [part, file] of readdirSync(scratch).entries()) {
    const { result } = JSON.parse(read(join(scratch, file)) ?? '{"result":[]}')
    const kept = result
      .filter(({ url }) => isMeasured(url))
      .map((script) => ({ ...script, url: script.url.startsWith('/') ? pathToFileURL(script.url).href : script.url }))
      .map((script) => ({ ...script, digest: digestOf(script.url) }))
    if (kept.length > 0) writeFileSync(join(raw, `${name}-${part}.json`), JSON.stringify({ result: kept }))
  }
}

/** Counters belong to the text that ran: those of another one say nothing of this one. */
function digestOf(url) {
  const known = digests.get(url)
  if (known !== undefined) return known
  const digest = createHash('sha256')
    .update(read(fileURLToPath(url)) ?? '')
    .digest('hex')
  digests.set(url, digest)
  return digest
}

/** Results of earlier runs for files that have changed. */
function dropStale() {
  for (const name of readdirSync(raw)) {
    const { result } = JSON.parse(read(join(raw, name)))
    const fresh = result.filter(({ url, digest }) => digest === digestOf(url))
    if (fresh.length < result.length) writeFileSync(join(raw, name), JSON.stringify({ result: fresh }))
  }
}

/** Prints the table, writes HTML, and gives the places that no test has reached: `file`, the text of the line, what of it. */
async function report() {
  const made = Report({
    reporter: ['text-summary', 'html', 'json'],
    reportsDirectory: join(root, '.cache/coverage/report'),
    tempDirectory: raw,
    src: [root],
    resolve: root,
    include: MEASURED.flatMap((name) => [`packages/${name}/dist/**`, `packages/${name}/src/**`]),
    exclude: ['**/*.test.*', '**/*.suite.*', '**/*.fixture.*'],
    excludeAfterRemap: true,
    all: false,
  })
  const map = await made.getCoverageMapFromAllCoverageFiles()
  await made.run()
  const summaries = new Map(MEASURED.map((name) => [name, istanbul.createCoverageSummary()]))
  const uncovered = []
  for (const file of map.files()) {
    const coverage = map.fileCoverageFor(file)
    const path = relative(root, file)
    summaries.get(path.split('/')[1]).merge(coverage.toSummary())
    const lines = (read(file) ?? '').split('\n')
    const missed = new Set(coverage.getUncoveredLines().map(Number))
    for (const [id, counts] of Object.entries(coverage.b)) {
      if (counts.some((count) => count === 0)) missed.add(coverage.branchMap[id].loc.start.line)
    }
    for (const line of missed) uncovered.push({ path, line, text: (lines[line - 1] ?? '').trim() })
  }
  for (const [name, summary] of summaries) console.log(`${name}: lines ${summary.lines.pct} %, branches ${summary.branches.pct} %`)
  for (const [name, summary] of summaries) {
    if (values.only === undefined && Math.min(summary.lines.pct, summary.branches.pct) < AIM) fail(`${name} is below ${AIM} %`)
  }
  console.log(`the lines themselves: ${relative(process.cwd(), join(root, '.cache/coverage/report/index.html'))}`)
  return uncovered.filter(({ text }) => /[A-Za-z]/.test(text))
}

/** Entries of the list: a heading with the file's path, then "- `line`: reason". A line that only some runs cover has a reason that begins with "at times". */
function judge(uncovered) {
  const reasons = new Map()
  let path = ''
  for (const line of (read(EXPLAINED) ?? '').split('\n')) {
    path = line.match(/^## (\S+)/)?.[1] ?? path
    const entry = line.match(/^- `(.+)`: (.+)/)
    if (entry !== null) reasons.set(`${path} ${entry[1]}`, entry[2].startsWith('at times'))
  }
  for (const place of uncovered) {
    const key = `${place.path} ${place.text.replaceAll('`', "'")}`
    if (reasons.has(key)) reasons.set(key, true)
    else fail(`not covered, and not explained: ${place.path}:${place.line}: ${place.text}`)
  }
  for (const [key, isUsed] of reasons) if (!isUsed) fail(`explained, and covered or gone by now: ${key}`)
}

function fail(message) {
  console.log(message)
  process.exitCode = 1
}
