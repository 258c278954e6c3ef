/** The counts by which a group knows its end. */
import { describe, expect, test } from '@jest/globals'
import { type Counts, Tally, unsettled } from './traffic.js'

const reports = (rows: Record<number, Counts>) => new Map(Object.entries(rows).map(([id, counts]) => [Number(id), counts]))

describe('unsettled', () => {
  test('SHD-1: nothing is under way when what each has sent is what the others have received, pair by pair', () => {
    expect(unsettled(new Map())).toEqual([])
    expect(unsettled(reports({ 3: [[3, 9, 7]] }))).toEqual([])
    expect(unsettled(reports({ 0: [[1, 2, 5]], 1: [[0, 5, 2]] }))).toEqual([])
  })

  test('SHD-1: one message more sent than received, or received than sent, is noticed; sums over all would not do', () => {
    expect(unsettled(reports({ 0: [[1, 3, 5]], 1: [[0, 5, 2]] }))).toEqual([1])
    // Sent after the cut of its sender: the two reports are of different times.
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

test('SHD-1: who has said nothing, or not since it was forgotten, is not settled; only those that are asked about count', () => {
  const tally = new Tally()
  expect(tally.unsettled([0, 1])).toEqual([0, 1])
  tally.note(0, [
    [1, 2, 5],
    [2, 9, 0],
  ])
  expect(tally.unsettled([0, 1])).toEqual([1])
  tally.note(1, [[0, 5, 1]])
  expect(tally.unsettled([0, 1])).toEqual([1])
  tally.note(1, [[0, 5, 2]])
  expect(tally.unsettled([0, 1])).toEqual([])
  expect([tally.seesOthers(0, [0, 1]), tally.seesOthers(1, [0, 1])]).toEqual([true, false])
  tally.forget(0)
  expect(tally.unsettled([0, 1])).toEqual([0])
  tally.clear()
  expect(tally.has(1)).toBe(false)
})
