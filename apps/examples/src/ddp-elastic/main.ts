/** `npm run example ddp-elastic`: trains; meanwhile kills a trainer and adds another; draws the loss. */
import { relative } from 'node:path'
import { runCommand, userPath } from '../shared/command.js'
import { writeRun } from '../shared/log.js'
import { onCluster } from '../shared/on-cluster.js'
import { commandLine, count, countUpTo, outFile, positive, type SettingsOf, seed } from '../shared/options.js'
import { prepareOut } from '../shared/out-file.js'
import { commandOf } from '../shared/place.js'
import { trainerNames } from '../shared/replicas.js'
import { coordinate } from './program.js'

const NAME = commandOf('ddp-elastic')
const OPTIONS = {
  trainers: countUpTo(16, 3, 'trainers in the beginning'),
  steps: count(600, 'steps; after a third one trainer is killed, and another is started'),
  'round-steps': count(20, 'steps of a round, after which newcomers are let in'),
  batch: count(48, 'samples of a step, over all trainers'),
  lr: positive(0.003, 'learning rate of Adam'),
  seed: seed(),
  out: outFile('out/ddp-elastic.svg'),
}
const { help, read } = commandLine(
  NAME,
  'Elastic data-parallel training: a trainer is killed and another joins, and the training continues from\nthe replicas of those that live.',
  OPTIONS,
)

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was written' }, process.argv.slice(2))

async function run(
  { out: given, trainers: size, 'round-steps': roundSteps, ...settings }: SettingsOf<typeof OPTIONS>,
  signal: AbortSignal,
): Promise<void> {
  const out = userPath(given ?? 'out/ddp-elastic.svg')
  await prepareOut(out)
  const trainers = trainerNames(size)
  const program = new URL('./program.js', import.meta.url)
  const waiting: { readonly from: number; readonly go: () => void }[] = []
  const onProgress = ({ done }: { readonly done: number }): void => {
    for (const { from, go } of waiting) if (done >= from) go()
  }
  const reached = (from: number): Promise<void> => new Promise((go) => waiting.push({ from, go }))
  const { steps, seed } = settings
  const { rounds, last } = await onCluster(
    { program, workers: ['coordinator', ...trainers], seed, signal, onProgress },
    async (cluster) => {
      cluster.onWorkerDeath(({ name }) => console.log(`${name} is dead`))
      const running = cluster.on('coordinator').run(coordinate, { ...settings, roundSteps })
      const changes = (async () => {
        await Promise.race([reached(steps / 3), running])
        await cluster.kill(trainers.at(-1)!)
        await cluster.join(`trainer${size}`)
        console.log(`trainer${size} has joined`)
      })()
      await Promise.all([running, changes])
      return running
    },
  )
  let before = ''
  for (const { members, step, loss } of rounds) {
    const text = members.join(', ')
    console.log(`step ${String(step).padStart(String(steps).length)}, loss ${loss.toFixed(3)}${text === before ? '' : `: ${text}`}`)
    before = text
  }
  for (const [name, { rounds: count, checksum }] of Object.entries(last))
    console.log(`${name}: ${count} rounds, its parameters add up to ${checksum}`)
  // A round that a death ended at once has no loss.
  const trained = rounds.filter(({ loss }) => Number.isFinite(loss))
  const rows = trained.map(({ step, loss, members }) => ({ step, loss, trainers: members.length }))
  const log = await writeRun(out, rows, {
    title: 'A trainer is killed, another joins, and the others train on',
    subtitle: `${size} trainers at first · ${rounds.length} rounds`,
    xName: 'steps',
    panels: [
      {
        name: 'cross-entropy',
        min: 0,
        curves: [{ tag: 'loss', name: 'loss at the end of a round', label: (trained.at(-1)?.loss ?? Number.NaN).toFixed(3), dots: true }],
      },
    ],
  })
  console.log(`loss curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}
