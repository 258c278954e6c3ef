/** Returns and advantages, and the buffer of steps. */
import { describe, expect, test } from '@jest/globals'
import { arange, manualSeed, tensor } from 'postgrad'
import { ReplayBuffer } from './replay-buffer.js'
import { advantages, discounted, stacked, standardized } from './returns.js'

test('discounted by γ = .99', () => {
  expect(discounted([1, 1, 1])).toEqual([1 + 0.99 * (1 + 0.99), 1.99, 1])
  expect(discounted([])).toEqual([])
})

test('standardized: mean 0, deviation 1; one value is 0', () => {
  const values = standardized([1, 2, 3, 4])
  expect(values.reduce((a, b) => a + b)).toBeCloseTo(0)
  expect(values.reduce((a, b) => a + b * b, 0) / 3).toBeCloseTo(1, 6)
  expect(standardized([7])).toEqual([0])
})

test('advantages: a critic that knows everything leaves none, one that says 0 leaves the returns with λ', () => {
  const rewards = [1, 1, 1]
  const right = advantages(rewards, discounted(rewards), 0)
  for (const a of right.advantages) expect(a).toBeCloseTo(0)
  for (const [i, target] of right.targets.entries()) expect(target).toBeCloseTo(discounted(rewards)[i]!)
  const blind = advantages(rewards, [0, 0, 0], 0)
  expect(blind.advantages[2]).toBe(1)
  expect(blind.advantages[1]).toBeCloseTo(1 + 0.99 * 0.95)
  // If the pole is up, the value after the last step counts.
  expect(advantages([1], [0], 10).advantages[0]).toBeCloseTo(1 + 9.9)
})

test('stacked: all steps of all observers', () => {
  const a = { states: [[1, 2, 3, 4] as const], actions: [1], rewards: [1] }
  const b = { states: [[5, 6, 7, 8] as const, [9, 9, 9, 9] as const], actions: [0, 1], rewards: [1, 1] }
  const { states, actions, returns } = stacked([a, b] as never)
  expect(states.shape).toEqual([3, 4])
  expect(actions.toArray()).toEqual([1, 0, 1])
  expect(returns.toArray()).toHaveLength(3)
})

describe('ReplayBuffer', () => {
  test('the oldest go when it is full, also in one push that goes around', () => {
    manualSeed(1)
    const buffer = new ReplayBuffer(4, 2)
    buffer.push(
      tensor([
        [0, 0],
        [1, 1],
        [2, 2],
      ]),
    )
    expect(buffer.length).toBe(3)
    buffer.push(
      tensor([
        [3, 3],
        [4, 4],
        [5, 5],
      ]),
    )
    expect(buffer.length).toBe(4)
    const seen = (): Set<unknown> => new Set((buffer.sample(200).toArray() as number[][]).map(([x]) => x))
    expect([...seen()].sort()).toEqual([2, 3, 4, 5])
    buffer.push(arange(10, 30).reshape([10, 2]))
    expect([...seen()].sort()).toEqual([22, 24, 26, 28])
  })
})
