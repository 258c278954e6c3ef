/**
 * Every code of a `PostgradError` has a section in `docs/errors/`, from which `npx postgrad explain CODE` prints: what the cause is, what to do, and one message as it is printed. Refuses
 * a code without a section, a section without a code, and a section that lacks a part. Run by `npm test`.
 *
 *   node scripts/check-errors.mjs            checks
 *   node scripts/check-errors.mjs --list     prints each code with the files that have it
 *
 * A code is a literal that reaches the first parameter of `PostgradError`: it is written there, or where a function, a constructor or an object has a `code`.
 * Each run first proves that it can fail.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from '@typescript/typescript6'
import { projects, read, root, walk } from './setup.mjs'

const PAGES = join(root, 'docs/errors')
const CODE = /^[A-Z]+(_[A-Z0-9]+)+$/
const TO_DO = '**What to do:**'
/** Codes that no test produces, each with its reason; `errors-of-tests.mjs` finds them. */
const UNTESTED = join(root, 'scripts/errors-untested.json')
const UNTESTED_MAX = 30

/** The codes of some sources. @param files path → text @returns code → paths */
function codesOf(files) {
  const trees = [...files].map(([path, text]) => [path, ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)])
  /** By name of a function or class: which of its parameters is called `code`, in any file. A comparison throws no code. */
  const takers = new Map([['PostgradError', new Set([0])]])
  const compares = ['isPostgradError']
  for (const [, tree] of trees)
    eachNode(tree, (node) => {
      const at = node.parameters?.findIndex?.((one) => /^(\w+C|c)ode$/.test(one.name.text ?? '')) ?? -1
      const name = ts.isConstructorDeclaration(node) ? node.parent.name : (node.name ?? node.parent?.name)
      if (at >= 0 && name?.text !== undefined && !compares.includes(name.text))
        takers.set(name.text, (takers.get(name.text) ?? new Set()).add(at))
    })
  const found = new Map()
  const add = (path, node) => {
    for (const text of literalsOf(node)) if (CODE.test(text)) found.set(text, (found.get(text) ?? new Set()).add(path))
  }
  for (const [path, tree] of trees)
    eachNode(tree, (node) => {
      if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
        const { expression, arguments: given = [] } = node
        const places = takers.get(ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.text) ?? []
        for (const at of places) if (given[at] !== undefined) add(path, given[at])
      } else if (ts.isPropertyAssignment(node) && /^(\w+C|c)ode$/.test(node.name.text ?? '')) add(path, node.initializer)
      else if (ts.isVariableDeclaration(node) && /^(\w+C|c)ode$/.test(node.name.text ?? '') && node.initializer) add(path, node.initializer)
    })
  return found
}

function eachNode(node, visit) {
  visit(node)
  ts.forEachChild(node, (child) => eachNode(child, visit))
}

/** Of `'A'`, and of both ways of `x ? 'A' : 'B'` and `x ?? 'A'`. */
function literalsOf(node) {
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isBinaryExpression(node)) return [...literalsOf(node.left), ...literalsOf(node.right)]
  if (ts.isConditionalExpression(node)) return [...literalsOf(node.whenTrue), ...literalsOf(node.whenFalse)]
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return literalsOf(node.expression)
  return []
}

