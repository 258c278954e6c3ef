/**
 * `npm run mutate`: does the test kit find bugs? Each mutation of `mutations.mjs` is an exact change of a source file of the engine, the RRef protocol, calls or the
 * session layer. In a process of its own the changed file is compiled and replaces the right one, and the mutation's suite must fail within the mutation's
 * number of seeds. First every such suite must pass as many seeds on the unchanged sources. Tests catch the mutations of `mutations-by-test/`
 * (`mutate-by-test.mjs`).
 * `npm test` checks that each still applies.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import { checkByTest } from './mutate-by-test.mjs'
import { MUTATIONS, mutated } from './mutations.mjs'
import { MUTATIONS_BY_TEST } from './mutations-by-test/index.mjs'
import { endTree, root, setupOrExit, spawnWithUs, timed } from './setup.mjs'

/** Against a mutant that runs in circles, where no limit of the simulation sees it. */
const LIMIT_MS = 180_000
/** Of `--find`. */
const SEEDS = {
  ...{ 'sound-cases': 300, 'random-programs': 200, 'rref-model': 300, 'faulty-programs': 200 },
  ...{ 'call-programs': 200, 'group-programs': 200, 'session-lives': 100, 'fault-matrix': 130 },
  ...{ 'roster-programs': 300, membership: 200, 'collective-programs': 100, 'collective-deaths': 30 },
}
const DOCS = join(root, 'docs/mutations.md')
const MARKS = ['<!-- mutations -->', '<!-- end of mutations -->']

const HELP = `npm run mutate                     all mutations, as a table; fails if one is not caught in time, or does not apply any more
npm run mutate -- abort-lost …     some
npm run mutate -- --find …         asks every suite, and says how many seeds each takes: for a new mutation
npm run mutate -- --applies        only asks whether each still fits its file
npm run mutate -- --write          puts the table of suites into docs/mutations.md

There are: ${all().join(', ')}`

const args = process.argv.slice(2)
const strange = args.filter((arg) => arg.startsWith('--') && !['--find', '--applies', '--write', '--help'].includes(arg))
if (strange.length > 0) {
  console.error(`npm run mutate: Unknown option '${strange[0]}'\nTry: npm run mutate -- --help`)
  process.exit(2)
}
if (args.includes('--help')) {
  console.log(HELP)
  process.exit(0)
}
const names = args.filter((arg) => !arg.startsWith('--'))
const among = (list) => list.filter(({ id }) => names.length === 0 || names.includes(id))
const chosen = among(MUTATIONS)
const chosenByTest = among(MUTATIONS_BY_TEST)
const unknown = names.filter((name) => !all().includes(name))
if (unknown.length > 0) {
  console.error(`no mutation ${unknown.join(', ')}; there are: ${all().join(', ')}`)
  process.exit(2)
}
if (args.includes('--applies')) applies()
else {
  await setupOrExit()
  if (args.includes('--find')) await find()
  else await check()
}

function all() {
  return [...MUTATIONS, ...MUTATIONS_BY_TEST].map(({ id }) => id)
}

function applies() {
  const twice = all().filter((id, at, list) => list.indexOf(id) !== at)
  if (twice.length > 0) {
    console.log(`two mutations have one name: ${twice.join(', ')}`)
    process.exitCode = 1
  }
  for (const mutation of [...chosen, ...chosenByTest]) {
    try {
      mutated(mutation)
    } catch (error) {
      console.log(`${mutation.id} does not apply any more: ${error.message}`)
      process.exitCode = 1
    }
  }
}

async function check() {
  const problems = await baseline()
  const rows = await inTurns(chosen, async (mutation) => {
    const { seeds, error, isTold } = await run(mutation.id, mutation.by, mutation.within)
    if (!isTold) problems.push(`${mutation.id}: ${error}`)
    else if (error === null) problems.push(`${mutation.id}: ${mutation.by} did not notice it in ${mutation.within} seeds`)
    const caught = isTold && error !== null
    console.log(`mutate: ${mutation.id}: ${caught ? `caught by ${mutation.by} after ${seeds} of ${mutation.within} seeds` : 'NOT CAUGHT'}`)
    return { ...mutation, seeds: caught ? seeds : null, error }
  })
  const byTest = await checkByTest(chosenByTest, console.log)
  problems.push(...byTest.flatMap(({ problem }) => problem ?? []))
  const table = tableOf(rows)
  console.log(`\n${table}\n\n${tableByTest(byTest)}\n`)
  if (args.includes('--write')) write(table)
  for (const problem of problems) console.log(`FAILED: ${problem}`)
  const caught = rows.filter(({ seeds }) => seeds !== null).length + byTest.filter(({ problem }) => problem === null).length
  console.log(`mutate: ${caught} of ${rows.length + byTest.length} mutations caught`)
  process.exitCode = problems.length === 0 ? 0 : 1
}

