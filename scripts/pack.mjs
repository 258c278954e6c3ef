/**
 * Builds what users install: `out/postgrad-<version>.tgz`, one package that needs no other package of this repository.
 *
 *   dist/                 the library in one file, its doors, and what threads load by its place (`library.mjs`)
 *   dist/types/           the declarations of all packages, side by side, as CommonJS; those at the doors pass them on (`pack-types.mjs`)
 *   dist/cli/             apps/cli, the command `postgrad`; it finds the library by its own name (a package may import itself)
 *   dist/cjs/             its doors for `require`
 *   dist/templates/       apps/cli/templates, the projects that `postgrad new` writes
 *   dist/examples/        apps/examples, for `postgrad example`; examples/ has the sources (`pack-examples.mjs`)
 *   README.md, docs/ …    what the README leads to (`pack-docs.mjs`)
 *   THIRD-PARTY.md        the licences of what is copied in: gpu.js, echarts and what they need (`bundle-gpujs.mjs`, `bundle-echarts.mjs`), and what the library holds
 *
 * Other third-party dependencies of all packages are this one's, with their exact versions.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { bundleEcharts, loadsCharts } from './bundle-echarts.mjs'
import { bundleGpujs, loadsFile } from './bundle-gpujs.mjs'
import { BY_PLACE, buildLibrary, nameOf } from './library.mjs'
import { packDocs } from './pack-docs.mjs'
import { packExamples } from './pack-examples.mjs'
import { noticesOf } from './pack-notices.mjs'
import { copyTypes, writeTypesDoor } from './pack-types.mjs'
import { wrongIn } from './pack-verify.mjs'
import { buildKey, builtFrom, capture, projects, root, setupOrExit, walk } from './setup.mjs'

const out = join(root, 'out')
await setupOrExit()
const packedFrom = [builtFrom(), buildKey()].join()
mkdirSync(out, { recursive: true })
// Of this run alone: another may pack at the same time, and both would stage in one folder.
const own = mkdtempSync(join(out, 'pack-'))
const stage = join(own, 'stage')
process.once('exit', () => rmSync(own, { recursive: true, force: true }))
const manifests = new Map(projects().map((folder) => [folder, JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))]))
const postgrad = manifestOf('packages/postgrad')
const cli = manifestOf('apps/cli')
const isShipped = ([folder, manifest]) => folder.startsWith(join(root, 'packages')) && manifest !== postgrad && !manifest.private
const bundled = [...manifests].filter(isShipped)
const siblings = new Map([...manifests.values()].map((manifest) => [manifest.name, manifest.version]))

const packages = join(root, 'packages')
const doors = Object.entries(postgrad.exports).filter(([, path]) => path.endsWith('.js'))
const { exports, inputs } = await library(doors)
copyTypes(packages, join(stage, 'dist/types'))
copyDist(join(root, 'apps/cli'), stage, 'dist/cli')
cpSync(join(root, 'apps/cli/templates'), join(stage, 'dist/templates'), { recursive: true })
cpSync(join(root, 'LICENSE'), join(stage, 'LICENSE'))
const docs = packDocs(root, stage, postgrad.repository)
packExamples(stage)
const copied = byName([
  ...(await bundleGpujs(join(stage, 'dist/tensor'), join(packages, 'tensor'))),
  ...(await bundleEcharts(join(stage, 'dist/training'), join(packages, 'training'))),
  ...noticesOf(inputs),
])
writeFileSync(join(stage, 'THIRD-PARTY.md'), thirdParty(copied))
writeJson(join(stage, 'package.json'), outer({ ...exports, './package.json': './package.json' }))
// Two builds at once do not wait for each other, and the other may have written while this one read.
if ([builtFrom(), buildKey()].join() !== packedFrom) {
  console.error('pack: the sources, or what is built from them, changed meanwhile. Run it again when nothing else builds.')
  process.exit(1)
}

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const env = { ...process.env, npm_config_loglevel: 'error' }
const { code, output } = await capture(npm, ['pack', '--ignore-scripts', '--pack-destination', own], {
  cwd: stage,
  env,
  shell: process.platform === 'win32',
})
if (code !== 0) {
  console.error(`npm pack failed:\n${output}`)
  process.exit(1)
}
const name = `postgrad-${postgrad.version}.tgz`
const wrong = await wrongIn(join(own, name), stage, join(own, 'unpacked'))
if (wrong.length > 0) {
  console.error(`pack: what npm has packed is not what was to be packed:\n  ${wrong.join('\n  ')}`)
  process.exit(1)
}
// Whole, or not at all.
const tarball = join(out, name)
renameSync(join(own, name), tarball)
console.log(`pack: ${relative(root, tarball)}, ${Math.ceil(readFileSync(tarball).length / 1024)} KiB, of ${bundled.length} packages`)

function manifestOf(folder) {
  return manifests.get(join(root, folder))
}

/**
 * The library, a file per door for `import` and one for `require`, and one for each module that is loaded by its place.
 * @param doors entries of `exports`, ['./testing', './dist/testing.js']
 * @returns `exports` of package.json, and the files that the library is made of
 */
