/**
 * Checks what an editor shows of the names that users import: every name of a `postgrad` door has a doc comment where it is declared (not `@throws …` alone),
 * every class and function has an `@example`, and each `@example` compiles. `api-report.mjs`, which has the program of all declarations, calls it.
 *
 * Each run first proves that a name without documentation, one without an example, and an example that does not compile are found.
 */
import assert from 'node:assert/strict'
import { join, relative } from 'node:path'
import ts from '@typescript/typescript6'
import { root } from './setup.mjs'

/** Declarations and how users import them; the last wins where two have a name. */
export const DOORS = [
  ['testing-matchers', 'postgrad/testing/matchers'],
  ['testing', 'postgrad/testing'],
  ['types', 'postgrad/types'],
  ['pipelining', 'postgrad/pipelining'],
  ['jobs', 'postgrad/jobs'],
  ['training', 'postgrad/training'],
  ['distributed', 'postgrad/distributed'],
  ['data', 'postgrad/data'],
  ['optim', 'postgrad/optim'],
  ['nn', 'postgrad/nn'],
  ['nn-functional', 'postgrad/nn/functional'],
  ['index', 'postgrad'],
]

/** The declarations of tensor operations, and of functions that make tensors. `check-examples.mjs` sees to their examples, each of which states its result. */
export const OPERATIONS = /^packages\/(tensor\/dist\/(ops\/|sparse\/operations|tensor\/create)|autograd\/dist\/api\/functions)/

/** One line for each that is missing or wrong. */
export function wrongDocs(program, options) {
  prove(options)
  return problemsOf(program, options)
}

function problemsOf(program, options) {
  const checker = program.getTypeChecker()
  const names = publicNames(program, DOORS)
  return [...new Set([...wordless(checker, names), ...withoutExample(checker, names)]), ...brokenExamples(program, names, options)]
}

/** All names of these doors: { name, symbol, door, space, file, text }. */
export function publicNames(program, doors) {
  return doors.flatMap(([door, from]) => namesOf(program.getTypeChecker(), exportsOf(program, door), from))
}

/** The fields and methods of tensors, as `publicNames` gives names. The compiler makes an in-place form of its operation: it has no declaration, and is not among them. */
export function membersOfTensor(checker, names) {
  const { symbol, door } = names.find(({ name, symbol: each }) => name === 'Tensor' && each.flags & ts.SymbolFlags.Class)
  const members = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)).filter(({ declarations }) => declarations)
  return members.map((member) => {
    const file = relative(root, member.declarations[0].getSourceFile().fileName)
    return { name: member.name, symbol: member, door, space: '', file, text: `Tensor.${member.name} (${file})` }
  })
}

/** The symbols that a door exports. */
function exportsOf(program, door) {
  const checker = program.getTypeChecker()
  return checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(join(root, `packages/postgrad/dist/${door}.d.ts`))))
}

/** The names of a door: { name, symbol, door, space }. For a namespace, of which an editor shows no documentation, those inside with the `space` that they are in. */
function namesOf(checker, symbols, door, space = '') {
  return symbols.flatMap(({ name, flags }, i) => {
    const symbol = flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbols[i]) : symbols[i]
    const declaration = symbol.declarations?.[0]
    if (declaration === undefined) return []
    if (ts.isSourceFile(declaration)) return namesOf(checker, checker.getExportsOfModule(symbol), door, name)
    const file = relative(root, declaration.getSourceFile().fileName)
    return [{ name, symbol, door, space, file, text: `${space && `${space}.`}${name} (${file})` }]
  })
}

/** Names without documentation. */
function wordless(checker, names) {
  return names.filter(({ symbol }) => symbol.getDocumentationComment(checker).length === 0).map(({ text }) => text)
}

/** Classes, and functions other than tensor operations, that have no `@example`. */
function withoutExample(checker, names) {
  const missing = names.filter(({ symbol, file }) => {
    if (!(symbol.flags & ts.SymbolFlags.Value) || OPERATIONS.test(file) || examplesOf(checker, symbol).length > 0) return false
    return symbol.flags & ts.SymbolFlags.Class || checker.getTypeOfSymbol(symbol).getCallSignatures().length > 0
  })
  return missing.map(({ text }) => `${text}: it has no @example`)
}

/** Each declaration once: a function is also a method, and may be in several doors. */
export function byDeclaration(names) {
  return new Map(names.map((one) => [one.symbol.declarations[0], one])).values()
}