/** Failures of suites on unchanged sources: none. */
async function baseline() {
  if (chosen.length === 0) return []
  const most = new Map()
  for (const { by, within } of chosen) most.set(by, Math.max(most.get(by) ?? 0, within))
  const done = timed(
    console.log,
    `mutate: ${[...most].map(([by, seeds]) => `${seeds} seeds of ${by}`).join(', ')} on the sources as they are`,
  )
  const results = await inTurns([...most], async ([by, seeds]) => ({ by, ...(await run('none', by, seeds)) }))
  const failed = results
    .filter(({ error }) => error !== null)
    .map(({ by, seeds, error }) => `${by} fails without any mutation at seed ${seeds - 1}: ${error}`)
  done(failed.length === 0 ? 'passed' : 'FAILED')
  return failed
}

async function find() {
  for (const { id } of chosen) {
    const found = []
    for (const [by, max] of Object.entries(SEEDS)) {
      const { seeds, error, isTold } = await run(id, by, max)
      if (error !== null) found.push(`${by} ${isTold ? seeds : '?'} (${short(error)})`)
    }
    console.log(`${id}: ${found.join(' | ') || 'NOT CAUGHT'}`)
  }
}

/** @returns {Promise<{ seeds: number, error: string | null, isTold: boolean }>} `isTold` false: the process ended without a word, or was too slow */
function run(id, by, seeds) {
  return new Promise((resolve) => {
    const child = spawnWithUs(process.execPath, ['--no-warnings', join(root, 'scripts/mutate-run.mjs'), id, by, String(seeds)], {
      cwd: root,
    })
    let output = ''
    child.stdout.on('data', (data) => {
      output += data
    })
    child.stderr.on('data', (data) => {
      output += data
    })
    let isLate = false
    const limit = setTimeout(() => {
      isLate = true
      endTree(child)
    }, LIMIT_MS)
    child.on('close', (code) => {
      clearTimeout(limit)
      const report = output.match(/^MUTANT (.*)$/m)
      if (report !== null) resolve({ ...JSON.parse(report[1]), isTold: true })
      else
        resolve({
          seeds,
          error: isLate ? `no end in ${LIMIT_MS / 1000} s` : `ended with ${code}: ${output.trim().slice(-500)}`,
          isTold: false,
        })
    })
  })
}

/** As many at once as there are cores; the results in the order of the list. */
async function inTurns(list, work) {
  const results = new Array(list.length)
  let next = 0
  const turn = async () => {
    for (let at = next++; at < list.length; at = next++) results[at] = await work(list[at])
  }
  await Promise.all(Array.from({ length: Math.min(4, os.availableParallelism()) }, turn))
  return results
}

function tableOf(rows) {
  const head = ['| mutation | where | caught by | seeds | at most | error |', '|---|---|---|---|---|---|']
  return [
    ...head,
    ...rows.map(({ what, file, by, within, seeds, error }) => {
      return `| ${what} | ${whereOf(file)} | ${by} | ${seeds ?? '–'} | ${within} | ${short(error ?? 'none').replaceAll('|', '\\|')} |`
    }),
  ].join('\n')
}

function tableByTest(rows) {
  const head = ['| mutation | where | caught by |', '|---|---|---|']
  return [
    ...head,
    ...rows.map(({ what, file, test, rule, problem }) => {
      return `| ${what} | ${whereOf(file)} | ${problem === null ? `${rule} in ${whereOf(test)}` : '–'} |`
    }),
  ].join('\n')
}

function whereOf(file) {
  return file.replace(/^packages\//, '').replace('/src/', '/')
}

function short(error) {
  const line = error.replace(/\s+/g, ' ')
  return line.length > 90 ? `${line.slice(0, 89)}…` : line
}

function write(table) {
  const text = readFileSync(DOCS, 'utf8')
  const [before, rest] = text.split(MARKS[0])
  const after = rest?.split(MARKS[1])[1]
  if (after === undefined) throw new Error(`docs/mutations.md lacks ${MARKS.join(' … ')}`)
  writeFileSync(DOCS, `${before}${MARKS[0]}\n${table}\n${MARKS[1]}${after}`)
}
