/** The buffers of a chain's blocks. */
import { Storage } from '../../heap/storage.js'
import { allocate, BYTES_PER_ELEMENT, type DType, type TypedArray, viewOn } from '../../values/dtype.js'
import type { ChainProgram } from '../table/chain.js'

/** Elements of a block between two kernels: one chunk of the kernels of WebAssembly, which compute it in one call. */
export const BLOCK = 2048
/** Elements of a block that one unit computes. */
export const LONG_BLOCK = 16_384

interface ScratchBuffer {
  /** Null: not in the heap. */
  readonly storage: Storage | null
  readonly array: TypedArray
}

/** Buffers of a block each, and numbers. */
export class Scratch {
  /** Whether the heap had no room for a buffer. */
  lacksRoom = false
  readonly #elements: number
  readonly #isInHeap: boolean
  readonly #slots: ScratchBuffer[] = []
  readonly #free: number[] = []
  /** Buffers of numbers, which steps read as one element for all. */
  readonly #numbers: ScratchBuffer[] = []
  #numbersMade = 0

  constructor(elements: number, isInHeap: boolean) {
    this.#elements = elements
    this.#isInHeap = isInHeap
  }

  close(): void {
    for (const { storage } of [...this.#slots, ...this.#numbers]) storage?.close()
  }

  /** The number of a free buffer that is wide enough for elements of a dtype. */
  acquire(dtype: DType): number {
    // Buffers of bools serve others later.
    const length = (this.#elements * Math.max(4, BYTES_PER_ELEMENT[dtype]) + APART * APART_MAX) / 8
    const free = this.#free.findLastIndex((slot) => this.#slots[slot]!.array.length >= length)
    if (free >= 0) return this.#free.splice(free, 1)[0]!
    return this.#slots.push(this.#make(length)) - 1
  }

  giveBack(slot: number): void {
    this.#free.push(slot)
  }

  viewOf(slot: number, dtype: DType): TypedArray {
    const { array } = this.#slots[slot]!
    return viewOn(dtype, array.buffer, array.byteOffset + APART * (slot % APART_MAX), this.#elements)
  }

  /** Room for one element, until the end. */
  numberOf(dtype: DType): TypedArray {
    const place = this.#numbersMade++ % NUMBERS
    if (place === 0) this.#numbers.push(this.#make(NUMBERS))
    const { array } = this.#numbers.at(-1)!
    return viewOn(dtype, array.buffer, array.byteOffset + 8 * place, 1)
  }

  #make(length: number): ScratchBuffer {
    const storage = this.#isInHeap ? Storage.inHeap('float64', length) : null
    if (this.#isInHeap && storage === null) this.lacksRoom = true
    return { storage, array: storage?.host ?? allocate('float64', length) }
  }
}

/** As many as make the smallest block of the heap. */
const NUMBERS = 1024

/** Buffers that lie a power of two apart would meet in the same lines of the cache: each begins so many bytes later than the one before. */
const APART = 64
const APART_MAX = 8

/** The elements of a block of at most `most`: as many whole periods of a short source as fit, so that it is laid out once. */
export function blockOf({ sources, n }: ChainProgram, most: number): number {
  const short = sources.find(({ period, run }) => period > 1 && period < n && period * run <= most)
  if (short === undefined) return most
  const extent = short.period * short.run
  return Math.floor(most / extent) * extent
}
