/** The sums by which the end of a group is known. */
import { describe, expect, test } from '@jest/globals'
import { type Counts, unsettled } from './traffic.js'

const reports = (rows: Record<number, Counts>) => new Map(Object.entries(rows).map(([id, counts]) => [Number(id), counts]))

describe('unsettled', () => {
  test('SHD-1: nothing is under way when what each has sent is what the others have received, pair by pair', () => {
    expect(unsettled(new Map())).toEqual([])
    expect(unsettled(reports({ 3: [[3, 9, 7]] }))).toEqual([])
    expect(unsettled(reports({ 0: [[1, 2, 5]], 1: [[0, 5, 2]] }))).toEqual([])
  })

  test('SHD-1: one message more sent than received, or received than sent, is noticed; sums over all would not do', () => {
    expect(unsettled(reports({ 0: [[1, 3, 5]], 1: [[0, 5, 2]] }))).toEqual([1])
    // Received behind the cut of its sender: the two reports are of different times.
    expect(unsettled(reports({ 0: [[1, 2, 5]], 1: [[0, 5, 3]] }))).toEqual([1])
    const crossed = reports({
      0: [
        [1, 1, 0],
        [2, 0, 0],
      ],
      1: [
        [0, 0, 0],
        [2, 0, 0],
      ],
      2: [
        [0, 0, 1],
        [1, 0, 0],
      ],
    })
    // One was sent and one received, but not on the same way.
    expect(unsettled(crossed).sort()).toEqual([1, 2])
  })

  test('SHD-7: who has said nothing is no member, and who has closed waits for nothing', () => {
    expect(unsettled(reports({ 0: [[1, 3, 0]] }))).toEqual([])
    expect(unsettled(reports({ 0: [[1, 3, 0]], 1: [] }))).toEqual([])
  })
})
