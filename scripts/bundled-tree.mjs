/**
 * The output of `tsc -b`, once more, with the library in one file, as users install it: a folder of `.cache/bundled` for each build. Tests run there. A worker
 * starts in a quarter of the time, and the tested code has been through the bundler.
 *
 *   dist/                   the library, by `library.mjs`, with all names of all modules, and files that threads load by place
 *   packages/x/dist/y.js    a module of the library passes on its names from there: all importers share one instance
 *   packages/, apps/        tests, fixtures, apps and private packages, as they are
 *   node_modules/           the packages of this tree, and what they need; `@jest/globals` for tests that Node loads (`jest-globals.mjs`)
 */
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { BY_PLACE, buildLibrary, isCopied } from './library.mjs'
import { builtFrom, projects, read, root, walk } from './setup.mjs'

const trees = join(root, '.cache/bundled')
/** So many stay: a soak may still run on an older one. */
const TREES_KEPT = 4
/** The one of the build at hand. */
let tree
/** Which the tree has of its own, or must not have twice. */
const NOT_LINKED = ['packages', 'apps', 'node_modules', 'package.json', 'jest.config.js', '.cache', '.git', 'out']

const inTree = (path) => join(tree, relative(root, path))
const manifestOf = (folder) => JSON.parse(read(join(folder, 'package.json')))
const isLibrary = (folder) => folder.startsWith(join(root, 'packages')) && manifestOf(folder).private !== true
const isLibraryCode = (path) => path.endsWith('.js') && !isTestCode(path) && !isCopied(path)
const isTestCode = (path) => path.split(sep).includes('fixtures') || /\.(test|suite|fixture)\./.test(basename(path))

/** @returns the folder of the tree, made again where something else has been built since */
export async function bundledTree() {
  const scripts = ['library.mjs', 'bundled-tree.mjs', 'jest-globals.mjs'].map((name) => read(join(root, 'scripts', name)))
  const key = createHash('sha256').update([builtFrom(), ...scripts].join())
  const at = join(trees, key.digest('hex').slice(0, 12))
  const stamp = join(at, 'stamp')
  if (existsSync(stamp)) return at
  await makeTree(at, null)
  removeOld()
  writeFileSync(stamp, '')
  return at
}

/**
 * The tree with another text for one module: `npm run mutate` runs tests on it.
 * @param at a folder for it, which the caller removes
 * @param mutant the module's path in `dist`, and its text
 */
export async function mutantTree(at, mutant) {
  await makeTree(at, mutant)
  return at
}

async function makeTree(at, mutant) {
  tree = at
  rmSync(tree, { recursive: true, force: true })
  mkdirSync(tree, { recursive: true })
  const folders = new Map(projects().map((folder) => [manifestOf(folder).name, folder]))
  placeJestGlobals()
  for (const folder of folders.values()) place(folder, folders)
  for (const name of readdirSync(root)) if (!NOT_LINKED.includes(name)) link(join(root, name), join(tree, name))
  const edit = (text, path) => (path === mutant?.path ? mutant.code : text)
  await library([...folders.values()].filter(isLibrary), edit, mutant !== null)
  if (mutant === null || isInLibrary(mutant.path)) return
  writeFileSync(inTree(mutant.path), mutant.code)
  if (isCopied(mutant.path)) writeFileSync(besideLibrary(mutant.path), mutant.code)
}

function removeOld() {
  const others = readdirSync(trees).filter((name) => name !== basename(tree))
  const since = new Map(others.map((name) => [name, statSync(join(trees, name)).mtimeMs]))
  const old = others.sort((a, b) => since.get(b) - since.get(a)).slice(TREES_KEPT - 1)
  for (const name of old) rmSync(join(trees, name), { recursive: true, force: true })
}

/** A link, or where Windows lets only administrators link files a copy. */
function link(from, at) {
  if (statSync(from).isDirectory()) return symlinkSync(from, at, 'junction')
  try {
    symlinkSync(from, at)
  } catch (error) {
    if (error.code !== 'EPERM') throw error
    copyFileSync(from, at)
  }
}

function placeJestGlobals() {
  const at = join(tree, 'node_modules/@jest/globals')
  mkdirSync(at, { recursive: true })
  copyFileSync(join(root, 'scripts/jest-globals.mjs'), join(at, 'index.mjs'))
  writeFileSync(join(at, 'package.json'), JSON.stringify({ name: '@jest/globals', exports: './index.mjs' }))
}

/** A package or an app without its part in the library. */
function place(folder, folders) {
  mkdirSync(inTree(folder), { recursive: true })
  for (const name of readdirSync(folder)) {
    // Files that are found by their place: package.json marks a package, and programs in TypeScript are run from src.
    if (name === 'package.json') copyFileSync(join(folder, name), join(inTree(folder), name))
    else if (name === 'src') cpSync(join(folder, name), join(inTree(folder), name), { recursive: true })
    else if (name !== 'dist' && name !== 'node_modules') link(join(folder, name), join(inTree(folder), name))
  }
  for (const { path } of walk(join(folder, 'dist'))) {
    if (/\.(map|stamp|tsbuildinfo)$/.test(path) || (isLibrary(folder) && isLibraryCode(path))) continue
    mkdirSync(dirname(inTree(path)), { recursive: true })
    copyFileSync(path, inTree(path))
  }
  const { name, dependencies, devDependencies } = manifestOf(folder)
  for (const needed of [name, ...Object.keys({ ...dependencies, ...devDependencies })]) {
    const at = join(tree, 'node_modules', needed)
    if (lstatSync(at, { throwIfNoEntry: false }) !== undefined) continue
    mkdirSync(dirname(at), { recursive: true })
    const own = folders.get(needed)
    symlinkSync(own === undefined ? realpathSync(join(folder, 'node_modules', needed)) : inTree(own), at, 'junction')
  }
}

function isInLibrary(path) {
  return isLibrary(join(root, ...relative(root, path).split(sep).slice(0, 2))) && isLibraryCode(path)
}

/** Where a module lies that is loaded by its place. */
function besideLibrary(from) {
  return join(tree, 'dist', relative(join(root, 'packages'), from).replace(`${sep}dist${sep}`, sep))
}

async function library(folders, edit, isMutant) {
  const dist = join(tree, 'dist')
  const isByPlace = (at) => Object.entries(BY_PLACE).some(([name, paths]) => paths.some((path) => at === join(dist, name, path)))
  const modules = folders
    .flatMap((folder) => [...walk(join(folder, 'dist'))].map(({ path }) => path).filter(isLibraryCode))
    .map((from) => {
      const place = besideLibrary(from)
      return { from, to: [inTree(from), ...(isByPlace(place) ? [place] : [])] }
    })
  // Modules run in the order in which a program that imports postgrad loads them; all others run after them.
  const isDoor = ({ from }) => from.startsWith(join(root, 'packages/postgrad'))
  await buildLibrary({ modules: [...modules.filter(isDoor), ...modules.filter((one) => !isDoor(one))], outdir: dist, edit, isMutant })
}
