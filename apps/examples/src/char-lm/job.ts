/**
 * The main job: launches the three workers, lets them train, and shows the results. `main.ts` is its command; the workers run `program.ts`.
 */
import { relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Cluster, launch } from 'postgrad'
import { prepareOut } from '../shared/out-file.js'
import { progressDisplay } from '../shared/progress-display.js'
import { writeCurve } from './curve.js'
import { type TrainOptions, type TrainReport, train, WORKERS } from './program.js'
import { readable } from './readable.js'
import type { Settings } from './settings.js'
import { type Corpus, unigramLoss } from './text.js'

const SAMPLE_CHARS = 400
/** How often the held-out loss is measured on the way. */
const MEASUREMENTS = 10

/** A thread that has ended is known to have ended within this time. */
const NEWS_OF_DEATH_MS = 250

export interface JobOptions {
  /** The workers load `program.js`, or a module around it. */
  readonly program: URL
  readonly settings: Settings
  readonly corpus: Corpus
  /** Where the picture goes. */
  readonly out: string
  /** Cuts the job off: it rejects then, and nothing is left running. */
  readonly signal: AbortSignal
}

/** @throws (rejects) what the workers throw, WORKER_DIED as soon as one of them dies, CLUSTER_CLOSED after an abort */
export async function runJob({ program, settings, corpus, out, signal }: JobOptions): Promise<void> {
  await prepareOut(out)
  const unigram = unigramLoss(corpus)
  const { alphabet, training, heldOut } = corpus
  console.log(`text: ${corpus.source}, ${training.length} characters and ${heldOut.length} held out, ${alphabet.length} symbols`)
  console.log(`model: ${describeModel(alphabet.length, settings)}`)
  console.log(`loss of the unigram distribution on the held-out text: ${unigram.toFixed(3)} nats/char`)
  const display = progressDisplay(process.stdout)
  const cluster = await launch(program, {
    workers: WORKERS,
    device: settings.device,
    seed: settings.seed,
    onProgress: display.update,
  })
  const cut = (): void => void cluster.close({ timeoutMs: 0 })
  let report: TrainReport
  try {
    signal.addEventListener('abort', cut)
    if (signal.aborted) cut()
    report = await untilDeath(cluster, cluster.on('trainer').run(train, trainOptions(settings, corpus)))
  } finally {
    signal.removeEventListener('abort', cut)
    display.close()
    // After a failure, calls may wait for ever: do not await them.
    await cluster.close({ timeoutMs: 0 })
  }
  show(report, corpus, unigram)
  const log = await writeCurve(out, report, unigram, corpus.source)
  console.log(`loss curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}

function trainOptions(settings: Settings, { alphabet, training, heldOut, prompt }: Corpus): TrainOptions {
  const { hidden, embedding, batch, sequence, learningRate, momentum, steps, seconds, seed } = settings
  return {
    alphabet: alphabet.length,
    embedding,
    hidden,
    text: training,
    heldOut,
    batch,
    sequence,
    learningRate,
    momentum,
    steps,
    seconds,
    measurements: MEASUREMENTS,
    seed,
    prompt,
    sampleLength: SAMPLE_CHARS,
  }
}

/**
 * The work's result, or the first death of a worker, at once: the trainer may need the dead worker only later. If the work fails by a death, its
 * error may come first and name only a consequence (a failed step of the optimizer). Only the death names the cause, so it gets a moment to arrive.
 */
async function untilDeath<T>(cluster: Cluster, work: Promise<T>): Promise<T> {
  let stop = (): void => {}
  const death = new Promise<never>((_, reject) => {
    stop = cluster.onWorkerDeath((_, error) => reject(error))
  })
  const explained = work.catch(async (error: unknown) => {
    await Promise.race([death, sleep(NEWS_OF_DEATH_MS)])
    throw error
  })
  try {
    return await Promise.race([explained, death])
  } finally {
    stop()
  }
}

/** PyTorch's LSTM has two biases per gate. */
function describeModel(alphabet: number, { embedding, hidden }: Settings): string {
  const onPs = alphabet * embedding + hidden * alphabet + alphabet
  const onTrainer = 4 * hidden * (embedding + hidden + 2)
  return `embedding and decoder on ps (${onPs} parameters), LSTM ${embedding} → ${hidden} on trainer (${onTrainer})`
}

function show(report: TrainReport, { alphabet, prompt }: Corpus, unigram: number): void {
  const text = (symbols: Int32Array) => Array.from(symbols, (symbol) => alphabet[symbol]).join('')
  const sampled = (symbols: Int32Array) => readable(text(prompt) + text(symbols))
  const loss = report.heldOut.at(-1)!.loss
  console.log(`\nsampled before training, from the prompt ${JSON.stringify(text(prompt))}:\n${sampled(report.before)}`)
  console.log(`\nsampled after ${report.steps} steps:\n${sampled(report.after)}\n`)
  const kernels = Object.entries(report.kernels).map(([worker, name]) => `${worker} ${name}`)
  console.log(`kernels that ran: ${kernels.join(', ')}`)
  console.log(`trained ${report.steps} steps in ${report.seconds.toFixed(1)} s, ${Math.round(report.charsPerSecond)} characters a second`)
  const share = Math.round(100 * (1 - loss / unigram))
  const against = share >= 0 ? `${share}% below it` : `${-share}% above it`
  console.log(`held-out loss: ${loss.toFixed(3)} nats/char; unigram: ${unigram.toFixed(3)}; ${against}`)
}
