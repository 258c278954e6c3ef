/**
 * Writes each package's public names with their kinds and signatures into `packages/x/api.txt`, which is in git: a change of the API shows in
 * review. `npm run api` writes; `npm test` runs it with `--check`, which changes nothing and fails with the difference.
 *
 * It reads the compiled declarations with the checker of TypeScript 6 (version 7 has no stable API), so it runs after the build. A name that
 * a package passes on from another one is a single line with its origin; its signature is in the report of its home.
 *
 * It also fails, with or without `--check`, if a name that users import is not documented, if a class or function has no example (`api-docs.mjs`), or if an example
 * states a result that it does not have (`check-examples.mjs`).
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from '@typescript/typescript6'
import { wrongDocs } from './api-docs.mjs'
import { wrongResults } from './check-examples.mjs'
import { projects, read, root } from './setup.mjs'

const HEADER = '# Public names, written by `npm run api`. A change here is a change of the API.'
const options = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  types: ['node'],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
}
const printer = ts.createPrinter({ removeComments: true })

/** The public doors of all packages: { folder, door, file }; `./internal` is for siblings and not public. */
function doors() {
  const found = []
  for (const folder of projects()) {
    const manifest = JSON.parse(read(join(folder, 'package.json')))
    if (manifest.private) continue
    for (const [door, target] of Object.entries(manifest.exports ?? {})) {
      if (door === './internal' || door === './package.json') continue
      const file = join(folder, String(target.types ?? target.default ?? target).replace(/\.js$/, '.d.ts'))
      if (existsSync(file)) found.push({ folder, door, file })
    }
  }
  return found
}

/** { texts: file of the report → its text, wrong: lines that say which doc comment is missing or wrong }. */
async function reports() {
  const all = doors()
  const program = ts.createProgram({ rootNames: all.map((one) => one.file), options })
  const checker = program.getTypeChecker()
  const texts = new Map()
  for (const { folder, door, file } of all) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file))
    const symbols = module === undefined ? [] : checker.getExportsOfModule(module)
    const entries = symbols.map((symbol) => describe(checker, symbol, folder)).sort((a, b) => (a.name < b.name ? -1 : 1))
    const report = join(folder, 'api.txt')
    const before = texts.get(report) ?? `${HEADER}\n`
    texts.set(report, `${before}\n## ${door}\n\n${entries.map((entry) => `${entry.text}\n`).join('')}`)
  }
  return { texts, wrong: [...wrongDocs(program, options), ...(await wrongResults(program))] }
}

function describe(checker, symbol, folder) {
  const name = symbol.name
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  const declarations = target.declarations ?? []
  if (declarations.length === 0) return { name, text: `unresolved ${name}` }
  const kinds = [...new Set(declarations.map(kindOf))].join(' and ')
  const home = homeOf(declarations[0].getSourceFile().fileName)
  if (home.folder !== folder)
    // A module's own name is its path on this machine.
    return {
      name,
      text: `${kinds} ${name} (from ${home.name}${target.name === name || kinds === 'namespace' ? '' : `, ${target.name} there`})`,
    }
  if (declarations.some(ts.isSourceFile)) return { name, text: `namespace ${name} {\n${indent(namespaceText(checker, target, folder))}\n}` }
  const renamed = target.name === name ? '' : `${kinds} ${name}, inside: `
  const [first, ...merged] = declarations
  if (merged.length > 0 && ts.isClassDeclaration(first)) {
    // Interfaces merged into a class add members; a report lists these, and not the types that they are made of.
    const text = declarationText(first)
    return { name, text: renamed + text.replace(/\n\}$/, `\n${indent(mergedMembers(checker, target, first))}\n}`) }
  }
  return { name, text: renamed + declarations.map(declarationText).join('\n') }
}

/** One line for each member that the class itself does not declare, with its signature. */
function mergedMembers(checker, symbol, declaration) {
  const own = new Set(declaration.members.map((member) => member.name?.getText()))
  const flags = ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope
  return checker
    .getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
    .filter((member) => !own.has(member.name) && !member.name.startsWith('__@'))
    .flatMap((member) => {
      const signatures = checker.getSignaturesOfType(checker.getTypeOfSymbol(member), ts.SignatureKind.Call)
      return signatures.map((signature) => `${member.name}${checker.signatureToString(signature, declaration, flags)};`)
    })
    .sort()
    .join('\n')
}

