/**
 * `postgrad run`: launches a cluster, runs the program's default export on every worker at once, shows how far they are, and ends with an exit
 * code that says what happened. The first failure ends all workers: they wait for each other, so the others could not finish.
 */
import { type Cluster, type DeviceSpec, isPostgradError, type LaunchOptions, launch } from 'postgrad'
import type { Progress } from 'postgrad/jobs'
import type { CloseOptions } from 'postgrad/types'
import type { Display } from './display.js'
import { errorText } from './error-text.js'
import { LiveDisplay } from './live-display.js'
import { PlainDisplay } from './plain-display.js'
import { WholeLines } from './whole-lines.js'

export interface RunOptions {
  readonly workers: readonly string[]
  readonly device?: DeviceSpec
  readonly seed?: number
  /** Of the whole run, in ms; 0 is no limit. */
  readonly timeout?: number
  /** Of one call between workers, in ms. */
  readonly rpcTimeout?: number
  /** For workers that are ended before they are done, in ms. */
  readonly grace?: number
}

/** The terminal and the signals, passed in. */
export interface Surroundings {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly now: () => number
  /** Calls `fn` on each of these signals until the returned function is called. */
  onSignal(fn: (signal: 'SIGINT' | 'SIGTERM') => void): () => void
  /** Hands `fn` the warnings that Node would print, until the returned function is called. */
  onWarning(fn: (text: string) => void): () => void
  /** Ends the process without waiting for anything. */
  exit(code: number): never
}

const EXIT_FAILED = 1
/** 128 + the signal's number, as shells have it. */
const EXIT_BY_SIGNAL = { SIGINT: 130, SIGTERM: 143 } as const

/** @returns the exit code */
export async function run(program: string, args: readonly string[], options: RunOptions, around: Surroundings): Promise<number> {
  const display: Display = around.stdout.isTTY
    ? new LiveDisplay(around.stdout, options.workers)
    : new PlainDisplay(
        (text) => around.stderr.write(text),
        (text) => around.stdout.write(text),
        around.now,
      )
  const printed = new Printed(display, around)
  // Node writes them past the streams: between the bars of a terminal.
  const stopWarnings = around.stdout.isTTY ? around.onWarning(printed.errLine) : () => {}
  const end = (): void => {
    stopWarnings()
    printed.flush()
    display.close()
  }
  let cluster: Cluster | null = null
  let signalled: 'SIGINT' | 'SIGTERM' | null = null
  const stopListening = around.onSignal((signal) => {
    // Nothing of a cluster that is still starting is worth waiting for, nor of one that the user has interrupted twice.
    if (cluster === null || signalled !== null) {
      end()
      around.exit(EXIT_BY_SIGNAL[signal])
    }
    signalled = signal
    void cluster.close(cutOff(options))
  })
  try {
    cluster = await launch(program, launchOptions(options, display, printed))
    const failure = await runEverywhere(cluster, args, options, display, () => signalled !== null)
    await cluster.close(failure === null ? {} : cutOff(options))
    end()
    if (signalled !== null) {
      around.stderr.write(`postgrad: stopped by ${signalled}\n`)
      return EXIT_BY_SIGNAL[signalled]
    }
    if (failure === null) return 0
    around.stderr.write(errorText(failure.error, `worker '${failure.worker}'`))
    return EXIT_FAILED
  } catch (error) {
    end()
    around.stderr.write(errorText(error, null))
    return EXIT_FAILED
  } finally {
    stopListening()
  }
}

/** The first failure in time; null when every worker's main has ended well, or when a signal ended them. */
async function runEverywhere(
  cluster: Cluster,
  args: readonly string[],
  options: RunOptions,
  display: Display,
  isStopped: () => boolean,
): Promise<{ worker: string; error: unknown } | null> {
  let failure: { worker: string; error: unknown } | null = null
  // Whoever fails by it says so.
  cluster.onWorkerDeath(() => {})
  await Promise.all(
    cluster.workers.map(async ({ name }) => {
      display.state(name, 'running')
      try {
        await cluster.on(name, options.timeout === undefined ? {} : { timeoutMs: options.timeout }).runMain(args)
        display.state(name, 'done')
      } catch (error) {
        if (hasExitedWell(error, name)) {
          display.state(name, 'done')
          return
        }
        const isDead = isPostgradError(error, 'WORKER_DIED') && error.values.worker === name
        if (isStopped() || failure !== null) {
          display.state(name, isDead && !isStopped() ? 'failed' : 'stopped')
          return
        }
        failure = { worker: name, error }
        const culprit = namedCulprit(error, name)
        if (culprit !== null) failure = culprit
        display.state(name, culprit === null ? 'failed' : 'stopped')
        // Ends the mains of the others, which reject and come through here.
        await cluster.close(cutOff(options))
      }
    }),
  )
  return failure
}

function cutOff({ grace }: RunOptions): CloseOptions {
  return { timeoutMs: 0, ...(grace === undefined ? {} : { graceMs: grace }) }
}

/** As a program that Node runs does: by `process.exit(0)`. */
function hasExitedWell(error: unknown, worker: string): boolean {
  if (!isPostgradError(error, 'WORKER_DIED')) return false
  const { values } = error
  return values.worker === worker && values.cause === 'exited' && values.exitCode === 0
}

/** When a main fails because another worker died, that worker is at fault, and why it died is what helps. */
function namedCulprit(error: unknown, reporter: string): { worker: string; error: unknown } | null {
  const dead = isPostgradError(error, 'WORKER_DIED') ? error.values.worker : undefined
  if (typeof dead !== 'string' || dead === reporter || !isPostgradError((error as Error).cause)) return null
  return { worker: dead, error: (error as Error).cause }
}

/** What the workers print, by whole lines. */
class Printed {
  readonly out: WholeLines
  readonly err: WholeLines
  /** A whole line for stderr, above the bars only if it would land on the same terminal. */
  readonly errLine: (line: string) => void

  constructor(display: Display, { stdout, stderr }: Surroundings) {
    this.out = new WholeLines((line) => display.print(line))
    this.errLine = (line) => (stdout.isTTY && stderr.isTTY ? display.print(line) : stderr.write(`${line}\n`))
    this.err = new WholeLines(this.errLine)
  }

  flush(): void {
    this.out.flush()
    this.err.flush()
  }
}

function launchOptions(options: RunOptions, display: Display, printed: Printed): LaunchOptions {
  return {
    workers: options.workers,
    onProgress: (progress: Progress, worker: string) => display.progress(worker, progress),
    // What one worker alone prints to a pipe or a file nobody interrupts: it goes there byte by byte.
    ...(options.workers.length === 1 && display instanceof PlainDisplay ? {} : { stdout: printed.out.take, stderr: printed.err.take }),
    ...(options.device === undefined ? {} : { device: options.device }),
    ...(options.seed === undefined ? {} : { seed: options.seed }),
    ...(options.rpcTimeout === undefined ? {} : { rpcTimeoutMs: options.rpcTimeout }),
  }
}
