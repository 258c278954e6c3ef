/** The buffers of a chain's blocks. */
import { Storage } from '../../heap/storage.js'
import { allocate, type DType, type TypedArray, viewOn } from '../../values/dtype.js'
import type { ChainProgram, DirectKernels } from '../table/chain.js'

/** Elements of a block between two kernels: one chunk of the kernels of WebAssembly, which compute it in one call. */
export const BLOCK = 2048
/** Elements of a block that one unit computes. */
const LONG_BLOCK = 16_384

/** Buffers of a block each, in the memory of the direct kernels where that has room. */
export class Scratch {
  /** The kernels that reach it. */
  readonly direct: DirectKernels | null
  /** The longest block. */
  readonly elements: number
  readonly #storage: Storage | null
  readonly #buffer: ArrayBufferLike
  readonly #begin: number
  readonly #slotBytes: number
  readonly #free: number[] = []
  #used = 0

  constructor(program: ChainProgram, direct: DirectKernels | null) {
    const { sources, steps } = program
    const bytes = sources.some(({ dtype }) => dtype === 'float64') || steps.some(({ made }) => made === 'float64') ? 8 : 4
    this.elements = direct === null ? BLOCK : LONG_BLOCK
    // Long blocks have no buffers between steps. Buffers that lie a power of two apart would meet in the same lines of the cache.
    this.#slotBytes = this.elements * bytes + 192
    const length = ((sources.length + steps.length) * this.#slotBytes) / 8
    this.#storage = direct === null ? null : Storage.inHeap('float64', length)
    const array = this.#storage?.host ?? allocate('float64', length)
    this.#buffer = array.buffer
    this.#begin = array.byteOffset
    this.direct = direct !== null && this.#buffer === direct.buffer ? direct : null
  }

  close(): void {
    this.#storage?.close()
  }

  take(): number {
    return this.#free.pop() ?? this.#used++
  }

  giveBack(slot: number): void {
    this.#free.push(slot)
  }

  viewOf(slot: number, dtype: DType): TypedArray {
    return viewOn(dtype, this.#buffer, this.#begin + slot * this.#slotBytes, this.elements)
  }
}

/** The elements of a block of at most `most`: as many whole periods of a short source as fit, so that it is laid out once. */
export function blockOf({ sources, n }: ChainProgram, most: number): number {
  const short = sources.find(({ period, repeat }) => period > 1 && period < n && period * repeat <= most)
  if (short === undefined) return most
  const extent = short.period * short.repeat
  return Math.floor(most / extent) * extent
}
