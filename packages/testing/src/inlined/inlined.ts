/**
 * `inlined`: the bit-for-bit oracle of a distributed program. The same body, with every worker in one place and every call an ordinary function
 * call behind an identity node. What `simulate` and threads compute must equal it to the last bit.
 */
import { workerGenerator } from '@postgrad/rpc/internal'
import { RealClock } from '@postgrad/transport/internal'
import { checkRun } from '../simulate/check-run.js'
import { InThreadCluster, type TestCluster, workerNames } from '../simulate/cluster.js'
import { installInlinedBackward } from './inlined-backward.js'
import { InlinedProgram } from './inlined-caller.js'

/** Of `inlined`. */
export interface InlinedOptions {
  /** Names, or a count: worker0, worker1, … */
  readonly workers: readonly string[] | number
  /** Of the workers' random numbers, as `simulate` and `launch` (`seed`) have it. Default 0. */
  readonly dataSeed?: number
}

/** Runs `body` on an inlined cluster and gives what it gives. */
export async function inlined<T>(options: InlinedOptions, body: (cluster: TestCluster) => Promise<T>): Promise<T> {
  checkRun('inlined', options, body)
  const program = new InlinedProgram()
  const clock = new RealClock()
  const workers = workerNames(options.workers).map((name, id) =>
    program.start({ name, id, clock, generator: workerGenerator(options.dataSeed ?? 0, name), finalizers: 'report' }),
  )
  installInlinedBackward(workers)
  try {
    return await body(new InThreadCluster(workers))
  } finally {
    await Promise.all(workers.map((worker) => worker.close()))
  }
}
