/** Fields and plans that no worker writes. */
import { describe, expect, test } from '@jest/globals'
import { planOf, readPlan } from '../pass/pass-plan.js'
import { Lineage } from './lineage.js'
import { depthOf, isFast, numberOf, readLineage } from './lineage-field.js'

const malformed = expect.objectContaining({ code: 'LINEAGE_MALFORMED' })

test('DA-32 a field without its depth is refused', () => {
  expect(depthOf([7])).toBe(7)
  for (const field of [null, []]) expect(() => depthOf(field)).toThrow(malformed)
})

test('DA-33 what a field says of the mode', () => {
  expect([null, [], [3], [3, 0, 0]].map(isFast)).toEqual([false, true, true, false])
})

describe('DA-41 malformed lineage', () => {
  test.each([
    ['no number', [1]],
    ['no dependencies', [1, 0]],
    ['more dependencies than numbers', [1, 0, 2, 5, 0]],
    ['a number of dependencies beyond all memory', [1, 0, 2 ** 50]],
    ['a worker that cannot be', [1, 0, 1, 2 ** 16, 0]],
    ['a message of a number that cannot be', [1, 0, 1, 5, 2 ** 40]],
    ['a message of the receiver that it has not sent', [1, 0, 1, 0, 4]],
    ['half a node', [1, 0, 1, 5, 0, 5]],
    ['a node without its dependencies', [1, 0, 1, 5, 0, 5, 0]],
    ['a node of a worker that cannot be', [1, 0, 0, 2 ** 16, 0, 0]],
    ['a node with too many', [1, 0, 1, 5, 0, 5, 0, 2, 5, 2]],
  ])('%s: the message is not known', (_, field) => {
    const lineage = new Lineage(0)
    readLineage(lineage, field, 5)
    const node = field.length < 2 ? undefined : lineage.find(5, 2 * numberOf(field))
    expect(node?.deps ?? null).toBeNull()
    expect(lineage.size).toBeLessThan(4)
    if (field.length < 2) expect(() => numberOf(field)).toThrow(malformed)
  })

  test('nodes that depend on each other end no walk, and a second telling changes nothing', () => {
    const lineage = new Lineage(0)
    readLineage(lineage, [1, 0, 1, 5, 2, 5, 2, 1, 5, 4, 5, 4, 1, 5, 2], 5)
    readLineage(lineage, [1, 0, 0], 5)
    const plan = planOf(lineage, [lineage.find(5, 0)!], [])
    expect(plan.fieldFor(5, 0)).toEqual([0, 5, 1, 0, 3])
  })

  test('what is only heard of makes a plan impossible, until it is told', () => {
    const lineage = new Lineage(0)
    readLineage(lineage, [1, 0, 1, 6, 8], 5)
    const roots = [lineage.find(5, 0)!]
    expect(() => planOf(lineage, roots, [])).toThrow(expect.objectContaining({ code: 'LINEAGE_INCOMPLETE', values: { workerId: 6 } }))
    readLineage(lineage, [1, 4, 0], 6)
    expect([...planOf(lineage, roots, []).workers()]).toEqual([5, 6])
  })
})

describe('DA-41 malformed plans', () => {
  test.each([
    ['nothing', []],
    ['more aborted passes than numbers', [2, 1]],
    ['half a part', [0, 5]],
    ['fewer intervals than it says', [0, 5, 2, 0, 1, 0]],
    ['more intervals than fit any memory', [0, 5, 2 ** 52]],
    ['two parts for one worker', [0, 5, 1, 0, 1, 5, 1, 1, 1]],
    ['a worker that cannot be', [0, 2 ** 16, 1, 0, 1]],
  ])('%s', (_, field) => {
    expect(() => readPlan(field)).toThrow(malformed)
  })

  test('messages that the worker has not sent', () => {
    const lineage = new Lineage(5)
    for (const part of [
      [0, 1],
      [2 ** 50, 1],
      [0, 2 ** 52],
    ]) {
      expect(() => readPlan([0, 5, 1, ...part]).sendsOf(lineage)).toThrow(malformed)
    }
    lineage.sends.push(null)
    expect(() => readPlan([0, 5, 1, 0, 1]).sendsOf(lineage)).toThrow(malformed)
  })

  test('what workers write is read as it was', () => {
    const field = [2, 17, 23, 1, 1, 0, 10_000, 4, 2, 3, 1, 2, 3]
    expect(readPlan(field).fieldFor(9, 8)).toEqual(field)
    expect(readPlan(field).aborted).toEqual([17, 23])
    // The forwarder has begun itself.
    expect(readPlan(field).fieldFor(9, 1)).toEqual([2, 17, 23, 4, 2, 3, 1, 2, 3])
  })
})
