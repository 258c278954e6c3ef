/**
 * Runs the mains of all workers of a cluster at once. The first failure ends all of them: they wait for each other, so the others could not finish. Under
 * `--restart failed` a failed worker restarts instead, and its main is called again, as long as there are restarts left.
 */
import { type Cluster, isPostgradError, type PostgradError } from 'postgrad'
import type { CloseOptions } from 'postgrad/types'
import type { Display, WorkerState } from '../output/display.js'
import { deathIn } from './exit-code.js'

export interface Failure {
  readonly worker: string
  readonly error: unknown
}

export interface EverywhereOptions {
  readonly args: readonly string[]
  /** The time of each main, in ms; 0: without a limit. */
  readonly timeoutMs: number
  readonly display: Display
  /** How the others are ended when one has failed. */
  readonly cutOff: CloseOptions
  readonly isStopped: () => boolean
  /** Whether a worker that failed so is to be started again; it says so to the user. */
  readonly mayRestart: (failure: Failure) => boolean
}

/** The first failure in time; null when every worker's main has ended well, or when a signal ended them. */
export function runEverywhere(cluster: Cluster, options: EverywhereOptions): Promise<Failure | null> {
  return new Everywhere(cluster, options).run()
}

class Everywhere {
  private readonly cluster: Cluster
  private readonly options: EverywhereOptions
  private failure: Failure | null = null
  /** Workers whose main is not done. */
  private under: number
  private readonly allDone: Promise<null>
  private tellAllDone: (nothing: null) => void = () => {}
  /** By name: who waits for the death of a worker that is done, but may still be called. */
  private readonly mourners = new Map<string, (error: PostgradError) => void>()

  constructor(cluster: Cluster, options: EverywhereOptions) {
    this.cluster = cluster
    this.options = options
    this.under = cluster.workers.length
    this.allDone = new Promise((resolve) => {
      this.tellAllDone = resolve
    })
  }

  async run(): Promise<Failure | null> {
    // A main that fails by a death says so; this is for workers that were done. The listener stays until the cluster has ended: `run-cluster.ts` reports the last death.
    this.cluster.onWorkerDeath(({ name }, error) => this.mourners.get(name)?.(error))
    await Promise.all(this.cluster.workers.map(({ name }) => this.runOne(name)))
    return this.failure
  }

  private async runOne(name: string): Promise<void> {
    const { display, isStopped } = this.options
    for (;;) {
      display.state(name, 'running')
      const error = await this.main(name)
      if (error === null) return
      const isDead = isDeathOf(error.thrown, name)
      if (isStopped() || this.failure !== null) {
        this.end(name, isDead && !isStopped() ? 'died' : 'stopped')
        return
      }
      const culprit = namedCulprit(error.thrown, name)
      const failure = culprit ?? { worker: name, error: error.thrown }
      if (this.options.mayRestart({ worker: name, error: error.thrown })) {
        display.state(name, 'restarting')
        if (await this.startAgain(name)) continue
        if (isStopped() || this.failure !== null) {
          this.end(name, 'stopped')
          return
        }
      }
      this.failure = failure
      this.end(name, culprit !== null ? 'stopped' : isDead ? 'died' : 'failed')
      // Ends the mains of the others, which reject and come through here.
      await this.cluster.close(this.options.cutOff)
      return
    }
  }

  /** One that is not done: the run is over, also for those that were done and would still be called. */
  private end(name: string, state: WorkerState): void {
    this.options.display.state(name, state)
    this.tellAllDone(null)
  }

  /** Until nobody needs this worker any more; null: all is well. */
  private async main(name: string): Promise<{ readonly thrown: unknown } | null> {
    const { args, timeoutMs, display } = this.options
    try {
      await this.cluster.on(name, timeoutMs === 0 ? {} : { timeoutMs }).runMain(args, { isLast: true })
    } catch (error) {
      if (!hasExitedWell(error, name)) return { thrown: error }
    }
    display.state(name, 'done')
    const death = new Promise<PostgradError>((resolve) => this.mourners.set(name, resolve))
    if (--this.under === 0) this.tellAllDone(null)
    const error = await Promise.race([this.allDone, death])
    this.mourners.delete(name)
    if (error === null || hasExitedWell(error, name)) return null
    // Others may have called it and know of it in their own way; only where it is to be started again it counts by itself.
    if (!this.options.mayRestart({ worker: name, error })) return null
    this.under++
    display.state(name, 'restarting')
    return (await this.startAgain(name)) ? this.main(name) : { thrown: error }
  }

  private async startAgain(name: string): Promise<boolean> {
    try {
      await this.cluster.restart(name, { leaveTimeoutMs: 0 })
      return true
    } catch (error) {
      this.options.display.note(`${name} could not be started again: ${error instanceof Error ? error.message : String(error)}`)
      return false
    }
  }
}

function isDeathOf(error: unknown, worker: string): boolean {
  return isPostgradError(error, 'WORKER_DIED') && error.values.worker === worker
}

/** As a program that Node runs does: by `process.exit(0)`. */
function hasExitedWell(error: unknown, worker: string): boolean {
  if (!isPostgradError(error, 'WORKER_DIED')) return false
  const { values } = error
  return values.worker === worker && values.cause === 'exited' && values.exitCode === 0
}

/** When a main fails because another worker died, that worker is at fault, and why it died is what helps. */
function namedCulprit(error: unknown, reporter: string): Failure | null {
  const death = deathIn(error)
  const dead = death?.values.worker
  if (typeof dead !== 'string' || dead === reporter || !isPostgradError(death?.cause)) return null
  return { worker: dead, error: death.cause }
}
