/** `npm run example ddp`: trains the network of `program.ts` on several trainers, and draws their losses. */
import { relative } from 'node:path'
import { runCommand, userPath } from '../shared/command.js'
import { type LogRow, writeRun } from '../shared/log.js'
import { meanOver } from '../shared/means.js'
import { onCluster } from '../shared/on-cluster.js'
import { commandLine, count, countUpTo, outFile, positive, type SettingsOf, seed } from '../shared/options.js'
import { prepareOut } from '../shared/out-file.js'
import { commandOf } from '../shared/place.js'
import { sayWhetherAlike, trainerNames } from '../shared/replicas.js'
import { train } from './program.js'

const NAME = commandOf('ddp')
const OPTIONS = {
  trainers: countUpTo(16, 2, 'trainers, each with a replica'),
  samples: count(960, 'samples of an epoch, over all trainers'),
  batch: count(16, "samples of a trainer's batch"),
  epochs: count(4, 'epochs'),
  lr: positive(0.05, 'learning rate of SGD with momentum'),
  seed: seed(),
  out: outFile('out/ddp.svg'),
}
const { help, read } = commandLine(
  NAME,
  'Data-parallel training of a small convolutional network: every trainer has a replica and its own\nbatches, and steps with the mean of all gradients.',
  OPTIONS,
)

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was written' }, process.argv.slice(2))

async function run({ out: given, trainers: size, ...settings }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
  const out = userPath(given ?? 'out/ddp.svg')
  await prepareOut(out)
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
  const { epochs } = settings
  const rows = Array.from({ length: epochs }, (_, i): LogRow => {
    const losses = reports.map((report) => report.losses[i]!)
    return { step: i + 1, loss: meanOver(losses, size)[0]!, ...Object.fromEntries(losses.map((loss, k) => [trainers[k]!, loss])) }
  })
  const log = await writeRun(out, rows, {
    title: 'Replicas of a small network learn together',
    subtitle: `${size} ${size === 1 ? 'trainer' : 'trainers'} · ${epochs} epochs`,
    xName: 'epochs',
    panels: [
      {
        name: 'cross-entropy',
        min: 0,
        curves: [
          ...trainers.map((tag) => ({ tag, style: 'pale' as const })),
          { tag: 'loss', name: 'mean of all trainers', label: rows.at(-1)!.loss!.toFixed(3), dots: true },
        ],
      },
    ],
  })
  console.log(`loss curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}
