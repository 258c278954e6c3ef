/**
 * A helper thread: it computes units of its owner's jobs, in the owner's memory, and sleeps in between. It loads this file and the board alone, and makes no
 * objects while it computes. It knows nothing of tensors: a unit is calls of exports with numbers (`recorder.ts`).
 */
import { workerData } from 'node:worker_threads'
import {
  type Board,
  doneAt,
  INSIDE,
  JOB_AT,
  LENGTH,
  NEXT_AT,
  OUTSIDE,
  PER_CLAIM,
  SCRATCH_SHIFT,
  SCRATCH_STRIDE,
  stateAt,
  TAPES,
  UNITS,
  viewsOf,
} from './board.js'

/** Everything a helper is born with (`workerData`). */
export interface HelperBoot {
  readonly board: SharedArrayBuffer
  /** Of the kernels, and the memory in which they compute. */
  readonly module: object
  readonly memory: object
  readonly helper: number
  /** Kept, and closed with the thread. */
  readonly port: object
}

declare const WebAssembly: { Instance: new (module: object, imports: object) => { readonly exports: object } }
type Export = (...args: readonly number[]) => void

/** Looks at the job's word before it sleeps, some 100 µs: a program that has one large kernel has others. With a third of it, the step of an MLP took 1.2 times as long. */
const LOOKS = 10_000

class Helper {
  readonly #words: Int32Array
  readonly #numbers: Float64Array
  readonly #exports: readonly Export[]
  readonly #helper: number
  readonly #args: number[] = []

  constructor(boot: HelperBoot) {
    const { words, numbers }: Board = viewsOf(boot.board)
    const imports = { env: { memory: boot.memory }, math: Math }
    this.#exports = Object.values(new WebAssembly.Instance(boot.module, imports).exports) as Export[]
    this.#words = words
    this.#numbers = numbers
    this.#helper = boot.helper
  }

  run(): never {
    const state = stateAt(this.#helper)
    const words = this.#words
    Atomics.store(words, state, OUTSIDE)
    let job = 0
    for (;;) {
      job = this.#nextJob(job)
      if (job % 2 === 0) continue
      Atomics.store(words, state, INSIDE)
      // Only now may it read the job: Note [Jobs].
      if (Atomics.load(words, JOB_AT) === job) this.#work(job)
      Atomics.store(words, state, OUTSIDE)
      Atomics.notify(words, state)
    }
  }

  /** Another number than `last`. */
  #nextJob(last: number): number {
    for (let look = 0; look < LOOKS; look++) {
      const job = Atomics.load(this.#words, JOB_AT)
      if (job !== last) return job
    }
    Atomics.wait(this.#words, JOB_AT, last)
    return Atomics.load(this.#words, JOB_AT)
  }

  #work(job: number): void {
    const words = this.#words
    const units = this.#numbers[UNITS]!
    const perClaim = this.#numbers[PER_CLAIM]!
    for (;;) {
      const claim = Atomics.add(words, NEXT_AT, 1)
      const first = claim * perClaim
      if (first >= units) return
      const end = Math.min(units, first + perClaim)
      for (let unit = first; unit < end; unit++) this.#compute(unit)
      Atomics.store(words, doneAt(claim), job)
    }
  }

  #compute(unit: number): void {
    const numbers = this.#numbers
    const args = this.#args
    const length = numbers[LENGTH]!
    const shift = numbers[SCRATCH_SHIFT]! + this.#helper * numbers[SCRATCH_STRIDE]!
    for (let at = TAPES; at < TAPES + length; ) {
      const kernel = this.#exports[numbers[at]!]!
      const count = numbers[at + 1]!
      at += 2
      args.length = count
      for (let i = 0; i < count; i++, at++) {
        const step = numbers[at + length]!
        const own = numbers[at + 2 * length]!
        // An argument that does not move keeps its bits: -0, NaN.
        args[i] = step === 0 && own === 0 ? numbers[at]! : numbers[at]! + unit * step + own * shift
      }
      kernel(...args)
    }
  }
}

new Helper(workerData as HelperBoot).run()
