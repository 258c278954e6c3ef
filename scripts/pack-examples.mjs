/**
 * The examples in the tarball, for `postgrad example`. `pack.mjs` calls it.
 *
 *   examples/          their sources, to read and to copy, and `examples.json`, which lists them
 *   dist/examples/     what is compiled of them, which workers load by its place; they import the library by its name, as a user's program does
 *
 * Packages of others, such as echarts, are not dependencies of the package that users install: each file that imports one has it inside, without the parts that nothing uses.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { build } from './esbuild.mjs'
import { noticesOf } from './pack-notices.mjs'
import { root, walk } from './setup.mjs'

const folder = join(root, 'apps/examples')

/** The parts that the charts draw with. `import { init } from 'echarts'` would bring all of it, 1 MB. */
const ECHARTS = `import { LineChart } from 'echarts/charts'
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'
use([LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])
export { init }
`

const isOfTests = (path) => path.split(sep).includes('fixtures') || /\.(test|suite)\./.test(basename(path))

/** @returns what THIRD-PARTY.md says of each package that is inside, and the files that have some */
export async function packExamples(stage) {
  cpSync(join(folder, 'examples.json'), join(stage, 'examples/examples.json'))
  for (const { path } of walk(join(folder, 'src'))) {
    const within = relative(join(folder, 'src'), path)
    if (!isOfTests(within)) put(join(stage, 'examples', within), readFileSync(path))
  }
  const [inputs, files] = [new Set(), []]
  for (const { path } of walk(join(folder, 'dist'))) {
    const within = relative(join(folder, 'dist'), path)
    if (!path.endsWith('.js') || isOfTests(within)) continue
    const at = join(stage, 'dist/examples', within)
    const text = readFileSync(path, 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '')
    if (!/^import .*'(?!\.|node:|postgrad['/])[^']+'$/m.test(text.replaceAll(/;$/gm, ''))) {
      put(at, text)
      continue
    }
    const { outputFiles, metafile } = await build(withPackages(path))
    put(at, outputFiles[0].contents)
    files.push(relative(stage, at).split(sep).join('/'))
    for (const input of Object.keys(metafile.inputs)) if (!input.includes(':')) inputs.add(input)
  }
  return { copied: noticesOf([...inputs]), files }
}

/** One module with the packages of others that it imports. */
function withPackages(entry) {
  return {
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minify: true,
    keepNames: true,
    charset: 'ascii',
    legalComments: 'none',
    logLevel: 'warning',
    absWorkingDir: root,
    banner: { js: "import { createRequire as __from } from 'node:module';const require = __from(import.meta.url);" },
    plugins: [
      {
        name: 'packages-of-others',
        setup(plugin) {
          plugin.onResolve({ filter: /^\.|^postgrad(\/|$)/ }, ({ path, importer }) =>
            importer === entry ? { path, external: true } : undefined,
          )
          plugin.onResolve({ filter: /^echarts$/ }, ({ path, resolveDir }) => ({ path, namespace: 'parts', pluginData: resolveDir }))
          plugin.onLoad({ filter: /.*/, namespace: 'parts' }, ({ pluginData }) => ({ contents: ECHARTS, resolveDir: pluginData }))
        },
      },
    ],
  }
}

function put(file, contents) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, contents)
}
