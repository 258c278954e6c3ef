/**
 * An operation is one entry in packages/tensor/src/ops, and few other files know its name. This counts them for each public operation, and fails above the limit of its kind. It also
 * fails if a public operation is in none of the doors of `postgrad`. Run by `npm test`; `node scripts/check-operations.mjs --list add` prints the files that name add,
 * `--exceptions` the table of exceptions with today's counts.
 *
 * A plain call names no operation: `ops.add(…)`, `x.add(…)`, `add(…)`, `kernels.add[dtype](…)`, `binaryInto('add', …)`, `rawOperations.add`, `const { add } = ops`, and imports for these do not count, nor do words of the language:
 * parameters, variables, and members of types outside of kernels. Everything else does: exports, keys of tables, strings, functions passed as values, kernels (`add_f32`, `'addBackward'`).
 *
 * Each run first proves that every rule can fail, on a few small sources at the end of this file.
 */
import assert from 'node:assert/strict'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from '@typescript/typescript6'
import { withExports } from './build-kernels.mjs'
import { projects, read, root, walk } from './setup.mjs'

/** In other packages the words mean something else: a collective's sum, a set's add. */
const PACKAGES = /^packages\/(tensor|autograd|nn|parallel|postgrad)\//
const OPS = 'packages/tensor/src/ops/'
const KERNELS = /^packages\/tensor\/(src\/kernels|assembly)\//
/** The doors of users count as one file. */
const DOORS = ['packages/postgrad/src/index.ts', 'packages/postgrad/src/nn-functional.ts']
/** Those that PyTorch has as methods alone: none of the public modules, since `ops/inner/methods.ts` has them. */
const METHODS_ONLY = {}

/** How many files may name an operation of a kind. Those of `primitive` and `in place` are today's largest counts, and only fall. */
const LIMITS = { elementwise: 4, composite: 3, primitive: 15, 'in place': 3 }
const ONLY_FALLS = ['primitive', 'in place']

/** Operations above the limit of their kind: why, and by how many files name each today. These counts only fall. */
const EXCEPTIONS = [
  [
    'a kernel that is a family of its own, or more than one row or file of kernels has it: the gelu of a form, the square of a power, sin of the host, exp of float64',
    { 5: 'erf exp gelu log sin', 6: 'add cos mul', 7: 'sigmoid where', 10: 'relu', 12: 'tanh' },
  ],
  [
    'it is made of a primitive whose kernel has the same name',
    { 5: 'pow', 6: 'crossEntropy nllLoss', 7: 'avgPool2d div maxPool2d', 8: 'conv2d layerNorm' },
  ],
  [
    'other things have this name: options, fields, phases, methods',
    {
      4: 'contiguous square',
      5: 'abs maximum min round take',
      6: 'clamp floor trunc',
      7: 'to',
      8: 'max',
      13: 'index',
    },
  ],
  ['modules have options and re-exports of this name', { 4: 'mseLoss', 5: 'dropout' }],
]

/** All that is wrong, one line each. @param files path → source text */
export function checkOperations(
  files,
  { limits = LIMITS, onlyFalls = ONLY_FALLS, exceptions = EXCEPTIONS, methodsOnly = METHODS_ONLY } = {},
) {
  const { operations, problems } = operationsOf(files)
  const excepted = new Map(
    exceptions.flatMap(([, byCount]) => Object.entries(byCount).flatMap(([n, ops]) => ops.split(' ').map((op) => [op, Number(n)]))),
  )
  const largest = Object.fromEntries(onlyFalls.map((kind) => [kind, 0]))
  for (const [op, places] of filesOf(files, operations)) {
    const { kind } = operations.get(op)
    const count = places.length
    const limit = excepted.get(op) ?? limits[kind]
    const rerun = `see node scripts/check-operations.mjs --list ${op}`
    if (count > limit) problems.push(`${op} (${kind}): ${count} files name it, at most ${limit} may; ${rerun}`)
    else if (excepted.has(op) && count < limit)
      problems.push(`${op} (${kind}): ${count} files name it; lower its ${limit} in EXCEPTIONS, or strike it out below ${limits[kind] + 1}`)
    else if (excepted.get(op) <= limits[kind])
      problems.push(`${op} (${kind}): may be named by ${limits[kind]} files anyway; strike it out of EXCEPTIONS`)
    if (!excepted.has(op) && kind in largest) largest[kind] = Math.max(largest[kind], count)
  }
  for (const [kind, count] of Object.entries(largest))
    if (count > 0 && count < limits[kind]) problems.push(`${kind}: at most ${count} files name one; lower the ${limits[kind]} in LIMITS`)
  for (const op of excepted.keys()) if (!operations.has(op)) problems.push(`${op}: is in EXCEPTIONS, and no operation`)
  return [...problems, ...checkDoors(files, operations, methodsOnly)]
}

