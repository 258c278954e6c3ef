/**
 * Checks what an editor shows of the names that users import: every name of a `postgrad` door has a doc comment where it is declared (not `@throws …` alone),
 * every class and function has an `@example`, and each `@example` compiles. `api-report.mjs`, which has the program of all declarations, calls it.
 */
import { join, relative } from 'node:path'
import ts from '@typescript/typescript6'
import { root } from './setup.mjs'

/** Declarations and how users import them; the last wins where two have a name. */
const DOORS = [
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

/** Where tensor operations are declared. Another check sees to their examples, each of which has one line with its result. */
const OPERATIONS = /^packages\/(tensor\/dist\/(ops|sparse|tensor\/create)\b|autograd\/dist\/api\/functions\.)/

/** Classes and functions that a program never names, each with the reason. */
const WITHOUT_EXAMPLE = {}

/** One line for each that is missing or wrong. */
export function wrongDocs(program, options) {
  const checker = program.getTypeChecker()
  const names = DOORS.flatMap(([door, from]) => namesOf(checker, exportsOf(program, door), from))
  return [...new Set([...wordless(checker, names), ...withoutExample(checker, names)]), ...brokenExamples(program, names, options)]
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

function examplesOf(checker, symbol) {
  const tags = symbol.getJsDocTags(checker).filter((tag) => tag.name === 'example')
  return tags.map(({ text }) => ts.displayPartsToString(text))
}

/**
 * Each `@example` of a name that users import, compiled as a function in which all of these names, a tensor `x` and an exposed `addOne` are at hand. In an
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
  for (const { name, symbol, space } of new Map(names.map((one) => [one.symbol, one])).values()) {
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
