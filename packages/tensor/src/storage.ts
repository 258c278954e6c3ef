/**
 * Storage: one flat array of elements, shared by every view on it. Tensors stand above, arrays below. `managed` storage is an ordinary typed
 * array that JavaScript collects; `heap` storage is a block of the shared heap (HEAP.md). Which of the two is policy (`heap/policy.ts`), and
 * no bit of a result depends on it.
 *
 * `array` may change, by a copy before a write (`prepareWrite`), and go (`close`): it is read each time and not kept.
 */
import { PostgradError } from '@postgrad/base'
import { allocate, BYTES_PER_ELEMENT, type DType, type TypedArray, viewOn } from './dtype.js'
import type { Heap, HeapDescriptor } from './heap/heap.js'
import { blockFor, HeapLease } from './heap/policy.js'

/** What the innermost `memoryScope` of this thread has seen made; null outside of any. Such a scope is synchronous, so nobody else runs in it. */
let made: Storage[] | null = null

export class Storage {
  readonly dtype: DType
  readonly array: TypedArray
  /** Raised by each in-place write; autograd compares it with what it saw when it saved a tensor. */
  version: number
  /** The operation that wrote last, for the message when autograd finds another version than it saw; null before the first. */
  writer: string | null
  /** @internal The block, of heap storage that is open. */
  lease: HeapLease | null
  isClosed: boolean
  /** @internal True when more than the code of a `memoryScope` may refer to it: a graph, a leaf, a `.grad`, an optimizer. It is not closed at the scope's end. */
  isKept: boolean

  /** Takes ownership of `array`: whoever passes it does not write to it any more. */
  constructor(dtype: DType, array: TypedArray) {
    this.dtype = dtype
    this.array = array
    this.version = 0
    this.writer = null
    this.lease = null
    this.isClosed = false
    this.isKept = false
    if (made !== null) made.push(this)
  }

  /** Zero-filled. */
  static allocate(dtype: DType, length: number): Storage {
    const lease = blockFor(dtype, length)
    if (lease === null) return new Storage(dtype, allocate(dtype, length))
    const storage = new Storage(dtype, arrayOn(lease, dtype, length))
    storage.array.fill(0)
    return storage.#hold(lease)
  }

  /** Holds anything: for who writes all of it. */
  static uninitialized(dtype: DType, length: number): Storage {
    const lease = blockFor(dtype, length)
    if (lease === null) return new Storage(dtype, allocate(dtype, length))
    return new Storage(dtype, arrayOn(lease, dtype, length)).#hold(lease)
  }

  /** @internal Over a block that another worker shared; takes over this thread's reference to it. */
  static onBlock(dtype: DType, lease: HeapLease, length: number): Storage {
    return new Storage(dtype, arrayOn(lease, dtype, length)).#hold(lease)
  }

  get kind(): 'managed' | 'heap' {
    return this.lease === null ? 'managed' : 'heap'
  }

  #hold(lease: HeapLease): this {
    this.lease = lease.own(this)
    return this
  }

  /**
   * Called before every write in place. If somebody else can read the block (another worker, or a message on its way), it is copied first,
   * inside this storage, so that all views follow (HEAP-8).
   */
  prepareWrite(): void {
    const old = this.lease
    if (old?.heap.isShared(old.block) !== true) return
    const { length } = this.array
    const lease = blockFor(this.dtype, length)
    const array = lease === null ? allocate(this.dtype, length) : arrayOn(lease, this.dtype, length)
    array.set(this.array)
    ;(this as { array: TypedArray }).array = array
    this.lease = lease === null ? null : lease.own(this)
    old.giveBack()
  }

  /**
   * Names the block in a message to the worker in slot `to`, which `adopt`s it; this worker holds it until `lease.heap.acknowledge(token)` or
   * `takeBack(to)`, and copies before it writes. Null for managed storage, whose bytes go with the message.
   */
  share(to: number): { readonly descriptor: HeapDescriptor; readonly token: number } | null {
    return this.lease === null ? null : this.lease.heap.share(this.lease.block, to)
  }

  /**
   * The block that a message names, as storage of `length` elements; afterwards the sender is told. Nothing in the descriptor is trusted.
   * @throws HEAP_BLOCK_STALE, also when the block is too small for so many elements
   */
  static adopt(heap: Heap, dtype: DType, length: number, descriptor: HeapDescriptor): Storage {
    const block = heap.adopt(descriptor)
    const bytes = length * BYTES_PER_ELEMENT[dtype]
    const lease = new HeapLease(heap, block)
    if (!Number.isSafeInteger(length) || length < 0 || bytes > block.capacityBytes) {
      lease.giveBack()
      throw new PostgradError('HEAP_BLOCK_STALE', {
        op: 'adopt',
        expected: `a block of at least ${bytes} bytes`,
        got: `${block.capacityBytes}`,
        remedy: 'The message is damaged: its shape does not fit its block. Send it again.',
        values: { ...descriptor, bytes },
      })
    }
    return new Storage(dtype, arrayOn(lease, dtype, length)).#hold(lease)
  }

  /** Gives the memory back now. From here on every use of `array` throws TENSOR_CLOSED; closing again does nothing. */
  close(): void {
    if (this.isClosed) return
    this.isClosed = true
    // An accessor on this one object: open storages keep their plain, fast property.
    Object.defineProperty(this, 'array', { get: refuseClosed })
    this.lease?.giveBack()
    this.lease = null
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

/** What stays open at the end of a scope belongs to the one around it. */
export function passToOuterScope(storage: Storage): void {
  if (made !== null) made.push(storage)
}

function arrayOn(lease: HeapLease, dtype: DType, length: number): TypedArray {
  return viewOn(dtype, lease.heap.buffer, lease.block.address, length)
}

function refuseClosed(): never {
  const op = operationOnStack()
  throw new PostgradError('TENSOR_CLOSED', {
    op,
    expected: 'a tensor that is open',
    got: 'one that was closed, or whose storage was, through another view or at the end of a memoryScope',
    remedy: 'Close it after its last use, clone() what is needed longer, or return it from the memoryScope.',
  })
}

/** The raw operation that is running, by the names of its functions: who asks is about to fail, so it may take a while. */
function operationOnStack(): string {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 30
  const frames = new Error().stack?.split('\n') ?? []
  Error.stackTraceLimit = stackTraceLimit
  const inOperation = frames.filter((line) => /[/\\]raw[/\\]|[/\\]tensor\.[jt]s/.test(line))
  return inOperation.at(-1)?.match(/at (?:async )?(?:\w+\.)*(\w+)/)?.[1] ?? 'tensor'
}
