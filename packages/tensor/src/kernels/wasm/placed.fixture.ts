/**
 * A heap for tests of where operands lie: it copies the arrays of one call into the kernels' memory, between guards, which show a write beyond one.
 * Used by `placement.test.ts`, which tries all combinations, and by `fuzz.fixture.ts`, which draws them.
 */
import type { TypedArray } from '../../values/dtype.js'
import type { Operand } from '../table/operands.js'
import type { KernelHeap } from './calls/memory.js'

declare const WebAssembly: { Memory: new (limits: object) => KernelHeap['memory'] }

export const PAGE_BYTES = 65_536
export const SCRATCH_BYTES = 256 * PAGE_BYTES
export const BLOCK_BYTES = 64 * PAGE_BYTES
const GUARD = 0xa5
/** Odd on purpose: blocks lie at every multiple of their element's size, not of 16 bytes. */
const GUARD_BYTES = 40

/** Scratch from address `base` on, then room for the blocks of one call. Pages that nothing touches are only addresses. */
export class TestHeap implements KernelHeap {
  readonly memory: KernelHeap['memory']
  readonly buffer: SharedArrayBuffer
  readonly #bytes: Uint8Array
  readonly #base: number
  readonly #blocks: number
  #next: number

  constructor(base: number) {
    const pages = (base + SCRATCH_BYTES + BLOCK_BYTES) / PAGE_BYTES
    this.memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
    this.buffer = this.memory.buffer
    this.#bytes = new Uint8Array(this.buffer)
    this.#base = base
    this.#blocks = base + SCRATCH_BYTES
    this.#next = this.#blocks
  }

  scratch(bytes: number): number {
    if (bytes > SCRATCH_BYTES) throw new Error(`${bytes} bytes of scratch`)
    return this.#base
  }

  helpersMax(): number {
    return 0
  }

  claimHelpers(): number {
    return 0
  }

  /** A copy of x inside, between guards, and `skipped` elements later than it would lie. */
  place(x: TypedArray, skipped = 0): TypedArray {
    this.#next += skipped * x.BYTES_PER_ELEMENT
    const from = this.#next + GUARD_BYTES
    const to = from + x.byteLength
    this.#bytes.fill(GUARD, this.#next, from)
    this.#bytes.fill(GUARD, to, to + GUARD_BYTES)
    this.#next = Math.ceil((to + GUARD_BYTES) / 8) * 8
    const array = new (x.constructor as new (buffer: SharedArrayBuffer, at: number, length: number) => TypedArray)(
      this.buffer,
      from,
      x.length,
    )
    array.set(x)
    return array
  }

  /** Copies `inside` back and forgets it. @throws an Error when a guard was written over */
  takeBack(inside: TypedArray, x: TypedArray): void {
    const from = inside.byteOffset
    const to = from + inside.byteLength
    for (let i = 1; i <= GUARD_BYTES; i++) {
      if (this.#bytes[from - i] !== GUARD || this.#bytes[to + i - 1] !== GUARD) throw new Error(`a write ${i} bytes beyond an operand`)
    }
    x.set(inside)
    this.#next = this.#blocks
  }
}

export type Entry = (...args: unknown[]) => void

export const isOperand = (arg: unknown): arg is Operand => typeof arg === 'object' && arg !== null && 'storage' in arg

/**
 * `kernel`, with the k-th distinct array of each call placed inside if bit k of `mask` is set, `skips` elements later than the one before ends. Reports how
 * many arrays there were.
 */
export function placed(kernel: object, heap: TestHeap, mask: number, seen: (arrays: number) => void, skips = () => 0): object {
  return (...args: unknown[]) => {
    const arrays = [...new Set(args.filter(isOperand).map(({ storage }) => storage.host!))]
    seen(arrays.length)
    const inside = new Map(arrays.filter((_, k) => (mask >> k) & 1).map((x) => [x, heap.place(x, skips())]))
    const moved = (arg: unknown): unknown => {
      const host = isOperand(arg) ? inside.get(arg.storage.host!) : undefined
      return host === undefined ? arg : { ...(arg as Operand), storage: { host } }
    }
    ;(kernel as Entry)(...args.map(moved))
    for (const [x, copy] of inside) heap.takeBack(copy, x)
  }
}
