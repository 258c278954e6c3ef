/**
 * Cuts long kernels: between slices of at most about 2 ms they call the thread's pause hook, so that a worker can look at its links in the middle
 * of a product. Kernels count the work that they have done; the hook is null unless a worker installs one. Slices never change a bit.
 */
import assert from 'node:assert'
import { outsideOfScopes } from '../../../heap/storage.js'

/** Multiplications with their additions between two pauses: about 1 ms of float32 products, 2 of float64. */
const WORK_PER_PAUSE = 2 ** 24
/** The work of an element of an element-wise kernel: the slowest (sin) takes about 10 ns. */
const WORK_PER_ELEMENT = 64

/** A slot per thread, as its kernels are: the hook of the worker that lives in it. */
let hook: (() => void) | null = null
let done = 0
let isPausing = false
let isCounting = true

/**
 * `pause` is called in the middle of long kernels, synchronously; it must not compute with tensors (an assertion) and must not throw. Returns its
 * removal. A thread has one hook: a second one is a bug.
 */
export function installKernelPause(pause: () => void): () => void {
  assert(hook === null, 'a thread has one kernel pause')
  hook = pause
  return () => {
    hook = null
  }
}

/** Whether a worker lives in this thread. */
export function hasKernelPause(): boolean {
  return hook !== null
}

/** Asserted where a kernel takes scratch: what is staged for the kernel that pauses must survive. */
export function assertNotPausing(): void {
  assert(!isPausing, 'a kernel was called from the kernel pause')
}

/** Counts `n` multiplications with their additions, and pauses when it is time. */
export function worked(n: number): void {
  done += n
  if (done < WORK_PER_PAUSE || !isCounting) return
  // The excess counts, so that the rate does not depend on how large slices are.
  done %= WORK_PER_PAUSE
  if (hook === null) return
  isPausing = true
  try {
    outsideOfScopes(hook)
  } finally {
    isPausing = false
  }
}

/** Runs `fn`, in which nothing is computed and nothing pauses. */
export function withoutPauses<T>(fn: () => T): T {
  const before = done
  isCounting = false
  try {
    return fn()
  } finally {
    isCounting = true
    done = before
  }
}

/** `worked` for `n` elements of an element-wise kernel. */
export function workedElements(n: number): void {
  worked(n * WORK_PER_ELEMENT)
}

/** How many rows of so many multiplications may run at once: whole tiles of four. */
export function rowsAtOnce(workPerRow: number): number {
  return Math.max(4, Math.floor(WORK_PER_PAUSE / workPerRow / 4) * 4)
}
