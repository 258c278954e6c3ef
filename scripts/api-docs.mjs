/**
 * Checks what an editor shows of the names that users import: every name of a `postgrad` door has a doc comment where it is declared (not `@throws …` alone),
 * every class and function has an `@example`, and each `@example` compiles. `api-report.mjs`, which has the program of all declarations, calls it.
 */
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
  ['distributed', 'postgrad/distributed'],
  ['data', 'postgrad/data'],
  ['optim', 'postgrad/optim'],
  ['nn', 'postgrad/nn'],
  ['nn-functional', 'postgrad/nn/functional'],
  ['index', 'postgrad'],
]

/** Where tensor operations are declared. `check-examples.mjs` asks for their examples, each of which has one line with its result. */
export const OPERATIONS = /^packages\/(tensor\/dist\/(ops|sparse|tensor\/create)\b|autograd\/dist\/api\/functions\.)/

/** Classes and functions that a program never names, each with the reason. */
const WITHOUT_EXAMPLE = {}

/** One line for each that is missing or wrong. */
export function wrongDocs(program, options) {
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

/** Classes, and functions other than tensor operations, that have no `@example`; and those that need no exception. */
function withoutExample(checker, names) {
  const missing = names.filter(({ symbol, file }) => {
    if (!(symbol.flags & ts.SymbolFlags.Value) || OPERATIONS.test(file)) return false
    const isFunction = checker.getTypeOfSymbol(symbol).getCallSignatures().length > 0
    return (symbol.flags & ts.SymbolFlags.Class || isFunction) && examplesOf(checker, symbol).length === 0
  })
  const idle = Object.keys(WITHOUT_EXAMPLE).filter((name) => !missing.some((one) => one.name === name))
  return [
    ...missing.filter(({ name }) => WITHOUT_EXAMPLE[name] === undefined).map(({ text }) => `${text}: it has no @example`),
    ...idle.map((name) => `${name}: WITHOUT_EXAMPLE of api-docs.mjs has a name that is not needed there`),
  ]
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
 * Each `@example` of a name that users import, or of a member of tensors, compiled as a function in which all of these names, a tensor `x` and an exposed `addOne` are at hand. In an
 * example of a name from a namespace, the namespace's name means the namespace.
 */
function brokenExamples(program, names, options) {
  const checker = program.getTypeChecker()
  const from = new Map(names.filter(({ name, space }) => space === '' && name !== 'var').map(({ name, door }) => [name, door]))
  const spaces = new Map(names.filter(({ space }) => space !== '').map(({ space, door }) => [space, door]))
  const lines = [
    ...[...from].map(([name, door]) => `import { ${name} } from '${door}'`),
    ...[...spaces].map(([space, door]) => `import { ${space} as ${space}Namespace } from '${door}'`),
    'declare const x: Tensor',
    'declare const addOne: (a: Tensor) => Tensor',
  ]
  /** By line, the name whose example it is part of. */
  const owners = []
  for (const { name, symbol, space } of byDeclaration([...names, ...membersOfTensor(checker, names)])) {
    for (const text of examplesOf(checker, symbol)) {
      const parameter = space && `${space}: typeof ${space}Namespace`
      const body = [`export async function example${lines.length}(${parameter}) {`, ...text.split('\n'), '}']
      owners.length = lines.length
      owners.push(...body.map(() => name))
      lines.push(...body)
    }
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
