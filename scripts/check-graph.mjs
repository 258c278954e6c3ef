/**
 * Holds the graph of packages and of files in shape: packages import only from rows above their own, through their two doors, and say so
 * in package.json and tsconfig.json; files inside a package form no cycle, types included, its folders neither, and no folder is crowded. No package but tensor
 * takes the array of a storage. Scripts that begin with set-up load no package before it. Run by `npm test`, alone by `npm run graph`.
 *
 * Imports are found by TypeScript's own `preProcessFile` (of version 6, version 7 has no stable API): unlike a look at the compiled output it
 * sees `import type`, unlike a regular expression it is not fooled by comments and strings. madge and dependency-cruiser would use
 * the same function, but refuse TypeScript 7.
 *
 * Each run first proves that every rule can fail, on a few small graphs at the end of this file.
 */
import assert from 'node:assert/strict'
import { builtinModules } from 'node:module'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from '@typescript/typescript6'
import { projects, read, root, walk } from './setup.mjs'

/** The rows of the design: a package may import from smaller rows only. The one place where they are written as a table. */
const ROWS = {
  base: 0,
  tensor: 1,
  transport: 1,
  autograd: 2,
  training: 2,
  wire: 2,
  sim: 2,
  nn: 3,
  jobs: 3,
  actor: 3,
  data: 4,
  rpc: 4,
  'dist-autograd': 5,
  'process-group': 5,
  parallel: 6,
  cluster: 7,
  'testing-cases': 7,
  testing: 8,
  postgrad: 9,
  cli: 10,
  examples: 10,
  bench: 10,
  site: 10,
}

/** Declared by the repository's own package.json, for tests everywhere. */
const forTests = new Set(Object.keys(JSON.parse(read(join(root, 'package.json'))).devDependencies))

/**
 * One package as the check sees it.
 * @typedef {{ folder: string, manifest: object, tsconfig: object, files: Map<string, string> }} Package
 * `files`: path relative to src → source text.
 */

/** All that is wrong with the graph, one line each. */
export function checkGraph(packages, rows = ROWS) {
  const problems = []
  const byName = new Map(packages.map((one) => [one.manifest.name, one]))
  for (const one of packages) {
    if (rows[shortName(one)] === undefined) problems.push(`${one.folder}: has no row; add it to ROWS in scripts/check-graph.mjs`)
    const imports = importsOf(one)
    problems.push(...checkDoors(one, imports, byName, rows), ...checkDeclared(one, imports, byName))
    problems.push(...cyclesOf(one, imports), ...crowdedFolders(one))
    if (shortName(one) !== 'tensor') problems.push(...arraysOfStorages(one))
  }
  return problems
}

const shortName = (one) => one.folder.split('/').at(-1)

/** file → what it imports, as written. */
function importsOf(one) {
  const imports = new Map()
  for (const [file, text] of one.files) {
    const found = ts.preProcessFile(text, true, false).importedFiles
    imports.set(file, [...new Set(found.filter((each) => !isAugmentation(text, each)).map((each) => each.fileName))])
  }
  return imports
}

