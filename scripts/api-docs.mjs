/**
 * Checks what an editor shows of the names that users import: every name of a `postgrad` door has a doc comment where it is declared (not `@throws …` alone),
 * and each `@example` compiles. `api-report.mjs`, which has the program of all declarations, calls it.
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
  ['training', 'postgrad/training'],
  ['distributed', 'postgrad/distributed'],
  ['data', 'postgrad/data'],
  ['optim', 'postgrad/optim'],
  ['nn', 'postgrad/nn'],
  ['nn-functional', 'postgrad/nn/functional'],
  ['index', 'postgrad'],
]

/** One line for each that is missing or wrong. */
export function wrongDocs(program, options) {
  const lines = DOORS.flatMap(([door]) => wordless(program.getTypeChecker(), exportsOf(program, door)))
  return [...new Set(lines), ...brokenExamples(program, options)]
}

function exportsOf(program, door) {
  const checker = program.getTypeChecker()
  return checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(join(root, `packages/postgrad/dist/${door}.d.ts`))))
}

/** Of these exports, those of which an editor shows no documentation, each with its file. For a namespace, which it shows none of in any case, the names inside count. */
function wordless(checker, symbols, within = '') {
  return symbols.flatMap((symbol) => {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
    const declaration = target.declarations?.[0]
    if (declaration === undefined || target.getDocumentationComment(checker).length > 0) return []
    if (ts.isSourceFile(declaration)) return wordless(checker, checker.getExportsOfModule(target), `${symbol.name}.`)
    return [`${within}${symbol.name} (${relative(root, declaration.getSourceFile().fileName)})`]
  })
}

/** Each `@example` of a name that users import, compiled as a function in which all of these names, a tensor `x` and an exposed `addOne` are at hand. */
function brokenExamples(program, options) {
  const checker = program.getTypeChecker()
  const from = new Map()
  const bodies = []
  for (const [door, name] of DOORS) {
    for (const symbol of exportsOf(program, door)) {
      from.set(symbol.name, name)
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
      const examples = target.getJsDocTags(checker).filter((tag) => tag.name === 'example')
      for (const { text } of examples) bodies.push({ name: symbol.name, text: ts.displayPartsToString(text) })
    }
  }
  const imports = [...from].filter(([each]) => each !== 'var').map(([each, door]) => `import { ${each} } from '${door}'`)
  const head = [...imports, 'declare const x: Tensor', 'declare const addOne: (a: Tensor) => Tensor']
  const file = join(root, 'packages/postgrad/src/examples.ts')
  const host = ts.createCompilerHost(options)
  const { getSourceFile } = host
  // Two lines each: a comment may follow the code.
  const lines = [...head, ...bodies.flatMap(({ text }, i) => [`export async function example${i}() { ${text.replaceAll('\n', ' ')}`, '}'])]
  host.getSourceFile = (name, ...rest) =>
    name === file ? ts.createSourceFile(file, lines.join('\n'), ...rest) : (program.getSourceFile(name) ?? getSourceFile(name, ...rest))
  const compiled = ts.createProgram({
    rootNames: [file],
    options: { ...options, lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'] },
    host,
  })
  return ts.getPreEmitDiagnostics(compiled, compiled.getSourceFile(file)).map(({ start, messageText }) => {
    const { line } = compiled.getSourceFile(file).getLineAndCharacterOfPosition(start)
    return `${bodies[(line - head.length) >> 1]?.name}, its @example: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}