async function library(doors) {
  const dist = join(stage, 'dist')
  const placed = Object.entries(BY_PLACE).flatMap(([name, paths]) =>
    paths.map((path) => ({ from: join(packages, name, 'dist', path), to: [join(dist, name, path)] })),
  )
  const opened = doors.map(([door, path]) => ({ door, path, from: join(packages, 'postgrad', path), to: [join(stage, path)] }))
  const inputs = await buildLibrary({
    modules: [...opened, ...placed],
    outdir: dist,
    edit: (text, path) => loadsCharts(loadsFile(text, path), path),
    withMap: true,
  })
  writeJson(join(dist, 'cjs/package.json'), { type: 'commonjs' })
  const exports = {}
  for (const { door, path, from } of opened) {
    const required = path.replace('./dist/', './dist/cjs/').replace(/\.js$/, '.cjs')
    writeFileSync(join(stage, required), `module.exports = require('../base/load.cjs').load(true).${nameOf(from)}\n`)
    const types = path.replace(/\.js$/, '.d.ts')
    const tree = types.replace('./dist/', './dist/types/postgrad/')
    writeTypesDoor(join(stage, types), join(stage, tree))
    exports[door] = { import: { types, default: path }, require: { types: tree, default: required } }
  }
  return { exports, inputs }
}

/** A package that is in several files is named once. */
function byName(packages) {
  return [...new Map(packages.map((one) => [`${one.name} ${one.version}`, one])).values()]
}

function thirdParty(packages) {
  const parts = packages.map(({ name, version, license, url, text }) => `## ${name} ${version}, ${license}\n\n${url}\n\n${text}\n`)
  return `# Third-party software in this package

\`dist/library.cjs\`, \`dist/tensor/kernels/gpujs/gpu.cjs\` and \`dist/training/chart/echarts.cjs\` hold the packages below. gpu.js contains gl-wiretap 0.6.2 (MIT,
https://github.com/robertleeplummerjr/gl-wiretap). Packages that are installed beside this one have licence files of their own.

${parts.join('\n')}`
}

/** The compiled files without tests, what only tests use, and the build's own notes. */
function copyDist(folder, target, as) {
  const dist = join(folder, 'dist')
  if (!existsSync(join(dist))) throw new Error(`${relative(root, dist)} is missing: nothing to pack`)
  const belongs = (path) => basename(path) !== 'fixtures' && !/\.(test|suite|fixture)\.|\.(map|stamp)$|\.tsbuildinfo$/.test(basename(path))
  cpSync(dist, join(target, as), { recursive: true, filter: belongs })
  // Their maps stay here.
  for (const { path } of walk(join(target, as)))
    if (path.endsWith('.js')) writeFileSync(path, readFileSync(path, 'utf8').replace(/^\/\/# sourceMappingURL=.*\n?/m, ''))
}

function outer(exports) {
  const { name, version, description, keywords, license, repository, homepage, bugs, type, engines, peerDependencies = {} } = postgrad
  const dependencies = {}
  const from = {}
  for (const manifest of [postgrad, cli, ...bundled.map(([, one]) => one)]) {
    for (const [dependency, range] of Object.entries(manifest.dependencies ?? {})) {
      if (siblings.has(dependency) || copied.some((one) => one.name === dependency)) continue
      if (!/^\d/.test(range)) throw new Error(`${manifest.name}: ${dependency} has '${range}', an exact version is needed`)
      if ((dependencies[dependency] ?? range) !== range)
        throw new Error(`${dependency}: ${from[dependency]} wants ${dependencies[dependency]}, ${manifest.name} ${range}`)
      dependencies[dependency] = range
      from[dependency] = manifest.name
    }
  }
  const peers = Object.entries(peerDependencies).filter(([peer]) => dependencies[peer] === undefined)
  const bin = Object.fromEntries(Object.entries(cli.bin ?? {}).map(([command, path]) => [command, path.replace('./dist/', './dist/cli/')]))
  return {
    name,
    version,
    description,
    keywords,
    license,
    // JSON leaves it out until there is a public place to name.
    repository,
    homepage,
    bugs,
    type,
    bin,
    main: './dist/cjs/index.cjs',
    exports,
    // A bundler may leave out a door of which a program uses nothing.
    sideEffects: false,
    ...olderTypes(exports),
    files: ['dist', 'examples', 'THIRD-PARTY.md', ...docs],
    dependencies: Object.fromEntries(Object.entries(dependencies).sort()),
    ...(peers.length > 0 && { peerDependencies: Object.fromEntries(peers), peerDependenciesMeta: postgrad.peerDependenciesMeta }),
    engines,
  }
}

/** For compilers that do not read `exports` ("moduleResolution": "node10", which TypeScript 5 has under "module": "commonjs"). */
function olderTypes(exports) {
  const types = Object.entries(exports).flatMap(([door, { require } = {}]) =>
    require === undefined ? [] : [[door.slice(2), require.types]],
  )
  const { '': index, ...doors } = Object.fromEntries(types)
  return { types: index, typesVersions: { '*': Object.fromEntries(Object.entries(doors).map(([door, path]) => [door, [path]])) } }
}

function writeJson(path, value) {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}
