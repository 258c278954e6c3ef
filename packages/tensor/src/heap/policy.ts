/**
 * Chooses which storage lies in the heap. Users do not see it, and no bit of a result depends on it. Small storages are managed. Larger ones
 * take a warm block while the thread's heap has room under its limit; the first of them makes the heap. Finalizers run only between macrotasks, after a full collection,
 * so this file does not wait for them: one turn of the event loop takes a limited amount, then managed memory, and a collection is requested,
 * between turns, if much more is held than was since the last. Memory given back by hand requests none.
 */
import { builtin, setImmediate } from '@postgrad/base/internal'
import { byteLength, type DType } from '../values/dtype.js'
import type { Heap, HeapBlock, HeapDescriptor } from './heap.js'
import { currentHeap, threadHeap, threadHeapOrNull } from './thread-heap.js'

/**
 * Measured: a fresh array of 8 KiB costs about 2 µs with its page faults, a warm block with view and finalizer 0.6. Smaller arrays are parts of slabs (`values/dtype.ts`): 0.1 to
 * 0.3, and 0.2 to copy one into the kernels' scratch.
 */
export const HEAP_BYTES_MIN = 8 * 1024
/** Taken within one turn of the event loop and not given back: beyond it storage is managed until the turn ends. */
const TURN_BYTES_MAX = 256 * 1024 * 1024
/** A full collection costs a few milliseconds; filling so much memory costs fifteen. */
const COLLECT_BYTES = 256 * 1024 * 1024

/** A block in the hands of one `Storage`. */
export class HeapLease {
  /** These two are changed by `exchange` alone. */
  heap: Heap
  block: HeapBlock
  #returned = false

  constructor(heap: Heap, block: HeapBlock) {
    this.heap = heap
    this.block = block
  }

  /** The block goes back when `owner` is collected, at the latest. */
  own(owner: object): this {
    registry.register(owner, this)
    return this
  }

  /**
   * Takes over the block of `other`, which nobody owns, and gives its own back. The owner stays registered once, however often it copies
   * before it writes: a parameter may do so at every step of its life.
   */
  exchange(other: HeapLease): void {
    const { heap, block } = this
    this.heap = other.heap
    this.block = other.block
    release(heap, block)
  }

  /** The same reference for another owner; this lease has none any more. */
  passOn(): HeapLease {
    this.#returned = true
    return new HeapLease(this.heap, this.block)
  }

  /** A second reference of this thread to the block, for an owner of its own. */
  again(): HeapLease {
    this.heap.retain(this.block)
    return leaseOf(this.heap, this.block)
  }

  /** Gives this thread's reference back; again does nothing. */
  giveBack(): void {
    if (this.#returned) return
    this.#returned = true
    release(this.heap, this.block)
  }
}

function release(heap: Heap, block: HeapBlock): void {
  turn.bytes = Math.max(0, turn.bytes - block.capacityBytes)
  heap.release(block)
}

/** Of this thread, as its heap is. */
const registry = new FinalizationRegistry<HeapLease>((lease) => lease.giveBack())
const turn = { bytes: 0, ends: false }
/** The least that this thread has held since the last collection was asked for, or just before it. */
let heldLeast = 0
let suspended = 0
let bytesMin = HEAP_BYTES_MIN

/** A block for so many elements, or null: then the storage is managed. */
export function blockFor(dtype: DType, length: number): HeapLease | null {
  const bytes = byteLength(dtype, length)
  return bytes < bytesMin ? null : takeBlock(bytes)
}

function takeBlock(bytes: number): HeapLease | null {
  if (suspended > 0 || turn.bytes + bytes > TURN_BYTES_MAX) return null
  const heap = threadHeapOrNull()
  if (heap === null) return null
  const block = heap.allocate(bytes)
  return block === null ? null : leaseOf(heap, block)
}

/**
 * A lease on a block that another worker shared. Its sender chose the heap, so no limit refuses it.
 * @throws HEAP_BLOCK_STALE
 */
export function leaseOfShared(heap: Heap, descriptor: HeapDescriptor): HeapLease {
  return leaseOf(heap, heap.adopt(descriptor))
}

/** Each lease adds to what this turn has taken, as `release` subtracts it. */
function leaseOf(heap: Heap, block: HeapBlock): HeapLease {
  turn.bytes += block.capacityBytes
  if (!turn.ends) {
    turn.ends = true
    setImmediate(endTurn).unref()
  }
  return new HeapLease(heap, block)
}

function endTurn(): void {
  turn.ends = false
  turn.bytes = 0
  collectAbove(COLLECT_BYTES)
}

/**
 * Called when nobody waits for this thread: a collection that is nearly due comes at once. For threads that work in step, where one that stops in the middle stops all: a pipeline's step ends with
 * a collection on all workers at the same time.
 */
export function collectEarly(): void {
  collectAbove(COLLECT_BYTES / 2)
}

/** Asks for a collection where so much more is held than was since the last. */
function collectAbove(bytes: number): void {
  const heldBytes = currentHeap()?.heldBytes ?? 0
  heldLeast = Math.min(heldLeast, heldBytes)
  if (heldBytes - heldLeast < bytes) return
  // Its finalizers run later, and then less is held.
  heldLeast = heldBytes
  collector()?.()
}

let collect: (() => void) | null = null

/**
 * V8's own. A flag makes it visible in contexts that are made later; null where that is not possible. The flag is taken back, since V8 uses compiled code only under the flags
 * that it was compiled with: threads that start later would have to compile the library again.
 */
function collector(): (() => void) | null {
  collect ??= visibleCollector() ?? withFlag(visibleCollector)
  return collect
}

const visibleCollector = () =>
  builtin<typeof import('node:vm')>('node:vm').runInNewContext('typeof gc === "function" ? gc : null') as (() => void) | null

function withFlag<T>(read: () => T): T {
  const { setFlagsFromString } = builtin<typeof import('node:v8')>('node:v8')
  setFlagsFromString('--expose-gc')
  try {
    return read()
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}

/**
 * Until the returned function is called, storage made in this thread is managed: for simulations, in which nothing may depend on when the
 * collector runs.
 */
export function suspendHeapStorage(): () => void {
  suspended++
  let done = false
  return () => {
    if (!done) suspended--
    done = true
  }
}

/**
 * Runs `fn`, which is synchronous, with at most `bytes` more in the heap of this thread than are there now; what is beyond is managed. For tests
 * that show that no bit of a result depends on it: 0 is nothing, Infinity is plenty.
 */
export function withHeapLimit<T>(bytes: number, fn: () => T): T {
  const heap = threadHeap()
  turn.bytes = 0
  return heap.withHeldBytesMax(heap.heldBytes + bytes, fn)
}

/** Runs `fn`, which is synchronous, with all storage of `bytes` or more in the heap: for tests with small tensors instead of large ones. */
export function withHeapFrom<T>(bytes: number, fn: () => T): T {
  const before = bytesMin
  bytesMin = Math.max(1, bytes)
  try {
    return fn()
  } finally {
    bytesMin = before
  }
}
