/** How many threads compute the large kernels of this thread. Per thread, as its kernels are: each worker has its own. */
import { availableParallelism } from 'node:os'
import type { Worker } from 'node:worker_threads'
import { PostgradError } from '@postgrad/base'
import { HELPERS_MAX } from './board.js'

/** More than any machine has cores. */
export const COMPUTE_THREADS_MAX = HELPERS_MAX + 1

let computeThreads = 1
/** An instance of kernels.wasm. */
interface Computing {
  useThreads(threads: number): void
  /** Several instances may have the same ones. */
  readonly helpers: HelperCounts | null
}
/** How many helper threads can compute now, and how many parts of kernels they have computed so far. */
export interface HelperCounts {
  readonly ready: number
  readonly helped: number
}
/** Those of this thread. */
const instances = new Set<Computing>()

/**
 * How many threads compute the large operations of this thread: this thread, and `count − 1` helpers. The helpers start at the first large operation. All
 * threads of a process together start at most as many helpers as the machine has cores, less one, and operations have the same results, to the last bit, with any
 * number of threads. A worker has a setting of its own; default 1. The library of device `blas` has one number for the process, the largest of its workers', and other last bits with another number. PyTorch: `torch.set_num_threads`.
 * @throws INVALID_ARGUMENT unless `count` is a whole number from 1 to 256
 * @example setComputeThreads(2)
 */
export function setComputeThreads(count: number): void {
  computeThreads = checkComputeThreads('setComputeThreads', count)
  for (const instance of instances) instance.useThreads(count)
}

/**
 * How many threads compute the large operations of this thread, as `setComputeThreads` or the option `computeThreads` has set it. PyTorch: `torch.get_num_threads`.
 * @example getComputeThreads() // 1
 */
export function getComputeThreads(): number {
  return computeThreads
}

/** @throws INVALID_ARGUMENT */
export function checkComputeThreads(op: string, count: number): number {
  if (Number.isInteger(count) && count >= 1 && count <= COMPUTE_THREADS_MAX) return count
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: `a whole number of threads from 1 to ${COMPUTE_THREADS_MAX}`,
    got: String(count),
    remedy: 'Give 1 to compute in the calling thread alone.',
  })
}

/** The instance learns the number now, if it is not 1, and at each change. */
export function onComputeThreads(instance: Computing): void {
  instances.add(instance)
  if (computeThreads > 1) instance.useThreads(computeThreads)
}

/** Of all helpers of this thread. */
export function helperCounts(): HelperCounts {
  let [ready, helped] = [0, 0]
  for (const helpers of new Set([...instances].map((instance) => instance.helpers))) {
    ready += helpers?.ready ?? 0
    helped += helpers?.helped ?? 0
  }
  return { ready, helped }
}

/** Multiplications from which on a kernel is shared: some 100 µs, several times what a sleeping helper needs to wake up. */
const SHARED_WORK = 2 ** 21

interface Limits {
  readonly cores: number
  readonly sharedWork: number
  /** Gets each helper that is started. */
  readonly onStart: (worker: Worker) => void
}
let limits: Limits = { cores: availableParallelism(), sharedWork: SHARED_WORK, onStart: () => {} }

/** All threads of a process together have fewer helpers than that. */
export const usableCores = (): number => limits.cores
export const sharedWork = (): number => limits.sharedWork
export const helperStarted = (worker: Worker): void => limits.onStart(worker)

/** Other limits, for tests, until the returned function is called. */
export function withThreadLimits(others: Partial<Limits>): () => void {
  const before = limits
  limits = { ...limits, ...others }
  return () => {
    limits = before
  }
}
