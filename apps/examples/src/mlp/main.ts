/** `npm run example mlp`: trains the layers of `program.ts` and draws the loss. */
import { relative } from 'node:path'
import { runCommand, userPath } from '../shared/command.js'
import { writeRun } from '../shared/log.js'
import { onCluster } from '../shared/on-cluster.js'
import { commandLine, count, countUpTo, outFile, positive, type SettingsOf, seed } from '../shared/options.js'
import { prepareOut } from '../shared/out-file.js'
import { commandOf } from '../shared/place.js'
import { train } from './program.js'

const NAME = commandOf('mlp')
const OPTIONS = {
  layers: countUpTo(32, 3, 'layers, each on a worker of its own'),
  hidden: count(32, 'size of the hidden layers'),
  points: count(100, 'points of each of the three arms'),
  steps: count(400, 'steps of Adam, each over all points'),
  lr: positive(0.02, 'learning rate'),
  seed: seed(),
  out: outFile('out/mlp.svg'),
}
const { help, read } = commandLine(
  NAME,
  'Model parallelism: every layer of a multilayer perceptron is a remote module on a worker of its\nown. It learns to separate the arms of a spiral.',
  OPTIONS,
)

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was written' }, process.argv.slice(2))

async function run({ out: given, layers, ...settings }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
  const out = userPath(given ?? 'out/mlp.svg')
  await prepareOut(out)
  const { steps, seed } = settings
  const workers = Array.from({ length: layers }, (_, i) => `layer${i + 1}`)
  console.log(`${layers} ${layers === 1 ? 'layer' : 'layers'} on ${workers.join(', ')}; the loss and the loop on trainer`)
  const program = new URL('./program.js', import.meta.url)
  const startedMs = performance.now()
  const { losses, accuracy } = await onCluster({ program, workers: ['trainer', ...workers], seed, signal }, (cluster) =>
    cluster.on('trainer').run(train, { workers, ...settings }),
  )
  const seconds = (performance.now() - startedMs) / 1000
  const right = `${(100 * accuracy).toFixed(1)} % of the points right`
  console.log(`loss of the first step ${losses[0]!.toFixed(3)}, of the last ${losses.at(-1)!.toFixed(3)}; ${right}`)
  const rows = losses.map((loss, i) => ({ step: i + 1, loss }))
  const log = await writeRun(out, rows, {
    title: 'Layers on workers of their own learn to separate the arms of a spiral',
    subtitle: `${layers} layers · ${steps} steps in ${seconds.toFixed(1)} s · ${right}`,
    xName: 'steps',
    panels: [
      {
        name: 'cross-entropy',
        min: 0,
        lines: [{ name: 'guessing', label: 'guessing', value: Math.log(3) }],
        curves: [{ tag: 'loss', label: losses.at(-1)!.toFixed(3) }],
      },
    ],
  })
  console.log(`loss curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}
