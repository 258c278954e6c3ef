/**
 * The library in few files, for `pack.mjs` and `bundled-tree.mjs`. A thread that starts loads what stands in its way: 380 modules take Node 20 some 0.3 s of a core, a dozen files a
 * third of that.
 *
 * What is loaded by its place (`ownFile` of base) is an entry of its own, in the folder of its package. Names of functions and classes stay: errors, `expose` and
 * optimizers speak by them.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { build } from './esbuild.mjs'
import { root } from './setup.mjs'

const packages = join(root, 'packages')

/** What is loaded by its place, by package. */
const BY_PLACE = {
  base: ['typescript-format.js'],
  cluster: ['worker/worker-entry.js', 'jobs/job-program.js'],
  data: ['worker-task.js'],
  jobs: ['job-thread.js'],
  testing: ['explore/explore-job.js'],
}
/** The same, for what is no module that can be bundled. */
const COPIED = { jobs: ['job-entry.cjs'], tensor: ['kernels.wasm'] }

/**
 * @param doors name of each output, without '.js', and the module that it is of
 * @param outdir where they go, and a folder for each package of which something is loaded by its place
 * @param edit what becomes of a module's text, by its path
 */
export async function buildBundle({ doors, outdir, edit }) {
  const entries = { ...doors }
  const placed = (files) => Object.entries(files).flatMap(([name, paths]) => paths.map((path) => [name, path]))
  for (const [name, path] of placed(BY_PLACE)) entries[join(name, path.slice(0, -'.js'.length))] = distOf(name, path)
  const options = {
    entryPoints: entries,
    outdir,
    chunkNames: `${CHUNKS}/[hash]`,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    legalComments: 'none',
    define: { 'import.meta.url': '__moduleUrl' },
    metafile: true,
    write: false,
    logLevel: 'warning',
    absWorkingDir: root,
    plugins: [placesKept(edit)],
  }
  const renamed = await renamedFunctions(options)
  const { metafile, outputFiles } = await build(options)
  for (const { path, text } of outputFiles) {
    const { inputs } = metafile.outputs[relative(root, path).split(sep).join('/')]
    mkdirSync(dirname(path), { recursive: true })
    const names = renamed.get(Object.keys(inputs).join()) ?? ''
    writeFileSync(path, Object.hasOwn(inputs, `root:${ROOT}`) ? knowing(path, text) + names : text + names)
  }
  for (const [name, path] of placed(COPIED)) {
    const to = join(outdir, name, path)
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(distOf(name, path), to)
  }
}

/**
 * Two functions of one name in one file: esbuild calls the second `add2`, and would give it its name back at the price of a call for each closure that is ever made
 * (`keepNames`; a policy step takes a tenth longer). So it is asked which those are, and only they get their names back, once.
 * @returns for each file, by what is in it, the statements
 */
async function renamedFunctions(options) {
  const { metafile, outputFiles } = await build({ ...options, keepNames: true })
  const statements = new Map()
  for (const { path, text } of outputFiles) {
    const { inputs } = metafile.outputs[relative(root, path).split(sep).join('/')]
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
    statements.set(Object.keys(inputs).join(), lines.join(''))
  }
  return statements
}

/** Whether a module is loaded by its place. */
export function isByPlace(path) {
  const [name, , ...rest] = relative(packages, path).split(sep)
  return BY_PLACE[name]?.includes(rest.join('/')) ?? false
}

/** @returns by path, the names that each of these modules exports */
export async function exportsOf(modules) {
  const { metafile } = await build({
    ...{ entryPoints: modules, outdir: join(root, '.cache'), bundle: true, splitting: true, format: 'esm', platform: 'node' },
    ...{ metafile: true, write: false, logLevel: 'warning', absWorkingDir: root, plugins: [placesKept((text) => text)] },
  })
  const outputs = Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint !== undefined)
  return new Map(outputs.map(({ entryPoint, exports }) => [join(root, entryPoint), exports]))
}

/** The file in which the module that knows the root has come to lie. */
function knowing(path, text) {
  const parts = text.split(HERE)
  if (!dirname(path).endsWith(CHUNKS) || parts.length !== 2) throw new Error(`${path}: expected a chunk with ${HERE} once`)
  return parts.join('import.meta.url')
}

/** The folder of what several files need: a name that no bundle of a user's has, so that such a one is not taken for this. */
const CHUNKS = 'postgrad-chunks'
/** A module that knows where the bundle lies. */
const ROOT = 'postgrad:root'
/** Stands for `import.meta.url` of the file that it comes to lie in, until that is written. */
const HERE = '__fileUrl'

const distOf = (name, path) => join(packages, name, 'dist', path)

/** Modules of this repository are bundled, each knows its own place; all others stay what they are. */
function placesKept(edit) {
  return {
    name: 'places-kept',
    setup(plugin) {
      plugin.onResolve({ filter: /^[^.]/ }, ({ path, kind }) => {
        if (path === ROOT) return { path, namespace: 'root' }
        if (kind === 'entry-point' || isAbsolute(path) || path.startsWith('@postgrad/')) return undefined
        return { path, external: true }
      })
      // The one module that is asked where it is: all chunks lie in one folder.
      plugin.onLoad({ filter: /.*/, namespace: 'root' }, () => ({
        // In a bundle that a user made of this one it lies elsewhere, or nobody knows where.
        contents: `export const here = ${HERE}; export const root = /[/]${CHUNKS}[/][^/]*$/.test(here) ? new URL('../', here).href : undefined`,
        loader: 'js',
      }))
      plugin.onLoad({ filter: /\.js$/ }, ({ path }) => {
        const [name, , ...rest] = relative(packages, path).split(sep)
        if (name === '..') return undefined
        const contents = edit(readFileSync(path, 'utf8'), path)
        if (!contents.includes('import.meta.url')) return { contents, loader: 'js' }
        const place = JSON.stringify([name, ...rest].join('/'))
        const head = `import { here as __here, root as __root } from '${ROOT}';const __moduleUrl = __root ? new URL(${place}, __root).href : __here;`
        return { contents: head + contents, loader: 'js' }
      })
    },
  }
}
