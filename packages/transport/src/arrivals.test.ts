/** `Arrivals`: numbers that overtake others, and the count of those missing. */
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
  const ALL = Array.from({ length: COUNT }, (_, i) => i + 1)
  const random = below(COUNT)
  for (let round = 0; round < 300; round++) {
    const [byNumber, byMissing] = [new Arrivals(), new Arrivals()]
    const left = [...ALL]
    const come = new Set<number>()
    while (left.length > 0) {
      const [number] = left.splice(random.next().value! % left.length, 1) as [number]
      const missing = left.filter((one) => one < number).length
      expect([byNumber.missingBefore(number), byMissing.numberBehind(missing)]).toEqual([missing, number])
      for (const arrivals of [byNumber, byMissing]) {
        if (number === arrivals.last + 1) arrivals.addNext()
        else arrivals.addAhead(number)
        while (arrivals.passGap());
      }
      come.add(number)
      const last = (left[0] ?? COUNT + 1) - 1
      const hasGap = [...come].some((one) => one > last)
      expect([byNumber.last, byMissing.last, byMissing.hasGap]).toEqual([last, last, hasGap])
      expect(ALL.filter((one) => byNumber.has(one))).toEqual(ALL.filter((one) => come.has(one)))
    }
  }
})
