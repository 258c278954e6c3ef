/** `npm run example rnn`: trains the network of `program.ts` and draws the loss. */
import { relative } from 'node:path'
import { runCommand, userPath } from '../shared/command.js'
import { lossRows, writeRun } from '../shared/log.js'
import { meanOver } from '../shared/means.js'
import { onCluster } from '../shared/on-cluster.js'
import { commandLine, count, outFile, positive, type SettingsOf, seed } from '../shared/options.js'
import { prepareOut } from '../shared/out-file.js'
import { commandOf } from '../shared/place.js'
import { leastLoss } from './melodies.js'
import { train, WORKERS } from './program.js'

const NAME = commandOf('rnn')
const OPTIONS = {
  epochs: count(30, 'epochs'),
  batches: count(20, 'batches of an epoch'),
  batch: count(16, 'melodies of a batch'),
  length: count(8, 'tones of a melody'),
  embedding: count(8, "size of a tone's vector"),
  hidden: count(32, 'size of the LSTM'),
  layers: count(2, 'layers of the LSTM'),
  lr: positive(0.3, 'learning rate of SGD, whose momentum is 0.9'),
  seed: seed(),
  out: outFile('out/rnn.svg'),
}
const { help, read } = commandLine(
  NAME,
  'A recurrent network over two workers learns melodies: embedding and decoder on a parameter\nserver, as remote modules; the LSTM at the trainer.',
  OPTIONS,
)

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was written' }, process.argv.slice(2))

async function run({ out: given, ...settings }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
  const out = userPath(given ?? 'out/rnn.svg')
  await prepareOut(out)
  const { epochs, batches, length, layers, seed } = settings
  const least = leastLoss(length)
  console.log(`embedding and decoder on ps, LSTM of ${layers} ${layers === 1 ? 'layer' : 'layers'} on trainer`)
  const program = new URL('./program.js', import.meta.url)
  const startedMs = performance.now()
  const losses = await onCluster({ program, workers: WORKERS, seed, signal }, (cluster) => cluster.on('trainer').run(train, settings))
  const seconds = (performance.now() - startedMs) / 1000
  const perEpoch = meanOver(losses, batches)
  console.log(
    `loss of the first epoch ${perEpoch[0]!.toFixed(3)} nats a tone, of the last ${perEpoch.at(-1)!.toFixed(3)}; best possible ${least.toFixed(3)}`,
  )
  const log = await writeRun(out, lossRows(losses, batches), {
    title: 'A recurrent network over two workers learns melodies',
    subtitle: `${epochs} epochs of ${batches} batches in ${seconds.toFixed(1)} s`,
    xName: 'batches',
    panels: [
      {
        name: 'nats a tone',
        min: 0,
        lines: [{ name: 'best possible', value: least }],
        curves: [
          { tag: 'loss', name: 'every batch', style: 'pale' },
          { tag: 'mean', name: 'mean of each epoch', label: `${perEpoch.at(-1)!.toFixed(2)} (best ${least.toFixed(2)})` },
        ],
      },
    ],
  })
  console.log(`loss curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}
