/**
 * Plain English, as far as a program can count it. For each package, and for each folder of documents, it counts phrases that make a reader parse a sentence
 * twice, in Markdown outside of code, in comments, and in messages (strings with a space). No count may rise above its ceiling in `english-ceilings.json`, and
 * a count that has fallen lowers its ceiling. Run by `npm test`; alone:
 *
 *   npm run english                        checks
 *   npm run english -- --list PATH …       the places in files whose path begins with PATH
 *   npm run english -- --words PATH …      words of the Markdown files, without code
 *   npm run english -- --write             lowers the ceilings; it raises none
 *
 * Each run first proves that every pattern finds something.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from '@typescript/typescript6'
import { read, root } from './setup.mjs'

/** By name: what is counted, a sentence that has it, and what to write in its place. */
const PATTERNS = {
  whoever: [/\bwho(?:so)?ever\b/gi, 'Whoever asks waits.', 'name who acts: a worker, a process, a user'],
  behind: [/\bbehind\b/gi, 'It comes behind the others.', 'after'],
  beside: [/\bbesides?\b/gi, 'It stands beside it.', 'next to, in addition to, at the same time'],
  told: [/\b(?:told|tells?)\b/gi, 'The others are told.', 'is notified, receives, says'],
  hears: [/\b(?:hears?|heard)\b/gi, 'It hears of it.', 'learns, receives'],
  stands: [/\bstands?\b|\bstood\b/gi, 'It stands there.', 'is, waits'],
  'goes on': [/\bgo(?:es)? on\b|\bwent on\b/gi, 'It goes on.', 'continues'],
  'is CODE': [/\b(?:is|are|was|were) `?[A-Z]{2,}_[A-Z_]+\b/g, 'Others are WORKER_DIED.', 'fails with CODE, is rejected with CODE'],
  'is no': [/\b(?:is|are|was|were) no\b(?! (?:longer|more)\b)/gi, 'It is no leak.', 'is not a'],
  'free relative': [
    /(?:^|[.:;!?] +|\| +|- +)(?:What(?! to do:)|Who|Of what|Of which|With what|For what|By what)\b(?![^.:;!?]*\?)/g,
    'What is left stays.',
    'name the actor: a peer that, a value that',
  ],
}

/** The sentences of a file, as [line, text, whether it is a string]: of Markdown all but code, of TypeScript and JavaScript comments, and strings with a space. */
function proseOf(path, text) {
  return path.endsWith('.md') ? markdownProse(text) : sourceProse(text)
}

function markdownProse(text) {
  let isCode = false
  return text.split('\n').flatMap((line, i) => {
    if (/^\s*(```|~~~)/.test(line)) {
      isCode = !isCode
      return []
    }
    return isCode ? [] : [[i + 1, line, false]]
  })
}

