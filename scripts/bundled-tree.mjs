/**
 * What `tsc -b` made, once more, with the library in few files, as users install it: `.cache/bundled`. Tests run there. A worker starts in half the time,
 * a test file loads some dozens of files and not 380, and what is tested has been through the bundler.
 *
 *   dist/                   the library, by `bundle.mjs`: a file per package with all names of its modules, and what threads load by its place
 *   packages/x/dist/y.js    a module of the library passes on its names from there: whoever imports it has the one instance
 *   packages/, apps/        tests, fixtures, apps and private packages, as they are
 *   node_modules/           the packages of this tree, and what they need
 */
import { copyFileSync, cpSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { buildBundle, exportsOf, isByPlace } from './bundle.mjs'
import { builtFrom, projects, read, root, walk } from './setup.mjs'

const tree = join(root, '.cache/bundled')
const entries = join(tree, 'entries')
const stamp = join(tree, 'stamp')
/** Which the tree has of its own, or must not have twice. */
const NOT_LINKED = ['packages', 'apps', 'node_modules', 'package.json', 'jest.config.js', '.cache', '.git', 'out']

const inTree = (path) => join(tree, relative(root, path))
const manifestOf = (folder) => JSON.parse(read(join(folder, 'package.json')))
const isLibrary = (folder) => folder.startsWith(join(root, 'packages')) && manifestOf(folder).private !== true
const isTestCode = (path) => path.split(sep).includes('fixtures') || /\.(test|suite|fixture)\./.test(basename(path))

/** @returns the folder of the tree, made again where something else has been built since */
export async function bundledTree() {
  const key = `${builtFrom()} ${read(join(root, 'scripts/bundle.mjs'))} ${read(join(root, 'scripts/bundled-tree.mjs'))}`
  if (read(stamp) === key) return tree
  rmSync(tree, { recursive: true, force: true })
  mkdirSync(entries, { recursive: true })
  const folders = new Map(projects().map((folder) => [manifestOf(folder).name, folder]))
  for (const folder of folders.values()) place(folder, folders)
  for (const name of readdirSync(root)) if (!NOT_LINKED.includes(name)) symlinkSync(join(root, name), join(tree, name))
  await library([...folders.values()].filter(isLibrary))
  writeFileSync(stamp, key)
  return tree
}

/** A package or an app without its part in the library. */
function place(folder, folders) {
  mkdirSync(inTree(folder), { recursive: true })
  for (const name of readdirSync(folder)) {
    if (name === 'package.json') copyFileSync(join(folder, name), join(inTree(folder), name))
    // Programs in TypeScript are run from there.
    else if (name === 'src') cpSync(join(folder, name), join(inTree(folder), name), { recursive: true })
    else if (name !== 'dist' && name !== 'node_modules') symlinkSync(join(folder, name), join(inTree(folder), name))
  }
  for (const { path } of walk(join(folder, 'dist'))) {
    if (/\.(map|stamp|tsbuildinfo)$/.test(path) || (isLibrary(folder) && path.endsWith('.js') && !isTestCode(path))) continue
    mkdirSync(dirname(inTree(path)), { recursive: true })
    copyFileSync(path, inTree(path))
  }
  const { name, dependencies, devDependencies } = manifestOf(folder)
  for (const needed of [name, ...Object.keys({ ...dependencies, ...devDependencies })]) {
    const link = join(tree, 'node_modules', needed)
    if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) continue
    mkdirSync(dirname(link), { recursive: true })
    const own = folders.get(needed)
    symlinkSync(own === undefined ? realpathSync(join(folder, 'node_modules', needed)) : inTree(own), link)
  }
}

async function library(folders) {
  const modulesOf = (folder) =>
    [...walk(join(folder, 'dist'))].map(({ path }) => path).filter((path) => path.endsWith('.js') && !isTestCode(path))
  const names = await exportsOf(folders.flatMap(modulesOf))
  const doors = {}
  for (const folder of folders) {
    const name = basename(folder)
    const modules = modulesOf(folder)
    const bundled = modules.filter((path) => !isByPlace(path))
    // Who imports one door of postgrad does not load the others.
    if (name === 'postgrad') for (const path of bundled) doors[`${name}-${basename(path, '.js')}`] = [path]
    else doors[name] = bundled
    for (const path of modules.filter(isByPlace))
      passOn(path, relative(join(root, 'packages'), path).replace(`${sep}dist${sep}`, sep), names.get(path))
  }
  for (const [door, paths] of Object.entries(doors)) {
    const lines = paths.map((path, of) => {
      passOn(
        path,
        `${door}.js`,
        names.get(path).map((name) => `m${of}_${name} as ${name}`),
      )
      return `export { ${names.get(path).map((name) => `${name} as m${of}_${name}`)} } from ${JSON.stringify(path)}`
    })
    // Its own order of loading, from its door on.
    const first = paths.find((path) => /dist[\\/]index\.js$/.test(path)) ?? paths[0]
    writeFileSync(join(entries, `${door}.js`), [`import ${JSON.stringify(first)}`, ...lines].join('\n'))
  }
  const files = Object.keys(doors).map((door) => [door, join(entries, `${door}.js`)])
  await buildBundle({ doors: Object.fromEntries(files), outdir: join(tree, 'dist'), edit: (text) => text })
}

/** Writes what stands in place of the module at `path`. */
function passOn(path, file, names) {
  const target = inTree(path)
  const from = JSON.stringify(
    relative(dirname(target), join(tree, 'dist', file))
      .split(sep)
      .join('/'),
  )
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, `import ${from}\nexport { ${names.join(', ')} } from ${from}\n`)
}
