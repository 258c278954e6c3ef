/**
 * The helper threads of one thread, their owner. The owner offers the units of a large kernel, computes units itself, and returns when all are computed. Helpers
 * are threads that the owner starts, so Node ends them before it reports the owner's end: when others reclaim the owner's blocks, nobody writes to them any more.
 *
 * A job is an offer that nobody needs to take. While helpers are starting, sleep late or have no core, the owner computes alone. A helper that ends in the middle
 * of a claim leaves that claim without its mark, and the owner computes the claim once more. So units must not read what they or others write.
 */
import assert from 'node:assert'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { ownFile } from '@postgrad/base/internal'
import {
  ABSENT,
  type Board,
  CLAIMS_MAX,
  doneAt,
  ENDED,
  INSIDE,
  JOB_AT,
  LENGTH,
  makeBoard,
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
import { helperStarted } from './compute-threads.js'
import type { HelperBoot } from './helper.js'
import type { Program, Unit } from './recorder.js'

/** The kernels, and the memory in which they compute. */
export interface Computes {
  readonly module: object
  readonly memory: object
}

/** Scratch of helpers: where the first one has its own, and how many bytes each has. */
export interface HelperScratch {
  readonly at: number
  readonly stride: number
}

/** One claim has so much work at least, in multiplications: some 25 µs of products. */
const CLAIM_WORK = 2 ** 19
/** How often the owner looks whether the helpers are ready with their last claims, before it sleeps: some 20 µs. */
const LOOKS = 2000
/** How long the owner waits for a helper before it looks whether the helper's thread has ended. */
const LOOK_AFTER_MS = 20
/** A helper makes no objects; what Node makes at a thread's start takes less than this. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32, stackSizeMb: 1 }

/** How many helpers that end before they begin are replaced. */
const RETRIES = 3

interface Helper {
  readonly worker: Worker
  /** The other end is in the thread: see `hasStopped`. */
  readonly port: MessagePort
  /** A thread that had begun has ended: another takes its place. */
  isMissed: boolean
}

/** The helpers of this thread, by the memory in which they compute. All instances of the kernels there have the same ones. */
const ofMemory = new WeakMap<object, HelperThreads>()

export class HelperThreads {
  readonly #computes: Computes
  #memory = makeBoard()
  #board: Board = viewsOf(this.#memory)
  readonly #helpers: Helper[] = []
  readonly #grant: (wanted: number) => number
  #wanted = 0
  /** How many this thread may have, and how many of these cannot be started. */
  #count = 0
  #lost = 0
  #job = 0
  #isOpen = false
  #helped = 0
  #retries = RETRIES

  /** @param grant takes so many helpers of those that the threads of this process may have, and says how many this thread gets */
  private constructor(grant: (wanted: number) => number, computes: Computes) {
    this.#grant = grant
    this.#computes = computes
  }

  /** The helpers of this thread that compute there. */
  static of(computes: Computes, grant: (wanted: number) => number): HelperThreads {
    const found = ofMemory.get(computes.memory) ?? new HelperThreads(grant, computes)
    ofMemory.set(computes.memory, found)
    return found
  }

  /** So many helpers from now on, which are started at the first job. */
  want(wanted: number): void {
    if (wanted === this.#wanted) return
    this.#end()
    this.#wanted = wanted
    this.#retries = RETRIES
  }

  /** How many of them can compute now. */
  get ready(): number {
    let ready = 0
    for (let i = 0; i < this.#helpers.length; i++) if (isThere(Atomics.load(this.#board.words, stateAt(i)))) ready++
    return ready
  }

  /** How many claims helpers have taken so far. */
  get helped(): number {
    return this.#helped
  }

  /** Starts the helpers that are missing, as many as other threads leave. */
  start(): void {
    if (this.#count < this.#wanted) this.#count = this.#lost + this.#grant(this.#wanted - this.#lost)
    for (let i = 0; i < this.#count; i++) {
      if (!(this.#helpers[i]?.isMissed ?? true)) continue
      try {
        this.#spawn(i)
      } catch (error) {
        this.#wanted = this.#count = i
        this.#lost = Math.min(this.#lost, i)
        this.#grant(i - this.#lost)
        warn(error)
      }
    }
  }

  /**
   * Runs all units, some of them in helpers. `unit` is what `program` was recorded of.
   * @param workEach multiplications of a unit, for the size of claims
   * @param scratch this thread's own
   */
  run(program: Program, unit: Unit, workEach: number, scratch: number, helpers: HelperScratch): void {
    assert(!this.#isOpen, 'a job is begun within a job')
    const { words } = this.#board
    const { units } = program
    const perClaim = Math.max(Math.ceil(CLAIM_WORK / workEach), Math.ceil(units / CLAIMS_MAX))
    const claims = Math.ceil(units / perClaim)
    this.#write(program, perClaim, helpers.at - scratch, helpers.stride)
    Atomics.store(words, NEXT_AT, 0)
    this.#open()
    let left = claims
    try {
      for (; ; left--) {
        const claim = Atomics.add(words, NEXT_AT, 1)
        if (claim >= claims) break
        this.#compute(claim, perClaim, units, unit, scratch)
        Atomics.store(words, doneAt(claim), this.#job)
      }
    } finally {
      this.#helped += left
      const opened = this.#job
      if (!this.#close()) {
        for (let claim = 0; claim < claims; claim++)
          if (words[doneAt(claim)] !== opened) this.#compute(claim, perClaim, units, unit, scratch)
      }
    }
  }

  /** Ends all helpers, which are outside of a job. */
  #end(): void {
    assert(!this.#isOpen, 'helpers end within a job')
    this.#grant(0)
    this.#count = this.#lost = 0
    for (const { worker } of this.#helpers) void worker.terminate()
    this.#helpers.length = 0
    // A thread that has not ended yet may still begin: it finds no job.
    this.#memory = makeBoard()
    this.#board = viewsOf(this.#memory)
    this.#job = 0
  }

  #compute(claim: number, perClaim: number, units: number, unit: Unit, scratch: number): void {
    const end = Math.min(units, (claim + 1) * perClaim)
    for (let i = claim * perClaim; i < end; i++) unit(i, scratch)
  }

  #write({ tape, steps, own, units }: Program, perClaim: number, shift: number, stride: number): void {
    const { numbers } = this.#board
    numbers[UNITS] = units
    numbers[PER_CLAIM] = perClaim
    numbers[SCRATCH_SHIFT] = shift
    numbers[SCRATCH_STRIDE] = stride
    numbers[LENGTH] = tape.length
    numbers.set(tape, TAPES)
    numbers.set(steps, TAPES + tape.length)
    numbers.set(own, TAPES + 2 * tape.length)
  }

  #open(): void {
    this.#isOpen = true
    this.#next()
    Atomics.notify(this.#board.words, JOB_AT)
  }

  /** Waits until no helper is inside (Note [Jobs]). @returns false if one has ended inside */
  #close(): boolean {
    const { words } = this.#board
    this.#next()
    let all = true
    for (let i = 0; i < this.#helpers.length; i++) {
      const at = stateAt(i)
      for (let look = 0; look < LOOKS && Atomics.load(words, at) === INSIDE; look++);
      while (Atomics.load(words, at) === INSIDE) {
        if (Atomics.wait(words, at, INSIDE, LOOK_AFTER_MS) !== 'timed-out' || !hasStopped(this.#helpers[i]!.port)) continue
        Atomics.store(words, at, ENDED)
        all = false
      }
    }
    this.#isOpen = false
    return all
  }

  #next(): void {
    this.#job = (this.#job + 1) | 0
    Atomics.store(this.#board.words, JOB_AT, this.#job)
  }

  #spawn(index: number): void {
    const { port1, port2 } = new MessageChannel()
    const workerData: HelperBoot = { ...this.#computes, board: this.#memory, helper: index, port: port2 }
    Atomics.store(this.#board.words, stateAt(index), ABSENT)
    const worker = new Worker(ownFile('computeThreads', 'tensor', 'kernels/wasm/threads/helper.js'), {
      name: `compute ${index}`,
      workerData,
      transferList: [port2],
      // A program may load modules into its threads by Node's options; helpers run none of its code.
      env: {},
      execArgv: [],
      resourceLimits: RESOURCE_LIMITS,
    })
    const helper: Helper = { worker, port: port1, isMissed: false }
    this.#helpers[index] = helper
    helperStarted(worker)
    // They never keep the process alive.
    worker.unref()
    port1.unref()
    let thrown: unknown
    worker.on('error', (error) => {
      thrown = error
    })
    worker.once('exit', () => {
      if (this.#helpers[index] !== helper) return
      const hasBegun = Atomics.exchange(this.#board.words, stateAt(index), ENDED) !== ABSENT
      // A thread that throws before it begins would throw the next time; one that was terminated may begin.
      if (hasBegun || (thrown === undefined && this.#retries-- > 0)) helper.isMissed = true
      else {
        // Another thread may have it.
        this.#lost++
        this.#grant(this.#count - this.#lost)
        warn(thrown)
      }
    })
  }
}

/** Only speed is lost. */
function warn(cause: unknown): void {
  process.emitWarning(
    `a helper thread cannot be started, so large operations are computed without it: ${String(cause)}`,
    'POSTGRAD_COMPUTE_THREADS',
  )
}

function isThere(state: number): boolean {
  return state === OUTSIDE || state === INSIDE
}

/**
 * Whether a thread's code runs no longer, while this thread waits and no event can say so. A port finds no other end only after Node has taken the thread's
 * environment down. It holds for a thread that was terminated, too, which runs no code at its end. Node does not document the result of `postMessage` (true, and false or undefined after the end); the tests of
 * this folder fail on a Node without it.
 */
function hasStopped(port: MessagePort): boolean {
  return (port.postMessage(null) as unknown) !== true
}
