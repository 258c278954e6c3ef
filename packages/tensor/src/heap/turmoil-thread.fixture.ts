/**
 * One of the threads of the heap's first test (`turmoil.fixture.ts`): allocates, stamps, passes on, writes in place, checks and releases blocks in
 * a loop without rest, so that it can be terminated anywhere. No tensor, no message: threads meet in mailboxes of shared words.
 */
import { workerData } from 'node:worker_threads'
import { isPostgradError } from '@postgrad/base'
import { Heap, type HeapBlock, type HeapHandle } from './heap.js'
import { SLOT_LIVE, slotWord } from './layout.js'

export interface ThreadData {
  readonly handle: HeapHandle
  readonly board: SharedArrayBuffer
  readonly index: number
  readonly threads: number
  readonly seed: number
  /** The slip that this thread makes on purpose, for the proof that the checks see it. */
  readonly slip: Slip | null
}

/** `early`: lets go before the receiver has acknowledged. `careless`: writes to blocks that others hold. `leak`: forgets a reference. */
export type Slip = 'early' | 'careless' | 'leak'

// The board, in words.
/** 0: run; else the round in which all pause. */
export const PAUSE_AT = 0
const THREADS_AT = 16
const THREAD_WORDS = 1024
/** Set by the thread: it is running. Then: the round for which it pauses. */
export const RUNNING_AT = 0
export const PAUSED_AT = 1
/** slot + 1 of a dead worker that this one is asked to reclaim, and its epoch. */
export const RECLAIM_SLOT_AT = 2
export const RECLAIM_EPOCH_AT = 3
export const OPERATIONS_AT = 4
/** While it pauses: how many blocks it holds, and each one's id and generation. */
export const HELD_AT = 5
const HELD_MAX = 48
const MAILBOXES = 8
/** state (sequence · 4 + …), id, generation, sender, epoch, stamp */
const MAIL_WORDS = 6
export const MAIL_EMPTY = 0
export const MAIL_FULL = 1
export const MAIL_TAKEN = 2
export const MAIL_LOST = 3

export function threadAt(index: number): number {
  return THREADS_AT + index * THREAD_WORDS
}
/** The `n`th mailbox for what `from` sends to `to`. */
export function mailAt(threads: number, from: number, to: number, n: number): number {
  return THREADS_AT + threads * THREAD_WORDS + ((from * threads + to) * MAILBOXES + n) * MAIL_WORDS
}
export function boardBytes(threads: number): number {
  return 4 * mailAt(threads, threads, 0, 0)
}
export const MAILBOX_COUNT = MAILBOXES

interface Held {
  readonly block: HeapBlock
  stamp: number
}

const SIZES = [100, 4000, 5000, 9000, 20_000, 40_000, 65_000, 70_000, 200_000, 500_000]
/** Places in a block that carry its stamp. */
const MARKS = 9

class Thread {
  readonly #data: ThreadData
  readonly #heap: Heap
  readonly #board: Int32Array
  readonly #ints: Int32Array
  readonly #at: number
  readonly #held: Held[] = []
  readonly #tokens = new Map<number, number>()
  #scratch = false
  #random: number

  constructor(data: ThreadData) {
    this.#data = data
    this.#heap = Heap.attach(data.handle)
    this.#board = new Int32Array(data.board)
    this.#ints = new Int32Array(data.handle.memory.buffer)
    this.#at = threadAt(data.index)
    this.#random = data.seed | 1
  }

  run(): never {
    // Before it looks whether it may: so the controller, which first asks for rest, either sees it run or is seen by it.
    Atomics.store(this.#board, this.#at + RUNNING_AT, 1)
    this.#restAsAsked()
    for (;;) {
      this.#step()
      Atomics.add(this.#board, this.#at + OPERATIONS_AT, 1)
      this.#restAsAsked()
    }
  }

  #below(n: number): number {
    let x = this.#random
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    this.#random = x
    return (x >>> 0) % n
  }

  #step(): void {
    const what = this.#below(12)
    if (what < 4) this.#allocate()
    else if (what < 6) this.#release()
    else if (what < 8) this.#send()
    else if (what < 10) this.#receive()
    else if (what < 11) this.#write()
    else this.#tidy()
  }

