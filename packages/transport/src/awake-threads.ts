/**
 * Counts the awake threads of this process, in memory that all of them share, so that none turns in vain on a core that another needs.
 * `stay-awake.ts` reads and writes it.
 *
 * Each thread has a word: the time until which the thread counts as awake. A thread that posts to a sleeping one writes the sleeper's word,
 * since a thread that waits for a core cannot. The thread renews its word while it turns, and clears it before it sleeps. A counter that
 * threads raise and lower would stay too high for ever when a thread dies awake; a word expires by itself.
 *
 *     cores │ threads so far │ 1: of several processes │ word of thread 0 │ of thread 1 │ … of the last thread
 *
 * Where this process is one of several, threads of the others are awake too, and no word says so: then a core of the machine must be free as well
 * (`machine-cores.ts`). Further threads share the words of others, and are counted too few. Times are µs, which wrap after 71 minutes: a word that is older than half
 * of that may count once more, for two leases.
 */
import { availableParallelism } from 'node:os'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { MachineCores } from './machine-cores.js'

export type AwakeWords = Int32Array

/** So long a thread counts that says nothing more: it has died, or is in a long computation. */
export const LEASE_US = 4000
/** Every thread reads all words whenever it asks, so they are few. */
const THREADS_MIN = 32
const PER_CORE = 2
const [CORES, THREADS, SEVERAL, FIRST] = [0, 1, 2, 3]
const KEY = '@postgrad/transport: threads that are awake'

export function makeAwakeWords(cores: number): AwakeWords {
  const threadsMax = Math.max(THREADS_MIN, PER_CORE * cores)
  const words = new Int32Array(new SharedArrayBuffer((FIRST + threadsMax) * Int32Array.BYTES_PER_ELEMENT))
  words[CORES] = cores
  return words
}

/** The words of this process. The thread that asks first makes them; threads that it starts later inherit them, and so on. */
export function processAwakeWords(): AwakeWords {
  let words = getEnvironmentData(KEY) as AwakeWords | undefined
  if (words === undefined) {
    words = makeAwakeWords(availableParallelism())
    setEnvironmentData(KEY, words)
  }
  return words
}

/** This process is one of several whose workers call each other. */
export function oneOfSeveral(words = processAwakeWords()): void {
  Atomics.store(words, SEVERAL, 1)
}

/** One thread's part in them. `nowUs` is a whole number on a clock that all threads read alike, modulo 2³². */
export class AwakeThreads {
  /** Its word; never 0, which in a post says that the sender has none. */
  readonly own: number
  private readonly words: AwakeWords
  private readonly machine: MachineCores

  constructor(words: AwakeWords, machine = new MachineCores(Atomics.load(words, CORES))) {
    this.words = words
    this.machine = machine
    this.own = FIRST + (Atomics.add(words, THREADS, 1) % (words.length - FIRST))
  }

  /** This thread is awake. */
  renew(nowUs: number): void {
    if (this.restUs(this.own, nowUs) < LEASE_US / 2) Atomics.store(this.words, this.own, nowUs + LEASE_US)
  }

  /** This thread is about to sleep. */
  leave(): void {
    Atomics.store(this.words, this.own, 0)
  }

  /** The thread with that word is posted to: it is awake, or will be as soon as it gets a core. */
  wake(word: number, nowUs: number): void {
    if (this.restUs(word, nowUs) === 0) Atomics.store(this.words, word, nowUs + LEASE_US)
  }

  /** Whether fewer others are awake than there are cores; for one of several processes, whether one of the machine's is free too. */
  hasCore(nowUs: number): boolean {
    const { words, own } = this
    if (Atomics.load(words, SEVERAL) === 1 && !this.machine.hasCore(nowUs)) return false
    const end = Math.min(FIRST + Atomics.load(words, THREADS), words.length)
    let free = Atomics.load(words, CORES)
    for (let word = FIRST; word < end && free > 0; word++) {
      if (word !== own && this.restUs(word, nowUs) > 0) free--
    }
    return free > 0
  }

  /** It stays awake for nobody any more. */
  close(): void {
    this.leave()
    this.machine.close()
  }

  /** How long that thread counts from now on. */
  private restUs(word: number, nowUs: number): number {
    const restUs = (Atomics.load(this.words, word) - nowUs) | 0
    // The writer's clock may be a little ahead.
    return restUs > 0 && restUs < 2 * LEASE_US ? restUs : 0
  }
}