/** The sections of a page, as [code, lines]. */
function sectionsOf(text) {
  const sections = []
  for (const line of text.split('\n')) {
    const code = /^### `(\w+)`$/.exec(line)?.[1]
    if (code !== undefined) sections.push([code, []])
    else if (/^#{1,3} /.test(line)) sections.push([null, []])
    else sections.at(-1)?.[1].push(line)
  }
  return sections.filter(([code]) => code !== null)
}

/** What a section lacks. */
function lacksOf(lines) {
  const at = lines.findIndex((line) => line.startsWith(TO_DO))
  const example = lines.findIndex((line) => line.startsWith('~~~'))
  const texts = lines.filter((line) => line === '~~~text').length
  return [
    at > 0 && lines.slice(0, at).some((line) => line.trim() !== '') ? '' : 'a cause, above what to do',
    at < 0 ? `a paragraph that begins with '${TO_DO}'` : '',
    at >= 0 && example >= 0 && example < at ? 'its example after what to do' : '',
    texts === 1 ? '' : `one message, in a block that begins with '~~~text', not ${texts}`,
  ].filter(Boolean)
}

/** All that is wrong. @param codes code → paths @param pages name → text */
function problemsOf(codes, pages) {
  const problems = []
  const seen = new Map()
  for (const [page, text] of pages) {
    for (const [code, lines] of sectionsOf(text)) {
      if (seen.has(code)) problems.push(`${page}: ${code} has a section in ${seen.get(code)}, too. Keep one of them.`)
      seen.set(code, page)
      if (!codes.has(code)) problems.push(`${page}: no product code throws ${code}. Remove its section.`)
      for (const lack of lacksOf(lines)) problems.push(`${page}: the section of ${code} lacks ${lack}.`)
    }
  }
  for (const [code, paths] of codes)
    if (!seen.has(code))
      problems.push(`${[...paths][0]}: ${code} has no section in docs/errors. Say there what its cause is, and what to do.`)
  return problems
}

const source = `throw new PostgradError('A_B', {}); const bad = (op, code) => new PostgradError(code, { op }); bad('x', late ? 'C_D' : 'E_F'); f({ code: 'G_H' }); g('I_J')`
const codes = codesOf(new Map([['x.ts', source]]))
assert.deepEqual([...codes.keys()].sort(), ['A_B', 'C_D', 'E_F', 'G_H'])
const two = "function fail(code) {}; fail('A_B'); isPostgradError(error, 'I_J'); function isPostgradError(error, code) {}"
assert.deepEqual(
  [
    ...codesOf(
      new Map([
        ['x.ts', two],
        ['y.ts', "const fail = (op, code) => 0; fail('x', 'C_D')"],
      ]),
    ).keys(),
  ].sort(),
  ['A_B', 'C_D'],
)
const section = (code) => `### \`${code}\`\n\nIt failed.\n\n${TO_DO} Try again.\n\n~~~text\nadd: it failed.\n~~~\n`
const proof = (page) => problemsOf(new Map([['A_B', new Set(['x.ts'])]]), new Map([['x.md', page]])).length
assert.equal(proof(section('A_B')), 0)
assert.equal(proof(''), 1)
assert.equal(proof(section('A_B') + section('C_D')), 1)
assert.equal(proof(section('A_B') + section('A_B')), 1)
assert.equal(proof(section('A_B').replace('It failed.', '')), 1)
assert.equal(proof(section('A_B').replace(TO_DO, 'Then:')), 2)
assert.equal(proof(section('A_B').replace('~~~text', '~~~ts')), 1)

/** Code → files of the product. */
export function codesOfProduct() {
  const files = new Map()
  for (const folder of projects()) {
    if (/testing-cases$|apps\/bench$/.test(folder)) continue
    for (const { path } of walk(join(folder, 'src'))) {
      if (path.endsWith('.ts') && !/\.(test|suite|fixture)\.ts$|\/fixtures\//.test(path)) files.set(relative(root, path), read(path))
    }
  }
  return codesOf(files)
}

/** Name → text. */
export function pagesOf() {
  return new Map(readdirSync(PAGES).map((name) => [`docs/errors/${name}`, read(join(PAGES, name))]))
}

/** The messages of a page, as [code, message]. */
export function exampleOf(text) {
  return sectionsOf(text).map(([code, lines]) => {
    const from = lines.indexOf('~~~text') + 1
    return [code, lines.slice(from, lines.indexOf('~~~', from)).join('\n')]
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const codes = codesOfProduct()
  if (process.argv[2] === '--list') for (const [code, paths] of [...codes].sort()) console.log(`${code} ${[...paths].join(' ')}`)
  else check(codes)
}

function check(codes) {
  const pages = pagesOf()
  const untested = JSON.parse(read(UNTESTED))
  const problems = problemsOf(codes, pages)
  for (const code of Object.keys(untested))
    if (!codes.has(code)) problems.push(`scripts/errors-untested.json: no product code throws ${code}. Remove it.`)
  if (Object.keys(untested).length >= UNTESTED_MAX)
    problems.push(`scripts/errors-untested.json: fewer than ${UNTESTED_MAX} codes may be without a test.`)
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
  console.log(`errors: ${codes.size} codes, ${pages.size} pages, ${problems.length} problems`)
}
