/** Shapes and strides by hand, and views against a walk over all elements. */
import { describe, expect, test } from '@jest/globals'
import { Generator } from './generator.js'
import {
  broadcastShapes,
  broadcastStrides,
  broadcastsTo,
  contiguousStrides,
  inferShape,
  isContiguous,
  normalizeDim,
  normalizeDims,
  numelOf,
  viewStrides,
} from './shape.js'

test('strides are row-major; an extent of 0 counts as 1', () => {
  expect(contiguousStrides([2, 3, 4])).toEqual([12, 4, 1])
  expect(contiguousStrides([2, 0, 4])).toEqual([4, 4, 1])
  expect(contiguousStrides([])).toEqual([])
})

test('contiguity: strides of extents 1 do not matter, and nothing is always contiguous', () => {
  expect(isContiguous([2, 3], [3, 1])).toBe(true)
  expect(isContiguous([2, 3], [1, 2])).toBe(false)
  expect(isContiguous([1, 3], [99, 1])).toBe(true)
  expect(isContiguous([2, 0, 3], [1, 7, 1])).toBe(true)
  expect(isContiguous([3, 2, 0], [0, 5, 2])).toBe(true)
  expect(isContiguous([3], [2])).toBe(false)
  expect(isContiguous([], [])).toBe(true)
})

test('broadcasting', () => {
  expect(broadcastShapes('add', [2, 1, 3], [4, 1])).toEqual([2, 4, 3])
  expect(broadcastShapes('add', [1, 3], [0, 1])).toEqual([0, 3])
  expect(broadcastShapes('add', [], [2])).toEqual([2])
  expect(() => broadcastShapes('add', [2], [3])).toThrow('add: expected shapes that broadcast')
  expect(broadcastStrides([3, 1], [1, 1], [2, 3, 4])).toEqual([0, 1, 0])
  expect(broadcastsTo([3, 1], [2, 3, 4])).toBe(true)
  expect(broadcastsTo([2, 3, 4], [3, 4])).toBe(false)
})

test('dimensions count from either end', () => {
  expect(normalizeDim('sum', -1, 3)).toBe(2)
  expect(normalizeDim('sum', -1, 0)).toBe(0)
  expect(normalizeDims('sum', [2, -3], 3)).toEqual([0, 2])
  expect(normalizeDims('sum', undefined, 2)).toEqual([0, 1])
  expect(normalizeDims('sum', [], 2)).toEqual([0, 1])
})

test('one -1 is inferred', () => {
  expect(inferShape('view', [2, -1], 6)).toEqual([2, 3])
  expect(inferShape('view', [-1], 0)).toEqual([0])
  expect(() => inferShape('view', [4, -1], 6)).toThrow('4, -1')
})

describe('viewStrides', () => {
  /** Offsets of all elements, in row-major order. */
  function offsets(shape: readonly number[], strides: readonly number[]): number[] {
    let out = [0]
    shape.forEach((extent, d) => {
      out = out.flatMap((at) => Array.from({ length: extent }, (_, i) => at + i * strides[d]!))
    })
    return out
  }

  const SHAPES: readonly (readonly number[])[] = [
    [24],
    [2, 12],
    [12, 2],
    [4, 6],
    [2, 3, 4],
    [4, 3, 2],
    [2, 2, 6],
    [1, 24],
    [2, 1, 12],
    [2, 3, 2, 2],
    [1, 4, 1, 6],
  ]

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('seed %d: strides read the same elements, and null only if none can', (seed) => {
    const random = new Generator(seed)
    for (let round = 0; round < 60; round++) {
      const shape = SHAPES[random.integer(0, SHAPES.length)]!
      const target = SHAPES[random.integer(0, SHAPES.length)]!
      // A random permutation of the memory order, sometimes with gaps.
      const order = shape.map((_, d) => d)
      for (let d = order.length - 1; d > 0; d--) {
        const other = random.integer(0, d + 1)
        ;[order[d], order[other]] = [order[other]!, order[d]!]
      }
      const strides = new Array<number>(shape.length)
      let step = random.integer(1, 3)
      for (const d of order) {
        strides[d] = step
        step *= shape[d]! * (random.integer(0, 4) === 0 ? 2 : 1)
      }
      const found = viewStrides(shape, strides, target)
      const wanted = offsets(shape, strides)
      if (found !== null) expect(offsets(target, found)).toEqual(wanted)
      else {
        // A strided view exists exactly if each target dimension's step is constant: derive the only candidate and see it fail.
        const candidate = target.map((extent, d) => (extent === 1 ? 0 : wanted[numelOf(target.slice(d + 1))]!))
        expect(offsets(target, candidate)).not.toEqual(wanted)
      }
    }
  })
})
