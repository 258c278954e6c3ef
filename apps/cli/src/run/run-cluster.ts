/**
 * A run that starts all workers, as threads or spread over processes: launches, runs every main (`everywhere.ts`), shows their progress. Under `--restart all`
 * the whole cluster is launched again after a failure, and the program continues from its last checkpoint.
 */
import { type Cluster, isPostgradError, type LaunchOptions, type PostgradError } from 'postgrad'
import type { CloseOptions } from 'postgrad/types'
import type { Bridge } from '../bridge.js'
import { EXIT, EXIT_BY_SIGNAL } from '../exit-codes.js'
import { Screen } from '../output/screen.js'
import { clusterSource } from '../status/cluster-source.js'
import { openStatus, type RunStatus } from '../status/run-status.js'
import type { StopSignal, Surroundings } from '../surroundings.js'
import { type Failure, runEverywhere } from './everywhere.js'
import { codeOfRun, codeOfStart } from './exit-code.js'
import { MAX_RESTARTS, namesOf, type RunOptions, timedOut } from './run-options.js'
import { showStalls } from './stalls.js'

/** The variable in which a program finds how often it, or one of its workers, was started again. */
export const RESTART_COUNT = 'POSTGRAD_RESTART_COUNT'

/** @returns the exit code */
export async function runCluster(
  program: string,
  args: readonly string[],
  options: RunOptions,
  around: Surroundings,
  bridge: Bridge,
): Promise<number> {
  return new ClusterRun(program, args, options, around, bridge).run()
}

class ClusterRun {
  private readonly program: string
  private readonly args: readonly string[]
  private readonly options: RunOptions
  private readonly around: Surroundings
  private readonly bridge: Bridge
  private readonly names: readonly string[]
  private readonly screen: Screen
  private readonly endMs: number
  private restarts = 0
  private cluster: Cluster | null = null
  private signalled: StopSignal | null = null
  private status: RunStatus | null = null

  constructor(program: string, args: readonly string[], options: RunOptions, around: Surroundings, bridge: Bridge) {
    this.program = program
    this.args = args
    this.options = options
    this.around = around
    this.bridge = bridge
    this.names = namesOf(options.workers, null)
    this.screen = new Screen(options, this.names, around, { hasPrefix: options.processes !== undefined, isShared: false })
    this.endMs = (options.timeout ?? 0) === 0 ? Number.POSITIVE_INFINITY : around.now() + options.timeout!
  }

  async run(): Promise<number> {
    const { around, options, screen } = this
    const stopListening = around.onSignal((signal) => this.onSignal(signal))
    if (options.status !== false) this.status = await openStatus({ program: this.program, args: this.args }, around)
    try {
      for (;;) {
        const end = await this.attempt()
        if (typeof end === 'number') return end
        if (!this.isWorthAnother(end)) return this.fail(end.worker, end.error, codeOfRun(end.error))
        this.restarts++
        screen.display.note(`${whyOf(end)}; all workers are started again (${this.restarts} of ${this.maxRestarts})`)
      }
    } finally {
      stopListening()
      await this.status?.close()
    }
  }

  private get maxRestarts(): number {
    return this.options.maxRestarts ?? MAX_RESTARTS
  }

  /** One cluster from its start to its end. @returns the exit code, or what failed */
  private async attempt(): Promise<number | Failure> {
    try {
      this.cluster = await this.bridge.launch(this.program, this.launchOptions())
    } catch (error) {
      return this.fail(null, error, codeOfStart(error))
    }
    const { cluster, options, screen, around } = this
    this.status?.show(clusterSource(cluster, screen.display, this.restarts))
    showStalls(cluster, screen.display)
    try {
      const failure = await runEverywhere(cluster, {
        args: this.args,
        timeoutMs: this.endMs === Number.POSITIVE_INFINITY ? 0 : Math.max(1, this.endMs - around.now()),
        display: screen.display,
        cutOff: cutOff(options),
        isStopped: () => this.signalled !== null,
        mayRestart: (one) => this.mayRestart(one),
      })
      await cluster.close(failure === null ? {} : cutOff(options))
      if (this.signalled !== null) {
        screen.end()
        around.stderr.write(`postgrad: stopped by ${this.signalled}\n`)
        return EXIT_BY_SIGNAL[this.signalled]
      }
      const late = failure ?? this.lateFailure(cluster, (await cluster.closed).deaths)
      if (late !== null) return late
      screen.end()
      return EXIT.done
    } catch (error) {
      return this.fail(null, error, codeOfRun(error))
    } finally {
      this.cluster = null
      this.status?.show(null)
    }
  }

