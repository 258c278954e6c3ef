/** The buffers of a chain's blocks. */
import { Storage } from '../../heap/storage.js'
import { allocate, type DType, type TypedArray, viewOn } from '../../values/dtype.js'
import type { ChainProgram } from '../table/chain.js'

/** Elements of a block between two kernels: one chunk of the kernels of WebAssembly, which compute it in one call. */
export const BLOCK = 2048
/** Elements of a block that one unit computes. */
export const LONG_BLOCK = 16_384

/** Buffers of a block each. */
export class Scratch {
  /** Whether a buffer of the heap could not be had. */
  lacksRoom = false
  readonly #elements: number
  readonly #isInHeap: boolean
  readonly #bytes: number
  readonly #slots: { readonly storage: Storage | null; readonly array: TypedArray }[] = []
  readonly #free: number[] = []

  constructor({ sources, steps }: ChainProgram, elements: number, isInHeap: boolean) {
    const isWide = sources.some(({ dtype }) => dtype === 'float64') || steps.some(({ made }) => made === 'float64')
    this.#elements = elements
    this.#isInHeap = isInHeap
    this.#bytes = elements * (isWide ? 8 : 4)
  }

  close(): void {
    for (const { storage } of this.#slots) storage?.close()
  }

  /** The number of a free buffer. */
  acquire(): number {
    const free = this.#free.pop()
    if (free !== undefined) return free
    const length = (this.#bytes + APART * APART_MAX) / 8
    const storage = this.#isInHeap ? Storage.inHeap('float64', length) : null
    if (this.#isInHeap && storage === null) this.lacksRoom = true
    return this.#slots.push({ storage, array: storage?.host ?? allocate('float64', length) }) - 1
  }

  giveBack(slot: number): void {
    this.#free.push(slot)
  }

  viewOf(slot: number, dtype: DType): TypedArray {
    const { array } = this.#slots[slot]!
    return viewOn(dtype, array.buffer, array.byteOffset + APART * (slot % APART_MAX), this.#elements)
  }
}

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
