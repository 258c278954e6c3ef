/**
 * Storage: the elements that all views of a tensor share, in one row. `tensor.ts` uses it. On the cpu they are a typed array: `managed` storage is an
 * ordinary one that JavaScript collects, `heap` storage is a block of the shared heap (HEAP.md). Which of the two is policy (`heap/policy.ts`), and
 * no bit of a result depends on it. The elements of `device` storage are a buffer of another memory (`heap/memory.ts`), which the host cannot reach.
 *
 * `host` may change, by a copy before a write (`prepareWrite`), and go (`close`): it is read each time and not kept. Of a storage that is `pending`, the elements
 * are computed when somebody first asks for them.
 */
import assert from 'node:assert'
import { PostgradError } from '@postgrad/base'
import { framesOnStack, houseOf, isOwnFrame } from '@postgrad/base/internal'
import { allocate, BYTES_PER_ELEMENT, byteLength, type DType, type TypedArray, viewOn } from '../values/dtype.js'
import { allocateRoom } from '../values/room.js'
import type { Heap, HeapDescriptor } from './heap.js'
import { BufferLease, CPU, type Memory } from './memory.js'
import { blockFor, type HeapLease, leaseOfShared } from './policy.js'

/** Elements in a block, as a message names them: `offset` in elements from the block's begin. */
export interface HeapPlace extends HeapDescriptor {
  readonly offset: number
}

/**
 * The storages made in the innermost `memoryScope` of this thread; null outside of any. A scope is synchronous, so the only other code in it reads
 * messages: in kernels' pauses, and a worker's own messages (`outsideOfScopes`).
 */
let made: Storage[] | null = null

/** A step of a chain (`chains/step.ts`): it computes the elements of a storage when code first asks for them. */
export interface Pending {
  /** Gives the storage its elements, by `receive`. */
  settle(): void
  /** The storage is closed: nobody will ask. */
  letGo(): void
}

/** A fork of less than this share of a block would keep the whole block for as long as it lives: such a part is copied at once (HEAP-8). */
const FORKED_SHARE_MIN = 1 / 4

/** How many storages this thread has made. */
let madeCount = 0
export function storageCount(): number {
  return madeCount
}

/** Whether the code that runs is a formula whose heap storages count, and those that it has made; null before the first. */
let counting = false
let counted: Storage[] | null = null

export class Storage {
  readonly dtype: DType
  /** How many elements there are. */
  readonly length: number
  readonly memory: Memory
  /** `host`, while the storage is open. */
  private elements: TypedArray | null
  /** Raised by each in-place write; autograd compares it with what it saw when it saved a tensor. */
  version: number
  /** Private, so that two tensors of the same elements are equal for test frameworks. */
  readonly #serial: number
  /** Which write of this thread was the last one here, by `writeCount()`; 0 before the first. A checkpoint sees by it what was written since it was asked for. */
  writtenAt: number
  /** The operation that wrote last, or `OPTIMIZER_STEP`, for the message when autograd finds another version than it saw; null before the first. */
  writer: string | null
  /** @internal The block, of heap storage that is open. */
  lease: HeapLease | null
  /** `device`, likewise. */
  private buffer: BufferLease | null
  /** @internal The step that computes the elements; null once they are there, and for every storage that no chain makes. */
  pending: Pending | null
  isClosed: boolean
  /** @internal True when more than the code of a `memoryScope` may refer to it: a leaf, a `.grad`, an optimizer. It is not closed at the scope's end. */
  isKept: boolean
  /** @internal How many saved variables of graphs refer to it. Nor is it closed while there are any. */
  saves: number

