/**
 * The library in one file, for `pack.mjs` and `bundled-tree.mjs`, so that threads start faster: 380 modules take Node 20 some 0.3 s of a core, one file
 * a third of that, and less than a fifth where another thread has compiled it.
 *
 *   library.cjs            every package of this repository, and those of others that each thread needs (`INSIDE`); the rest is required
 *   base/load.cjs          loads it, once in a thread, and hands on what is compiled (`packages/base/src/load.cts`)
 *   <package>/…            files that are loaded by their place (`ownFile` of base)
 *
 * It is CommonJS because Node 20 takes compiled code for scripts only. A door passes its names on. Names of functions and classes stay: errors, `expose` and
 * optimizers use them.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { build } from './esbuild.mjs'
import { root } from './setup.mjs'

const packages = join(root, 'packages')

/** Loaded by their place, by package: modules that are in the library, and files that stay as they are. */
export const BY_PLACE = {
  cluster: ['processes/worker-side.js', 'processes/process-agent.js', 'worker/worker.js', 'jobs/job-program.js'],
  data: ['worker-task.js'],
  jobs: ['job-thread.js'],
  testing: ['explore/explore-job.js'],
}
const COPIED = {
  base: ['load.cjs', 'typescript-format.js'],
  cluster: ['worker/worker-entry.js', 'processes/process-entry.js'],
  jobs: ['job-entry.cjs'],
  tensor: ['kernels.wasm', 'kernels/wasm/threads/helper.js', 'kernels/wasm/threads/board.js'],
}

/** Packages of others that are in it: required they take a thread 15 ms, and msgpackr installs a native addon that is not used. */
const INSIDE = /^(comlink|msgpackr|pure-rand)(\/|$)/

/** Whether a module stays what it is. */
export const isCopied = (path) =>
  Object.entries(COPIED).some(([name, paths]) => paths.some((one) => path === join(packages, name, 'dist', one)))

/** Modules of Node that are loaded when they are used: together they take a thread some 6 ms, and most threads use none. */
const LATE = ['crypto', 'fs/promises', 'net', 'child_process']

/** The file that a module is to think it is: `new URL('./kernels.wasm', import.meta.url)` must find what lies there. `__builtin` makes a module of Node look like an ES module, `__door` a door when it
 * is asked for. */
const BANNER = `'use strict';const __load = require('./base/load.cjs');
const __builtins = new Map();
const __builtin = (name) => {
let made = __builtins.get(name);
if (made === undefined) {
const module = require(name);
made = { __proto__: module, default: module };
__builtins.set(name, made);
}
return made;
};
const __door = (make) => {
let door;
return () => (door ??= make());
};
`

/** The library's name for a module's names: postgrad/dist/index.js → postgrad_dist_index. */
export const nameOf = (module) => relative(packages, module).slice(0, -'.js'.length).replaceAll(/\W/g, '_')

/** Of the last library: what a mutant of it has, too. */
let kept = null

/**
 * @param modules whose names are passed on: `from` where tsc put it, and for each of `to` an ES module is written
 * @param outdir where the library goes, and a folder for each package of which something is loaded by its place
 * @param edit what becomes of a module's text, by its path
 * @param withMap whether debuggers get `library.cjs.map`
 * @param isMutant whether another library of this process differs from it within functions alone: what says nothing of those is not made again
 * @returns the files that it is made of
 */
