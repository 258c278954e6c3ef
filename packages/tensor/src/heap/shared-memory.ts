/**
 * The process's shared WebAssembly memory, as this package needs it: @types/node leaves WebAssembly to the DOM library, which a package
 * for Node does without.
 */
import { readFileSync } from 'node:fs'
import { PostgradError } from '@postgrad/base'

/** A shared memory that never grows: its buffer is one and the same for ever, on every thread. */
export interface SharedMemory {
  readonly buffer: SharedArrayBuffer
}
declare const WebAssembly: {
  Memory: new (limits: { initial: number; maximum: number; shared: true }) => SharedMemory
}

export const WASM_PAGE_BYTES = 65_536
/** The most bytes that a heap reserves: wasm32 addresses 4 GiB. */
export const RESERVED_BYTES_MAX = 65_536 * WASM_PAGE_BYTES
/** The least bytes that a heap reserves, 64 MiB: a smaller heap would hold little more than its own bookkeeping. */
export const RESERVED_BYTES_MIN = 64 * 1024 * 1024

/**
 * Share of the address space that is left which the heap takes where that is limited (`ulimit -v`). The rest is for V8, which ends the whole process if it gets no more: a thread
 * takes 600 to 850 MiB of addresses.
 */
const SHARE_OF_LIMITED = 1 / 8

/**
 * How many bytes of address space this process may still take; Infinity: no limit, or the system does not say.
 * @param read gives the text of a file, or throws
 */
export function addressSpaceLeft(read: (path: string) => string = (path) => readFileSync(path, 'latin1')): number {
  try {
    const limit = Number(/^Max address space\s+(\d+)/m.exec(read('/proc/self/limits'))?.[1])
    if (Number.isNaN(limit)) return Number.POSITIVE_INFINITY
    const usedKib = Number(/^VmSize:\s*(\d+)/m.exec(read('/proc/self/status'))?.[1])
    return Math.max(0, limit - usedKib * 1024)
  } catch {
    return Number.POSITIVE_INFINITY // not a Linux
  }
}

/** How many bytes of address space a heap of `bytes` bytes reserves, if the process may still take `leftBytes`: at most an eighth of these, and at least 64 MiB. */
export function fittingHeapBytes(bytes: number, leftBytes: number): number {
  return Math.max(RESERVED_BYTES_MIN, Math.min(bytes, leftBytes * SHARE_OF_LIMITED))
}

/**
 * Reserves `bytes` (a multiple of 64 KiB), or half of it, or a quarter, … if the machine refuses. Initial is maximum, so nothing ever
 * grows: measured on Node 20, 4 GiB take 0.04 ms and no resident memory, do not count as external memory, and cost a thread that gets
 * them 0.01 ms; the system commits a page when it is first written.
 * @throws HEAP_UNAVAILABLE when not even RESERVED_BYTES_MIN can be had
 */
export function reserve(bytes: number): SharedMemory {
  for (let size = fittingHeapBytes(bytes, addressSpaceLeft()); ; size /= 2) {
    try {
      return reserveHeap(size)
    } catch (cause) {
      if (size / 2 >= RESERVED_BYTES_MIN) continue
      throw new PostgradError('HEAP_UNAVAILABLE', {
        op: 'heap',
        expected: `${RESERVED_BYTES_MIN} bytes of address space for a shared WebAssembly memory`,
        got: 'a refusal',
        remedy: 'Raise the limit on virtual memory (ulimit -v), or start fewer processes.',
        cause,
      })
    }
  }
}

/** @throws what V8 throws where the machine refuses */
export function reserveHeap(bytes: number): SharedMemory {
  const pages = Math.floor(bytes / WASM_PAGE_BYTES)
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
}
