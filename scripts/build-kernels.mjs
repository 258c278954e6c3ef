/**
 * Compiles the AssemblyScript kernels (`packages/tensor/assembly`) to `packages/tensor/dist/kernels.wasm`, unless that is up to date.
 * Called by `scripts/setup.mjs`; runs alone as `node scripts/build-kernels.mjs [--force]`.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { argv } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const PACKAGE = join(ROOT, 'packages', 'tensor')
const SOURCE = join(PACKAGE, 'assembly')
const TARGET = join(PACKAGE, 'dist', 'kernels.wasm')
/** Beside the module: the hash of what it was made from. Times would lie after a checkout. */
const STAMP = join(PACKAGE, 'dist', 'kernels.stamp')

/** No runtime and no statics (scratch is passed in), so that instances share a memory; no assertions, which would be abort imports. */
const FLAGS = [
  ...['--runtime', 'stub', '-O3', '--noAssert', '--enable', 'simd,threads'],
  // Of 4 GiB at most, which is what wasm32 addresses: a thread's memory may be smaller.
  ...['--importMemory', '--noExportMemory', '--sharedMemory', '--maximumMemory', '65536'],
]

/** Returns true when it compiled, false when the module was up to date. Throws with the compiler's messages. */
export async function buildKernels({ force = false } = {}) {
  const { version } = createRequire(import.meta.url)('assemblyscript/package.json')
  const files = (await readdir(SOURCE)).filter((name) => name.endsWith('.ts')).sort()
  const hash = createHash('sha256').update(JSON.stringify([version, FLAGS]))
  for (const file of files) hash.update(file).update(await readFile(join(SOURCE, file)))
  const stamp = hash.digest('hex')
  if (!force && (await isMadeFrom(stamp))) return false

  const { default: asc } = await import('assemblyscript/asc')
  await mkdir(dirname(TARGET), { recursive: true })
  const fresh = `${TARGET}.new`
  const { error, stderr } = await asc.main([join(SOURCE, 'index.ts'), '--outFile', fresh, '--baseDir', '/', ...FLAGS])
  if (error) throw new Error(`build-kernels: asc ${version} failed.\n${stderr.toString()}`, { cause: error })
  // Renamed when whole: a test that runs meanwhile sees the old module or the new one.
  await rename(fresh, TARGET)
  await writeFile(STAMP, stamp)
  return true
}

async function isMadeFrom(stamp) {
  try {
    await readFile(TARGET)
    return (await readFile(STAMP, 'utf8')) === stamp
  } catch (error) {
    if (error.code === 'ENOENT') return false
    throw error
  }
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  const built = await buildKernels({ force: argv.includes('--force') })
  console.log(built ? 'kernels.wasm: compiled' : 'kernels.wasm: up to date')
}