export async function buildLibrary({ modules, outdir, edit = (text) => text, withMap = false, isMutant = false }) {
  const doors = new Map(modules.map(({ from }) => [nameOf(from), from]))
  if (doors.size < modules.length) throw new Error(`two modules have one name: ${modules.map(({ from }) => nameOf(from)).sort()}`)
  const options = {
    stdin: { contents: [...doors].map(([name, from]) => `export * as ${name} from ${JSON.stringify(from)}`).join('\n'), resolveDir: root },
    outfile: join(outdir, 'library.cjs'),
    bundle: true,
    metafile: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    conditions: ['import', 'node'],
    // Without its flag jest has no `import()`: what is loaded late is required late. A template with a line feed would be broken over lines.
    supported: { 'dynamic-import': false, 'template-literal': false },
    banner: { js: BANNER },
    define: { 'import.meta.url': '__moduleUrl' },
    legalComments: 'none',
    logLevel: 'warning',
    absWorkingDir: root,
    plugins: [ours(edit)],
  }
  if (!isMutant || kept === null) kept = { namesBack: await renamed(options), names: await exportsOf(modules.map(({ from }) => from)) }
  const { namesBack, names } = kept
  const { outputFiles, metafile } = await build({ ...options, sourcemap: withMap && 'external' })
  const [text, map] = ['.cjs', '.map'].map((end) => outputFiles.find(({ path }) => path.endsWith(end))?.text)
  const { shortened, linesOf } = shorter(lean(text) + namesBack)
  const named = ownNames(shortened)
  const code = isMutant ? named : withoutLine(named)
  // It is read as Latin-1: a character beyond that would double what it takes in every thread.
  const [odd] = /[^\n]{0,20}[\u0080-\uffff]/.exec(code) ?? []
  if (odd !== undefined) throw new Error(`library.cjs: expected ASCII, got ${odd}`)
  put(join(outdir, 'library.cjs'), code)
  if (withMap) put(join(outdir, 'library.cjs.map'), await mapOf(JSON.parse(map), linesOf, outdir))
  for (const [name, paths] of Object.entries(COPIED)) {
    for (const path of paths) {
      const to = join(outdir, name, path)
      const from = join(packages, name, 'dist', path)
      if (path.endsWith('.wasm')) put(to, readFileSync(from))
      // Only the map of the library is packed.
      else put(to, readFileSync(from, 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, ''))
    }
  }
  for (const { from, to } of modules) for (const at of to) put(at, doorOf(nameOf(from), names.get(from), loadFrom(at, outdir)))
  return Object.keys(metafile.inputs)
}

/** `load.cjs` as it is found from a file. */
function loadFrom(file, outdir) {
  const path = relative(dirname(file), join(outdir, 'base/load.cjs')).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

function put(file, contents) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, contents)
}

/** An ES module that passes on these names of a door. @param load `load.cjs` as it is found from there */
function doorOf(door, names, load) {
  // Some are words of JavaScript: `var`, `default`.
  const list = (pair) => names.map((name, of) => pair(name, `_${of}`)).join(', ')
  return `import library from ${JSON.stringify(load)}
const { ${list((name, local) => `${name}: ${local}`)} } = library.load().${door}
export { ${list((name, local) => `${local} as ${name}`)} }
`
}

/** @returns by path, the names that each of these modules exports */
async function exportsOf(modules) {
  const { metafile } = await build({
    ...{ entryPoints: modules, outdir: join(root, '.cache'), bundle: true, splitting: true, format: 'esm', platform: 'node' },
    ...{ metafile: true, write: false, logLevel: 'warning', absWorkingDir: root, plugins: [ours((text) => text)] },
    define: { 'import.meta.url': '__moduleUrl' },
  })
  const outputs = Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint !== undefined)
  return new Map(outputs.map(({ entryPoint, exports }) => [join(root, entryPoint), exports]))
}

/**
 * Takes work from the loading of a thread: modules of Node are made into ES modules once each, or when they are used (`LATE`); the names of a door
 * are accessors of an object, not closures that become accessors one by one, and a door is made when a file asks for it: most threads ask for two. The list of doors is
 * passed on as it is: in a tree with tests it has 800, and esbuild's copy of it took each thread some 2 ms. Lines stay where they are.
 */