/** The doors' lists are written by hand: they have all operations, but those that are methods only. */
function checkDoors(files, operations, methodsOnly) {
  const listed = new Set(DOORS.flatMap((door) => [...exportsOf(parse(door, files.get(door))).keys()]))
  const problems = []
  for (const op of operations.keys()) {
    if (!listed.has(op) && !(op in methodsOnly)) problems.push(`${op}: is in no door; add it to ${DOORS.join(' or ')}`)
    if (listed.has(op) && op in methodsOnly) problems.push(`${op}: is in a door, and in METHODS_ONLY`)
  }
  return problems
}

const parse = (file, text) => ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)

/** The names in `export { … }`. */
function exportsOf(source) {
  const lists = source.statements.filter((one) => ts.isExportDeclaration(one) && one.exportClause && ts.isNamedExports(one.exportClause))
  return new Map(lists.flatMap(({ exportClause }) => exportClause.elements.map((e) => [e.name.text, (e.propertyName ?? e.name).text])))
}

/** name → { kind } of the public operations: what the modules that all.ts exports define. */
function operationsOf(files) {
  const operations = new Map()
  const problems = []
  for (const statement of parse('all.ts', files.get(`${OPS}all.ts`)).statements) {
    if (!ts.isExportDeclaration(statement) || statement.exportClause !== undefined) continue
    const file = `${OPS}${statement.moduleSpecifier.text.replace('./', '').replace(/\.js$/, '.ts')}`
    const source = parse(file, files.get(file))
    const forms = [...importsFrom(source, /\/raw\/elementwise\.js$/)].filter((name) => !name.startsWith('scalar'))
    const elementwise = usersOf(source, forms)
    const kernels = usersOf(source, importsFrom(source, KERNEL_USERS))
    const families = importsFrom(source, /\/define\/elementwise\.js$/)
    const entries = new Map()
    const names = exportsOf(source)
    for (const one of source.statements) {
      for (const { name, initializer } of ts.isVariableStatement(one) ? one.declarationList.declarations : []) {
        if (initializer && ts.isCallExpression(initializer)) entries.set(name.text, initializer)
        if (isExported(one)) names.set(name.text, name.text)
      }
      if (ts.isFunctionDeclaration(one) && isExported(one)) names.set(one.name.text, one.name.text)
    }
    for (const [name, local] of names) {
      const entry = entries.get(local)
      const form = entry?.expression.text
      if (families.has(form)) operations.set(name, { kind: 'elementwise' })
      else if (/^(primitive|composite|inPlace)$/.test(form)) operations.set(name, { kind: kindOf(entry, elementwise, kernels) })
      else problems.push(`${file}: exports ${name}, which is no operation; move it to ${OPS}parts`)
    }
  }
  return { operations, problems }
}

/** The names that a file imports from modules whose path fits. */
function importsFrom(source, path) {
  const bindings = source.statements
    .filter((one) => ts.isImportDeclaration(one) && path.test(one.moduleSpecifier.text))
    .map((one) => one.importClause.namedBindings)
  return new Set(bindings.flatMap((one) => (ts.isNamespaceImport(one) ? [one.name.text] : one.elements.map((e) => e.name.text))))
}

/** Modules of kernels or views. */
const KERNEL_USERS = /\/raw\/(?!operations|copy|promotion)|\/parts\/(at-indices|fibres|slopes|classes)|\/tensor\/(device|tensor)\.js$/

