/** A counter for two threads: one word of shared memory. */
import type { Counter } from './worker-host.js'

export class SharedCounter implements Counter {
  /** What the other thread makes its counter of. */
  readonly memory: SharedArrayBuffer
  private readonly word: Int32Array

  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.word = new Int32Array(memory)
  }

  get value(): number {
    return Atomics.load(this.word, 0)
  }

  add(): void {
    Atomics.add(this.word, 0, 1)
  }
}
