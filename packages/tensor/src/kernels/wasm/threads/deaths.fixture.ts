/**
 * Workers with helper threads compute products in a loop, on blocks of one heap, and check each. In each round some are terminated in the middle, and some lose
 * helpers. The blocks of those that have ended are reclaimed, the heap's books must be right, and what survivors hold must be what they wrote.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Heap, type HeapHandle } from '../../../heap/heap.js'
import { RESERVED_BYTES_MIN } from '../../../heap/shared-memory.js'
import { verifyHeap } from '../../../heap/verify.js'
import { below } from './programs.fixture.js'

/** The data of a worker: its slot of the heap, and the words that it shares with the rounds. */
export interface DeathsData {
  readonly handle: HeapHandle
  readonly words: SharedArrayBuffer
}
/** How many products it has checked, how many of its helpers have ended, and whether it is to end one. */
export const CHECKED = 0
export const ENDED = 1
export const END_ONE = 2

interface Crew {
  readonly worker: Worker
  readonly handle: HeapHandle
  readonly words: Int32Array
}

const WORKERS = 2

export async function deaths({ rounds, seed }: { readonly rounds: number; readonly seed: number }) {
  const pick = below(seed)
  const heap = Heap.create({ reservedBytes: 4 * RESERVED_BYTES_MIN })
  let failure: unknown = null
  let [helpersEnded, workersEnded] = [0, 0]
  const spawn = (): Crew => {
    const handle = heap.handle()!
    const words = new Int32Array(new SharedArrayBuffer(64))
    const workerData: DeathsData = { handle, words: words.buffer as SharedArrayBuffer }
    const worker = new Worker(new URL('./deaths-thread.fixture.js', import.meta.url), { workerData })
    worker.on('error', (error) => {
      failure ??= error
    })
    return { worker, handle, words }
  }
  const end = async ({ worker, handle, words }: Crew): Promise<void> => {
    const exit = once(worker, 'exit')
    void worker.terminate()
    await exit
    helpersEnded += Atomics.load(words, ENDED)
    workersEnded++
    // Its helpers have ended before it: nobody writes to these blocks now.
    if (!heap.reclaim(handle)) throw new Error(`slot ${handle.slot} cannot be reclaimed`)
  }
  const crew = Array.from({ length: WORKERS }, spawn)
  try {
    for (let round = 0; round < rounds; round++) {
      // Until all have checked something since.
      const from = crew.map(({ words }) => Atomics.load(words, CHECKED))
      for (let wait = 0; crew.some(({ words }, i) => Atomics.load(words, CHECKED) === from[i]); wait++) {
        if (failure !== null) throw failure
        if (wait > 30_000) throw new Error(`seed ${seed}, round ${round}: nothing is computed any more`)
        await sleep(2)
      }
      for (const { words } of crew) if (pick(2) === 0) Atomics.store(words, END_ONE, 1)
      await sleep(pick(10))
      const victim = pick(WORKERS + 1)
      if (victim < WORKERS) {
        await end(crew[victim]!)
        crew[victim] = spawn()
      }
    }
    for (const one of crew.splice(0)) await end(one)
    if (failure !== null) throw failure
  } finally {
    for (const { worker } of crew) await worker.terminate()
  }
  heap.trim()
  const problems = verifyHeap(heap.words, [{ slot: heap.slot, held: [] }])
  heap.words.walk((segment) => problems.push(`segment ${segment} is still claimed`))
  if (problems.length > 0) throw new Error(`seed ${seed}: ${problems.slice(0, 5).join('; ')}`)
  return { helpersEnded, workersEnded }
}
