/** Counting what overtakes: by the numbers, and by how many are missing. */
import { expect, test } from '@jest/globals'
import { Arrivals } from './arrivals.js'

/** The fixed seed of a small generator: the orders are the same in every run. */
const SEED = 20261124
function* below(count: number): Generator<number> {
  for (let state = SEED; ; ) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    yield (state >>> 8) % count
  }
}

test(`SES-23 in any order of arrival both ways of counting agree with a list of all that have come (seed ${SEED})`, () => {
  const COUNT = 12
  const random = below(COUNT)
  for (let round = 0; round < 2000; round++) {
    const [byNumber, byMissing] = [new Arrivals(), new Arrivals()]
    const left = Array.from({ length: COUNT }, (_, i) => i + 1)
    const come = new Set<number>()
    while (left.length > 0) {
      const [number] = left.splice(random.next().value! % left.length, 1) as [number]
      const missing = left.filter((one) => one < number).length
      expect(byNumber.missingBefore(number)).toBe(missing)
      expect(byMissing.numberBehind(missing)).toBe(number)
      for (const arrivals of [byNumber, byMissing]) {
        expect(arrivals.has(number)).toBe(false)
        if (number === arrivals.last + 1) arrivals.addNext()
        else arrivals.addAhead(number)
        while (arrivals.passGap());
      }
      come.add(number)
      expect(byNumber.last).toBe((left[0] ?? COUNT + 1) - 1)
      expect(byMissing.hasGap).toBe([...come].some((one) => one > byMissing.last))
      for (let one = 1; one <= COUNT; one++) expect(byNumber.has(one)).toBe(come.has(one))
    }
  }
})
