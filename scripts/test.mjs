/**
 * `npm test`: set-up, then the checks in parallel, then the lanes of tests, and one closing line with the sums.
 * A step that fails does not stop the next ones, except that nothing runs on sources that do not compile.
 */
import { join } from 'node:path'
import { bundledTree } from './bundled-tree.mjs'
import { runLane } from './jest-lane.mjs'
import { otherNode, VERSIONS } from './other-node.mjs'
import { buildAll, capture, root, SetupError, setupOrExit, timed } from './setup.mjs'

const LANES = ['unit', 'sim', 'real']
/** Against a test that hangs; the whole run takes a fraction of it. */
const LANE_LIMIT_MS = 25 * 60_000
/** The Node at hand, among versions. */
const THIS = 'this'

const HELP = `npm test                            all checks and tests
npm test -- packages/wire           only the tests under this path (any of jest's patterns and options)
npm test -- packages/wire/src/a.test.ts -t 'MB-3'
npm test -- --lane unit             only this lane of tests (${LANES.join(', ')}); may be repeated
npm test -- --modules …             on the modules as tsc made them, for debuggers; else on the bundled library
npm test -- --node 24               the tests on another Node (${Object.keys(VERSIONS).join(', ')}), which npm delivers; may be repeated
npm test -- --node this --node 24   the tests on this Node, then on that one: what continuous integration runs`

const { lanes, nodes, modules, args } = parse(process.argv.slice(2))
const narrowed = args.length > 0 || lanes.length < LANES.length
const sums = { passed: 0, failed: 0, skipped: 0 }
const failures = []

await setupOrExit({ build: false })
const node = (script, ...more) => [process.execPath, [join(root, script), ...more]]
// Each of them takes one core: they run in parallel, and are reported when they end.
const checks = []
if (!narrowed)
  checks.push(check('biome (lint and format)', ...node('node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.')))
const built = await build()
if (!narrowed) {
  if (built) checks.push(check('the site builds, and its links lead somewhere', ...node('scripts/docs.mjs', '--check')))
  if (built) checks.push(check('pictures of the pages', ...node('scripts/pictures/draw.mjs', '--check')))
  if (built) checks.push(check('npm would publish the package', ...node('scripts/publish-check.mjs')))
  if (built) checks.push(check('public API', ...node('scripts/api-report.mjs', '--check')))
  checks.push(check('graph of packages and files', ...node('scripts/check-graph.mjs')))
  checks.push(check('few files name an operation', ...node('scripts/check-operations.mjs')))
  checks.push(check('rules of SPEC.md', ...node('scripts/check-rules.mjs')))
  checks.push(check('a section for each error code', ...node('scripts/check-errors.mjs')))
  checks.push(check('plain English', ...node('scripts/check-english.mjs')))
  checks.push(check('programs of pages are run, or say why not', ...node('scripts/snippets.mjs', '--list')))
  checks.push(check('a release can be written', ...node('scripts/release.mjs', 'patch', '--dry-run')))
  checks.push(check('mutations fit their files', ...node('scripts/mutate.mjs', '--applies')))
}
const tree = built ? await library() : null
await Promise.all(checks)
if (tree !== null) for (const version of nodes) await testOn(version)
if (tree !== null && sums.passed + sums.failed + sums.skipped === 0) fail('no test matches', args.join(' '))

for (const failure of failures) console.log(`FAILED: ${failure}`)
// A check that failed counts as a failed test, so that the closing line alone suffices.
console.log(`tests: ${sums.passed} passed, ${sums.failed} failed, ${sums.skipped} skipped`)
process.exitCode = sums.failed === 0 ? 0 : 1

async function check(title, command, commandArgs) {
  const start = performance.now()
  const { code, output } = await capture(command, commandArgs)
  if (code !== 0) fail(title, output)
  console.log(`check: ${title} ${code === 0 ? 'passed' : 'FAILED'} in ${((performance.now() - start) / 1000).toFixed(1)} s`)
}

async function build() {
  const done = timed(console.log, 'check: tsc -b')
  try {
    const fresh = await buildAll(() => {})
    done(fresh ? 'built' : 'nothing to build')
    return true
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    fail('tsc -b', error.message)
    done('FAILED')
    return false
  }
}

/** Where the tests run. */
async function library() {
  if (modules) return root
  const done = timed(console.log, 'check: the library bundles')
  try {
    const made = await bundledTree()
    done()
    return made
  } catch (error) {
    fail('the library bundles', String(error.stack))
    done('FAILED')
    return null
  }
}

async function testOn(version) {
  let node = process.execPath
  if (version !== THIS) {
    try {
      node = await otherNode(version)
    } catch (error) {
      if (!(error instanceof SetupError)) throw error
      return fail(`Node ${version}`, error.message)
    }
  }
  for (const lane of lanes) await test(lane, node, nodes.length === 1 && version === THIS ? '' : ` on Node ${nameOf(version)}`)
}

async function test(lane, node, where) {
  const done = timed(console.log, `tests: lane ${lane}${where}`)
  const result = await runLane(lane, args, { limitMs: LANE_LIMIT_MS, node, tree, renews: args.length === 0 })
  for (const key of Object.keys(sums)) sums[key] += result[key]
  if (result.trouble !== null) console.log(result.trouble)
  if (result.failed > 0) failures.push(`tests of lane ${lane}${where} (${result.failed})`)
  done(`${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped`)
}

function fail(title, output) {
  console.log(output.trimEnd())
  failures.push(title)
  sums.failed++
}

function parse(argv) {
  const given = { '--lane': [], '--node': [] }
  const known = { '--lane': LANES, '--node': [THIS, ...Object.keys(VERSIONS)] }
  const rest = []
  for (let index = 0; index < argv.length; index++) {
    const [option, attached] = argv[index].split('=')
    if (argv[index] === '--help') {
      console.log(HELP)
      process.exit(0)
    } else if (Object.hasOwn(given, option)) {
      const value = attached ?? argv[++index]
      if (!known[option].includes(value)) {
        console.error(`${option}: expected ${known[option].join(', ')}, got ${value === undefined ? 'nothing' : `'${value}'`}`)
        process.exit(2)
      }
      given[option].push(value)
    } else rest.push(argv[index])
  }
  const args = rest.filter((arg) => arg !== '--modules')
  const orAll = (values, all) => (values.length === 0 ? all : values)
  return { lanes: orAll(given['--lane'], LANES), nodes: orAll(given['--node'], [THIS]), modules: args.length < rest.length, args }
}

function nameOf(version) {
  return version === THIS ? process.versions.node : VERSIONS[version]
}