function lean(text) {
  const once = text.replaceAll(/^(var \w+ = )__toESM\(require\(("node:\w+")\), 1\);$/gm, '$1__builtin($2);')
  const uses = new Map()
  for (const [name] of once.matchAll(/\b\w+_exports\d*\b/g)) uses.set(name, (uses.get(name) ?? 0) + 1)
  const doors = new Set()
  const accessors = once.replaceAll(
    /^var (\w+) = \{\};\n__export\(\1, \{\n((?: {2}(\S+): \(\) => \w+,?\n)+)\}\);$/gm,
    (_, object, names) => {
      const isList = object === 'stdin_exports'
      const list = names.replaceAll(/^ {2}(\S+): \(\) => (\w+)(,?)$/gm, (_, name, value, comma) => {
        // Named thrice: where it is made, where it is filled, and here. One that a module uses as well (`import * as`) is there from the start.
        const isDoor = isList && uses.get(value) === 3
        if (isDoor) doors.add(value)
        return `  get ${name}() { return ${value}${isDoor ? '()' : ''} }${comma}`
      })
      return doors.has(object) ? `\nvar ${object} = __door(() => ({\n${list}}));` : `\nvar ${object} = {\n${list}};`
    },
  )
  if (doors.size === 0) throw new Error('library.cjs: esbuild writes doors in another form')
  const direct = accessors.replace(/^module\.exports = __toCommonJS\((stdin_exports)\);$/m, 'module.exports = $1;')
  if (direct === accessors) throw new Error('library.cjs: esbuild passes its doors on in another form')
  const late = new RegExp(`^var (import_\\w+) = (?:require|__builtin)\\(("node:(?:${LATE.join('|')})")\\);$`, 'gm')
  const names = []
  const lazy = direct.replaceAll(late, (_, name, module) => {
    names.push(name)
    return `var ${name} = () => __builtin(${module});`
  })
  if (names.length === 0) throw new Error('library.cjs: esbuild writes modules of Node in another form')
  const used = names.join('|')
  return lazy
    .replaceAll(new RegExp(`\\bnew (${used})\\.(\\w+)`, 'g'), 'new ($1().$2)')
    .replaceAll(new RegExp(`\\b(${used})\\.`, 'g'), '$1().')
}

/**
 * Two functions of one name in one file: esbuild calls the second `add2`, and would give it its name back at the price of a call for each closure that is ever made
 * (`keepNames`; a policy step takes a tenth longer). So it is asked which those are, and only they get their names back, once.
 * @returns the statements
 */
async function renamed(options) {
  const { outputFiles } = await build({ ...options, keepNames: true })
  const { text } = outputFiles[0]
  const functions = [
    ...text.matchAll(/^__name\((\w+), "(\w+)"\);$/gm),
    ...text.matchAll(/^var (\w+) = (?:\/\* @__PURE__ \*\/ )?__name\(.*, "(\w+)"\);$/gm),
    ...text.matchAll(/^var (\w+) = (?:\/\* @__PURE__ \*\/ )?__name\([^\n]*\n(?:(?!\}).*\n)*\}, "(\w+)"\);$/gm),
  ].map(([, now, name]) => ({ held: now, now, name }))
  // One that speaks of itself is `var Tensor = class _Tensor {`.
  const classes = [...text.matchAll(/^(?:var (\w+) = )?class (\w+) [^\n]*\n {2}static \{\n {4}__name\(this, "(\w+)"\);$/gm)].map(
    ([, held, now, name]) => ({ held: held ?? now, now, name }),
  )
  const lines = [...functions, ...classes].flatMap(({ held, now, name }) =>
    now === name ? [] : [`Object.defineProperty(${held}, 'name', { value: '${name}', configurable: true });\n`],
  )
  return lines.join('')
}

/** A class that speaks of itself is `var Future = class _Future {`, and stacks would say `_Future.then`. It does no harm that the two have one name. */
function ownNames(text) {
  const names = [...text.matchAll(/\b(\w+) = class _\1\b/g)].map(([, name]) => name)
  return text.replaceAll(new RegExp(`(?<![.'"\\w$])_(${names.join('|')})\\b`, 'g'), '$1')
}

/**
 * Without indentation and comments. A statement has its line, which Node prints of an uncaught error. esbuild makes longer lines only with `lineLimit`, which breaks strings over
 * lines, too: a user's bundler that indents the library, as rollup's commonjs plugin does, would put its tabs into them.
 */