  #allocate(): void {
    const block = this.#held.length < HELD_MAX ? this.#heap.allocate(SIZES[this.#below(SIZES.length)]!) : null
    if (block === null) this.#release()
    else {
      const held = { block, stamp: 0 }
      this.#held.push(held)
      this.#stamp(held)
    }
  }

  #pick(): Held | undefined {
    return this.#held[this.#below(Math.max(1, this.#held.length))]
  }

  #release(): void {
    const held = this.#pick()
    if (held === undefined) return
    this.#check(held)
    this.#held[this.#held.indexOf(held)] = this.#held.at(-1)!
    this.#held.pop()
    if (this.#data.slip === 'leak' && this.#below(50) === 0) this.#heap.retain(held.block) // a reference that nobody has
    this.#heap.release(held.block)
  }

  #write(): void {
    const held = this.#pick()
    if (held === undefined) return
    this.#check(held)
    if (!this.#heap.isShared(held.block) || this.#data.slip === 'careless') this.#stamp(held)
  }

  #stamp(held: Held): void {
    held.stamp = (this.#below(0x4000_0000) << 2) | this.#data.index
    const { address, capacityBytes } = held.block
    for (let i = 0; i < MARKS; i++) this.#ints[this.#mark(address, capacityBytes, i)] = held.stamp
  }

  #mark(address: number, bytes: number, i: number): number {
    return (address >>> 2) + Math.floor(((bytes / 4 - 1) * i) / (MARKS - 1))
  }

  #check({ block, stamp }: Held): void {
    for (let i = 0; i < MARKS; i++) {
      const seen = this.#ints[this.#mark(block.address, block.capacityBytes, i)]!
      if (seen !== stamp)
        throw new Error(`block ${block.id}, generation ${block.generation}: stamp ${seen} at mark ${i}, expected ${stamp}`)
    }
  }

  #mail(from: number, to: number): number {
    return mailAt(this.#data.threads, from, to, this.#below(MAILBOXES))
  }

  #other(): number {
    return (this.#data.index + 1 + this.#below(this.#data.threads - 1)) % this.#data.threads
  }

  #send(): void {
    const to = this.#other()
    const at = this.#mail(this.#data.index, to)
    const state = Atomics.load(this.#board, at)
    const held = this.#pick()
    if (held === undefined || state % 4 !== MAIL_EMPTY) return
    const { descriptor, token } = this.#heap.share(held.block)
    this.#tokens.set(at, token)
    const fields = [descriptor.id, descriptor.generation, descriptor.sender, descriptor.epoch, held.stamp]
    for (const [i, field] of fields.entries()) Atomics.store(this.#board, at + 1 + i, field)
    Atomics.store(this.#board, at, state + 4 + MAIL_FULL)
    if (this.#data.slip === 'early') this.#heap.acknowledge(token)
  }

  #receive(): void {
    const from = this.#other()
    const at = this.#mail(from, this.#data.index)
    const state = Atomics.load(this.#board, at)
    if (state % 4 !== MAIL_FULL || this.#held.length >= HELD_MAX) return
    const [id, generation, sender, epoch, stamp] = [1, 2, 3, 4, 5].map((i) => Atomics.load(this.#board, at + i)) as [
      number,
      number,
      number,
      number,
      number,
    ]
    let block: HeapBlock
    try {
      block = this.#heap.adopt({ id, generation, sender, epoch })
    } catch (error) {
      if (!isPostgradError(error, 'HEAP_BLOCK_STALE')) throw error
      // The sender may have died meanwhile, and another write to the mailbox; while it lives, what it sends is good.
      const lives = this.#heap.words.slotState(sender) === slotWord(SLOT_LIVE, 0, epoch)
      if (lives && Atomics.load(this.#board, at) === state) throw error
      return
    }
    if (Atomics.compareExchange(this.#board, at, state, state - MAIL_FULL + MAIL_TAKEN) !== state) this.#heap.release(block)
    else {
      const held = { block, stamp }
      this.#held.push(held)
      this.#check(held)
    }
  }

  /** Looks after what it has sent; now and then gives its reserve back. */
  #tidy(): void {
    for (const [at, token] of this.#tokens) {
      const state = Atomics.load(this.#board, at)
      if (state % 4 === MAIL_FULL) continue
      this.#heap.acknowledge(token)
      this.#tokens.delete(at)
      Atomics.store(this.#board, at, state - (state % 4))
    }
    if (this.#below(20) === 0) this.#heap.trim()
    if (this.#below(20) === 0) {
      this.#heap.scratch(100_000 * this.#below(5))
      this.#scratch = true
    }
    const slot = Atomics.load(this.#board, this.#at + RECLAIM_SLOT_AT)
    if (slot === 0) return
    this.#heap.reclaim({ slot: slot - 1, epoch: Atomics.load(this.#board, this.#at + RECLAIM_EPOCH_AT) })
    Atomics.store(this.#board, this.#at + RECLAIM_SLOT_AT, 0)
  }

  #restAsAsked(): void {
    const round = Atomics.load(this.#board, PAUSE_AT)
    if (round === 0) return
    for (const held of this.#held) this.#check(held)
    const audit = this.#heap.audit()
    const references = audit.reduce((sum, entry) => sum + entry.references, 0)
    const known = this.#held.length + this.#heap.inFlight + (this.#scratch ? 1 : 0)
    if (references !== known) throw new Error(`the heap counts ${references} references, where this thread has ${known}`)
    this.#board[this.#at + HELD_AT] = audit.length
    for (const [i, { id, generation }] of audit.entries()) {
      this.#board[this.#at + HELD_AT + 1 + 2 * i] = id
      this.#board[this.#at + HELD_AT + 2 + 2 * i] = generation
    }
    Atomics.store(this.#board, this.#at + PAUSED_AT, round)
    Atomics.notify(this.#board, this.#at + PAUSED_AT)
    Atomics.wait(this.#board, PAUSE_AT, round)
  }
}

if (workerData !== null) new Thread(workerData as ThreadData).run()