/** `declare module 'x'` adds to the types of x where that is installed, and imports nothing. */
const isAugmentation = (text, { pos }) => /declare module ['"]?$/.test(text.slice(0, pos))

/** '@scope/name/sub/path' → ['@scope/name', 'sub/path'] */
function splitSpecifier(specifier) {
  const parts = specifier.split('/')
  const nameLength = specifier.startsWith('@') ? 2 : 1
  return [parts.slice(0, nameLength).join('/'), parts.slice(nameLength).join('/')]
}

const isBuiltin = (specifier) => specifier.startsWith('node:') || builtinModules.includes(specifier)

function checkDoors(one, imports, byName, rows) {
  const problems = []
  const row = rows[shortName(one)]
  for (const [file, specifiers] of imports) {
    const where = `${one.folder}/src/${file}`
    for (const specifier of specifiers) {
      if (specifier.startsWith('.')) {
        const target = normalize(join(dirname(file), specifier))
        if (target.startsWith('..')) problems.push(`${where}: imports '${specifier}', outside its package's src`)
        continue
      }
      const [name] = splitSpecifier(specifier)
      const sibling = byName.get(name)
      if (sibling === undefined) {
        if (name.startsWith('@postgrad/')) problems.push(`${where}: imports '${specifier}', and there is no such package`)
        continue
      }
      if (sibling === one) {
        problems.push(`${where}: imports its own package by name, '${specifier}'; use a relative path`)
        continue
      }
      const siblingRow = rows[shortName(sibling)]
      if (!(siblingRow < row))
        problems.push(`${where}: row ${row} imports '${specifier}' of row ${siblingRow}; only rows above are allowed`)
      const door = `.${specifier.slice(name.length)}`
      if (sibling.manifest.exports?.[door] === undefined) {
        problems.push(
          `${where}: imports '${specifier}', which is no door of ${name} (doors: ${Object.keys(sibling.manifest.exports ?? {}).join(', ')})`,
        )
      }
    }
  }
  return problems
}

/** Imports, package.json and the references of tsconfig.json say the same. */
function checkDeclared(one, imports, byName) {
  if (one.files.size === 0) return [] // not written yet
  const problems = []
  const listed = new Set([...Object.keys(one.manifest.dependencies ?? {}), ...Object.keys(one.manifest.devDependencies ?? {})])
  const references = new Set((one.tsconfig.references ?? []).map((reference) => normalize(join(one.folder, reference.path))))
  const used = new Map() // package name → the first file that imports it
  for (const [file, specifiers] of imports) {
    for (const specifier of specifiers) {
      if (specifier.startsWith('.') || isBuiltin(specifier)) continue
      const [name] = splitSpecifier(specifier)
      if (name !== one.manifest.name && !used.has(name)) used.set(name, file)
    }
  }
  for (const [name, file] of used) {
    const isTest = /\.(test|suite)\.ts$/.test(file)
    if (!listed.has(name) && !(isTest && forTests.has(name))) {
      problems.push(`${one.folder}/package.json: ${name} is imported (src/${file}) and not listed`)
    }
    const sibling = byName.get(name)
    if (sibling !== undefined && !references.has(sibling.folder)) {
      problems.push(`${one.folder}/tsconfig.json: ${name} is imported (src/${file}) and not among the references`)
    }
  }
  for (const name of listed) {
    if (byName.has(name) && !used.has(name)) problems.push(`${one.folder}/package.json: lists ${name}, and no file imports it`)
  }
  for (const folder of references) {
    const name = [...byName.keys()].find((candidate) => byName.get(candidate).folder === folder)
    if (name === undefined) problems.push(`${one.folder}/tsconfig.json: references ${folder}, which is no package`)
    else if (!used.has(name)) problems.push(`${one.folder}/tsconfig.json: references ${folder}, and no file imports ${name}`)
  }
  return problems
}

/** Inside a package, files form no cycle; nor do folders, as far as the product goes (tests may import whatever they need). */
function cyclesOf(one, imports) {
  const files = new Map()
  const folders = new Map()
  for (const [file, specifiers] of imports) {
    const targets = specifiers
      .filter((specifier) => specifier.startsWith('.'))
      .map((specifier) => normalize(join(dirname(file), specifier)).replace(/\.js$/, '.ts'))
      .filter((target) => imports.has(target))
    files.set(file, targets)
    if (!isProduct(file)) continue
    const others = folders.get(roomOf(file)) ?? new Set()
    for (const target of targets) if (roomOf(target) !== roomOf(file)) others.add(roomOf(target))
    folders.set(roomOf(file), others)
  }
  const inFiles = cycles(files).map((cycle) => `${one.folder}/src: import cycle ${cycle.join(' → ')}`)
  // A cycle of files over several folders is one of folders as well. Report it once.
  return inFiles.length > 0 ? inFiles : cycles(folders).map((cycle) => `${one.folder}/src: cycle of folders ${cycle.join(' → ')}`)
}

/**
 * Depth first; an arrow to a node that is still on the path closes a cycle. Each cycle is named once, by the path that found it.
 * @param arrows node → the nodes that it imports
 */
function cycles(arrows) {
  const found = []
  const done = new Set()
  const path = []
  const visit = (node) => {
    const start = path.indexOf(node)
    if (start >= 0) {
      found.push([...path.slice(start), node])
      return
    }
    if (done.has(node)) return
    path.push(node)
    for (const target of arrows.get(node) ?? []) visit(target)
    path.pop()
    done.add(node)
  }
  for (const node of arrows.keys()) visit(node)
  return found
}

/** A file's folder; the doors, and files that start an app, join all folders: each is one of its own. */
const roomOf = (file) => (/^(index|internal|main|install)\.ts$/.test(file) ? file : dirname(file))

const isProduct = (file) => !/\.(test|suite|fixture)\.ts$/.test(file) && !/(^|\/)fixtures\//.test(file)

/** A folder that one can take in at a glance. */
const FOLDER_LIMIT = 22

function crowdedFolders(one) {
  const counts = new Map()
  for (const file of one.files.keys()) if (isProduct(file)) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  return [...counts]
    .filter(([, count]) => count > FOLDER_LIMIT)
    .map(([folder, count]) => `${join(one.folder, 'src', folder)}: ${count} files of product, at most ${FOLDER_LIMIT}; make folders`)
}

/**
 * The elements of a tensor may be on a device: only the package tensor takes the array of a storage, `x.storage.host`, also by destructuring, and of a storage that has another name in the
 * same file. Everybody else has operations, reads as users do, and the door for bytes.
 */
function arraysOfStorages(one) {
  const problems = []
  for (const [file, text] of one.files) {
    if (!isProduct(file) || !/\bhost\b/.test(text)) continue
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
    const names = new Set(['storage'])
    const isStorage = (node) =>
      (ts.isNonNullExpression(node) && isStorage(node.expression)) ||
      (ts.isPropertyAccessExpression(node) && node.name.text === 'storage') ||
      (ts.isIdentifier(node) && names.has(node.text))
    const keyOf = (element) => (element.propertyName ?? element.name).text
    const visit = (node) => {
      if (ts.isVariableDeclaration(node) && node.initializer !== undefined && ts.isIdentifier(node.name) && isStorage(node.initializer))
        names.add(node.name.text)
      if (ts.isBindingElement(node) && keyOf(node) === 'storage' && ts.isIdentifier(node.name)) names.add(node.name.text)
      const { parent } = node.parent ?? {}
      const isTaken =
        (ts.isPropertyAccessExpression(node) && node.name.text === 'host' && isStorage(node.expression)) ||
        (ts.isBindingElement(node) &&
          keyOf(node) === 'host' &&
          (ts.isBindingElement(parent) ? keyOf(parent) === 'storage' : parent.initializer !== undefined && isStorage(parent.initializer)))
      if (isTaken) {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart())
        problems.push(
          `${one.folder}/src/${file}:${line + 1}: takes the array of a storage; use operations, data(), or elementsOf and writeElements of @postgrad/tensor/internal`,
        )
      }
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return problems
}

/**
 * A script that begins with set-up is run in a fresh clone, where no package is installed yet: neither it nor what it imports may load one but by `import()`, later.
 * @param scripts file → text, of one folder
 */
export function checkSetUp(scripts) {
  const loads = new Map([...scripts].map(([file, text]) => [file, staticImports(text)]))
  const problems = new Set()
  const visit = (file, seen, first) => {
    if (seen.has(file)) return
    seen.add(file)
    for (const specifier of loads.get(file) ?? []) {
      if (specifier.startsWith('.')) visit(normalize(specifier), seen, first)
      else if (!isBuiltin(specifier))
        problems.add(`scripts/${file}: imports '${specifier}', and scripts/${first}, which loads it, installs that; use await import()`)
    }
  }
  for (const [file, text] of scripts) if (/^ *await setupOrExit\(/m.test(text)) visit(file, new Set(), file)
  return [...problems]
}

/** Modules that load before its first line runs. */
const staticImports = (text) =>
  ts
    .preProcessFile(text, true, false)
    .importedFiles.filter(({ pos }) => !/import\(\s*['"]?$/.test(text.slice(0, pos)))
    .map((each) => each.fileName)

function readScripts() {
  const folder = join(root, 'scripts')
  const paths = [...walk(folder)].map(({ path }) => path).filter((path) => path.endsWith('.mjs') && dirname(path) === folder)
  return new Map(paths.map((path) => [relative(folder, path), read(path)]))
}

function readPackages() {
  return projects().map((path) => {
    const files = new Map()
    for (const { path: file } of walk(join(path, 'src'))) {
      if (file.endsWith('.ts')) files.set(relative(join(path, 'src'), file), read(file))
    }
    const tsconfig = ts.parseConfigFileTextToJson('tsconfig.json', read(join(path, 'tsconfig.json')) ?? '{}').config
    return { folder: relative(root, path), manifest: JSON.parse(read(join(path, 'package.json'))), tsconfig, files }
  })
}

// ---- the proof that each rule can fail ----

function fixture(folder, files, { dependencies = [], references = [] } = {}) {
  const name = folder.startsWith('apps') ? `@postgrad/app-${folder.split('/').at(-1)}` : `@postgrad/${folder.split('/').at(-1)}`
  return {
    folder,
    manifest: {
      name,
      exports: { '.': './dist/index.js', './internal': './dist/internal.js' },
      dependencies: Object.fromEntries(dependencies.map((one) => [one, '*'])),
    },
    tsconfig: { references: references.map((path) => ({ path })) },
    files: new Map(Object.entries(files)),
  }
}

function proveThatItFails() {
  const rows = { low: 0, high: 1, app: 2, tensor: 0 }
  const low = fixture('packages/low', { 'index.ts': 'export const one = 1' })
  const uses = (text, declared = { dependencies: ['@postgrad/low'], references: ['../low'] }) => [
    low,
    fixture('packages/high', { 'index.ts': text }, declared),
  ]
  const importsLow = "import { one } from '@postgrad/low'"
  const cycle = (first, second) => [fixture('packages/low', { 'index.ts': "export * from './a.js'", 'a.ts': first, 'b.ts': second })]
  const cases = [
    [/^$/, uses(importsLow)],
    [/^$/, uses("// import './index.js'\nimport type { one } from '@postgrad/low/internal'\nconst text = \"import './index.js'\"")],
    [/^$/, cycle("import './b.js'", "// import './a.js'")],
    [/^$/, uses(`${importsLow}\ndeclare module 'runner' { interface Matchers {} }`)],
    [/import cycle a\.ts → b\.ts → a\.ts/, cycle("import { b } from './b.js'", "import { a } from './a.js'")],
    [/import cycle a\.ts → b\.ts → a\.ts/, cycle("import type { B } from './b.js'", "export type { A } from './a.js'")],
    [/import cycle a\.ts → b\.ts → a\.ts/, cycle("let b: import('./b.js').B", "await import('./a.js')")],
    [/import cycle a\.ts → a\.ts/, cycle("import './a.js'", '')],
    [
      /cycle of folders a → b → a/,
      [
        fixture('packages/low', {
          'a/one.ts': "import '../b/two.js'",
          'a/base.ts': '',
          'b/two.ts': '',
          'b/three.ts': "import '../a/base.js'",
        }),
      ],
    ],
    [/^$/, [fixture('packages/low', { 'a/one.ts': "import '../b/two.js'", 'b/two.ts': '', 'b/two.test.ts': "import '../a/one.js'" })]],
    [/src\/a: 23 files of product/, [fixture('packages/low', Object.fromEntries(Array.from({ length: 23 }, (_, n) => [`a/${n}.ts`, ''])))]],
    [
      /row 0 imports '@postgrad\/high' of row 1/,
      [
        fixture('packages/low', { 'index.ts': "import '@postgrad/high'" }, { dependencies: ['@postgrad/high'], references: ['../high'] }),
        fixture('packages/high', { 'index.ts': '' }),
      ],
    ],
    [
      /row 1 imports '@postgrad\/app-app' of row 2/,
      [
        fixture('apps/app', { 'index.ts': '' }),
        fixture(
          'packages/high',
          { 'index.ts': "import '@postgrad/app-app'" },
          { dependencies: ['@postgrad/app-app'], references: ['../../apps/app'] },
        ),
      ],
    ],
    [/no door of @postgrad\/low/, uses("import { one } from '@postgrad/low/dist/index.js'")],
    [/outside its package's src/, uses(`${importsLow}\nimport '../../low/src/index.js'`)],
    [
      /no such package/,
      uses(`${importsLow}\nimport '@postgrad/nowhere'`, { dependencies: ['@postgrad/low', '@postgrad/nowhere'], references: ['../low'] }),
    ],
    [/its own package by name/, [fixture('packages/low', { 'index.ts': "import '@postgrad/low'" })]],
    [/package\.json: @postgrad\/low is imported \(src\/index\.ts\) and not listed/, uses(importsLow, { references: ['../low'] })],
    [/package\.json: third-party is imported/, uses(`${importsLow}\nimport 'third-party'`)],
    [/tsconfig\.json: @postgrad\/low is imported \(src\/index\.ts\) and not among/, uses(importsLow, { dependencies: ['@postgrad/low'] })],
    [/package\.json: lists @postgrad\/low, and no file imports it/, uses('', { dependencies: ['@postgrad/low'] })],
    [/tsconfig\.json: references packages\/low, and no file imports/, uses('', { references: ['../low'] })],
    [/has no row/, [fixture('packages/unknown', {})]],
    ...[
      'x.storage.host[0] = 1',
      'const first = ({ storage: { host: array }, offset }) => array[offset]',
      'const { host, dtype } = x.storage',
      'const first = ({ storage, offset }) => storage.host[offset]',
      'const held = x.storage\nheld.host.fill(0)',
      'const { storage: held } = x\nheld!.host.fill(0)',
    ].map((text) => [/low\/src\/a\.ts:\d: takes the array of a storage/, [fixture('packages/low', { 'a.ts': text })]]),
    ...[
      ['a.ts', '// x.storage.host\nconst { host, port } = address\nthis.host = options.host\nconst { storage: { length } } = x'],
      ['a.test.ts', 'x.storage.host[0] = 1'],
    ].map(([file, text]) => [/^$/, [fixture('packages/low', { [file]: text })]]),
    [/^$/, [fixture('packages/tensor', { 'a.ts': 'x.storage.host[0] = 1' })]],
  ]
  for (const [expected, packages] of cases) {
    const problems = checkGraph(packages, rows)
    assert.match(problems.join('\n'), expected)
    assert(problems.length <= 1, `a graph with one fault has several: ${problems.join('\n')}`)
  }
  const setUp = 'await setupOrExit()\n'
  const scripts = [
    [/^$/, { 'a.mjs': `import 'node:fs'\nimport './b.mjs'\n${setUp}await import('third-party')`, 'b.mjs': "import './a.mjs'" }],
    [/^$/, { 'a.mjs': "import 'third-party'" }],
    [
      /^scripts\/b\.mjs: imports 'third-party', and scripts\/a\.mjs/,
      { 'a.mjs': `import './b.mjs'\n${setUp}`, 'b.mjs': "import 'third-party'" },
    ],
  ]
  for (const [expected, files] of scripts) assert.match(checkSetUp(new Map(Object.entries(files))).join('\n'), expected)
  return cases.length + scripts.length
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const proved = proveThatItFails()
  const packages = readPackages()
  const problems = [...checkGraph(packages), ...checkSetUp(readScripts())]
  for (const problem of problems) console.error(problem)
  const files = packages.reduce((sum, one) => sum + one.files.size, 0)
  console.log(`graph: ${packages.length} packages, ${files} files, ${problems.length} problems (rules proved on ${proved} small graphs)`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
