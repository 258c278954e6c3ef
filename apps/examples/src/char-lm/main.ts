/**
 * The main job (`npm start`): a character model spread over three workers learns real text, in about a minute. Shows progress, writes the
 * loss curve as a picture, and prints what the model writes before and after.
 */
import { mkdir } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import cliProgress from 'cli-progress'
import { type Cluster, type DeviceSpec, isPostgradError, launch } from 'postgrad'
import { writeCurve } from './curve.js'
import { type TrainOptions, type TrainReport, train } from './program.js'
import { type Corpus, readCorpus, unigramLoss } from './text.js'

const HELP = `Usage: npm start -- [options]

Trains a character-level language model that is spread over three workers:
ps holds the embedding and the decoder, trainer the LSTM, evaluator measures and samples.

Options:
  --data FILE        the text to learn (default: this repository's source and documents)
  --device DEVICE    wasm, gpujs, gpujs:cpu, gpujs:webasm or reference (default: wasm)
  --seconds N        how long to train (default: 45)
  --steps N          train N steps instead, however long they take
  --hidden N         size of the recurrent core (default: 128)
  --batch N          texts per step (default: 32)
  --sequence N       characters that gradients run back over (default: 32)
  --lr X             learning rate of SGD (default: 0.5)
  --seed N           of all random numbers (default: 0)
  --out FILE         where the loss curve goes (default: out/char-lm.svg)
  --help             print this`

const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url))
/** A terminal-free log gets a line every so many milliseconds. */
const PLAIN_LINE_MS = 5000
const EMBEDDING = 32
const MOMENTUM = 0.9
/** Characters of held-out text that an evaluation reads. */
const EVALUATED_CHARS = 8192
const PROMPT = 'export '
const SAMPLE_LENGTH = 300
const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130

interface Settings {
  readonly data: string | undefined
  readonly device: DeviceSpec
  readonly seconds: number
  readonly steps: number | null
  readonly hidden: number
  readonly batch: number
  readonly sequence: number
  readonly learningRate: number
  readonly seed: number
  readonly out: string
}

/** Null: help was asked for. @throws TypeError, RangeError with a message for the user */
function settings(argv: readonly string[]): Settings | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      data: { type: 'string' },
      device: { type: 'string', default: 'wasm' },
      seconds: { type: 'string', default: '45' },
      steps: { type: 'string' },
      hidden: { type: 'string', default: '128' },
      batch: { type: 'string', default: '32' },
      sequence: { type: 'string', default: '32' },
      lr: { type: 'string', default: '0.5' },
      seed: { type: 'string', default: '0' },
      out: { type: 'string', default: join(REPOSITORY, 'out', 'char-lm.svg') },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const positive = (name: 'seconds' | 'hidden' | 'batch' | 'sequence' | 'lr' | 'steps', whole: boolean): number => {
    const value = Number(values[name])
    if (!(value > 0) || (whole && !Number.isInteger(value))) {
      throw new RangeError(`--${name}: expected a positive ${whole ? 'whole number' : 'number'}, got '${values[name]}'`)
    }
    return value
  }
  const seed = Number(values.seed)
  if (!Number.isSafeInteger(seed)) throw new RangeError(`--seed: expected a whole number, got '${values.seed}'`)
  return {
    data: values.data,
    device: values.device as DeviceSpec,
    seconds: positive('seconds', false),
    steps: values.steps === undefined ? null : positive('steps', true),
    hidden: positive('hidden', true),
    batch: positive('batch', true),
    sequence: positive('sequence', true),
    learningRate: positive('lr', false),
    seed,
    out: resolve(values.out),
  }
}

