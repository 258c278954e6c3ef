/**
 * The CommonJS build of the packed library, for test runners that cannot `require` an ES module: jest without `--experimental-vm-modules`, with
 * ts-jest, swc or babel. `pack.mjs` calls it on what it has put together.
 *
 *   dist/cjs/all.cjs       every package of this repository in one file; third-party packages are required
 *   dist/cjs/<door>.cjs    one per entry of `exports`: all doors share the one instance of the library
 *   dist/cjs/types/        the declarations again, under a package.json that says CommonJS
 *
 * Note [One library in a process]: two instances would have two tables of exposed functions and two scopes. Node itself never loads this build where it can
 * avoid it: the condition `module-sync` of `exports`, which Node has from 20.19 (22.12) on, leads `require` to the ES modules as well, and jest, which does
 * not know the condition, here. What runs in threads is loaded by Node, so workers that were launched from a test have the ES modules, as in production.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { build } from './esbuild.mjs'

/** The file that a module is to think it is: `new URL('./worker-entry.js', import.meta.url)` must find what lies beside the ES module. */
const BANNER = `'use strict';
const __fileUrl = (path) => require('node:url').pathToFileURL(require('node:path').join(__dirname, path)).href;
const __importUrl = async (url) => require(url.startsWith('file:') ? require('node:url').fileURLToPath(url) : url);
`

/**
 * @param stage the package: `dist` is there
 * @param source the package of this repository that has the doors
 * @param doors the entries of `exports` that are modules, './testing' → './dist/testing.js'
 * @param edit what becomes of a module's text, by its path
 * @returns their `exports` with both builds
 */
export async function buildCommonJs(stage, source, doors, edit) {
  const out = join(stage, 'dist/cjs')
  mkdirSync(out, { recursive: true })
  writeJson(join(out, 'package.json'), { type: 'commonjs' })
  const named = Object.entries(doors).map(([door, path]) => ({ door, path, name: nameOf(path) }))
  await build({
    stdin: { contents: named.map(({ path, name }) => `export * as ${name} from '${path}'`).join('\n'), resolveDir: source },
    outfile: join(out, 'all.cjs'),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    conditions: ['import', 'node'],
    // Without its flag jest has no `import()`. What is loaded late is required late.
    supported: { 'dynamic-import': false },
    banner: { js: BANNER },
    define: { 'import.meta.url': '__moduleUrl' },
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [ours(dirname(source), edit)],
  })
  for (const { name } of named) writeFileSync(join(out, `${name}.cjs`), `module.exports = require('./all.cjs').${name}\n`)
  copyTypes(dirname(source), join(out, 'types'))
  return Object.fromEntries(named.map(({ door, path, name }) => [door, conditions(path, name)]))
}

function conditions(path, name) {
  const types = path.replace('./dist/', './dist/types/postgrad/').replace(/\.js$/, '.d.ts')
  const module = { types, default: path }
  return {
    'module-sync': module,
    import: module,
    require: { types: types.replace('./dist/types/', './dist/cjs/types/'), default: `./dist/cjs/${name}.cjs` },
  }
}

/** './dist/testing/check/matchers.js' → 'testing_matchers'. */
const nameOf = (path) => path.replace(/^\.\/dist\/|\.js$/g, '').replaceAll(/\W/g, '_')

/** Modules of this repository are bundled, each with its own place; all others stay what they are. */
function ours(packages, edit) {
  return {
    name: 'ours',
    setup(plugin) {
      plugin.onResolve({ filter: /^[^./]/ }, ({ path }) => (path.startsWith('@postgrad/') ? undefined : { path, external: true }))
      plugin.onLoad({ filter: /\.js$/ }, ({ path }) => {
        const text = edit(readFileSync(path, 'utf8'), path)
        // From dist/cjs to where the same module's place is in the ES modules.
        const [name, , ...rest] = relative(packages, path).split(sep)
        const place = ['..', name, ...rest].join('/')
        const head = text.includes('import.meta.url') ? `const __moduleUrl = __fileUrl(${JSON.stringify(place)});` : ''
        // Users' modules are imported by URL: in a test they go through the runner's own require and transform, TypeScript included.
        const required = text.replaceAll(/\bawait import\(([a-z]\w*)\)/g, 'await __importUrl($1)')
        const body =
          place === '../base/user-module.js'
            ? replaceOnce(required, 'isTypeScript(url) ? () => loadTypeScript(url, typescript, load) : load', 'load')
            : required
        return { contents: head + body, loader: 'js' }
      })
    },
  }
}

function replaceOnce(text, what, by) {
  if (text.split(what).length !== 2) throw new Error(`expected '${what}' once`)
  return text.replace(what, by)
}

/** The declarations of all shipped packages side by side: '@postgrad/rpc/internal' → '../rpc/internal.js'. */
export function copyTypes(packages, to) {
  for (const name of readdirSync(packages)) {
    const { private: isPrivate } = JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8'))
    if (isPrivate !== true) copyDeclarations(join(packages, name, 'dist'), join(to, name))
  }
}

function copyDeclarations(from, to) {
  for (const { name, parentPath } of readdirSync(from, { recursive: true, withFileTypes: true })) {
    const path = relative(from, join(parentPath, name))
    if (!/\.d\.ts$/.test(name) || /\.(test|suite|fixture)\.d\.ts$/.test(name) || /(^|[\\/])fixtures[\\/]/.test(path)) continue
    const up = `../${'../'.repeat(path.split(sep).length - 1)}`
    const text = readFileSync(join(from, path), 'utf8').replace(
      /(['"])@postgrad\/([a-z-]+)(?:\/(\w+))?\1/g,
      (_, quote, sibling, door = 'index') => `${quote}${up}${sibling}/${door}.js${quote}`,
    )
    mkdirSync(dirname(join(to, path)), { recursive: true })
    writeFileSync(join(to, path), text)
  }
}

function writeJson(path, value) {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}
