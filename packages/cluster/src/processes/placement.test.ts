/** Which process a worker runs in. */
import { expect, test } from '@jest/globals'
import { placement } from './placement.js'

test('CLU-90 workers are spread in blocks, in the order of their names', () => {
  const placeOf = placement(['a', 'b', 'c', 'd', 'e'], 2)
  expect(['a', 'b', 'c', 'd', 'e'].map(placeOf)).toEqual([0, 0, 0, 1, 1])
})

test('CLU-90 whoever joins later comes where the fewest names are, and a name keeps its place', () => {
  const placeOf = placement(['a', 'b', 'c'], 2)
  expect(['d', 'e', 'd', 'a', 'c'].map(placeOf)).toEqual([1, 0, 1, 0, 1])
})
