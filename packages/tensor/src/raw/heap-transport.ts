/**
 * The transport that large tensors take to a worker on the same heap: a message names their block (`give`), the receiver holds it (`take`), and only
 * then the sender lets go (`taken`). Above it `wire` writes the names and `rpc` counts messages; below it the heap holds and checks (HEAP-4, HEAP-5).
 */

import type { Heap } from '../heap/heap.js'
import { Storage } from '../heap/storage.js'
import { currentDevice } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { byteLength, type DType } from '../values/dtype.js'
import { contiguousStrides, type Shape } from '../values/shape.js'
import { copy_ } from './inplace.js'

/** `HeapPlace` as it is written: block, its generation, slot and epoch of the sender, offset in elements from the block's begin. */
export type BlockName = readonly [id: number, generation: number, sender: number, epoch: number, offset: number]

export class HeapTransport {
  private readonly heap: Heap
  /** Whether a block was taken since somebody looked. */
  hasTaken = false
  /** Of all blocks that were named to the peer, and by it. */
  givenBytes = 0
  takenBytes = 0
  /** Tokens of the message that is being written. */
  private writing: number[] = []
  /** In the order of messages. */
  private readonly onTheWay: { readonly message: number; readonly token: number }[] = []

  constructor(heap: Heap) {
    this.heap = heap
  }

  /**
   * Names the tensor's elements, row by row. What does not lie so in the heap is copied there once, which costs less than a message of its bytes.
   * Null: the heap has no room, or the copy would be made by a device that computes late; then the bytes have to travel.
   */
  give(tensor: Tensor): BlockName | null {
    if (tensor.isContiguous && tensor.storage.lease?.heap === this.heap) return this.named(tensor.storage, tensor.offset, tensor.numel)
    const storage = currentDevice().synchronous ? Storage.inHeap(tensor.dtype, tensor.numel) : null
    if (storage === null) return null
    try {
      copy_(new Tensor(storage, tensor.shape, contiguousStrides(tensor.shape), 0, tensor.numel, true), tensor)
      return storage.lease?.heap === this.heap ? this.named(storage, 0, tensor.numel) : null
    } finally {
      // If it was named, the message holds the block by now.
      storage.close()
    }
  }

  private named(storage: Storage, offset: number, numel: number): BlockName {
    const { place, token } = storage.share(offset)!
    this.writing.push(token)
    this.givenBytes += byteLength(storage.dtype, numel)
    return [place.id, place.generation, place.sender, place.epoch, place.offset]
  }

  /** What was named since the last message left with this one, the n-th to the peer. */
  sent(message: number): void {
    if (this.writing.length === 0) return
    for (const token of this.writing) this.onTheWay.push({ message, token })
    this.writing = []
  }

  /** The message that was being written will not leave. */
  unsent(): void {
    for (const token of this.writing) this.heap.acknowledge(token)
    this.writing = []
  }

  /** The peer has read all messages up to this one. A number that it cannot know changes nothing that is not on its way. */
  taken(message: number): void {
    let count = 0
    while (count < this.onTheWay.length && this.onTheWay[count]!.message <= message) count++
    for (const { token } of this.onTheWay.splice(0, count)) this.heap.acknowledge(token)
  }

  /** How many blocks are held for the peer. */
  get inFlight(): number {
    return this.onTheWay.length
  }

  /** The link is gone: what is on its way will not be taken. */
  close(): void {
    this.unsent()
    for (const { token } of this.onTheWay.splice(0)) this.heap.acknowledge(token)
  }

  /** This worker closes: whoever has not read yet what is on its way finds that its sender has ended. */
  end(): void {
    if (this.inFlight > 0) this.heap.noteEnd()
    this.close()
  }

  /** A tensor over the elements that the peer named. @throws HEAP_BLOCK_STALE */
  take([id, generation, sender, epoch, offset]: BlockName, dtype: DType, shape: Shape, numel: number): Tensor {
    const storage = Storage.adopt(this.heap, dtype, numel, { id, generation, sender, epoch, offset })
    this.hasTaken = true
    this.takenBytes += byteLength(dtype, numel)
    return new Tensor(storage, shape, contiguousStrides(shape), 0, numel, true)
  }
}
