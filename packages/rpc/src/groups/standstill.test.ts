/** Which workers count as gone, by what all have said. */
import { describe, expect, test } from '@jest/globals'
import type { Said, Waiting } from './group-protocol.js'
import { goneIn } from './standstill.js'
import type { Counts } from './traffic.js'

const ALL = [0, 1, 2]
/** So many messages have gone from each to each. */
const even = (ids: readonly number[] = ALL): Counts => ids.map((peer) => [peer, 7, 7])
const over = (counts = even()): Said => [true, [], counts]
const waits = (on: readonly number[], group = 'g', counts = even()): Said => [false, [[group, on, -1]], counts]
const gone = (...said: readonly Said[]) => goneIn(new Map(said.map((one, id) => [id, one])))

test('STA-1: a worker whose program is over is gone for a group when all whose program is not over wait', () => {
  expect(gone(waits([1]), over(), waits([0, 1]))).toEqual([['g', 1]])
  expect(gone(over(), over(), waits([0, 1]))).toEqual([
    ['g', 0],
    ['g', 1],
  ])
  // In another group each: none of them can call anybody.
  expect(gone(waits([1], 'a'), over(), waits([1], 'b'))).toEqual([
    ['a', 1],
    ['b', 1],
  ])
  expect(gone(waits([2]), over(), waits([1]))).toEqual([['g', 1]])
})

describe('STA-1, STA-2: nobody is gone', () => {
  const behind = (peer: number): Counts => even().map(([to, sent, received]) => [to, sent, received - (to === peer ? 1 : 0)])
  const untouched: readonly Waiting[] = [['g', [1], -1]]
  test.each<readonly [string, ...Said[]]>([
    ['a program goes on', waits([1]), over(), [false, [], even()]],
    ['something is under way at one that waits', waits([1]), over(), null],
    ['something is under way at the one that is waited for', waits([1]), null, waits([1])],
    ['a message is under way to it', waits([1]), over(behind(0)), waits([1])],
    ['a message is under way from it', waits([1], 'g', behind(1)), over(), waits([1])],
    ['a message is under way between others', waits([1], 'g', behind(2)), over(), waits([1])],
    ['one that was not asked has a link to one of them', waits([1]), over(even([0, 1, 2, 9])), waits([1])],
    ['nobody waits for it', waits([2]), over(), waits([0])],
    ['it waits itself', waits([1]), [true, untouched, even()], waits([1])],
    ['no program is over', waits([1]), waits([2]), waits([1])],
  ])('%s', (_, ...said) => {
    expect(gone(...said)).toEqual([])
  })
})
