/**
 * Dense operands of kernels that go through them part by part: an operand that lies in the memory of kernels.wasm is used there, others are copied into
 * scratch, or out of it, one part at a time.
 */
import { BYTES_PER_ELEMENT } from '../../../values/dtype.js'
import type { Operand } from '../../table/operands.js'
import { align, type WasmInstance } from './instance.js'
import { stage, unstage } from './strided.js'

export class Staged {
  readonly #instance: WasmInstance
  readonly #x: Operand
  /** Elements of a part, and bytes of an element. */
  readonly #size: number
  readonly #bytes: number
  /** Where the operand lies in the memory; −1: elsewhere, and there it is staged. */
  readonly #direct: number
  readonly #scratchBytes: number
  #scratch = 0

  constructor(instance: WasmInstance, x: Operand, size: number) {
    this.#instance = instance
    this.#x = x
    this.#size = size
    this.#bytes = BYTES_PER_ELEMENT[x.dtype]
    this.#direct = instance.direct(x.storage.host!, x.offset)
    this.#scratchBytes = this.#direct < 0 ? align(size * this.#bytes) : 0
  }

  /** Whether it lies in the memory: then its parts are where they are, and several threads may use them. */
  get isDirect(): boolean {
    return this.#direct >= 0
  }

  /** The address of part `i`. */
  at(i: number): number {
    return this.#direct < 0 ? this.#scratch : this.#direct + i * this.#size * this.#bytes
  }

  /** Part `i` as the kernel reads it: its address. */
  read(i: number): number {
    if (this.#direct < 0) stage(this.#instance, this.#length(i), this.#x, this.#scratch, i * this.#size)
    return this.at(i)
  }

  /** After part `i` was written at its address. */
  written(i: number): void {
    if (this.#direct < 0) unstage(this.#instance, this.#length(i), this.#scratch, this.#x, i * this.#size)
  }

  /** The last part may be shorter. */
  #length(i: number): number {
    return Math.min(this.#size, this.#x.numel - i * this.#size)
  }

  /** Starts a kernel's call: scratch for these operands, and of `more` bytes each, at the addresses that are returned. @throws STAGING_EXHAUSTED */
  static begin(instance: WasmInstance, operands: readonly (Staged | null)[], ...more: number[]): number[] {
    let bytes = 0
    for (const x of operands) if (x !== null) bytes += x.#scratchBytes
    for (const size of more) bytes += align(size)
    let next = instance.begin(bytes)
    for (const x of operands) {
      if (x === null) continue
      x.#scratch = next
      next += x.#scratchBytes
    }
    const addresses: number[] = []
    for (const size of more) {
      addresses.push(next)
      next += align(size)
    }
    return addresses
  }
}