  /** Takes ownership of `host`: the caller does not write to it any more. A storage without one is a buffer of `memory`. */
  constructor(dtype: DType, host: TypedArray | null, length = host!.length, memory: Memory = CPU, device: BufferLease | null = null) {
    this.dtype = dtype
    this.length = length
    this.memory = memory
    this.elements = host
    this.version = 0
    this.#serial = madeCount++
    this.writtenAt = 0
    this.writer = null
    this.lease = null
    this.buffer = device === null ? null : device.own(this)
    this.pending = null
    this.isClosed = false
    this.isKept = false
    this.saves = 0
    if (made !== null) made.push(this)
  }

  /** The elements; null for those that are not in this process. @throws TENSOR_CLOSED */
  get host(): TypedArray | null {
    return this.elements ?? this.absent()
  }

  /** Those of a pending storage are computed now; a device has its elements elsewhere. */
  private absent(): TypedArray | null {
    if (this.isClosed) refuseClosed()
    this.pending?.settle()
    return this.elements
  }

  /** @internal The buffer in a device's memory; null on the cpu. @throws TENSOR_CLOSED */
  get device(): BufferLease | null {
    if (this.isClosed) refuseClosed()
    return this.buffer
  }

  /** @internal How many storages this thread had made before. A custom function sees by it what it has not made itself. */
  get serial(): number {
    return this.#serial
  }

  /** A block of the heap holds anything, for who writes all of it; others are zeros. @throws TENSOR_TOO_LARGE */
  static uninitialized(dtype: DType, length: number, memory: Memory): Storage {
    if (memory !== CPU) return Storage.inDevice(dtype, length, memory)
    return Storage.inHeap(dtype, length) ?? new Storage(dtype, allocateRoom(dtype, length))
  }

  /** A storage of the cpu whose elements `pending` computes when code first asks for them. */
  static awaiting(dtype: DType, length: number, pending: Pending): Storage {
    const storage = new Storage(dtype, null, length)
    storage.pending = pending
    storage.#count()
    return storage
  }

  /** The elements that this storage awaited lie in `other`: it takes them over and closes `other`. */
  receive(other: Storage): void {
    this.pending = null
    this.elements = other.host
    if (other.lease !== null) this.lease = other.lease.passOn().own(this)
    other.lease = null
    other.close()
  }

  /** As `uninitialized`, but null where policy wants managed storage, or the heap has no room. */
  static inHeap(dtype: DType, length: number): Storage | null {
    const lease = blockFor(dtype, length)
    return lease === null ? null : new Storage(dtype, arrayOn(lease, dtype, length)).#hold(lease)
  }

  /** A buffer of zeros. */
  private static inDevice(dtype: DType, length: number, memory: Memory): Storage {
    const buffers = memory.buffers!
    const lease = new BufferLease(buffers, buffers.allocate(byteLength(dtype, length)))
    const storage = new Storage(dtype, null, length, memory, lease)
    storage.#count()
    return storage
  }

  get kind(): 'managed' | 'heap' | 'device' {
    if (this.memory !== CPU) return 'device'
    return this.lease === null ? 'managed' : 'heap'
  }

  /** @internal Whether a graph needs it, or more than the code of a `memoryScope` may refer to it. */
  get isNeeded(): boolean {
    return this.isKept || this.saves > 0
  }

  /** Whether closing it gives something back before the collector would. A pending storage gives back the operands of its step. */
  get isLeased(): boolean {
    return this.lease !== null || this.buffer !== null || this.pending !== null
  }

  /** Whether somebody else can read the block: another worker, or a message on its way. */
  get isShared(): boolean {
    return this.lease?.heap.isShared(this.lease.block) === true
  }

