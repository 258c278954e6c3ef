/**
 * Puts gpu.js into the packed `@postgrad/tensor`, as one file beside the module that loads it. As a dependency it would bring along what it never
 * loads: `webgpu` (84 MB), and the optional `gl` with the 140 packages that build it; pnpm's overrides work in this repository alone.
 * `pack.mjs` calls it before the CommonJS build, which loads the same file.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { build } from 'esbuild'
import { root } from './setup.mjs'

/** The one module that loads gpu.js, in its package, and how it does so. */
const LOADER = 'dist/kernels/gpujs/compiler.js'
const LOADS = "createRequire(import.meta.url)('gpu.js')"
const FILE = 'gpu.cjs'

/**
 * @param tensor the packed package: its `dist` is there
 * @param source the package of this repository, from which gpu.js is found
 * @returns what THIRD-PARTY.md says of each package in the bundle: name, version, licence and its text
 */
export async function bundleGpujs(tensor, source) {
  const loader = join(tensor, LOADER)
  const text = readFileSync(loader, 'utf8')
  if (text.split(LOADS).length !== 2) throw new Error(`${relative(root, loader)}: expected ${LOADS} once`)
  writeFileSync(loader, text.replace(LOADS, LOADS.replace('gpu.js', `./${FILE}`)))
  const { metafile } = await build({
    stdin: { contents: "module.exports = require('gpu.js')", resolveDir: source },
    outfile: join(dirname(loader), FILE),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    // Tried, and done without where a user has not installed it.
    external: ['gl'],
    // Kernels are compiled from the text of functions, some of gpu.js's own: nothing is renamed or shortened.
    minify: false,
    metafile: true,
    absWorkingDir: root,
    logLevel: 'warning',
  })
  const folders = new Set(
    Object.keys(metafile.inputs)
      .filter((path) => path !== '<stdin>')
      .map((path) => packageOf(join(root, path))),
  )
  return [...folders].map(notice).sort((a, b) => (a.name < b.name ? -1 : 1))
}

function packageOf(path) {
  let folder = dirname(path)
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder)
  return folder
}

function notice(folder) {
  const { name, version, license, repository } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one))
  if (license !== 'MIT' || file === undefined) throw new Error(`${name} ${version}: expected a file with the MIT licence, got '${license}'`)
  const url = (repository?.url ?? repository).replace(/^git\+|\.git$/g, '')
  return { name, version, license, url, text: readFileSync(join(folder, file), 'utf8').trim() }
}
