/** `npm run example ddp`: trains the network of `program.ts` on several trainers. */
import { runCommand } from '../shared/command.js'
import { onCluster } from '../shared/on-cluster.js'
import { commandLine, count, countUpTo, positive, type SettingsOf, seed } from '../shared/options.js'
import { sayWhetherAlike, trainerNames } from '../shared/replicas.js'
import { train } from './program.js'

const NAME = 'npm run example ddp'
const OPTIONS = {
  trainers: countUpTo(16, 2, 'trainers, each with a replica'),
  samples: count(960, 'samples of an epoch, over all trainers'),
  batch: count(16, "samples of a trainer's batch"),
  epochs: count(4, 'epochs'),
  lr: positive(0.05, 'learning rate of SGD with momentum'),
  seed: seed(),
}
const { help, read } = commandLine(
  NAME,
  'Data-parallel training of a small convolutional network: every trainer has a replica and its own\nbatches, and steps with the mean of all gradients.',
  OPTIONS,
)

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was kept' }, process.argv.slice(2))

async function run({ trainers: size, ...settings }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
  const trainers = trainerNames(size)
  const program = new URL('./program.js', import.meta.url)
  const startedMs = performance.now()
  const reports = await onCluster({ program, workers: trainers, seed: settings.seed, signal }, (cluster) =>
    Promise.all(trainers.map((name) => cluster.on(name).run(train, { ...settings, trainers }))),
  )
  for (const [i, { losses, accuracy, checksum }] of reports.entries()) {
    const shown = losses.map((loss) => loss.toFixed(3)).join(', ')
    console.log(`${trainers[i]}: loss of the epochs ${shown}; ${(100 * accuracy).toFixed(1)} % right; its parameters add up to ${checksum}`)
  }
  sayWhetherAlike('the replicas', reports, startedMs)
}
