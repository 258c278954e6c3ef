import { expect, test } from '@jest/globals'
import { computeBucketAssignmentBySize, decodeAssignment, encodeAssignment } from './bucket-assignment.js'

const float = (numel: number) => ({ dtype: 'float32', numel }) as const
const double = (numel: number) => ({ dtype: 'float64', numel }) as const

test('DDP-3 buckets are those that PyTorch computes: one limit, one dtype', () => {
  const { buckets, limits } = computeBucketAssignmentBySize([100, 200, 100, 50].map(float), [400])
  expect(buckets).toEqual([[0], [1], [2], [3]])
  expect(limits).toEqual([400, 400, 400, 400])
})

test('DDP-3 buckets are those that PyTorch computes: one limit, two dtypes', () => {
  const members = [50, 25, 50, 25, 50, 25].map((numel, i) => (i % 2 === 0 ? float(numel) : double(numel)))
  const { buckets, limits } = computeBucketAssignmentBySize(members, [400])
  expect(buckets).toEqual([[0, 2], [1, 3], [4], [5]])
  expect(limits).toEqual([400, 400, 400, 400])
})

test('DDP-3 buckets are those that PyTorch computes: several limits, one dtype', () => {
  const { buckets, limits } = computeBucketAssignmentBySize([10, 10, 10, 10].map(float), [40, 80])
  expect(buckets).toEqual([[0], [1, 2], [3]])
  expect(limits).toEqual([40, 80, 80])
})

test('DDP-3 buckets are those that PyTorch computes: several limits, two dtypes', () => {
  const members = [50, 25, 50, 25, 50, 25].map((numel, i) => (i % 2 === 0 ? float(numel) : double(numel)))
  const { buckets, limits } = computeBucketAssignmentBySize(members, [200, 400])
  expect(buckets).toEqual([[0], [1], [2, 4], [3, 5]])
  expect(limits).toEqual([200, 200, 400, 400])
})

test('DDP-3 a sparse gradient is alone, and a list of names keeps its order', () => {
  expect(computeBucketAssignmentBySize([float(10), { ...float(10), isSparse: true }, float(10)], [1000])).toEqual({
    buckets: [[0, 2], [1]],
    limits: [1000, 0],
  })
  expect(computeBucketAssignmentBySize([10, 10, 10].map(float), [80], [7, 2, 5]).buckets).toEqual([[7, 2], [5]])
})

test('DDP-4 what a row of numbers says of buckets is what was written, whatever is behind it', () => {
  for (const buckets of [[[0]], [[2, 0], [1]], [[3], [2], [1, 0, 4]]]) {
    const row = encodeAssignment(buckets)
    expect(row.length).toBeLessThanOrEqual(1 + 2 * buckets.flat().length)
    expect(decodeAssignment([...row, 7, 7])).toEqual(buckets)
  }
})
