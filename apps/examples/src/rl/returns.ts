/** The trajectory of an episode, and its returns and advantages. */
import { type Tensor, tensor } from 'postgrad'
import type { State } from './cart-pole.js'

const GAMMA = 0.99

/** One observer's episode, step by step. */
export interface Trajectory {
  readonly states: State[]
  readonly actions: number[]
  readonly rewards: number[]
}

export const newTrajectory = (): Trajectory => ({ states: [], actions: [], rewards: [] })

export const total = (rewards: readonly number[]): number => rewards.reduce((sum, r) => sum + r, 0)

/** Per step the rewards from there on, each step later worth γ of it. */
export function discounted(rewards: readonly number[]): number[] {
  const returns = new Array<number>(rewards.length)
  let sum = 0
  for (let i = rewards.length - 1; i >= 0; i--) {
    sum = rewards[i]! + GAMMA * sum
    returns[i] = sum
  }
  return returns
}

/** With mean 0 and standard deviation 1; a single value is 0. */
export function standardized(values: readonly number[]): number[] {
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / Math.max(1, values.length - 1)
  return values.map((x) => (x - mean) / (Math.sqrt(variance) + 1e-8))
}

/** All steps of all observers: states [N, 4], actions [N] and standardized returns [N]. */
export function stacked(trajectories: Iterable<Trajectory>): {
  readonly states: Tensor
  readonly actions: Tensor
  readonly returns: Tensor
} {
  const all = [...trajectories]
  return {
    states: tensor(all.flatMap(({ states }) => states.map((state) => [...state]))),
    actions: tensor(
      all.flatMap(({ actions }) => actions),
      { dtype: 'int32' },
    ),
    returns: tensor(standardized(all.flatMap(({ rewards }) => discounted(rewards)))),
  }
}

/**
 * Advantages by temporal differences (Schulman et al. 2016, γ .99, λ .95), and what the critic should have said.
 * @param last the critic's value of the state after the last step; 0 where the pole has fallen
 */
export function advantages(
  rewards: readonly number[],
  values: readonly number[],
  last: number,
): { readonly advantages: number[]; readonly targets: number[] } {
  const found = new Array<number>(rewards.length)
  let [following, advantage] = [last, 0]
  for (let i = rewards.length - 1; i >= 0; i--) {
    advantage = rewards[i]! + GAMMA * following - values[i]! + GAMMA * LAMBDA * advantage
    found[i] = advantage
    following = values[i]!
  }
  return { advantages: found, targets: found.map((a, i) => a + values[i]!) }
}

const LAMBDA = 0.95
