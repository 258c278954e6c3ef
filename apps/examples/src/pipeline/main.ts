/** `npm run example pipeline`: trains the transformer of `program.ts` in stages, and draws what was planned for a step and what was measured. */
import { writeFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { drawPipeline, measuredCosts, measuredSteps, type PipelineScheduleName, simulateSchedule } from 'postgrad/pipelining'
import { encode, ownText, unigramLoss } from '../char-lm/text.js'
import { runCommand, userPath } from '../shared/command.js'
import { writeLog } from '../shared/log.js'
import { onCluster } from '../shared/on-cluster.js'
import { choice, commandLine, count, countUpTo, outFile, positive, type SettingsOf, seed } from '../shared/options.js'
import { prepareOut } from '../shared/out-file.js'
import { commandOf, HOME } from '../shared/place.js'
import { scheduleOfRun, type TrainOptions, train } from './program.js'

const NAME = commandOf('pipeline')
const SCHEDULES = [
  '1F1B',
  'GPipe',
  'Interleaved1F1B',
  'LoopedBFS',
  'InterleavedZeroBubble',
  'ZBVZeroBubble',
  'DualPipeV',
] as const satisfies readonly PipelineScheduleName[]
const OPTIONS = {
  schedule: choice(SCHEDULES, 'the schedule'),
  workers: countUpTo(4, 2, 'workers; 1F1B and GPipe have one stage on each, the others two'),
  replicas: countUpTo(4, 1, 'pipelines of so many workers, each with its part of a batch; a stage has the mean of their gradients'),
  microbatches: count(8, 'micro-batches of a batch'),
  batch: count(32, 'pieces of text in a batch'),
  context: count(32, 'characters of each piece'),
  width: count(64, 'width of the model, a multiple of 4'),
  layers: count(6, 'transformer layers'),
  steps: count(40, 'steps of Adam'),
  lr: positive(0.003, 'learning rate'),
  seed: seed(),
  out: outFile('out/pipeline.svg'),
}
const { help, read } = commandLine(
  NAME,
  'Pipeline parallelism: the layers of a small transformer are stages on several workers, through\nwhich micro-batches go as a schedule says.',
  OPTIONS,
)

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was written' }, process.argv.slice(2))

async function run({ out: given, workers: ranks, ...settings }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
  const { replicas } = settings
  if (settings.batch % replicas !== 0)
    throw new RangeError(`--batch: expected a multiple of the ${replicas} replicas, got ${settings.batch}`)
  const out = userPath(given ?? 'out/pipeline.svg')
  await prepareOut(out)
  const { schedule: name, batch, context } = settings
  const corpus = encode(await ownText(HOME), { heldOutMax: 1000, batch, sequence: context })
  const workers = Array.from({ length: ranks * replicas }, (_, rank) => `rank${rank}`)
  const stagesPerRank = name === '1F1B' || name === 'GPipe' ? 1 : 2
  const options: TrainOptions = { ...settings, workers, stagesPerRank, text: corpus.training, alphabet: corpus.alphabet.length }
  const schedule = scheduleOfRun(options)
  console.log(
    `${replicas === 1 ? '' : `${replicas} pipelines of `}${schedule.stages} stages on ${workers.join(', ')}; ${name}, ${schedule.microbatches} micro-batches`,
  )
  const program = new URL('./program.js', import.meta.url)
  const reports = await onCluster({ program, workers, seed: settings.seed, signal }, (cluster) =>
    Promise.all(workers.map((worker) => cluster.on(worker).run(train, options))),
  )
  const parts = reports.map((report) => report.losses).filter((losses) => losses.length > 0)
  const losses = parts[0]!.map((_, step) => parts.reduce((sum, part) => sum + part[step]!, 0) / parts.length)
  console.log(
    `loss of the first step ${losses[0]!.toFixed(3)}, of the last ${losses.at(-1)!.toFixed(3)}; of single characters' frequencies ${unigramLoss(corpus).toFixed(3)}`,
  )
  // Of the first pipeline.
  const actions = reports.slice(0, ranks).map((report) => report.actions)
  const planned = simulateSchedule(schedule, measuredCosts(actions))
  const measured = measuredSteps(schedule, actions)
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`
  console.log(`idle in the last step: ${percent(planned.bubble)} planned, ${percent(measured.bubble)} measured`)
  await writeFile(
    out,
    drawPipeline([
      { title: `${name}, planned: each action takes what it took on average`, steps: planned, unit: 'ms' },
      { title: `${name}, measured`, steps: measured, unit: 'ms' },
    ]),
  )
  const log = await writeLog(
    out,
    losses.map((loss, step) => ({ step: step + 1, loss })),
  )
  console.log(`picture: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}
