/** A worker, as the programs on it see it. `worker-runtime.ts` implements it. */
import type { Clock } from '@postgrad/transport'
import type { WorkerRuntime } from '../worker/worker-runtime.js'

/**
 * The worker that runs this code: what it is called, its time, how it ends, and what it holds. `currentWorker()` gives it. PyTorch: `WorkerInfo`, and the functions of
 * `torch.distributed.rpc` that speak of the own process.
 */
export interface Worker
  extends Pick<
    WorkerRuntime,
    | ('info' | 'run' | 'workers' | 'resolve')
    | ('close' | 'drain' | 'leave' | 'shutdown')
    | ('inspect' | 'inspectStream' | 'metrics' | 'deadLetters' | 'references' | 'debugInfo')
  > {
  /** Its time, virtual in a simulation: `now()` in ms, `setTimer(ms, fn)`. */
  readonly clock: Clock
}
