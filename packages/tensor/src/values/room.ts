/** Checks, for `storage.ts`, that there is room for a tensor: the engine's arrays have a longest length, and the machine has so much memory. */
import { constants } from 'node:buffer'
import { totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'
import { PostgradError } from '@postgrad/base'
import { allocate, byteLength, type DType, type TypedArray } from './dtype.js'

const GIB = 2 ** 30
/** Below this nobody asks: who has less cannot run a worker. */
const UNASKED_BYTES = GIB

/** @throws TENSOR_TOO_LARGE for more elements than an array can have, or more bytes than the machine has memory */
export function checkRoom(op: string, dtype: DType, length: number): void {
  const bytes = byteLength(dtype, length)
  if (bytes <= UNASKED_BYTES) return
  if (length > constants.MAX_LENGTH) throw tooLarge(op, dtype, length, `at most ${constants.MAX_LENGTH} elements in one tensor`)
  const memory = memoryBytes()
  if (bytes > memory) throw tooLarge(op, dtype, length, `at most ${gib(memory)}, this machine's memory`)
}

/** An array of zeros. @throws TENSOR_TOO_LARGE */
export function allocateRoom(dtype: DType, length: number): TypedArray {
  checkRoom('tensor', dtype, length)
  try {
    return allocate(dtype, length)
  } catch (error) {
    if (!(error as Error | null)?.message.includes('allocation failed')) throw error
    throw tooLarge('tensor', dtype, length, 'as many bytes as the system gives at this moment', error)
  }
}

/** Of the machine, or of the container. */
export function memoryBytes(): number {
  // 0 and absurdly large both mean "no constraint".
  const constrained = constrainedMemory?.() || Number.POSITIVE_INFINITY
  return Math.min(totalmem(), constrained)
}

function tooLarge(op: string, dtype: DType, length: number, expected: string, cause?: unknown): PostgradError {
  const bytes = byteLength(dtype, length)
  return new PostgradError('TENSOR_TOO_LARGE', {
    op,
    expected,
    got: `${length} elements of ${dtype}, ${gib(bytes)} (${bytes} bytes)`,
    remedy: 'Work on it in parts, or look whether a shape grew by broadcasting.',
    values: { elements: length, dtype, bytes },
    cause,
  })
}

function gib(bytes: number): string {
  return `${Number((bytes / GIB).toPrecision(3))} GiB`
}
