/** `npm run example ddp-hybrid`: trains the model of `program.ts`, and draws the loss. */
import { relative } from 'node:path'
import { runCommand, userPath } from '../shared/command.js'
import { lossRows, writeRun } from '../shared/log.js'
import { meanOver } from '../shared/means.js'
import { onCluster } from '../shared/on-cluster.js'
import { commandLine, count, countUpTo, outFile, positive, type SettingsOf, seed } from '../shared/options.js'
import { prepareOut } from '../shared/out-file.js'
import { commandOf } from '../shared/place.js'
import { sayWhetherAlike, trainerNames } from '../shared/replicas.js'
import { run as runMaster } from './program.js'

const NAME = commandOf('ddp-hybrid')
const OPTIONS = {
  trainers: countUpTo(16, 2, 'trainers, each with a replica of the dense part'),
  rows: count(100, 'rows of the embedding table'),
  batch: count(32, "samples of a trainer's batch"),
  steps: count(200, 'steps'),
  lr: positive(0.5, 'learning rate of SGD'),
  seed: seed(),
  out: outFile('out/ddp-hybrid.svg'),
}
const { help, read } = commandLine(
  NAME,
  'DistributedDataParallel and RPC together: an embedding table on a parameter server, a dense part in\na replica at each trainer, a master that starts their training.',
  OPTIONS,
)
const SHOWN = 5
/** A curve of so many points; each is a mean over steps. */
const POINTS = 50

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was written' }, process.argv.slice(2))

async function run({ out: given, trainers: size, ...settings }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
  const out = userPath(given ?? 'out/ddp-hybrid.svg')
  await prepareOut(out)
  const trainers = trainerNames(size)
  const options = { ...settings, trainers, server: 'ps' }
  const program = new URL('./program.js', import.meta.url)
  const startedMs = performance.now()
  const workers = ['master', 'ps', ...trainers]
  const reports = await onCluster({ program, workers, seed: settings.seed, signal }, (cluster) =>
    cluster.on('master').run(runMaster, options),
  )
  for (const [i, { losses, checksum }] of reports.entries()) {
    const means = meanOver(losses, Math.max(1, Math.ceil(losses.length / SHOWN)))
    console.log(`${trainers[i]}: loss ${means.map((loss) => loss.toFixed(3)).join(', ')}; its dense part adds up to ${checksum}`)
  }
  sayWhetherAlike('the dense parts', reports, startedMs)
  const all = reports[0]!.losses.map(
    (_, step) =>
      meanOver(
        reports.map(({ losses }) => losses[step]!),
        size,
      )[0]!,
  )
  const { steps } = settings
  const window = Math.max(1, Math.ceil(steps / POINTS))
  const rows = lossRows(all, window)
  const log = await writeRun(out, rows, {
    title: 'An embedding table on a server, the dense part in replicas',
    subtitle: `${size} ${size === 1 ? 'trainer' : 'trainers'} · ${steps} steps`,
    xName: 'steps',
    panels: [
      {
        name: 'cross-entropy',
        min: 0,
        curves: [
          { tag: 'loss', name: 'every step, mean of all trainers', style: 'pale' },
          { tag: 'mean', name: `mean of ${window} steps`, label: rows.at(-1)!.mean!.toFixed(3) },
        ],
      },
    ],
  })
  console.log(`loss curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}