/** `export * as raw from './raw.js'`: the names inside. */
function namespaceText(checker, module, folder) {
  return checker
    .getExportsOfModule(module)
    .map((symbol) => describe(checker, symbol, folder))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((entry) => entry.text)
    .join('\n')
}

const KINDS = new Map([
  [ts.SyntaxKind.FunctionDeclaration, 'function'],
  [ts.SyntaxKind.ClassDeclaration, 'class'],
  [ts.SyntaxKind.InterfaceDeclaration, 'interface'],
  [ts.SyntaxKind.TypeAliasDeclaration, 'type'],
  [ts.SyntaxKind.VariableDeclaration, 'const'],
  [ts.SyntaxKind.ModuleDeclaration, 'namespace'],
  [ts.SyntaxKind.SourceFile, 'namespace'],
])

const kindOf = (declaration) => KINDS.get(declaration.kind) ?? ts.SyntaxKind[declaration.kind]

/** The declaration as the compiler wrote it, without comments, private members and words that say nothing here. */
function declarationText(declaration) {
  const node = ts.isClassDeclaration(declaration) ? withoutPrivate(declaration) : declaration
  const text = printer.printNode(ts.EmitHint.Unspecified, node, declaration.getSourceFile())
  return `${ts.isVariableDeclaration(node) ? 'const ' : ''}${text.replace(/^(export |declare |default )+/, '').replaceAll('    ', '  ')}`
}

function withoutPrivate(node) {
  const isPrivate = (member) =>
    (member.name !== undefined && ts.isPrivateIdentifier(member.name)) ||
    (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private) !== 0
  const members = node.members.filter((member) => !isPrivate(member))
  return ts.factory.updateClassDeclaration(node, node.modifiers, node.name, node.typeParameters, node.heritageClauses, members)
}

/** The package that a declaration file belongs to. */
function homeOf(file) {
  const own = projects().find((folder) => file.startsWith(`${folder}/`))
  if (own !== undefined) return { folder: own, name: JSON.parse(read(join(own, 'package.json'))).name }
  const name = file.match(/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? relative(root, file)
  return { folder: name, name }
}

const indent = (text) => text.replaceAll(/^(?=.)/gm, '  ')

/** Lines that only one of the two texts has, in order, with - and +; enough to see what changed, and exact where a line moved. */
export function difference(before, after) {
  const [a, b] = [before.split('\n'), after.split('\n')]
  // longest common subsequence, after the common ends are cut off
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  const lengths = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1))
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      lengths[i][j] = left[i] === right[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1])
    }
  }
  const lines = []
  let [i, j] = [0, 0]
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      i++
      j++
    } else if (j >= right.length || (i < left.length && lengths[i + 1][j] >= lengths[i][j + 1])) lines.push(`- ${left[i++]}`)
    else lines.push(`+ ${right[j++]}`)
  }
  return lines
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const check = process.argv.includes('--check')
  let changed = 0
  const { texts, wrong } = await reports()
  for (const [file, text] of texts) {
    const before = read(file) ?? ''
    if (before === text) continue
    changed++
    if (check)
      console.error([`${relative(root, file)} is not what the code exports:`, ...difference(before, text).slice(0, 60)].join('\n  '))
    else {
      writeFileSync(file, text)
      console.log(`wrote ${relative(root, file)}`)
    }
  }
  console.log(`api: ${texts.size} packages, ${changed} reports ${check ? 'out of date' : 'written'}`)
  if (check && changed > 0) {
    console.error('Remedy: `npm run api`, look at the difference, and commit api.txt with the change.')
    process.exitCode = 1
  }
  if (wrong.length > 0) {
    console.error(['Names that users import, of which the doc comment or an example is missing or wrong:', ...wrong].join('\n  '))
    console.error(
      'Remedy: write one to four lines where it is declared: what it gives, shapes, units, defaults, errors; and an @example of one to eight lines that a user would write.',
    )
    process.exitCode = 1
  }
}
