/**
 * Ids as PyTorch has them (`DistAutogradContainer`, `GloballyUniqueId`): 16 bits of worker, 48 bits of a counter on that worker, 64 bits
 * exact. In the API and on the wire they are bigints; counters are per object, never per module.
 */
import { PostgradError } from './errors.js'

/** The id of a worker: an integer from 0 to 65,535, unique in its cluster. A restarted worker has a new id. */
export type WorkerId = number

export const WORKER_ID_MAX = 0xffff
export const LOCAL_ID_MAX = 2 ** 48 - 1

const LOCAL_BITS = 48n
const LOCAL_MASK = (1n << LOCAL_BITS) - 1n

/** @throws WORKER_ID_OUT_OF_RANGE, ID_EXHAUSTED */
export function globalId(worker: WorkerId, local: number): bigint {
  checkWorkerId(worker)
  if (!Number.isInteger(local) || local < 0 || local > LOCAL_ID_MAX) {
    throw new PostgradError('ID_EXHAUSTED', {
      op: 'globalId',
      expected: `a counter from 0 to ${LOCAL_ID_MAX}`,
      got: String(local),
      remedy: 'Restart the worker: it takes a fresh id and counts from 0 again.',
    })
  }
  return (BigInt(worker) << LOCAL_BITS) | BigInt(local)
}

/**
 * Returns the id of the worker that made a context, a reference or a pass, from the upper 16 bits of its 64-bit id. `localOf` returns the rest.
 * @example workerOf((2n << 48n) | 7n) // 2
 */
export function workerOf(id: bigint): WorkerId {
  return Number(id >> LOCAL_BITS)
}

/**
 * Returns the lower 48 bits of the id of a context, a reference or a pass: a counter of the worker that made it. `workerOf` returns that worker.
 * @example localOf((2n << 48n) | 7n) // 7
 */
export function localOf(id: bigint): number {
  return Number(id & LOCAL_MASK)
}

export function checkWorkerId(worker: number): void {
  if (!Number.isInteger(worker) || worker < 0 || worker > WORKER_ID_MAX) {
    throw new PostgradError('WORKER_ID_OUT_OF_RANGE', {
      op: 'worker id',
      expected: `an integer from 0 to ${WORKER_ID_MAX}`,
      got: String(worker),
      remedy: 'Start the whole group again. If it has had few restarts, report this as a bug.',
    })
  }
}

/** Gives out the global ids of one worker, in order. */
export class IdCounter {
  readonly worker: WorkerId
  private next = 0

  constructor(worker: WorkerId) {
    checkWorkerId(worker)
    this.worker = worker
  }

  take(): bigint {
    return globalId(this.worker, this.next++)
  }
}
