/**
 * `inlined`: the bit-for-bit oracle of a distributed program. The same body, with every worker in one place and every call an ordinary function
 * call with an identity node. `simulate` and threads must give the same to the last bit. Its workers live in a simulated world without links: time is
 * virtual, and a program that waits for what cannot come ends as it does in a simulation.
 */

import { isPostgradError, PostgradError } from '@postgrad/base'
import { callCancelled, checkSignal, onAbort, timeLimit } from '@postgrad/base/internal'
import { checkNames, type OptionNames } from '@postgrad/cluster/internal'
import { syncDisk, useCheckpointDisk } from '@postgrad/parallel/internal'
import { workerGenerator } from '@postgrad/rpc/internal'
import { FairSchedule, SimWorld } from '@postgrad/sim/internal'
import { RealClock, setDeadline } from '@postgrad/transport/internal'
import { noteTest } from '../replay/run-identity.js'
import { checkRun } from '../simulate/check-run.js'
import { InThreadCluster, type TestCluster, workerNames } from '../simulate/cluster.js'
import { waitsNow, whoWaits, withWaits } from '../simulate/who-waits.js'
import { installInlinedBackward } from './inlined-backward.js'
import { InlinedProgram } from './inlined-caller.js'

/** Options of `inlined`. */
export interface InlinedOptions {
  /** The names of the workers, or how many: 2 makes worker0 and worker1. */
  readonly workers: readonly string[] | number
  /** The seed of the workers' random numbers, like `dataSeed` of `simulate` and `seed` of `launch`. Default 0. */
  readonly dataSeed?: number
  /** How long the run may take, in ms of real time. Then `inlined` rejects with RUN_TIMEOUT. Default 0: without a limit. */
  readonly timeoutMs?: number
  /** When this signal aborts, `inlined` rejects with CALL_CANCELLED. The body itself is not stopped. */
  readonly signal?: AbortSignal
}

const OPTIONS: OptionNames<InlinedOptions> = { workers: true, dataSeed: true, timeoutMs: true, signal: true }

/**
 * Runs `body` on an inlined cluster, and resolves with its result. Each call of a worker is an ordinary function call in this thread, without messages. So the result
 * is an oracle: `simulate` and a launched cluster must give the same result, to the last bit.
 * @throws the error of `body`; SIM_DEADLOCK if `body` waits for something that cannot happen, with the waits of all workers (as in `simulate`, real timers
 * and I/O do not happen); SIM_LIMIT if the run takes too many steps; RUN_TIMEOUT after `timeoutMs`; CALL_CANCELLED if `signal` aborts; INVALID_ARGUMENT,
 * TIMEOUT_INVALID
 * @example await inlined({ workers: 2 }, (cluster) => cluster.on('worker0').run(() => call('worker1', addOne, [x]))) // [[2, 3], [4, 5]]
 */
export async function inlined<T>(options: InlinedOptions, body: (cluster: TestCluster) => Promise<T>): Promise<T> {
  checkRun('inlined', options, body)
  checkNames('inlined', options, OPTIONS)
  noteTest()
  const names = workerNames(options.workers)
  const ends = new Ends(options)
  const program = new InlinedProgram()
  // No chance decides the order here: the choice that waits longest is next.
  const world = new SimWorld(0, { schedule: new FairSchedule(), traceEventsMax: 0 })
  const workers = names.map((name, id) =>
    program.start({
      name,
      id,
      clock: world.clockOf(name),
      generator: workerGenerator(options.dataSeed ?? 0, name),
      finalizers: 'report',
    }),
  )
  for (const worker of workers) useCheckpointDisk(worker, syncDisk)
  installInlinedBackward(workers)
  try {
    return await world.run(Promise.race([body(new InThreadCluster(workers)), ends.any]))
  } catch (error) {
    if (!isPostgradError(error, 'SIM_DEADLOCK') && !ends.isTimeout(error)) throw error
    const waits = whoWaits(waitsNow(workers))
    throw withWaits(error, { ...waits, waits: [...program.waits, ...waits.waits] })
  } finally {
    ends.dispose()
    await Promise.all(workers.map((worker) => worker.close()))
  }
}

/** The ends of a run from outside: its deadline and its signal. */
class Ends {
  /** Rejects at the first of them. */
  readonly any: Promise<never>
  private readonly forget: (() => void)[] = []
  private timeout: PostgradError | null = null

  /** @throws INVALID_ARGUMENT, TIMEOUT_INVALID, CALL_CANCELLED for a signal that has been aborted */
  constructor({ timeoutMs = 0, signal }: InlinedOptions) {
    const op = 'inlined'
    checkSignal(signal, op, null)
    const limitMs = timeLimit(op, timeoutMs)
    this.any = new Promise((_resolve, reject) => {
      if (signal !== undefined) this.forget.push(onAbort(signal, () => reject(callCancelled(op, null, signal.reason))))
      const timer = setDeadline(new RealClock(), limitMs, () => {
        this.timeout = timedOut(op, limitMs)
        reject(this.timeout)
      })
      this.forget.push(() => timer?.cancel())
    })
  }

  isTimeout(error: unknown): error is PostgradError {
    return error === this.timeout
  }

  dispose(): void {
    for (const forget of this.forget) forget()
  }
}

function timedOut(op: string, timeoutMs: number): PostgradError {
  return new PostgradError('RUN_TIMEOUT', {
    op,
    message: `the program has not ended within ${timeoutMs} ms`,
    remedy: 'Give it a longer { timeoutMs }, or look for what repeats without end.',
    values: { timeoutMs },
  })
}
