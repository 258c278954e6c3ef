/** Streams of windows over a text: which characters, in which order, and what follows each. */
import { expect, test } from '@jest/globals'
import { Streams, streamsIn } from './streams.js'

const text = Int32Array.from({ length: 21 }, (_, i) => i)

test('streams begin evenly spread and read on; targets are the followers', () => {
  const streams = new Streams(text, 2, 3)
  const [input, target] = streams.next()
  expect(input.toArray()).toEqual([
    [0, 10],
    [1, 11],
    [2, 12],
  ])
  expect(target.toArray()).toEqual([1, 11, 2, 12, 3, 13])
  expect(streams.next()[0].toArray()).toEqual([
    [3, 13],
    [4, 14],
    [5, 15],
  ])
})

test('a window that would pass the end begins at the start', () => {
  const streams = new Streams(text, 2, 8)
  streams.next()
  const [input, target] = streams.next()
  expect(input.select(1, 1).toArray()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  expect(target.reshape([8, 2]).select(1, 0).toArray()).toEqual([9, 10, 11, 12, 13, 14, 15, 16])
})

test('every place has a whole window before the end, whatever the offset', () => {
  for (const offset of [0, 0.3, 0.999]) {
    const streams = new Streams(text, 7, 20, offset)
    expect(streams.next()[1].reshape([20, 7]).select(0, 19).toArray()).toEqual(Array(7).fill(20))
  }
})

test('streamsIn: whole windows, and a follower of the last character', () => {
  expect(streamsIn(21, 4, 5)).toEqual({ streams: 4, windows: 1 })
  expect(streamsIn(20, 4, 5)).toEqual({ streams: 3, windows: 1 })
  expect(streamsIn(1001, 4, 5)).toEqual({ streams: 4, windows: 50 })
  expect(streamsIn(6, 4, 5)).toEqual({ streams: 1, windows: 1 })
})
