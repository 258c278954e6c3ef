/**
 * gpu.js as one file, next to the module that loads it. As a dependency it would bring along what it never loads: `webgpu` (84 MB), and the
 * optional `gl` with the 140 packages that build it; pnpm's overrides work in this repository alone. `pack.mjs` calls it.
 */
import { dirname, join, relative } from 'node:path'
import { build } from './esbuild.mjs'
import { noticesOf } from './pack-notices.mjs'
import { root } from './setup.mjs'

/** The one module that loads gpu.js, in tensor, and how it does so. */
const LOADER = 'kernels/gpujs/compiler.js'
const LOADS = "createRequire(import.meta.url)('gpu.js')"
const FILE = 'gpu.cjs'

/** The text of a module of tensor: the one that loads gpu.js loads the file. */
export function loadsFile(text, path) {
  if (!path.replaceAll('\\', '/').endsWith(`tensor/dist/${LOADER}`)) return text
  if (text.split(LOADS).length !== 2) throw new Error(`${relative(root, path)}: expected ${LOADS} once`)
  return text.replace(LOADS, LOADS.replace('gpu.js', `./${FILE}`))
}

/**
 * @param folder of tensor's files in what is packed
 * @param source the package of this repository, from which gpu.js is found
 * @returns what THIRD-PARTY.md says of each package in the bundle: name, version, licence and its text
 */
export async function bundleGpujs(folder, source) {
  const { metafile } = await build({
    stdin: { contents: "module.exports = require('gpu.js')", resolveDir: source },
    outfile: join(folder, dirname(LOADER), FILE),
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
  return noticesOf(Object.keys(metafile.inputs))
}
