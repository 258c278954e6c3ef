/**
 * The heap's first test, without any tensor: threads pass counted blocks around and are terminated at random; after each round the books must
 * agree with what the survivors say (HEAP-9), and every stamp with what its holders expect. Run by `turmoil.real.test.ts` and, longer, by the soak.
 */
import { Worker } from 'node:worker_threads'
import { Heap, type HeapHandle } from './heap.js'
import { RESERVED_BYTES_MIN } from './shared-memory.js'
import {
  boardBytes,
  HELD_AT,
  MAIL_FULL,
  MAIL_LOST,
  MAILBOX_COUNT,
  mailAt,
  OPERATIONS_AT,
  PAUSE_AT,
  PAUSED_AT,
  RECLAIM_EPOCH_AT,
  RECLAIM_SLOT_AT,
  RUNNING_AT,
  type Slip,
  type ThreadData,
  threadAt,
} from './turmoil-thread.fixture.js'
import { type HeapHoldings, verifyHeap } from './verify.js'

export interface TurmoilOptions {
  readonly rounds: number
  readonly seed: number
  readonly threads?: number
  readonly slip?: Slip
  /** Replaces `Heap.reclaim` in the controller, to prove that the checks see a wrong one. */
  readonly reclaim?: (heap: Heap, dead: HeapHandle) => boolean
}

export interface TurmoilResult {
  readonly rounds: number
  readonly deaths: number
  readonly operations: number
  readonly milliseconds: number
}

/** Of a thread in a round. Starting its successor is what a round costs. */
const DEATHS_ONE_IN = 5
const PAUSE_TIMEOUT_MS = 20_000

interface Thread {
  readonly worker: Worker
  readonly handle: HeapHandle
  readonly exit: Promise<void>
}

/** @throws Error with seed and round at the first contradiction */
export async function turmoil({ rounds, seed, threads = 4, slip, reclaim }: TurmoilOptions): Promise<TurmoilResult> {
  const start = performance.now()
  const heap = Heap.create({ reservedBytes: RESERVED_BYTES_MIN, limitBytes: RESERVED_BYTES_MIN / 4 })
  const board = new Int32Array(new SharedArrayBuffer(boardBytes(threads)))
  let random = seed | 1
  const below = (n: number): number => {
    random ^= random << 13
    random ^= random >>> 17
    random ^= random << 5
    return (random >>> 0) % n
  }
  let failure: Error | null = null
  let deaths = 0
  let operations = 0
  const fail = (round: number, what: string): never => {
    throw new Error(`turmoil, seed ${seed}, round ${round}: ${what}`)
  }

  const spawn = (index: number): Thread => {
    const handle = heap.handle()
    if (handle === null) throw new Error('no slot is free')
    const data: ThreadData = { handle, board: board.buffer as SharedArrayBuffer, index, threads, seed: below(1 << 30), slip: slip ?? null }
    board.fill(0, threadAt(index), threadAt(index) + HELD_AT)
    const worker = new Worker(new URL('./turmoil-thread.fixture.js', import.meta.url), { workerData: data })
    worker.on('error', (error) => {
      failure ??= error as Error
    })
    return { worker, handle, exit: new Promise((resolve) => worker.once('exit', () => resolve())) }
  }

  const bury = (round: number, index: number, dead: HeapHandle): void => {
    if (!(reclaim ?? ((by: Heap, slot: HeapHandle) => by.reclaim(slot)))(heap, dead)) fail(round, `slot ${dead.slot} cannot be reclaimed`)
    for (let other = 0; other < threads; other++) {
      for (let n = 0; n < MAILBOX_COUNT; n++) {
        const out = mailAt(threads, index, other, n)
        const sent = Atomics.load(board, out)
        Atomics.store(board, out, sent - (sent % 4)) // empty, under the same number
        const into = mailAt(threads, other, index, n)
        const state = Atomics.load(board, into)
        if (state % 4 === MAIL_FULL) Atomics.store(board, into, state - MAIL_FULL + MAIL_LOST)
      }
    }
  }

  const crew: Thread[] = Array.from({ length: threads }, (_, index) => spawn(index))
  const runs = (index: number) => Atomics.load(board, threadAt(index) + RUNNING_AT) === 1
  try {
    for (let round = 1; round <= rounds; round++) {
      // A while in which blocks move; until somebody runs who can be terminated.
      do await new Promise((resolve) => setTimeout(resolve, below(2)))
      while (failure === null && !crew.some((_, index) => runs(index)))
      const victims = crew.map((_, index) => index).filter((index) => runs(index) && below(DEATHS_ONE_IN) === 0)
      // Two by two, the second dies while it may be reclaiming the first.
      const [first, second] = victims
      if (first !== undefined && second !== undefined) {
        const { worker, exit, handle } = crew[first]!
        void worker.terminate()
        await exit
        Atomics.store(board, threadAt(second) + RECLAIM_EPOCH_AT, handle.epoch)
        Atomics.store(board, threadAt(second) + RECLAIM_SLOT_AT, handle.slot + 1)
        await new Promise((resolve) => setTimeout(resolve, below(2)))
      }
      for (const index of victims) void crew[index]!.worker.terminate()
      await Promise.all(victims.map((index) => crew[index]!.exit))
      for (const index of victims) operations += Atomics.load(board, threadAt(index) + OPERATIONS_AT)
      deaths += victims.length
      // The last first: its own reclaim continues the one that it had begun.
      for (const index of victims.toReversed()) bury(round, index, crew[index]!.handle)

      Atomics.store(board, PAUSE_AT, round)
      for (const index of victims) crew[index] = spawn(index)
      const holdings: HeapHoldings[] = [{ slot: heap.slot, held: heap.audit() }]
      for (const [index, { handle }] of crew.entries()) {
        const at = threadAt(index)
        if (victims.includes(index) || !runs(index)) continue
        const until = performance.now() + PAUSE_TIMEOUT_MS
        while (Atomics.load(board, at + PAUSED_AT) !== round && failure === null) {
          await new Promise((resolve) => setImmediate(resolve))
          if (performance.now() > until) fail(round, `thread ${index} does not come to rest`)
        }
        const held = Array.from({ length: board[at + HELD_AT]! }, (_, i) => ({
          id: board[at + HELD_AT + 1 + 2 * i]!,
          generation: board[at + HELD_AT + 2 + 2 * i]!,
        }))
        holdings.push({ slot: handle.slot, held })
      }
      if (failure !== null) fail(round, String((failure as Error).message))
      const problems = verifyHeap(heap.words, holdings)
      if (problems.length > 0) fail(round, `${problems.length} contradictions: ${problems.slice(0, 5).join('; ')}`)
      Atomics.store(board, PAUSE_AT, 0)
      Atomics.notify(board, PAUSE_AT)
    }
  } finally {
    for (const { worker } of crew) void worker.terminate()
    await Promise.all(crew.map(({ exit }) => exit))
  }
  // At the end all are gone, and with them every block.
  for (const { handle } of crew) heap.reclaim(handle)
  heap.trim()
  const problems = verifyHeap(heap.words, [{ slot: heap.slot, held: [] }])
  heap.words.walk((segment) => problems.push(`segment ${segment} is still claimed`))
  if (problems.length > 0) fail(rounds, `at the end: ${problems.slice(0, 5).join('; ')}`)
  return { rounds, deaths, operations, milliseconds: performance.now() - start }
}