/** These names, and the functions of a file that use them. */
function usersOf(source, imports) {
  const names = new Set(imports)
  const own = source.statements.filter(ts.isFunctionDeclaration)
  for (let found = -1; found < names.size; ) {
    found = names.size
    for (const one of own) if ([...valuesIn(one.body)].some((name) => names.has(name))) names.add(one.name.text)
  }
  return names
}

/** The identifiers of an expression or a body, types left out. */
function valuesIn(node) {
  const used = new Set()
  const visit = (each) => {
    if (ts.isTypeNode(each)) return
    if (ts.isIdentifier(each)) used.add(each.text)
    ts.forEachChild(each, visit)
  }
  visit(node)
  return used
}

/** From the form of the entry. A primitive that is made of operations alone has no kernel, and counts as a composite. */
function kindOf(call, elementwise, kernels) {
  const form = call.expression.text
  if (form !== 'primitive') return form === 'inPlace' ? 'in place' : 'composite'
  const used = valuesIn(call.arguments[1].properties.find((one) => one.name?.text === 'raw'))
  const uses = (names) => [...used].some((name) => names.has(name))
  return uses(elementwise) ? 'elementwise' : uses(kernels) ? 'primitive' : 'composite'
}

/** op → the places that name it, `file:line`, one per file. */
function filesOf(files, operations) {
  const places = new Map([...operations.keys()].map((op) => [op, new Map()]))
  for (const [file, text] of files) {
    const of = DOORS.includes(file) ? DOORS[0] : file
    for (const [op, line] of namesIn(file, text, operations)) places.get(op).set(of, `${file}:${line}`)
  }
  return new Map([...places].map(([op, each]) => [op, [...each.values()]]))
}

/** Those of `ops` that are above the limit of their kind, as in EXCEPTIONS. */
function countedAgain(ops, files, operations) {
  const places = filesOf(files, operations)
  const above = ops.filter((op) => places.get(op)?.length > LIMITS[operations.get(op).kind])
  const groups = {}
  for (const op of above) groups[places.get(op).length] = [groups[places.get(op).length] ?? [], op].flat()
  return Object.fromEntries(Object.entries(groups).map(([n, each]) => [n, each.join(' ')]))
}