function sourceProse(text) {
  const file = ts.createSourceFile('x.ts', text, ts.ScriptTarget.Latest, false)
  const starts = file.getLineStarts()
  const lineAt = (position) => ts.computeLineAndCharacterOfPosition(starts, position).line + 1
  /** By position. */
  const found = new Map()
  const asked = new Set()
  const comments = (position) => {
    if (asked.has(position)) return
    asked.add(position)
    for (const { pos, end } of [
      ...(ts.getLeadingCommentRanges(text, position) ?? []),
      ...(ts.getTrailingCommentRanges(text, position) ?? []),
    ])
      found.set(pos, [text.slice(pos, end).replace(/^\/\*+|^\/\/|\*\/$/g, ''), false])
  }
  const visit = (node) => {
    comments(node.getFullStart())
    comments(node.end)
    const isText =
      ts.isStringLiteral(node) ||
      ts.isNoSubstitutionTemplateLiteral(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddleOrTemplateTail(node)
    if (isText && node.text.includes(' ')) found.set(node.getStart(file), [node.text, true])
    ts.forEachChild(node, visit)
  }
  visit(file)
  return [...found].flatMap(([position, [prose, isString]]) => {
    const first = lineAt(position)
    return prose.split('\n').map((line, i) => [first + i, line.replace(/^\s*\*?\s*/, ''), isString])
  })
}

/** All places in a file where a pattern matches, as [line, name of the pattern, text, area]. */
function placesIn(path, text) {
  const [place, isTest] = [placeOf(path), TESTS.test(path)]
  return proseOf(path, text).flatMap(([line, prose, isString]) => {
    const area = isTest ? `${place} tests` : isString ? `${place} messages` : place
    return Object.entries(PATTERNS).flatMap(([name, [pattern]]) => [...prose.matchAll(pattern)].map(() => [line, name, prose.trim(), area]))
  })
}

const TESTS = /\.(test|suite|fixture)\.[a-z]+$|\/fixtures\//

/** A package, an app, or a folder of documents. Tests and messages count apart. */
function placeOf(path) {
  return path.match(/^((?:packages|apps)\/[^/]+|docs\/[^/]+(?=\/)|docs|scripts)\//)?.[1] ?? 'top'
}

/** Not the page that `npm run mutate` writes, and not this file, whose patterns find themselves. */
function isCounted(path) {
  return /\.(md|ts|mts|mjs)$/.test(path) && !/\.d\.ts$|^docs\/mutations\.md$|^scripts\/check-english\.mjs$/.test(path)
}

function wordsOf(text) {
  return markdownProse(text).reduce((sum, [, line]) => sum + (line.match(/[\p{L}\p{N}][\p{L}\p{N}'’.-]*/gu)?.length ?? 0), 0)
}

/** Compares counts, by area and pattern, with their ceilings. Each count that has risen gets a line, and so does each that has fallen. */
function compared(counts, ceilings) {
  const [risen, fallen] = [[], []]
  for (const area of new Set([...Object.keys(counts), ...Object.keys(ceilings)])) {
    for (const [name, [, , instead]] of Object.entries(PATTERNS)) {
      const [count, ceiling] = [counts[area]?.[name] ?? 0, ceilings[area]?.[name] ?? 0]
      const said = `${area}: '${name}' ${count} times`
      if (count > ceiling) risen.push(`${said}, at most ${ceiling}. Write ${instead}; npm run english -- --list ${area.split(' ')[0]}`)
      if (count < ceiling) fallen.push(`${said}; lower its ceiling of ${ceiling}: npm run english -- --write`)
    }
  }
  return { risen, fallen }
}

for (const [name, [pattern, sentence]] of Object.entries(PATTERNS)) {
  assert.equal(placesIn('x.md', sentence).filter(([, found]) => found === name).length, 1, `${name} finds its sentence`)
  assert.equal(placesIn('x.md', `\`\`\`\n${sentence}\n\`\`\``).length, 0)
  assert.ok(pattern.global)
}
const source = `/** Whoever asks. */\n/** What comes. */ // Who asks.\nconst a = 'it hears of it', b = \`told \${a} behind\` // beside\n`
assert.deepEqual(
  placesIn('x.ts', source)
    .map(([line, name]) => `${line} ${name}`)
    .sort(),
  ['1 whoever', '2 free relative', '2 free relative', '3 behind', '3 beside', '3 hears', '3 told'],
)
const lengths = (counts, ceilings) => Object.values(compared(counts, ceilings)).map((list) => list.length)
assert.deepEqual(lengths({ a: { told: 2 } }, { a: { told: 1 } }), [1, 0])
assert.deepEqual(lengths({}, { a: { told: 1 } }), [0, 1])
assert.deepEqual(lengths({ a: { told: 1 } }, { a: { told: 1 } }), [0, 0])

const CEILINGS = join(root, 'scripts/english-ceilings.json')
const [mode, ...given] = process.argv.slice(2)
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, maxBuffer: 2 ** 26 })
  .toString()
  .split('\0')
  .filter(isCounted)
const wanted = given.length === 0 ? files : files.filter((path) => given.some((begin) => path.startsWith(begin)))

if (mode === '--words') {
  let sum = 0
  for (const path of wanted.filter((name) => name.endsWith('.md'))) {
    const words = wordsOf(read(join(root, path)) ?? '')
    sum += words
    console.log(`${String(words).padStart(7)} ${path}`)
  }
  console.log(`${String(sum).padStart(7)} in all`)
} else if (mode === '--list') {
  for (const path of wanted)
    for (const [line, name, text] of placesIn(path, read(join(root, path)) ?? '')) console.log(`${path}:${line} '${name}' ${text}`)
} else {
  // Always of all files: ceilings of areas that were left out would be lost.
  const counts = {}
  let total = 0
  for (const path of files) {
    for (const [, name, , area] of placesIn(path, read(join(root, path)) ?? '')) {
      counts[area] ??= {}
      counts[area][name] = (counts[area][name] ?? 0) + 1
      total++
    }
  }
  const { risen, fallen } = compared(counts, JSON.parse(read(CEILINGS)))
  if (mode === '--write' && risen.length === 0) writeFileSync(CEILINGS, `${JSON.stringify(counts, null, 2)}\n`)
  const problems = mode === '--write' ? risen : [...risen, ...fallen]
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
  console.log(`English: ${files.length} files, ${total} phrases that are read twice, ${problems.length} problems`)
}
