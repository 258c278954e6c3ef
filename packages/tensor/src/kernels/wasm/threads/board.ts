/**
 * The board: words in memory that a thread shares with its helper threads, for one job at a time. `helper-threads.ts` writes jobs, `helper.ts` reads them.
 *
 *     job │ next claim │ done: a word for each claim │ state of helper 0 │ of helper 1 │ … │ numbers of the job
 *
 * A job is odd while it is open. Note [Jobs]: a helper writes INSIDE before it reads the job's word, and the owner closes the job before it reads the states.
 * So either the helper finds the job closed, and leaves it alone, or the owner finds the helper inside, and waits. When no helper is inside, none
 * reads or writes anything, and the owner may write the next job.
 *
 * This file has no imports: a helper loads it without the library.
 */

/** Words that different threads write lie in cache lines of their own. */
const LINE = 16

/** The number of the job; odd: it is open. Helpers that sleep wait for a change of this word. */
export const JOB_AT = 0
/** The next claim that nobody has taken. */
export const NEXT_AT = LINE
const DONE_AT = 2 * LINE
/** A job has at most so many claims. */
export const CLAIMS_MAX = 16 * LINE
const STATES_AT = DONE_AT + CLAIMS_MAX
/** More helpers than any machine has cores for; `COMPUTE_THREADS_MAX` is one more. */
export const HELPERS_MAX = 255
const NUMBERS_AT = STATES_AT + HELPERS_MAX * LINE
/** Of all calls of a unit, each with its arguments. */
export const TAPE_MAX = 65_536

// The states of a helper.
/** Its thread has not begun yet. */
export const ABSENT = 0
export const OUTSIDE = 1
/** It may be reading the job, and computing. */
export const INSIDE = 2
/** Its owner has found that its thread has ended inside of a job. */
export const ENDED = 3

// The numbers of a job.
/** How many units helpers may compute, and how many one claim has. */
export const UNITS = 0
export const PER_CLAIM = 1
/** Added to the addresses of a unit's scratch: for helper 0, and for each further helper. */
export const SCRATCH_SHIFT = 2
export const SCRATCH_STRIDE = 3
/** The length of each of the three tapes, which follow one after the other. */
export const LENGTH = 4
export const TAPES = 5

/** The word of a claim: the job in which somebody has computed all of it. */
export const doneAt = (claim: number): number => DONE_AT + claim
/** The word of a helper's state. */
export const stateAt = (helper: number): number => STATES_AT + helper * LINE

export interface Board {
  readonly words: Int32Array
  readonly numbers: Float64Array
}

export function makeBoard(): SharedArrayBuffer {
  return new SharedArrayBuffer(NUMBERS_AT * Int32Array.BYTES_PER_ELEMENT + (TAPES + 3 * TAPE_MAX) * Float64Array.BYTES_PER_ELEMENT)
}

export function viewsOf(memory: SharedArrayBuffer): Board {
  return { words: new Int32Array(memory, 0, NUMBERS_AT), numbers: new Float64Array(memory, NUMBERS_AT * Int32Array.BYTES_PER_ELEMENT) }
}