function shorter(text) {
  /** The line of `text` that each line of the result comes from. */
  const linesOf = [0]
  let [shortened, last, line] = ['', 0, 0]
  const keep = (end) => {
    const kept = text.slice(last, end)
    for (const _ of kept.matchAll(/\n/g)) linesOf.push(++line)
    shortened += kept
  }
  for (const { 0: dropped, index } of text.matchAll(/^(?: +|\/\/.*\n|\/\*[\s\S]*?\*\/\n?)+/gm)) {
    keep(index)
    line += dropped.split('\n').length - 1
    linesOf[linesOf.length - 1] = line
    last = index + dropped.length
  }
  keep(text.length)
  return { shortened, linesOf }
}

/** Line by line: within a line it says nothing, since a line has a statement. @returns the map of the files of this repository, with the text of the sources */
async function mapOf({ sources, sourcesContent, mappings, ...map }, linesOf, outdir) {
  const { decode, encode } = await import('@jridgewell/sourcemap-codec')
  const lines = decode(mappings)
  const paths = sources.map((source) => relative(root, join(outdir, source)).split(sep).join('/'))
  const found = linesOf.map((line) => lines[line]?.find(([, source]) => /^packages\/[\w-]+\/src\//.test(paths[source])))
  const used = [...new Set(found.flatMap((segment) => (segment === undefined ? [] : [segment[1]])))].sort((a, b) => a - b)
  const place = new Map(used.map((source, index) => [source, index]))
  return JSON.stringify({
    ...map,
    file: 'library.cjs',
    sources: used.map((source) => `../${paths[source]}`),
    sourcesContent: used.map((source) => sourcesContent[source]),
    names: [],
    mappings: encode(found.map((segment) => (segment === undefined ? [] : [[0, place.get(segment[1]), segment[2], segment[3]]]))),
  })
}

/** Node prints the line that threw above an error that nobody caught, unless the line has these words (node_errors.cc; Node 20 to 26). A line of ours says nothing to a user. */
const NO_LINE = '/*node-do-not-add-exception-line*/'

/** The words go after the first `throw` of each line, and where errors are made, which is the place that an unhandled rejection has. */
function withoutLine(text) {
  // In a fresh clone set-up, which installs it, comes first; `import` would have its 10 MB read once more for their names.
  const ts = createRequire(import.meta.url)('@typescript/typescript6')
  const found = new Map()
  const source = ts.createSourceFile('library.cjs', text, ts.ScriptTarget.Latest, true)
  const note = (at) => {
    const line = source.getLineAndCharacterOfPosition(at).line
    if (!found.has(line)) found.set(line, at)
  }
  const visit = (node) => {
    if (ts.isThrowStatement(node)) note(node.getStart(source) + 'throw'.length)
    else if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText(source))) note(node.getStart(source) + 'new'.length)
    else if (node.kind === ts.SyntaxKind.SuperKeyword && ts.isCallExpression(node.parent)) note(node.end)
    ts.forEachChild(node, visit)
  }
  ts.forEachChild(source, visit)
  let [result, last] = ['', 0]
  for (const at of [...found.values()].sort((a, b) => a - b)) {
    result += text.slice(last, at) + NO_LINE
    last = at
  }
  return result + text.slice(last)
}

/** Modules of this repository are bundled, each with its own place; all others stay what they are. */
function ours(edit) {
  return {
    name: 'ours',
    setup(plugin) {
      plugin.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
        kind === 'entry-point' || path.startsWith('@postgrad/') || INSIDE.test(path) ? undefined : { path, external: true },
      )
      plugin.onLoad({ filter: /\.js$/ }, ({ path }) => {
        const [name, , ...rest] = relative(packages, path).split(sep)
        if (name === '..' || path.includes(`${sep}node_modules${sep}`)) return undefined
        const contents = edit(readFileSync(path, 'utf8'), path)
        const place = JSON.stringify([name, ...rest].join('/'))
        const head = contents.includes('import.meta.url') ? `const __moduleUrl = __load.fileUrl(${place});` : ''
        return { contents: head + contents, loader: 'js' }
      })
    },
  }
}
