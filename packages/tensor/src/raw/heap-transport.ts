/**
 * The transport of large tensors. To a worker on the same heap: a message names their block (`give`), the receiver holds it (`take`), and only then the
 * sender releases it (`taken`). To a worker of another process the bytes travel, straight out of the block: it is lent to the message (`lend`) and held until the
 * peer has read that. `wire` writes names and bytes, `rpc` counts messages, and the heap holds and checks blocks (HEAP-4, HEAP-5).
 */

import { PostgradError } from '@postgrad/base'
import type { Heap } from '../heap/heap.js'
import { Storage } from '../heap/storage.js'
import { Tensor } from '../tensor/tensor.js'
import { byteLength, type DType } from '../values/dtype.js'
import { contiguousStrides, type Shape } from '../values/shape.js'
import { rawOperations } from './operations.js'

/** `HeapPlace` as it is written: block, its generation, slot and epoch of the sender, offset in elements from the block's begin. */
export type BlockName = readonly [id: number, generation: number, sender: number, epoch: number, offset: number]

/** Whether the worker at the other end has the same heap, or gets bytes. */
export type HeapReach = 'shared' | 'bytes'

/** Room in this worker's heap for bytes from other processes: bytes that are read into it become a tensor in place. */
export class HeapRoom {
  /** A collected view gives its block back. */
  private readonly storages = new WeakMap<Uint8Array, Storage>()

  /** Null where policy wants managed memory, or the heap has no room. */
  place(bytes: number): Uint8Array | null {
    const storage = Storage.inHeap('bool', bytes)
    if (storage === null) return null
    const { buffer, byteOffset } = storage.host!
    const view = new Uint8Array(buffer, byteOffset, bytes)
    this.storages.set(view, storage)
    return view
  }

  /** The elements that were read into this view; null if it is none of these. */
  take(view: Uint8Array, dtype: DType, shape: Shape, numel: number): Tensor | null {
    const bytes = this.storages.get(view)
    this.storages.delete(view)
    const storage = bytes?.retyped(dtype, numel) ?? null
    if (storage === null) return null
    if (dtype === 'bool') for (let i = 0; i < numel; i++) if (storage.host![i] !== 0) storage.host![i] = 1
    return new Tensor(storage, shape, contiguousStrides(shape), 0, numel, true)
  }
}

export class HeapTransport {
  readonly reach: HeapReach
  private readonly heap: Heap | null
  private readonly room: HeapRoom | null
  private readonly lends: boolean
  /** Whether a block was taken since somebody looked. */
  hasTaken = false
  /** Of all blocks that were named to the peer, and by it. */
  givenBytes = 0
  takenBytes = 0
  /** Tokens of the message that is being written. */
  private writing: number[] = []
  /** In the order of messages. */
  private readonly onTheWay: { readonly message: number; readonly token: number }[] = []

  /**
   * @param heap this worker's; null: it has none, and still reports its reads of lent bytes
   * @param room for bytes that come: then the other end has another heap, and gets bytes
   * @param lends false: the peer may falsely say that it has read a message, and must not see later contents of a block
   */
  constructor(heap: Heap | null, room: HeapRoom | null = null, lends = true) {
    this.heap = heap
    this.room = room
    this.lends = lends
    this.reach = room === null ? 'shared' : 'bytes'
  }

  /**
   * Names the tensor's elements, row by row. Other layouts are first copied to the heap, once, which costs less than a message of the bytes.
   * Null: the heap has no room; then the bytes have to travel.
   */
  give(tensor: Tensor): BlockName | null {
    if (this.reach === 'bytes' || this.heap === null) return null
    tensor.storage.pending?.settle()
    if (tensor.isContiguous && tensor.storage.lease?.heap === this.heap) return this.named(tensor.storage, tensor.offset, tensor.numel)
    const storage = Storage.inHeap(tensor.dtype, tensor.numel)
    if (storage === null) return null
    try {
      rawOperations.copy_(new Tensor(storage, tensor.shape, contiguousStrides(tensor.shape), 0, tensor.numel, true), tensor)
      return storage.lease?.heap === this.heap ? this.named(storage, 0, tensor.numel) : null
    } finally {
      // If it was named, the message holds the block by now.
      storage.close()
    }
  }

