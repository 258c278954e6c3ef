/**
 * `node scripts/errors-of-tests.mjs`: which error codes do the tests produce, and are the messages in `docs/errors` like those that they saw? Runs all tests on a tree whose `PostgradError` writes down
 * each code and message, in some 15 minutes. Fails if a code that no test produces is not in `errors-untested.json`, with its reason, or one that is there is produced.
 *
 *   node scripts/errors-of-tests.mjs [paths of tests]
 *   node scripts/errors-of-tests.mjs --messages CODE    no tests: the messages that the last run saw
 *   node scripts/errors-of-tests.mjs --report           no tests: what the last run found
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { mutantTree } from './bundled-tree.mjs'
import { runLane } from './jest-lane.mjs'
import { read, root, setupOrExit } from './setup.mjs'

const LIMIT_MS = 3_600_000
const SEEN = join(root, '.cache/errors-of-tests')
const UNTESTED = join(root, 'scripts/errors-untested.json')
/** A process writes so many messages of a code. */
const MESSAGES_MAX = 20
/** An example with fewer of its words in a seen message is named. */
const LIKENESS_MIN = 0.7

/** The constructor, where it also writes down what it makes; a thread and a process have a file each. */
function writing(code) {
  const writer = `import { appendFileSync as write } from 'node:fs'
import { threadId } from 'node:worker_threads'
const seen = new Map()
function writeDown(code, message) {
  const messages = seen.get(code) ?? new Set()
  if (messages.size >= ${MESSAGES_MAX} || messages.has(message)) return
  seen.set(code, messages.add(message))
  try {
    write(${JSON.stringify(`${SEEN}/`)} + process.pid + '-' + threadId, JSON.stringify([code, message]) + '\\n')
  } catch {
    // A test of a process that may open no more files.
  }
}
`
  const at = 'this.code = code;'
  if (code.split(at).length !== 2) throw new Error(`'${at}' is not once in the constructor of PostgradError`)
  return `${writer}${code.replace(at, `${at}\n        writeDown(code, this.message);`)}`
}

/** Code → messages. */
function seenByTests() {
  const found = new Map()
  for (const name of existsSync(SEEN) ? readdirSync(SEEN) : [])
    for (const line of read(join(SEEN, name)).trim().split('\n')) {
      // A process that was killed may leave half a line.
      if (!line.endsWith(']')) continue
      const [code, message] = JSON.parse(line)
      found.set(code, (found.get(code) ?? new Set()).add(message))
    }
  return found
}

/** Of a message, its words of some length: names and numbers of a case are few of them. */
const wordsOf = (message) => message.match(/[A-Za-z]{4,}/g) ?? []

/** Which part of an example's words occurs in the seen message that is most like it. */
function likeness(example, messages) {
  const words = wordsOf(example)
  const parts = [...messages].map((message) => {
    const seen = new Set(wordsOf(message))
    return words.length === 0 ? 0 : words.filter((word) => seen.has(word)).length / words.length
  })
  return Math.max(...parts)
}

const [mode, ...given] = process.argv.slice(2)
if (mode === '--messages') {
  for (const code of given) for (const message of seenByTests().get(code) ?? []) console.log(`${code} ${message}`)
} else {
  await setupOrExit()
  const isWhole = mode === undefined || mode === '--report'
  if (mode !== '--report') await runTests()
  // Set-up installs what it imports.
  const { codesOfProduct, exampleOf, pagesOf } = await import('./check-errors.mjs')
  report(codesOfProduct(), pagesOf(), exampleOf, isWhole)
}

async function runTests() {
  rmSync(SEEN, { recursive: true, force: true })
  mkdirSync(SEEN, { recursive: true })
  const path = join(root, 'packages/base/dist/errors.js')
  const at = join(root, '.cache/mutants/errors-of-tests')
  try {
    const tree = await mutantTree(at, { path, code: writing(read(path)) })
    for (const lane of ['unit', 'sim', 'real']) {
      const { passed, failed } = await runLane(lane, process.argv.slice(2), { tree, limitMs: LIMIT_MS })
      console.log(`errors of tests: ${lane}: ${passed} passed, ${failed} failed`)
      if (failed > 0) process.exitCode = 1
    }
  } finally {
    rmSync(at, { recursive: true, force: true })
  }
}

/** @param isWhole all tests have run: a code that none has produced is named */
function report(codes, pages, exampleOf, isWhole) {
  const seen = seenByTests()
  const untested = JSON.parse(read(UNTESTED) ?? '{}')
  const problems = []
  for (const code of codes.keys()) {
    if (isWhole && !seen.has(code) && untested[code] === undefined)
      problems.push(`${code}: no test produces it. Write one, or give the reason in scripts/errors-untested.json.`)
    if (seen.has(code) && untested[code] !== undefined)
      problems.push(`${code}: a test produces it. Remove it from scripts/errors-untested.json.`)
  }
  const unlike = []
  for (const [page, text] of pages)
    for (const [code, example] of exampleOf(text))
      if (seen.has(code) && likeness(example, seen.get(code)) < LIKENESS_MIN) unlike.push(`${page}: ${code}`)
  for (const problem of problems) console.error(problem)
  if (unlike.length > 0) console.log(`Examples that are unlike each message that a test has seen:\n  ${unlike.join('\n  ')}`)
  console.log(
    `errors of tests: ${codes.size} codes, ${[...codes.keys()].filter((code) => seen.has(code)).length} produced, ${problems.length} problems`,
  )
  if (problems.length > 0) process.exitCode = 1
}
