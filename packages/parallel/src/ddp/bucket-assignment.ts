/**
 * Decides which gradients are reduced together: consecutive parameters of one dtype share a bucket until it reaches its limit. `reducer.ts` uses it.
 * PyTorch: `compute_bucket_assignment_by_size` in `reducer.cpp`, to the letter.
 */
import type { DType } from '@postgrad/tensor'
import { BYTES_PER_ELEMENT } from '@postgrad/tensor/internal'

/** A parameter to assign. */
export interface BucketMember {
  readonly dtype: DType
  readonly numel: number
  /** Its gradient is sparse, so it has a bucket of its own. */
  readonly isSparse?: boolean
}

export interface BucketAssignment {
  /** The members of each bucket, by their places in the list (or in `indices`). */
  readonly buckets: readonly (readonly number[])[]
  /** In bytes, that of each bucket; 0 is that of a sparse gradient's. */
  readonly limits: readonly number[]
}

/**
 * @param limits in bytes: of the first bucket of each dtype, of the next one, …; the last one holds for all that follow
 * @param indices what each member is called in the result, in the order in which gradients were ready, which the buckets then keep; left out: by the smallest place
 */
export function computeBucketAssignmentBySize(
  members: readonly BucketMember[],
  limits: readonly number[],
  indices?: readonly number[],
): BucketAssignment {
  const result: { readonly indices: readonly number[]; readonly limit: number }[] = []
  const open = new Map<DType, { indices: number[]; bytes: number; at: number }>()
  for (const [place, { dtype, numel, isSparse }] of members.entries()) {
    const index = indices?.[place] ?? place
    if (isSparse === true) {
      result.push({ indices: [index], limit: 0 })
      continue
    }
    let bucket = open.get(dtype)
    if (bucket === undefined) {
      bucket = { indices: [], bytes: 0, at: 0 }
      open.set(dtype, bucket)
    }
    bucket.indices.push(index)
    bucket.bytes += numel * BYTES_PER_ELEMENT[dtype]
    const limit = limits[bucket.at]!
    if (bucket.bytes < limit) continue
    result.push({ indices: bucket.indices, limit })
    open.set(dtype, { indices: [], bytes: 0, at: Math.min(bucket.at + 1, limits.length - 1) })
  }
  for (const { indices: left, at } of open.values()) if (left.length > 0) result.push({ indices: left, limit: limits[at]! })
  if (indices === undefined) result.sort((a, b) => Math.min(...a.indices) - Math.min(...b.indices))
  return { buckets: result.map((bucket) => bucket.indices), limits: result.map(({ limit }) => limit) }
}

/** Buckets in one row, to send to other ranks: how many there are, the length of each, the members of each. At most 1 + 2 · members numbers. */
export function encodeAssignment(buckets: readonly (readonly number[])[]): number[] {
  return [buckets.length, ...buckets.map(({ length }) => length), ...buckets.flat()]
}

/** The buckets of such a row; numbers after them are ignored. */
export function decodeAssignment(numbers: readonly number[]): number[][] {
  const count = numbers[0]!
  let at = count + 1
  return numbers.slice(1, count + 1).map((length) => {
    at += length
    return numbers.slice(at - length, at)
  })
}
