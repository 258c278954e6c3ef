/** `npm run example ddp-hybrid`: trains the model of `program.ts`. */
import { runCommand } from '../shared/command.js'
import { meanOver } from '../shared/means.js'
import { onCluster } from '../shared/on-cluster.js'
import { commandLine, count, countUpTo, positive, type SettingsOf, seed } from '../shared/options.js'
import { sayWhetherAlike, trainerNames } from '../shared/replicas.js'
import { run as runMaster } from './program.js'

const NAME = 'npm run example ddp-hybrid'
const OPTIONS = {
  trainers: countUpTo(16, 2, 'trainers, each with a replica of the dense part'),
  rows: count(100, 'rows of the embedding table'),
  batch: count(32, "samples of a trainer's batch"),
  steps: count(200, 'steps'),
  lr: positive(0.5, 'learning rate of SGD'),
  seed: seed(),
}
const { help, read } = commandLine(
  NAME,
  'DistributedDataParallel and RPC together: an embedding table on a parameter server, a dense part in\na replica at each trainer, a master that starts their training.',
  OPTIONS,
)
const SHOWN = 5

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was kept' }, process.argv.slice(2))

async function run({ trainers: size, ...settings }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
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
}
