/**
 * The parts of echarts that draw curves as SVG, as one file of 0.6 MB, next to the module that loads it. As a dependency echarts and what it needs would bring 60 MB. `pack.mjs` calls it.
 */
import { dirname, join, relative } from 'node:path'
import { build } from './esbuild.mjs'
import { noticesOf } from './pack-notices.mjs'
import { root } from './setup.mjs'

/** The one module that loads echarts, in training, and how it does so. */
const LOADER = 'chart/svg.js'
const LOADS = "createRequire(import.meta.url)('echarts')"
const FILE = 'echarts.cjs'

/** Of `optionOf` in that module: each part that an option needs. */
const PARTS = `import { init, use } from 'echarts/core'
import { LineChart } from 'echarts/charts'
import { GridComponent, LegendPlainComponent, TitleComponent } from 'echarts/components'
import { SVGRenderer } from 'echarts/renderers'
use([LineChart, GridComponent, LegendPlainComponent, TitleComponent, SVGRenderer])
export { init }`

/** The text of a module of training: the one that loads echarts loads the file. */
export function loadsCharts(text, path) {
  if (!path.replaceAll('\\', '/').endsWith(`training/dist/${LOADER}`)) return text
  if (text.split(LOADS).length !== 2) throw new Error(`${relative(root, path)}: expected ${LOADS} once`)
  return text.replace(LOADS, LOADS.replace('echarts', `./${FILE}`))
}

/**
 * @param folder of training's files in what is packed
 * @param source the package of this repository, from which echarts is found
 * @returns what THIRD-PARTY.md says of each package in the bundle: name, version, licence and its text
 */
export async function bundleEcharts(folder, source) {
  const { metafile } = await build({
    stdin: { contents: PARTS, resolveDir: source },
    outfile: join(folder, dirname(LOADER), FILE),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    minify: true,
    legalComments: 'none',
    define: { 'process.env.NODE_ENV': '"production"' },
    metafile: true,
    absWorkingDir: root,
    logLevel: 'warning',
  })
  return noticesOf(Object.keys(metafile.inputs))
}