  #hold(lease: HeapLease): this {
    this.lease = lease.own(this)
    this.#count()
    return this
  }

  /** Among the temporaries of a formula. */
  #count(): void {
    if (!counting) return
    if (counted === null) counted = [this]
    else counted.push(this)
  }

  /** Called before every write in place. If somebody else can read the block, it is copied first, inside this storage, so that all views follow (HEAP-8). */
  prepareWrite(): void {
    const { lease } = this
    if (lease === null) {
      if (this.pending !== null) this.prepareSettled()
      return
    }
    if (!this.isShared) return
    const { length } = this
    const copy = blockFor(this.dtype, length)
    const array = copy === null ? allocate(this.dtype, length) : arrayOn(copy, this.dtype, length)
    array.set(this.host!)
    this.elements = array
    if (copy !== null) lease.exchange(copy)
    else {
      this.lease = null
      lease.giveBack()
    }
  }

  private prepareSettled(): void {
    this.absent()
    this.prepareWrite()
  }

  /**
   * For who writes all of it: the elements are those of `other` from here on, which has as many of the same dtype, and is closed. So a block that somebody else
   * can read need not be copied first, and all views follow (HEAP-8). False: one of them is managed, or the block of `other` is more than twice as large as its
   * elements, which would keep all of it; nothing has happened.
   */
  takeOver(other: Storage): boolean {
    if (other.pending !== null) other.absent()
    const { lease } = this
    if (lease === null || other.lease === null) return false
    assert(other.dtype === this.dtype && other.length === this.length)
    if (2 * byteLength(this.dtype, this.length) < other.lease.block.capacityBytes) return false
    const { host: array } = other
    const taken = other.lease.passOn()
    other.lease = null
    other.close()
    this.elements = array
    lease.exchange(taken)
    return true
  }

  /**
   * Names the elements from `offset` on in a message to another worker, which `adopt`s them; this worker holds the block until
   * `heap.acknowledge(token)`, and copies before it writes. Null for managed storage, whose bytes go with the message.
   */
  share(offset: number): { readonly place: HeapPlace; readonly token: number } | null {
    if (this.pending !== null) this.absent()
    if (this.lease === null) return null
    const { heap, block } = this.lease
    const { descriptor, token } = heap.share(block)
    const begin = (this.host!.byteOffset - block.address) / BYTES_PER_ELEMENT[this.dtype]
    return { place: { ...descriptor, offset: begin + offset }, token }
  }

  /**
   * `length` elements that a message names, as storage of these alone; then the sender is notified. Nothing in the name is trusted.
   * @throws HEAP_BLOCK_STALE, also when they do not lie within the block
   */
  static adopt(heap: Heap, dtype: DType, length: number, place: HeapPlace): Storage {
    const { offset } = place
    const size = BYTES_PER_ELEMENT[dtype]
    const lease = leaseOfShared(heap, place)
    const { capacityBytes } = lease.block
    const isWithin = Number.isSafeInteger(length) && length >= 0 && Number.isSafeInteger(offset) && offset >= 0
    if (!isWithin || (offset + length) * size > capacityBytes) {
      lease.giveBack()
      throw new PostgradError('HEAP_BLOCK_STALE', {
        op: 'adopt',
        expected: `elements within a block of ${capacityBytes} bytes`,
        got: `${length} elements of ${dtype} from ${offset} on`,
        remedy: 'The message is damaged: its shape does not fit its block. Send it again.',
        values: { ...place, length, capacityBytes },
      })
    }
    return new Storage(dtype, arrayOn(lease, dtype, length, offset * size)).#hold(lease)
  }

  /**
   * `length` elements from `offset` on in a storage of their own, without a copy: the one of the two that is written first gets a copy then (HEAP-8). Null for
   * managed storage.
   */
  fork(offset: number, length: number): Storage | null {
    if (this.pending !== null) this.absent()
    if (this.lease === null) return null
    const lease = this.lease.again()
    const begin = this.host!.byteOffset - lease.block.address + offset * BYTES_PER_ELEMENT[this.dtype]
    return new Storage(this.dtype, arrayOn(lease, this.dtype, length, begin)).#hold(lease)
  }

  /** Whether `length` elements are so small a part of the block that they are copied instead of forked (HEAP-8). False for managed storage. */
  isSmallPart(length: number): boolean {
    if (this.pending !== null) this.absent()
    return this.lease !== null && byteLength(this.dtype, length) < this.lease.block.capacityBytes * FORKED_SHARE_MIN
  }

  /** Its block as elements of another type, from the begin, in a storage of its own; this one is closed. Null for managed storage. */
  retyped(dtype: DType, length: number): Storage | null {
    if (this.pending !== null) this.absent()
    const lease = this.lease?.passOn()
    if (lease === undefined) return null
    this.lease = null
    this.close()
    return new Storage(dtype, arrayOn(lease, dtype, length)).#hold(lease)
  }

  /** Gives the memory back now. From here on every use of `host` throws TENSOR_CLOSED; closing again does nothing. */
  close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.pending?.letGo()
    this.pending = null
    this.lease?.giveBack()
    this.lease = null
    this.buffer?.giveBack()
    this.buffer = null
    this.elements = null
  }
}

