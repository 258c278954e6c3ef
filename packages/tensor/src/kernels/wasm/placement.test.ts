/**
 * The code that runs does not depend on where an operand lies: every kernel of the table on all combinations of arrays inside and outside of the
 * kernels' memory, bit by bit against all of them outside. Arrays inside lie between guards, which show a write beyond one.
 */
import { describe, expect, test } from '@jest/globals'
import { DTYPES, type TypedArray } from '../../values/dtype.js'
import { checkKernel } from '../kernel.suite.js'
import { operandOf } from '../suite/layouts.suite.js'
import type { Fill, Operand } from '../table/operands.js'
import { isUnsupported, KERNEL_OPS, type KernelOp } from '../table/table.js'
import { createWasmBackend } from './backend.js'
import type { KernelHeap } from './calls/memory.js'

declare const WebAssembly: { Memory: new (limits: object) => KernelHeap['memory'] }

const PAGE_BYTES = 65_536
const SCRATCH_BYTES = 256 * PAGE_BYTES
const BLOCK_BYTES = 64 * PAGE_BYTES
const GUARD = 0xa5
/** Odd on purpose: blocks lie at every multiple of their element's size, not of 16 bytes. */
const GUARD_BYTES = 40

/** Scratch from address `base` on, then room for the blocks of one call. Pages that nothing touches are only addresses. */
class TestHeap implements KernelHeap {
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

  /** A copy of x inside, between guards. */
  place(x: TypedArray): TypedArray {
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

type Entry = (...args: unknown[]) => void

const isOperand = (arg: unknown): arg is Operand => typeof arg === 'object' && arg !== null && 'storage' in arg

/** `kernel`, with the k-th distinct array of each call placed inside if bit k of `mask` is set. Reports how many arrays there were. */
function placed(kernel: object, heap: TestHeap, mask: number, seen: (arrays: number) => void): object {
  return (...args: unknown[]) => {
    const arrays = [...new Set(args.filter(isOperand).map(({ storage }) => storage.host!))]
    seen(arrays.length)
    const inside = new Map(arrays.filter((_, k) => (mask >> k) & 1).map((x) => [x, heap.place(x)]))
    const moved = (arg: unknown): unknown => {
      const host = isOperand(arg) ? inside.get(arg.storage.host!) : undefined
      return host === undefined ? arg : { ...(arg as Operand), storage: { host } }
    }
    ;(kernel as Entry)(...args.map(moved))
    for (const [x, copy] of inside) heap.takeBack(copy, x)
  }
}

const heap = new TestHeap(PAGE_BYTES)
const backend = createWasmBackend(() => heap)
const SEED = 11
/** Below and above every size at which another form begins. */
const SHAPES = [[7], [3, 0, 2], [97], [3, 5, 17], [2100]]

describe(`PLACE: the same bits wherever operands lie (seed ${SEED})`, () => {
  test.each(KERNEL_OPS)('%s', (op: KernelOp) => {
    for (const dtype of DTYPES) {
      const kernel = backend.kernels[op][dtype]
      if (isUnsupported(kernel)) continue
      // A plain loop never asks where its operands lie: once with all inside is enough.
      const isLoop = backend.variantOf(op, dtype, [300, 300]) === 'loop'
      let arrays = 1
      for (let mask = isLoop ? ~0 : 1; mask < 1 << arrays; mask = isLoop ? 1 << arrays : mask + 1) {
        const wrapped = placed(kernel, heap, mask, (count) => {
          arrays = Math.max(arrays, count)
        })
        expect(
          checkKernel(op, dtype, wrapped, { seed: SEED, exact: () => true, expected: backend, shapes: SHAPES }).checked,
        ).toBeGreaterThan(0)
      }
      expect(arrays).toBeGreaterThan(0)
    }
  })

  // Beyond 2 GiB an address is negative as an i32; the last block ends where the heap's last segment begins, 128 KiB below 4 GiB.
  test.each([
    ['blocks across 2 GiB', 2 ** 31 - SCRATCH_BYTES - 64],
    ['scratch across 2 GiB', 2 ** 31 - 4096],
    ['beyond 3 GiB', 2 ** 32 - SCRATCH_BYTES - BLOCK_BYTES - 2 * PAGE_BYTES],
  ])('any address: %s', (_, base) => {
    const far = new TestHeap(base)
    const there = createWasmBackend(() => far)
    for (const op of KERNEL_OPS) {
      for (const dtype of DTYPES) {
        const kernel = there.kernels[op][dtype]
        if (isUnsupported(kernel) || there.variantOf(op, dtype, [300, 300]) === 'loop') continue
        for (const mask of [0, ~0]) {
          const wrapped = placed(kernel, far, mask, () => {})
          const options = { seed: SEED, exact: () => true, expected: backend, shapes: [[97], [3, 5, 17]] }
          expect(checkKernel(op, dtype, wrapped, options).checked).toBeGreaterThan(0)
        }
      }
    }
  })

  test('canary: a write beyond an operand is found', () => {
    const wild: Fill = (value, out) => {
      const host = out.storage.host!
      new Uint8Array(host.buffer)[host.byteOffset + host.byteLength] = 0
      host.fill(value)
    }
    const out = new Float32Array(8)
    expect(() => (placed(wild, heap, 1, () => {}) as Fill)(0, operandOf(out, 0, [8]))).toThrow('beyond an operand')
  })
})
