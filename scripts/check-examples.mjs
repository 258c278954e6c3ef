/**
 * Runs the examples in doc comments, and compares their results with the comments in them. `api-report.mjs`, which has the program of all declarations, calls it.
 *
 * A result is a comment at the end of a line: `tensor([1, 2]).add(3) // [4, 5]`, after an expression or after `const y = …`. It is the value that `toArray()` gives, with at
 * most 4 digits after the point, or `shape [2, 3]` where values are random or many, or `fails with CODE`. After it a colon and a reason may follow: `// [0, 2]: halves go to the even number`.
 *
 * Examples of distributed functions run on the workers of a simulation. `x` is [[1, 2], [3, 4]]; `addOne` and `Linear` are exposed. Collectives run on all ranks, of
 * which each may have its result: `// rank 0: [2], rank 1: [20]`. All else runs on worker0. Examples that start threads or use files state no result: one that does is refused.
 *
 * Each operation needs a result. An operation that is a method as well has one doc comment for both, so one example suffices, with either. A method that only
 * tensors have needs its own. An in-place form has the example of its operation: `clamp_` that of `clamp`.
 *
 * Each run first proves that a wrong example, and an operation without one, are found.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from '@typescript/typescript6'
import { byDeclaration, DOORS, examplesOf, membersOfTensor, OPERATIONS, publicNames } from './api-docs.mjs'
import { root } from './setup.mjs'

/** How an example runs that states a result: the first that fits. Elsewhere examples start workers or write files: they are only compiled, and state none. */
const RUNS = [
  [
    'worker0',
    /^packages\/((rpc|dist-autograd)\/dist\/|base\/dist\/futures\/wait-all|parallel\/dist\/(clip-grad|distributed-optimizer|remote-))/,
  ],
  ['here', /^packages\/((tensor|autograd|nn|base|data|transport|testing|sim)\/dist\/|parallel\/dist\/pipelining\/(?!pipeline\.))/],
  ['all', /^packages\/(process-group|parallel)\/dist\//],
]
/** A result, with the reason after it; all else after `//` is a remark: `// 4 sequences of 5 tokens`. */
const LITERAL = /(?:[[\]{}, ]|-?(?:\d+(?:\.\d+)?|Infinity)(?![\w.])|(?:true|false|null|undefined|NaN)\b|'[^']*'|(?<=[{,] )\w+: )+/
const RESULT = new RegExp(`^(?:fails with [A-Z_]+|(?:shape )?${LITERAL.source})(?:: |$)|^rank 0: `)

/** One line for each example that is wrong, and for each operation that has none. */
export async function wrongResults(program) {
  await prove()
  const { wrong, counts } = await problemsOf(documented(program, DOORS), await library())
  console.log(`examples: ${counts.operations} operations, ${counts.results} results compared, ${wrong.length} problems`)
  return wrong
}

/** All that a program can import, by name, and what `own` gives in the place of a name that two doors have. */
async function library() {
  const url = (door) => pathToFileURL(join(root, `packages/postgrad/dist/${door}.js`)).href
  const modules = new Map(await Promise.all(DOORS.map(async ([door, from]) => [from, await import(url(door))])))
  const all = [...modules.values()].flatMap((module) => Object.entries(module)).filter(([name]) => name !== 'var')
  const names = Object.fromEntries(all)
  const addOne = (a) => a.add(1)
  names.expose({ addOne, Linear: names.Linear })
  const x = names.tensor(
    [
      [1, 2],
      [3, 4],
    ],
    { requiresGrad: true },
  )
  return { names: { ...names, x, addOne }, own: (door, name) => modules.get(door)[name] }
}

/** Names that users import from these doors, and the members of tensors: { name, file, door, space, isOperation, examples }, each declaration once. */
function documented(program, doors) {
  const checker = program.getTypeChecker()
  const names = publicNames(program, doors)
  return [...byDeclaration([...names, ...membersOfTensor(checker, names)])].map(({ name, symbol, door, space, file }) => {
    const isValue = (symbol.flags & (ts.SymbolFlags.Function | ts.SymbolFlags.Variable | ts.SymbolFlags.Property)) !== 0
    return { name, file, door, space, isOperation: isValue && OPERATIONS.test(file), examples: examplesOf(checker, symbol) }
  })
}

/** @param found as `documented` gives it @param library the values that examples may use */
async function problemsOf(found, { names, own }) {
  const wrong = []
  const counts = { operations: 0, results: 0 }
  for (const { name, file, door, space, isOperation, examples } of found) {
    let results = 0
    const [where] = RUNS.find(([, files]) => files.test(file)) ?? []
    for (const example of examples) {
      if (where === undefined) {
        if (withChecks(example).results > 0)
          wrong.push(
            `${name} (${file}): its @example states a result, which nothing compares. Reword the remark, or let the file run (RUNS)`,
          )
        continue
      }
      const known = space || name
      const value = known in names ? own(door, known) : undefined
      const ran = await run(example, value === undefined ? names : { ...names, [known]: value }, where)
      results += ran.results
      wrong.push(...ran.wrong.map((why) => `${name}, its @example: ${why}`))
    }
    if (isOperation && results === 0)
      wrong.push(`${name} (${file}): no @example with a result; write one, as in: @example tensor([1, 2]).add(3) // [4, 5]`)
    counts.operations += isOperation ? 1 : 0
    counts.results += results
  }
  return { wrong, counts }
}

/** Runs one example: how many results it states, and which are wrong. Without a result it does not run. */
async function run(example, names, where) {
  const { code, results } = withChecks(example)
  if (results === 0) return { results, wrong: [] }
  const wrong = new Set()
  const check = async (expression, result) => {
    const said = result.startsWith('rank 0: ') ? ofRank(result, names.getWorkerInfo().id) : result
    const is = await resultOf(expression, said.startsWith('shape '))
    if (said !== is && !said.startsWith(`${is}: `)) wrong.add(`says ${said}, but the result is ${is}`)
  }
  try {
    const { outputText } = ts.transpileModule(`async function example() {\n${code}\n}`, {
      compilerOptions: { target: ts.ScriptTarget.ES2022 },
    })
    const body = () =>
      new Function(...Object.keys(names), 'check', `'use strict'\n${outputText}\nreturn example()`)(...Object.values(names), check)
    await (where === 'here' ? body() : simulated(example, body, names, where))
  } catch (error) {
    wrong.add(String(error))
  }
  return { results, wrong: [...wrong] }
}

/** Runs `body` on worker0 or on all workers of a simulation: two, unless the example has results of more ranks. */
function simulated(example, body, { simulate, initProcessGroup }, where) {
  const ranks = [...example.matchAll(/\brank (\d+): /g)].map(([, rank]) => Number(rank))
  const ids = Array.from({ length: Math.max(1, ...ranks) + 1 }, (_, id) => id)
  const inGroup = async () => {
    if (!example.includes('initProcessGroup')) await initProcessGroup()
    await body()
  }
  return simulate({ workers: ids.length }, async (sim) => {
    if (where === 'worker0') await sim.on(0).run(body)
    else await Promise.all(ids.map((id) => sim.on(id).run(inGroup)))
  })
}

/** The result that an example states for one rank. */
function ofRank(result, rank) {
  return result.split(/(?:^|, )rank \d+: /)[rank + 1] ?? `nothing about rank ${rank}`
}

async function resultOf(expression, isShape) {
  try {
    const value = await expression()
    return isShape ? `shape ${textOf(value.shape)}` : textOf(value)
  } catch (error) {
    return error.code === undefined ? String(error) : `fails with ${error.code}`
  }
}

/** The example with a call of `check` in place of each expression that has a result after it. */
function withChecks(example) {
  const source = ts.createSourceFile('example.ts', example, ts.ScriptTarget.Latest, true)
  let code = ''
  let results = 0
  for (const statement of source.statements) {
    const said = resultAfter(example, statement.end)
    const expression = said === null ? null : subjectOf(statement)
    if (expression === null) code += `${statement.getText()}\n`
    else {
      results++
      const isWhole = expression.parent === statement
      code += `${isWhole ? '' : `${statement.getText()}\n`}await check(async () => ${isWhole ? `(${expression.getText()})` : expression.getText()}, ${JSON.stringify(said)})\n`
    }
  }
  return { code, results }
}

/** The value that a result is about: of an expression as a statement, or of the only name that `const` declares. */
function subjectOf(statement) {
  if (ts.isExpressionStatement(statement)) return statement.expression
  if (!ts.isVariableStatement(statement) || statement.declarationList.declarations.length !== 1) return null
  const [{ name }] = statement.declarationList.declarations
  return ts.isIdentifier(name) ? name : null
}

function resultAfter(text, end) {
  const [comment] = ts.getTrailingCommentRanges(text, end) ?? []
  const said = comment === undefined ? '' : text.slice(comment.pos + 2, comment.end).trim()
  return RESULT.test(said) ? said : null
}

/** A value as an example states it. */
function textOf(value) {
  if (typeof value === 'number') return String(Number.isInteger(value) ? value : Number(value.toFixed(4)))
  if (typeof value === 'string') return `'${value}'`
  if (typeof value !== 'object' || value === null) return String(value)
  if (typeof value.toArray === 'function') return textOf(value.toArray())
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return `[${Array.from(value, textOf).join(', ')}]`
  return `{ ${Object.entries(value)
    .map(([key, each]) => `${key}: ${textOf(each)}`)
    .join(', ')} }`
}

// ---- the proof that each problem is found ----

async function prove() {
  const names = {
    numbers: (...each) => each,
    tensor: (...each) => ({ shape: [each.length], toArray: () => each }),
    fail: () => {
      throw Object.assign(new Error(), { code: 'INVALID_ARGUMENT' })
    },
  }
  const cases = [
    ['numbers(1, 2) // [1, 2]', /^$/],
    ['numbers(1, 2) // [1, 3]', /^f, its @example: says \[1, 3\], but the result is \[1, 2\]$/],
    ['numbers(1 / 3, 1e-9, NaN) // [0.3333, 0, NaN]: rounded', /^$/],
    ['numbers(1 / 3) // [0.33]', /the result is \[0\.3333\]$/],
    ['tensor(5, 6) // shape [2]', /^$/],
    ['tensor(5, 6) // shape [3]', /says shape \[3\], but the result is shape \[2\]$/],
    ['tensor(true, null) // [true, false]', /the result is \[true, null\]$/],
    ["({ a: 1, b: 'c' }) // { a: 1, b: 'd' }", /the result is { a: 1, b: 'c' }$/],
    ['const y = numbers(1) // [2]\ny.push(3)\ny // [1, 3]', /^f, its @example: says \[2\], but the result is \[1\]$/],
    ['const y: number[] = await numbers(1) // [1]', /^$/],
    ['number(1) // [1]', /says \[1\], but the result is ReferenceError: number is not defined$/],
    ['number(1)\nnumbers(1) // [1]', /^f, its @example: ReferenceError: number is not defined$/],
    ['fail(numbers()) // fails with INVALID_ARGUMENT: it is empty', /^$/],
    ['fail(numbers()) // fails with NO_ROOTS', /says fails with NO_ROOTS, but the result is fails with INVALID_ARGUMENT$/],
    ['fail(numbers()) // []', /says \[\], but the result is fails with INVALID_ARGUMENT$/],
    ['numbers(1) // fails with NO_ROOTS', /but the result is \[1\]$/],
    ['numbers(1) // 3 numbers\nnumbers(1) // [1], and [2]\nnumbers(1) // first: 1\nnumbers(1) // [1]: 2 and 3', /^$/],
    ['numbers(1)[0] // 2: one', /says 2: one, but the result is 1$/],
    ['numbers({ a: [1], b: null }) // [{ a: [1], b: null }]: one', /^$/],
    ['numbers(1, 2) // [1, 2], rounded', /: no @example with a result/],
    ['numbers(1) // its numbers', /^f \(packages\/tensor\/dist\/ops\/a\.d\.ts\): no @example with a result/],
    ['numbers(1)', /: no @example with a result/],
  ]
  const own = (door, name) => (door === 'postgrad' ? names[name] : { two: 2 })
  const f = { name: 'f', file: 'packages/tensor/dist/ops/a.d.ts', door: 'postgrad', space: '', isOperation: true }
  for (const [example, expected] of cases) {
    const { wrong } = await problemsOf([{ ...f, examples: [example] }], { names, own })
    assert.match(wrong.join('\n'), expected)
  }
  assert.deepEqual((await problemsOf([{ ...f, isOperation: false, examples: ['numbers(1)'] }], { names, own })).wrong, [])
  const elsewhere = { ...f, isOperation: false, file: 'packages/cluster/dist/a.d.ts', examples: ['numbers(1) // one', 'numbers(1) // [1]'] }
  assert.match(
    (await problemsOf([elsewhere], { names, own })).wrong.join('\n'),
    /^f \(packages\/cluster.*states a result, which nothing compares[^\n]*$/,
  )
  const inSpace = [{ ...f, door: 'postgrad/nn', space: 'numbers', examples: ['numbers.two // 2'] }]
  assert.deepEqual((await problemsOf(inSpace, { names, own })).wrong, [])
  await proveRanks(names)
  const found = documented(fixture(), [['index', 'postgrad']]).map(({ name, isOperation, examples }) => [name, isOperation, ...examples])
  assert.deepEqual(found, [
    ['f', true, 'f(1) // 2'],
    ['h', true],
    ['Tensor', false],
    ['launch', false],
    ['shape', false],
    ['g', true, 'tensor(1).g() // 1'],
  ])
}

/** An example that runs on all ranks, of which one has another result. */
async function proveRanks({ numbers }) {
  let rank = 0
  const names = {
    numbers,
    rankHere: () => rank,
    getWorkerInfo: () => ({ id: rank }),
    initProcessGroup: async () => {},
    simulate: async ({ workers }, body) => {
      const turns = []
      await body({ on: (id) => ({ run: async (fn) => void turns.push([id, fn]) }) })
      assert.equal(turns.length, workers)
      for (const [id, fn] of turns) {
        rank = id
        await fn()
      }
    },
  }
  const f = { name: 'f', file: 'packages/process-group/dist/a.d.ts', door: '', space: '', isOperation: false }
  const examples = ['numbers(7) // [7]', 'rankHere() // rank 0: 0, rank 1: 1, rank 2: 3', 'numbers(1) // rank 0: [1], rank 1: [1]']
  assert.deepEqual((await problemsOf([{ ...f, examples }], { names, own: () => undefined })).wrong, [
    'f, its @example: says 3, but the result is 2',
  ])
}

/** Declarations as the packages have them: a function that is a method as well, one that only tensors have, one without an example, and one that is not an operation. */
function fixture() {
  const sources = {
    'postgrad/dist/index.d.ts': `export { f, h } from '../../tensor/dist/ops/a.js'
export { Tensor } from '../../tensor/dist/tensor/tensor.js'
export { launch } from '../../cluster/dist/launch.js'`,
    'tensor/dist/ops/a.d.ts': `/** F. @example f(1) // 2 */
export declare const f: (a: number) => number
export declare function h(): void`,
    'tensor/dist/ops/inner/b.d.ts': `/**
 * G.
 * @example tensor(1).g() // 1
 */
export declare const g: () => number`,
    'tensor/dist/tensor/tensor.d.ts': `import type * as a from '../ops/a.js'
import type * as b from '../ops/inner/b.js'
type Methods<M> = { [P in keyof M]: M[P] }
type Marked<M> = { [P in keyof M as \`\${P & string}_\`]: M[P] }
export declare class Tensor { readonly shape: readonly number[] }
export interface Tensor extends Methods<typeof a>, Methods<typeof b>, Marked<typeof a> {}`,
    'cluster/dist/launch.d.ts': 'export declare function launch(): void',
  }
  const files = new Map(Object.entries(sources).map(([path, text]) => [join(root, 'packages', path), text]))
  const options = { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, noLib: true, types: [] }
  const host = ts.createCompilerHost(options)
  host.fileExists = (path) => files.has(path)
  host.readFile = (path) => files.get(path)
  host.getSourceFile = (path, version) => files.has(path) && ts.createSourceFile(path, files.get(path), version)
  return ts.createProgram({ rootNames: [...files.keys()], options, host })
}
