/**
 * Draws the pictures of `docs/how-it-works` and of the site's first page, each as `docs/pictures/<name>.light.svg` and `<name>.dark.svg`. They show computed things: messages of simulated runs, steps of
 * the product's algorithms, lists of its schedules. So a picture cannot say anything that the program does not do.
 *
 *   node scripts/pictures/draw.mjs           writes all
 *   node scripts/pictures/draw.mjs --check   fails if a file differs from the picture that would be written
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { callEnds, calls } from './call.mjs'
import { collective } from './collective.mjs'
import { mailbox } from './mailbox.mjs'
import { pass } from './pass.mjs'
import { pipeline } from './pipeline.mjs'
import { smart } from './smart.mjs'
import { PALETTES } from './svg.mjs'
import { twoWorkers } from './two-workers.mjs'

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'docs', 'pictures')
const isCheck = argv.includes('--check')
const differ = []
mkdirSync(FOLDER, { recursive: true })
for (const make of [mailbox, calls, callEnds, pass, smart, collective, pipeline, twoWorkers]) {
  const { name, draw } = await make()
  for (const [scheme, palette] of Object.entries(PALETTES)) {
    const file = `${name}.${scheme}.svg`
    const svg = draw(palette)
    if (!isCheck) writeFileSync(join(FOLDER, file), svg)
    else if (svg !== textOf(join(FOLDER, file))) differ.push(file)
  }
}
if (differ.length > 0) {
  console.error(
    `pictures: these files of docs/pictures are not what the program draws now: ${differ.join(', ')}\n  Remedy: node scripts/pictures/draw.mjs, then look at them`,
  )
  process.exitCode = 1
}

function textOf(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}