/** Runs `fn` and gives what it returns and the storages that were made meanwhile; also those when it throws, to `onThrow`. */
export function collectStorages<T>(
  fn: () => T,
  onThrow: (storages: readonly Storage[]) => void,
): { result: T; storages: readonly Storage[] } {
  const outer = made
  const storages: Storage[] = []
  made = storages
  try {
    return { result: fn(), storages }
  } catch (error) {
    made = outer
    onThrow(storages)
    throw error
  } finally {
    made = outer
  }
}

/** Runs `fn` in the middle of what may be a scope or a formula, which see nothing of what it makes. */
export function outsideOfScopes(fn: () => void): void {
  const outer = made
  made = null
  try {
    withoutTemporaries(fn)
  } finally {
    made = outer
  }
}

/**
 * From here to `endTemporaries`, which must follow in the same turn, storages of the heap are noted. Costs nothing where none is made; does not nest,
 * except through `withoutTemporaries`.
 */
export function beginTemporaries(): void {
  counting = true
}

/** The noted storages; null: none. */
export function endTemporaries(): readonly Storage[] | null {
  const storages = counted
  counting = false
  counted = null
  return storages
}

/** Runs `fn`, whose storages are not temporaries of the formula that calls it: users' code, or a message that is read in a kernel's pause. */
export function withoutTemporaries<T>(fn: () => T): T {
  const outer = counted
  const wasCounting = counting
  endTemporaries()
  try {
    return fn()
  } finally {
    counting = wasCounting
    counted = outer
  }
}

/** A storage that stays open after a scope belongs to the outer one. */
export function passToOuterScope(storage: Storage): void {
  if (made !== null) made.push(storage)
}

function arrayOn(lease: HeapLease, dtype: DType, length: number, byteOffset = 0): TypedArray {
  return viewOn(dtype, lease.heap.buffer, lease.block.address + byteOffset, length)
}

function refuseClosed(): never {
  const op = operationOnStack()
  throw new PostgradError('TENSOR_CLOSED', {
    op,
    expected: 'a tensor that is open',
    got: 'one that was closed, or whose storage was, through another view or at the end of a memoryScope',
    remedy: 'Close it after its last use, clone() a view that you need longer, or return it from the memoryScope.',
  })
}

/** The names of operations and methods; `define.ts` and others add them. */
const operationNames = new Set<string>()
export function nameOperations(names: readonly string[]): void {
  for (const name of names) operationNames.add(name)
}

/**
 * The operation that is running, by the names of the functions on the stack. The caller is about to fail, so it may be slow, and operations need not pass their
 * name whenever they read an array.
 */
function operationOnStack(): string {
  const isBundle = houseOf() === null
  const running = framesOnStack().flatMap((line) => {
    const [, name = ''] = /at (?:async )?(?:\w+\.)*(\w+) /.exec(line) ?? []
    return operationNames.has(name) && (isBundle || isOwnFrame(line)) ? [name] : []
  })
  return running.at(-1) ?? 'tensor'
}