async function run(chosen: Settings, corpus: Corpus, abort: AbortSignal): Promise<void> {
  const unigram = unigramLoss(corpus)
  console.log(`text: ${corpus.source}, ${corpus.training.length + corpus.evaluation.length} characters, ${corpus.alphabet.length} symbols`)
  console.log(`loss of the unigram distribution on the held-out text: ${unigram.toFixed(3)} nats/char`)
  const display = progressDisplay()
  const cluster: Cluster = await launch(new URL('./program.js', import.meta.url), {
    workers: ['ps', 'trainer', 'evaluator'],
    device: chosen.device,
    seed: chosen.seed,
    onProgress: display.update,
  })
  const onAbort = () => void cluster.close({ timeoutMs: 0 })
  abort.addEventListener('abort', onAbort)
  try {
    const symbol = new Map(corpus.alphabet.map((c, i) => [c, i]))
    const options: TrainOptions = {
      alphabet: corpus.alphabet.length,
      embedding: EMBEDDING,
      hidden: chosen.hidden,
      text: corpus.training,
      evaluation: corpus.evaluation.slice(0, EVALUATED_CHARS),
      batch: chosen.batch,
      sequence: chosen.sequence,
      learningRate: chosen.learningRate,
      momentum: MOMENTUM,
      steps: chosen.steps,
      seconds: chosen.seconds,
      evaluateEverySteps: 100,
      seed: chosen.seed,
      prompt: Int32Array.from(PROMPT, (c) => symbol.get(c) ?? corpus.alphabet.length - 1),
      sampleLength: SAMPLE_LENGTH,
    }
    const report = await cluster.on('trainer').run(train, options)
    display.close()
    await finish(report, chosen, corpus, unigram)
  } finally {
    abort.removeEventListener('abort', onAbort)
    display.close()
    await cluster.close()
  }
}

async function finish(report: TrainReport, chosen: Settings, { alphabet }: Corpus, unigram: number): Promise<void> {
  const text = (symbols: Int32Array) => indent(Array.from(symbols, (symbol) => alphabet[symbol]).join(''))
  const loss = report.evaluation.at(-1)?.loss ?? Number.NaN
  console.log(`\ndevice: ${report.device}`)
  console.log(`\nsampled before training:\n${text(report.before)}\n\nsampled after ${report.steps} steps:\n${text(report.after)}\n`)
  console.log(`trained ${report.steps} steps in ${report.seconds.toFixed(1)} s, ${Math.round(report.charsPerSecond)} characters a second`)
  const share = (100 * (1 - loss / unigram)).toFixed(0)
  console.log(`held-out loss: ${loss.toFixed(3)} nats/char; unigram: ${unigram.toFixed(3)}; ${share}% below it`)
  await mkdir(dirname(chosen.out), { recursive: true })
  await writeCurve(chosen.out, report, unigram)
  console.log(`loss curve: ${relative(process.cwd(), chosen.out)}`)
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '    ')
}

interface ProgressDisplay {
  update(progress: { done: number; total?: number; text?: string }): void
  close(): void
}

/** A bar on a terminal, a line now and then elsewhere. */
function progressDisplay(): ProgressDisplay {
  if (!process.stdout.isTTY) {
    let lastMs = Number.NEGATIVE_INFINITY
    return {
      update({ done, total = 0, text = '' }) {
        if (performance.now() - lastMs < PLAIN_LINE_MS) return
        lastMs = performance.now()
        console.log(`training ${Math.floor((100 * done) / total)}%: ${text}`)
      },
      close() {},
    }
  }
  const bar = new cliProgress.SingleBar(
    { format: 'training [{bar}] {percentage}% | {text}', hideCursor: true, barsize: 30 },
    cliProgress.Presets.shades_classic,
  )
  let started = false
  return {
    update({ done, total = 0, text = '' }) {
      if (!started) bar.start(total, 0, { text })
      started = true
      bar.update(done, { text })
    },
    close() {
      if (started) bar.stop()
      started = false
    },
  }
}

async function main(): Promise<number> {
  let chosen: Settings | null
  try {
    chosen = settings(process.argv.slice(2))
  } catch (error) {
    console.error(`npm start: ${(error as Error).message}\nTry: npm start -- --help`)
    return EXIT_USAGE
  }
  if (chosen === null) {
    console.log(HELP)
    return 0
  }
  const abort = new AbortController()
  process.once('SIGINT', () => abort.abort())
  try {
    await run(chosen, await readCorpus(chosen.data, REPOSITORY), abort.signal)
    return 0
  } catch (error) {
    if (abort.signal.aborted) {
      console.error('\ninterrupted')
      return EXIT_INTERRUPTED
    }
    console.error(
      `npm start: ${isPostgradError(error) || (error as { code?: string }).code === 'ENOENT' ? (error as Error).message : (error as Error).stack}`,
    )
    return 1
  }
}

process.exitCode = await main()