  /** The tensor's bytes where they lie. A write before the peer has read the message copies them first. Null: they do not lie row by row in the heap. */
  lend({ storage, dtype, offset, numel, isContiguous }: Tensor): Uint8Array | null {
    if (this.reach !== 'bytes' || !this.lends || !isContiguous || storage.lease === null || storage.lease.heap !== this.heap) return null
    this.writing.push(storage.share(offset)!.token)
    const { buffer, byteOffset } = storage.host!
    return new Uint8Array(buffer, byteOffset + byteLength(dtype, offset), byteLength(dtype, numel))
  }

  /** A tensor over bytes of a message, where they were read into the heap; null: they were not. */
  over(segment: Uint8Array, dtype: DType, shape: Shape, numel: number): Tensor | null {
    return this.room?.take(segment, dtype, shape, numel) ?? null
  }

  private named(storage: Storage, offset: number, numel: number): BlockName {
    const { place, token } = storage.share(offset)!
    this.writing.push(token)
    this.givenBytes += byteLength(storage.dtype, numel)
    return [place.id, place.generation, place.sender, place.epoch, place.offset]
  }

  /** A message begins to be written while another is: the tokens of that one, for `resume` when the new one has left, or will not. */
  suspend(): readonly number[] {
    const outer = this.writing
    this.writing = []
    return outer
  }

  /** The message of these tokens is written on. */
  resume(tokens: readonly number[]): void {
    this.writing = [...tokens]
  }

  /** The names since the last message, or those that were suspended, left with this one, the n-th to the peer. */
  sent(message: number, suspended?: readonly number[]): void {
    for (const token of suspended ?? this.writing) this.onTheWay.push({ message, token })
    if (suspended === undefined && this.writing.length > 0) this.writing = []
  }

  /** The message that was being written, or the suspended one, will not leave. */
  unsent(suspended?: readonly number[]): void {
    for (const token of suspended ?? this.writing) this.heap!.acknowledge(token)
    if (suspended === undefined) this.writing = []
  }

  /** The peer has read all messages up to this one. A number that it cannot know changes nothing that is not on its way. */
  taken(message: number): void {
    let count = 0
    while (count < this.onTheWay.length && this.onTheWay[count]!.message <= message) count++
    for (const { token } of this.onTheWay.splice(0, count)) this.heap!.acknowledge(token)
  }

  /** How many blocks are held for the peer. */
  get inFlight(): number {
    return this.onTheWay.length
  }

  /** The link is gone: blocks on their way will not be taken, and nobody reads lent blocks any more, as the link has dropped its frames. */
  close(): void {
    this.unsent()
    for (const { token } of this.onTheWay.splice(0)) this.heap!.acknowledge(token)
  }

  /** This worker closes: a peer that has not read a block on its way finds its sender ended. */
  end(): void {
    if (this.reach === 'bytes') {
      // The link sends for another moment. Blocks lent to it go back by `close`, or with the worker's slot.
      this.unsent()
      return
    }
    if (this.inFlight > 0) this.heap!.noteEnd()
    this.close()
  }

  /** A tensor over the elements that the peer named. @throws HEAP_BLOCK_STALE */
  take([id, generation, sender, epoch, offset]: BlockName, dtype: DType, shape: Shape, numel: number): Tensor {
    if (this.reach === 'bytes' || this.heap === null) throw notShared()
    const storage = Storage.adopt(this.heap, dtype, numel, { id, generation, sender, epoch, offset })
    this.hasTaken = true
    this.takenBytes += byteLength(dtype, numel)
    return new Tensor(storage, shape, contiguousStrides(shape), 0, numel, true)
  }
}

function notShared(): PostgradError {
  return new PostgradError('HEAP_NOT_SHARED', {
    op: 'take',
    expected: 'the bytes of a tensor',
    got: 'the name of a block of a heap that this worker does not share with the sender',
    remedy: 'Only workers of one process name blocks; the sender of this one is in another process.',
  })
}
