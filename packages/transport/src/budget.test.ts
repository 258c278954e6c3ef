import { describe, expect, test } from '@jest/globals'
import { Budget, type Holder, NOBODY } from './budget.js'

const at = (address: string, role = 'member'): Holder => ({ identity: `${role}@${address}`, role })

/** How much of it there is room for, one by one. */
function fill(shares: readonly { take(amount: number): unknown }[]): number {
  let taken = 0
  for (const share of shares) while (share.take(1) === null) taken++
  return taken
}

describe('budgets', () => {
  test('BUD-1 nest: a connection, an identity, its role, the process; each says which of them was in the way', () => {
    const budget = new Budget(80, 6)
    const one = budget.share(at('10.0.0.1'))
    expect([fill([one]), one.take(1)]).toEqual([6, { level: 'connection', limit: 6 }])
    const more = Array.from({ length: 9 }, () => budget.share(at('10.0.0.1')))
    expect([fill(more), more[8]!.take(1)]).toEqual([14, expect.objectContaining({ level: 'identity', limit: 20 })])
    const others = Array.from({ length: 9 }, (_, i) => budget.share(at(`10.0.1.${i}`)))
    expect([fill(others), others[8]!.take(1)]).toEqual([20, expect.objectContaining({ level: 'role', limit: 40 })])
    const roles = Array.from({ length: 20 }, (_, i) => budget.share(at(`10.0.2.${i}`, `role${i}`)))
    expect([fill(roles), roles[19]!.take(1)]).toEqual([40, expect.objectContaining({ level: 'process', limit: 80 })])
    expect(budget.total).toBe(80)
  })

  test('BUD-2 an identity has half of its role’s, on however many connections, and so another one of its role always finds room', () => {
    const budget = new Budget(400)
    const greedy = Array.from({ length: 50 }, () => budget.share(at('10.0.0.1', 'observer')))
    expect(fill(greedy)).toBe(100)
    expect(fill([budget.share(at('10.0.0.2', 'observer'))])).toBe(100)
  })

  test('BUD-3 restricted roles have a quarter together, however many they are, and the others the rest', () => {
    const budget = new Budget(400)
    const restricted = Array.from({ length: 20 }, (_, i) => budget.share(at(`10.0.0.${i}`, `eye${i}`), true))
    expect([fill(restricted), restricted[19]!.take(1)]).toEqual([100, expect.objectContaining({ level: 'restricted roles', limit: 100 })])
    expect(fill([budget.share(at('10.0.0.1')), budget.share(at('10.0.0.2'))])).toBe(200)
    expect(fill([budget.share(NOBODY)])).toBe(100)
  })

  test('BUD-4 what is given back is there again for everybody, all of it where a connection ends, and nothing of it is remembered', () => {
    const budget = new Budget(8)
    const [a, b] = [budget.share(at('10.0.0.1')), budget.share(at('10.0.0.1'))]
    expect([a.take(2), b.take(1)]).toEqual([null, expect.objectContaining({ level: 'identity' })])
    a.give(1)
    expect(b.take(1)).toBeNull()
    a.end()
    a.end()
    b.end()
    expect([budget.total, (budget as unknown as { used: Map<string, number> }).used.size]).toEqual([0, 0])
    expect(() => a.give(1)).toThrow('no more is given back than was taken')
    // A refused amount has taken nothing.
    expect([b.take(3), b.take(2), budget.total]).toEqual([expect.objectContaining({ level: 'identity' }), null, 2])
  })
})
