/** `npm run example parameter-server`: trains the tables of `program.ts` from several trainers and draws the loss. */
import { relative } from 'node:path'
import { runCommand, userPath } from '../shared/command.js'
import { lossRows, writeRun } from '../shared/log.js'
import { meanOver } from '../shared/means.js'
import { onCluster } from '../shared/on-cluster.js'
import { choice, commandLine, count, countUpTo, outFile, positive, type SettingsOf, seed } from '../shared/options.js'
import { prepareOut } from '../shared/out-file.js'
import { commandOf } from '../shared/place.js'
import { run as runServer } from './program.js'

const NAME = commandOf('parameter-server')
const OPTIONS = {
  mode: choice(['together', 'alone'], 'whether the server steps once for all trainers, or for each'),
  trainers: countUpTo(64, 3, 'trainers'),
  users: count(200_000, 'rows of the first table'),
  items: count(50_000, 'rows of the second'),
  width: count(8, 'size of a row'),
  batch: count(512, "ratings of a trainer's batch"),
  steps: count(400, 'steps of each trainer'),
  lr: positive(0.3, 'learning rate of Adagrad'),
  seed: seed(),
  out: outFile('out/parameter-server.svg'),
}
const { help, read } = commandLine(
  NAME,
  'A parameter server keeps two large embedding tables; several trainers learn how users rate items.\nOnly rows that a batch looks up travel, and gradients come back as these rows.',
  OPTIONS,
)
const FLOAT_BYTES = 4
/** A curve of so many points; each is a mean over steps. */
const POINTS = 50

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was written' }, process.argv.slice(2))

async function run({ out: given, trainers: size, ...settings }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
  const out = userPath(given ?? 'out/parameter-server.svg')
  await prepareOut(out)
  const { mode, users, items, width, batch, steps, seed } = settings
  const trainers = Array.from({ length: size }, (_, i) => `trainer${i + 1}`)
  const whole = (users + items) * width * FLOAT_BYTES
  // The rows of both tables there, their gradients back.
  const travels = 2 * 2 * batch * width * FLOAT_BYTES
  console.log(
    `tables on ps: ${users} and ${items} rows of ${width}, ${sizeText(whole)}; ${size} ${size === 1 ? 'trainer' : 'trainers'}, ${mode}`,
  )
  console.log(`a step of a trainer moves ${2 * batch} rows there and their gradients back, ${sizeText(travels)}`)
  const program = new URL('./program.js', import.meta.url)
  const startedMs = performance.now()
  const losses = await onCluster({ program, workers: ['ps', ...trainers], seed, signal }, (cluster) =>
    cluster.on('ps').run(runServer, { ...settings, trainers }),
  )
  const seconds = (performance.now() - startedMs) / 1000
  const all = losses[0]!.map((_, step) => losses.reduce((sum, of) => sum + of[step]!, 0) / losses.length)
  const window = Math.max(1, Math.floor(steps / POINTS))
  const means = meanOver(all, window)
  console.log(
    `loss in the beginning ${means[0]!.toFixed(3)}, in the end ${means.at(-1)!.toFixed(3)}; ${Math.round((steps * size) / seconds)} steps a second`,
  )
  const log = await writeRun(out, lossRows(all, window), {
    title: `A parameter server learns from trainers that step ${mode === 'together' ? 'together' : 'each for itself'}`,
    subtitle: `${size} trainers · tables of ${sizeText(whole)}, of which a step moves ${sizeText(travels)} · ${seconds.toFixed(1)} s`,
    xName: 'steps of each trainer',
    panels: [
      {
        name: 'squared error of a rating',
        min: 0,
        curves: [
          { tag: 'loss', name: 'every step', style: 'pale' },
          { tag: 'mean', name: `mean of ${window} steps`, label: means.at(-1)!.toFixed(2) },
        ],
      },
    ],
  })
  console.log(`loss curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}

function sizeText(bytes: number): string {
  return bytes < 2 ** 20 ? `${Math.round(bytes / 2 ** 10)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`
}