/** The operations that a file names: name → the first line. */
function namesIn(file, text, operations) {
  const source = parse(file, text)
  const scopes = localScopes(source)
  const isTable = KERNELS.test(file)
  const found = new Map()
  const visit = (node) => {
    const op = ts.isIdentifier(node) || ts.isStringLiteralLike(node) ? plainName(node.text) : null
    const isNamed = ts.isIdentifier(node) ? isNaming(node, scopes, isTable) : op !== null && !isPath(node) && !isKernelCall(node)
    if (op !== null && operations.has(op) && !found.has(op) && isNamed)
      found.set(op, source.getLineAndCharacterOfPosition(node.getStart()).line + 1)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** silu of `silu_f32` and of 'siluBackward'. */
const plainName = (text) => text.replace(/_(f32|f64|i32|u8|bool)$/, '').replace(/Backward$/, '')
/** `binaryInto('add', …)`: calls the kernel. */
const isKernelCall = (node) =>
  ts.isCallExpression(node.parent) && node.parent.arguments[0] === node && /Into$/.test(node.parent.expression.getText())
const isPath = ({ parent }) => ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent)
const isExported = (node) =>
  (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Export) !== 0 ||
  node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
const isCallee = (node) => ts.isCallExpression(node.parent) && node.parent.expression === node
/** `kernels.add[x.dtype](…)` */
const isCallOfCell = ({ parent }) => ts.isElementAccessExpression(parent) && isCallee(parent)
const isMember = (node) =>
  ts.isPropertySignature(node) || ts.isMethodSignature(node) || ts.isPropertyDeclaration(node) || ts.isMethodDeclaration(node)

function isNaming(node, scopes, isTable) {
  const { parent } = node
  if (ts.isExportSpecifier(parent) || (ts.isPropertyAssignment(parent) && parent.name === node)) return true
  if (ts.isImportSpecifier(parent) || ts.isTypeReferenceNode(parent) || ts.isBindingElement(parent)) return false
  // A member of a table of kernels names it; one of a set of functions is on its way to a call.
  if (ts.isPropertyAccessExpression(parent) && parent.name === node)
    return !isCallee(parent) && !isCallOfCell(parent) && /kernels?$/i.test(parent.expression.getText())
  if (ts.isShorthandPropertyAssignment(parent)) return !isLocal(node, scopes)
  if (parent.name === node) {
    if (isMember(parent)) return isTable
    return (ts.isFunctionDeclaration(parent) || ts.isVariableDeclaration(parent)) && Boolean(isExported(parent))
  }
  return !isCallee(node) && !isLocal(node, scopes)
}

/** Where names are declared that are not imports: name → [from, to]s. */
function localScopes(source) {
  const scopes = new Map()
  const visit = (node, scope) => {
    const declares = ts.isVariableDeclaration(node) || ts.isParameter(node) || ts.isBindingElement(node) || ts.isFunctionDeclaration(node)
    if (declares && node.name && ts.isIdentifier(node.name)) {
      const { text } = node.name
      scopes.set(text, [...(scopes.get(text) ?? []), [scope.pos, scope.end]])
    }
    const opens =
      ts.isFunctionLike(node) || ts.isBlock(node) || ts.isForStatement(node) || ts.isForOfStatement(node) || ts.isForInStatement(node)
    // A function's name belongs to what is around it.
    ts.forEachChild(node, (child) => visit(child, opens ? node : scope))
  }
  visit(source, source)
  return scopes
}
const isLocal = (node, scopes) => (scopes.get(node.text) ?? []).some(([from, to]) => from <= node.pos && node.end <= to)

const isProduct = (file) => file.endsWith('.ts') && !/\.(test|suite|fixture)\.ts$|\/(fixtures|turmoil|acceptance|users)\//.test(file)

function readFiles() {
  const files = new Map()
  for (const folder of [...projects().map((path) => join(path, 'src')), join(root, 'packages/tensor/assembly')]) {
    if (!PACKAGES.test(relative(root, folder))) continue
    for (const { path } of walk(folder)) {
      const file = relative(root, path)
      if (isProduct(file)) files.set(file, withExports(read(path), file))
    }
  }
  return files
}

// ---- the proof that each rule can fail ----

function proveThatItFails() {
  const entry = "export const silu = primitive('silu', { args: ['tensor'], raw: (x) => realUnary('silu', x) })"
  const entries = (text = entry) =>
    `import { realUnary } from '../raw/elementwise.js'\nimport { kernelsFor } from '../tensor/device.js'\n${text}`
  /** Two files name silu; `more` are others. */
  const sources = (more = {}, { math = entries(), door = "export { silu } from '@postgrad/autograd'" } = {}) =>
    new Map(
      Object.entries({ [`${OPS}all.ts`]: "export * from './math.js'", [`${OPS}math.ts`]: math, [DOORS[0]]: door, [DOORS[1]]: '', ...more }),
    )
  const kernel = (text) => sources({ 'packages/tensor/src/kernels/a.ts': text })
  const other = (text) => sources({ 'packages/nn/src/a.ts': text })
  const rules = { limits: { elementwise: 2, composite: 1, primitive: 2, 'in place': 2 }, onlyFalls: [], exceptions: [], methodsOnly: {} }
  const named = /^silu \(elementwise\): 3 files name it, at most 2 may/
  const cases = [
    [/^$/, sources()],
    ...[
      "import { silu } from '@postgrad/autograd'\nsilu(x)",
      "unaryInto('silu', x, out)",
      'kernels.silu[x.dtype](x, out)',
      '// silu\nx.silu(1)\nops.silu(x)\nconst f = rawOperations.silu',
      'const { silu } = ops\nconst f = [silu]',
      'function f(silu: number) { return { silu, other: silu } }',
      'interface Options { silu: number }\nlet x: silu',
    ].map((text) => [/^$/, other(text)]),
    ...[
      "import { silu } from '@postgrad/autograd'\nconst table = [silu]",
      "import { silu } from '@postgrad/autograd'\nconst table = { silu }",
      "export { silu } from './b.js'",
      "const name = 'silu'",
      'const table = { silu: 1 }',
      'export function silu() {}',
      "const name = 'siluBackward'",
    ].map((text) => [named, other(text)]),
    ...['export function silu_f32() {}', 'interface Kernels { silu: Unary }', 'const f = kernels.silu'].map((text) => [
      named,
      kernel(text),
    ]),
    [
      /^silu \(composite\): 2 files name it, at most 1 may/,
      sources({}, { math: entries("export const silu = composite('silu', { of: (ops) => (x) => ops.mul(x, x) })") }),
    ],
    [
      /^silu \(composite\): 2/,
      sources({}, { math: entries("export const silu = primitive('silu', { raw: (x) => rawOperations.mul(x, x) })") }),
    ],
    [
      /^silu \(primitive\): 3 files name it/,
      sources(
        { 'packages/nn/src/a.ts': "const name = 'silu'" },
        {
          math: `import { kernelsFor } from '../tensor/device.js'
export const silu = primitive('silu', { raw: (x) => outer(x) })
function outer(x) { return run(x) }
function run(x) { return kernelsFor(x) }`,
        },
      ),
    ],
    [
      /^silu \(elementwise\): 3 files/,
      sources(
        { 'packages/nn/src/a.ts': "const name = 'silu'" },
        { math: "import { real } from './define/elementwise.js'\nexport const silu = real('silu', ['a'], (g) => g)" },
      ),
    ],
    [
      /^silu \(primitive\): 2 files name it; lower its 3 in EXCEPTIONS/,
      sources({}, { math: entries("export const silu = primitive('silu', { raw: (x) => kernelsFor(x) })") }),
      { exceptions: [['why', { 3: 'silu' }]] },
    ],
    [
      /^in place: at most 2 files name one; lower the 3 in LIMITS/,
      sources({}, { math: entries("export const silu = inPlace('silu', { raw: (x) => kernelsFor(x) })") }),
      { limits: { 'in place': 3 }, onlyFalls: ['in place'] },
    ],
    [/^$/, other("const name = 'silu'"), { exceptions: [['why', { 3: 'silu' }]] }],
    [/^silu \(elementwise\): may be named by 2 files anyway/, sources(), { exceptions: [['why', { 2: 'silu' }]] }],
    [/^gone: is in EXCEPTIONS, and no operation/, sources(), { exceptions: [['why', { 3: 'gone' }]] }],
    [/^silu: is in no door/, sources({}, { door: '' })],
    [/^$/, sources({}, { door: '' }), { methodsOnly: { silu: 'why' } }],
    [/^silu: is in a door, and in METHODS_ONLY/, sources(), { methodsOnly: { silu: 'why' } }],
    [/^$/, sources({}, { math: entries(entry.replace('export const silu', 'const swish')).concat('\nexport { swish as silu }') })],
    [/math\.ts: exports helper, which is no operation/, sources({}, { math: `${entries()}\nexport function helper() {}` })],
  ]
  for (const [expected, files, changed] of cases) {
    const problems = checkOperations(files, { ...rules, ...changed })
    assert.match(problems.join('\n'), expected)
    assert(problems.length <= 1, `sources with one fault have several: ${problems.join('\n')}`)
  }
  return cases.length
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const proved = proveThatItFails()
  const files = readFiles()
  const { operations } = operationsOf(files)
  const at = process.argv.indexOf('--list')
  if (at > 0) {
    const op = process.argv[at + 1]
    const places = filesOf(files, operations).get(op)
    console.log(
      places ? `${op} (${operations.get(op).kind}): ${places.length} files\n${places.join('\n')}` : `${op} is no public operation`,
    )
  } else if (process.argv.includes('--exceptions')) {
    for (const [why, byCount] of EXCEPTIONS)
      console.log([why, countedAgain(Object.values(byCount).join(' ').split(' '), files, operations)])
  } else {
    const problems = checkOperations(files)
    for (const problem of problems) console.error(problem)
    console.log(
      `operations: ${operations.size}, in ${files.size} files, ${problems.length} problems (rules proved on ${proved} small sources)`,
    )
    process.exitCode = problems.length === 0 ? 0 : 1
  }
}
