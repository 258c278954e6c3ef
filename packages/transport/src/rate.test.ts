import { describe, expect, test } from '@jest/globals'
import type { Holder } from './budget.js'
import type { Clock } from './clock.js'
import { Rate } from './rate.js'

const at = (address: string, role = 'observer'): Holder => ({ identity: `${role}@${address}`, role })

function setUp(perSecond = 400, seconds = 2) {
  let nowMs = 1000
  const rate = new Rate({ now: () => nowMs } as Clock, perSecond, seconds)
  const pass = (ms: number) => {
    nowMs += ms
  }
  /** How often before it has to wait. */
  const fill = (holder: Holder): number => {
    for (let count = 0; ; count++) if (rate.spend(holder, 1) > 0) return count
  }
  return { rate, pass, fill }
}

describe('rates', () => {
  test('BUD-5 so much at once, and then so much a second: the pause is the time in which what is beyond comes back', () => {
    const { rate, pass, fill } = setUp()
    // A quarter of 400 a second, for two seconds.
    expect(fill(at('10.0.0.1'))).toBe(200)
    expect(rate.spend(at('10.0.0.1'), 99)).toBe(1000)
    pass(1000)
    expect(rate.spend(at('10.0.0.1'), 0)).toBe(0)
    expect(rate.spend(at('10.0.0.1'), 1)).toBe(100)
    pass(10_000)
    expect(fill(at('10.0.0.1'))).toBe(200)
  })

  test('BUD-5 an identity has half of its role’s, a role half of all', () => {
    const { fill } = setUp()
    expect([fill(at('10.0.0.1')), fill(at('10.0.0.1')), fill(at('10.0.0.2')), fill(at('10.0.0.3'))]).toEqual([200, 0, 198, 0])
    expect(fill(at('10.0.0.1', 'eye'))).toBe(200)
  })

  test('BUD-5 an identity owes all that it has used; others wait for a second at most', () => {
    const { rate, pass } = setUp()
    for (let i = 0; i < 600; i++) rate.spend(at('10.0.0.1'), 1000)
    expect([rate.spend(at('10.0.0.2'), 1), rate.spend(at('10.0.0.3', 'eye'), 1)]).toEqual([1000, 1000])
    pass(1100)
    expect([rate.spend(at('10.0.0.2'), 1), rate.spend(at('10.0.0.3', 'eye'), 1)]).toEqual([0, 0])
    expect(rate.spend(at('10.0.0.1'), 0)).toBeGreaterThan(5_000_000)
  })

  test('BUD-5 who has used nothing for a while is forgotten', () => {
    const { rate, pass } = setUp()
    for (let i = 0; i < 5000; i++) {
      rate.spend(at(`10.0.${i}`), 1)
      pass(100)
    }
    expect((rate as unknown as { allowances: Map<string, unknown> }).allowances.size).toBeLessThan(1100)
  })
})