  /** What a worker threw, uncaught, when its main was done: nobody waits for that, as nobody does in a process, which then ends with exit code 1. */
  private lateFailure(cluster: Cluster, deaths: readonly PostgradError[]): Failure | null {
    // A restarted worker's death was reported, and another worker has its name.
    const isLast = (id: unknown): boolean => this.options.restart !== 'failed' || cluster.workers.some((one) => one.id === id)
    const death = deaths.find(
      ({ values }) => (values.cause === 'uncaught-exception' || values.cause === 'unhandled-rejection') && isLast(values.workerId),
    )
    return death === undefined ? null : { worker: String(death.values.worker), error: death }
  }

  private fail(worker: string | null, error: unknown, code: number): number {
    const { screen, options } = this
    screen.end()
    const isLate = isPostgradError(error, 'RUN_TIMEOUT') && (options.timeout ?? 0) > 0
    // Of a main that threw, its stack says more.
    const isCrash = worker !== null && isPostgradError(error, 'WORKER_DIED')
    screen.display.failure(worker, isLate ? timedOut(options.timeout!) : error, isCrash ? screen.lastLines.of(worker) : [])
    return code
  }

  private isWorthAnother({ error }: Failure): boolean {
    return this.options.restart === 'all' && this.restarts < this.maxRestarts && !this.isOutOfTime(error)
  }

  private mayRestart(failure: Failure): boolean {
    if (this.options.restart !== 'failed' || this.restarts >= this.maxRestarts) return false
    if (this.isOutOfTime(failure.error)) return false
    this.restarts++
    this.screen.display.note(`${whyOf(failure)}; it is started again (${this.restarts} of ${this.maxRestarts})`)
    return true
  }

  private isOutOfTime(error: unknown): boolean {
    return this.signalled !== null || isPostgradError(error, 'RUN_TIMEOUT') || this.around.now() >= this.endMs
  }

  private onSignal(signal: StopSignal): void {
    // An interactive shell sends it twice when its terminal closes.
    if (this.signalled !== null && signal === 'SIGHUP') return
    // Nothing of a cluster that is still starting is worth waiting for, nor of one that the user has interrupted twice.
    if (this.cluster === null || this.signalled !== null) {
      this.screen.end()
      this.around.stderr.write(`postgrad: stopped by ${signal}\n`)
      this.around.exit(EXIT_BY_SIGNAL[signal])
    }
    this.signalled = signal
    void this.cluster.close(cutOff(this.options))
  }

  private launchOptions(): LaunchOptions {
    const { options, screen } = this
    const count = (): NodeJS.ProcessEnv => ({ ...this.around.env, [RESTART_COUNT]: String(this.restarts) })
    return {
      workers: this.names,
      onProgress: (progress, worker) => screen.display.progress(worker, progress),
      ...(screen.sinks ?? {}),
      ...(options.processes === undefined ? {} : { processes: options.processes }),
      ...(options.device === undefined ? {} : { device: options.device }),
      ...(options.seed === undefined ? {} : { seed: options.seed }),
      ...(options.rpcTimeout === undefined ? {} : { rpcTimeoutMs: options.rpcTimeout }),
      ...(options.joinTimeout === undefined ? {} : { launchTimeoutMs: options.joinTimeout }),
      // Read for each worker that starts, hence also by one that starts again.
      workerOptions: {
        get env() {
          return count()
        },
      },
    }
  }
}

/** In a few words: what to do about it is being done. */
function whyOf({ worker, error }: Failure): string {
  if (isPostgradError(error, 'WORKER_DIED') && error.values.worker === worker)
    return `worker '${worker}' died: ${String(error.values.detail ?? error.values.cause)}`
  return `worker '${worker}' failed: ${error instanceof Error ? error.message : String(error)}`
}

export function cutOff({ grace }: RunOptions): CloseOptions {
  return { timeoutMs: 0, ...(grace === undefined ? {} : { graceMs: grace }) }
}
