/**
 * Compiles the AssemblyScript kernels (`packages/tensor/assembly`) to `packages/tensor/dist/kernels.wasm`, unless that is up to date.
 * Called by `scripts/setup.mjs`; runs alone as `node scripts/build-kernels.mjs [--force]`.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { argv } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const PACKAGE = join(ROOT, 'packages', 'tensor')
const SOURCE = join(PACKAGE, 'assembly')
const TARGET = join(PACKAGE, 'dist', 'kernels.wasm')
/** Next to the module: the hash of its sources. Times would lie after a checkout. */
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
  const files = (await readdir(SOURCE, { recursive: true })).filter((name) => name.endsWith('.ts')).sort()
  const hash = createHash('sha256')
    .update(JSON.stringify([version, FLAGS]))
    .update(await readFile(fileURLToPath(import.meta.url)))
  for (const file of files) hash.update(file).update(await readFile(join(SOURCE, file)))
  const stamp = hash.digest('hex')
  if (!force && (await isMadeFrom(stamp))) return false

  const { default: asc } = await import('assemblyscript/asc')
  await mkdir(dirname(TARGET), { recursive: true })
  const fresh = `${TARGET}.new`
  // The compiler asks for files that need not be there, too.
  const readSource = (name, base) =>
    readFile(resolve(base, name), 'utf8').then(
      (text) => withExports(text, name),
      () => null,
    )
  const flags = ['--outFile', fresh, '--baseDir', '/', ...FLAGS]
  const { error, stderr } = await asc.main([join(SOURCE, 'index.ts'), ...flags], { readFile: readSource })
  if (error) throw new Error(`build-kernels: asc ${version} failed.\n${stderr.toString()}`, { cause: error })
  // Renamed when whole: a test that runs meanwhile sees the old module or the new one.
  await rename(fresh, TARGET)
  await writeFile(STAMP, stamp)
  return true
}

/** A comment's exports, and the head of the function after it. */
const EXPORTS = /@exports (?:(?!\*\/)[\s\S])*\*\/\n(?:@inline )?function (\w+)(?:<([\w, ]+)>)?\(([^)]*)\)/g
const TAG = /@exports (?:([\w ]+): )?(\w+(?: \w+)*)(?: \*\/)?\n/g

/**
 * A file of kernels with the exports that its comments name. A comment with `@exports add sub: f32 f64` gives add_f32, add_f64, sub_f32 and sub_f64. Each
 * calls the function after the comment for its type: for two types if the name ends in two (u8_f32), for u32 if it ends in a bare 32. If that function's
 * first parameter is `op: Binary`, add_f32 passes `Binary.add`, and a comment with `@exports f32` exports all members of that enum. The exports are on the
 * function's own line, so that the compiler's messages name the lines of the file.
 */
export function withExports(text, file) {
  let read = 0
  const whole = text.replace(EXPORTS, (all, callee, generics = '', list) => {
    const parameters = [...list.matchAll(/(\w+): (\w+)/g)].map(([, name, type]) => ({ name, type }))
    const ops = parameters[0].name === 'op' ? parameters.shift().type : null
    const exported = (name, suffix) => {
      const ofName = suffix.split('_').map((type) => type.replace(/^\d/, 'u$&'))
      const types = Object.fromEntries(generics.split(', ').map((generic, i) => [generic, ofName[i]]))
      const typed = parameters.map(({ name, type }) => `${name}: ${types[type] ?? type}`)
      const given = [...(ops ? [`${ops}.${name}`] : []), ...parameters.map(({ name }) => name)]
      return `export function ${name}_${suffix}(${typed}): void { ${callee}${generics && `<${Object.values(types)}>`}(${given}) } `
    }
    const members = text.match(new RegExp(`enum ${ops} {([^}]*)`))?.[1].match(/\w+/g)
    const tags = [...all.matchAll(TAG)].filter(([, names]) => names ?? members)
    read += tags.length
    const each = tags.flatMap(([, names, suffixes]) =>
      (names?.split(' ') ?? members).flatMap((name) => suffixes.split(' ').map((suffix) => exported(name, suffix))),
    )
    return all.replace('*/\n', (end) => end + each.join(''))
  })
  if (read !== text.split('@exports').length - 1)
    throw new Error(`build-kernels: ${file} has an @exports of another form, or without a function after it`)
  return whole
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