export function examplesOf(checker, symbol) {
  const tags = symbol.getJsDocTags(checker).filter((tag) => tag.name === 'example')
  return tags.map(({ text }) => ts.displayPartsToString(text))
}

/**
 * Each `@example` of a name that users import, or of a member of tensors, compiled as a function in which all of these names, a tensor `x` and an exposed
 * `addOne` are at hand. If two doors have a name (`init`, `gather`), the example of either means its own.
 */
function brokenExamples(program, names, options) {
  const checker = program.getTypeChecker()
  const from = new Map(names.filter(({ name, space }) => space === '' && name !== 'var').map(({ name, door }) => [name, door]))
  const all = [...byDeclaration([...names, ...membersOfTensor(checker, names)])]
  const examples = all.flatMap((each) => examplesOf(checker, each.symbol).map((text) => ({ ...each, text })))
  /** By line, the name whose example it is part of. */
  const owners = []
  const lines = []
  const add = (name, ...added) => {
    owners.push(...added.map(() => name))
    lines.push(...added)
  }
  for (const [name, door] of from) add('', `import { ${name} } from '${door}'`)
  add('', 'declare const x: Tensor', 'declare const addOne: (a: Tensor) => Tensor')
  for (const [i, { name, space, door, text }] of examples.entries()) {
    const own = space || name
    const isOther = from.has(own) && from.get(own) !== door
    if (isOther) add(name, `import { ${own} as own${i} } from '${door}'`)
    add(name, `export async function example${i}(${isOther ? `${own}: typeof own${i}` : ''}) {`, ...text.split('\n'), '}')
  }
  const file = join(root, 'packages/postgrad/src/examples.ts')
  const host = ts.createCompilerHost(options)
  const { getSourceFile } = host
  host.getSourceFile = (name, ...rest) =>
    name === file ? ts.createSourceFile(file, lines.join('\n'), ...rest) : (program.getSourceFile(name) ?? getSourceFile(name, ...rest))
  const compiled = ts.createProgram({
    rootNames: [file],
    options: { ...options, lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'] },
    host,
  })
  return ts.getPreEmitDiagnostics(compiled, compiled.getSourceFile(file)).map(({ start, messageText }) => {
    const { line } = compiled.getSourceFile(file).getLineAndCharacterOfPosition(start)
    return `${owners[line]}, its @example: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}

// ---- the proof that each problem is found ----

function prove(options) {
  const sources = {
    index: `export declare function wordless(): void
/** It has no example. */
export declare class Bare {}
/**
 * Its example is of two lines, and wrong in the second.
 * @example
 * const n = init(1) // a number
 * init(n.name)
 */
export declare function init(n: number): number
/** @example Tensor */
export declare class Tensor {}
/** A type needs no example. */
export interface Shape {}`,
    nn: "export * as init from './plugin.js'",
    plugin: `/**
 * In its example \`init\` is its namespace.
 * @example init.ones_()
 */
export declare function ones_(): void
/** @example init.ones_(1) */
export declare function zeros_(): void`,
  }
  const file = 'packages/postgrad/dist/index.d.ts'
  assert.deepEqual(problemsOf(fixture(sources, options), options), [
    'init.zeros_ (packages/postgrad/dist/plugin.d.ts)',
    `wordless (${file})`,
    `Tensor (${file})`,
    `wordless (${file}): it has no @example`,
    `Bare (${file}): it has no @example`,
    'zeros_, its @example: Expected 0 arguments, but got 1.',
    "init, its @example: Property 'name' does not exist on type 'number'.",
  ])
}

/** A program of these declarations in place of those of `postgrad`; other doors have nothing. */
function fixture(sources, options) {
  const folder = join(root, 'packages/postgrad/dist')
  const files = new Map(DOORS.map(([door]) => [join(folder, `${door}.d.ts`), sources[door] ?? 'export {}']))
  for (const [name, text] of Object.entries(sources)) files.set(join(folder, `${name}.d.ts`), text)
  const host = ts.createCompilerHost(options)
  const { getSourceFile } = host
  host.getSourceFile = (name, ...rest) =>
    files.has(name) ? ts.createSourceFile(name, files.get(name), ...rest) : getSourceFile(name, ...rest)
  return ts.createProgram({ rootNames: [...files.keys()], options, host })
}
