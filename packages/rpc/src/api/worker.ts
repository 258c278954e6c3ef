/** A worker, as the programs on it see it. `worker-runtime.ts` implements it. */
import type { Clock } from '@postgrad/transport'
import type { WorkerRuntime } from '../worker/worker-runtime.js'

/**
 * A worker, as programs use it; `currentWorker()` returns the current one. `WorkerRuntime` describes its members.
 *
 * - `info`, `workers`, `resolve`: its own name and id, and those of other workers.
 * - `run(fn)`: runs `fn` as this worker.
 * - `close`, `drain`, `leave`, `shutdown`: four ways to end it.
 * - `inspect`, `inspectStream`, `metrics`, `deadLetters`, `references`, `debugInfo`: what happens on it, and what it holds.
 *
 * PyTorch: `WorkerInfo`, and the functions of `torch.distributed.rpc` about the own process.
 */
export interface Worker
  extends Pick<
    WorkerRuntime,
    | ('info' | 'run' | 'workers' | 'resolve')
    | ('close' | 'drain' | 'leave' | 'shutdown')
    | ('inspect' | 'inspectStream' | 'metrics' | 'deadLetters' | 'references' | 'debugInfo')
  > {
  /** The worker's clock: `now()` in ms, `setTimer(ms, fn)`. In a simulation its time is virtual. */
  readonly clock: Clock
}
