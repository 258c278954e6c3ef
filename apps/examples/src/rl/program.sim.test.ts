/** The programs in the simulation: one seed gives one run, gradients are finite, the run continues without an observer that dies, and leaves nothing. */
import { describe, expect, test } from '@jest/globals'
import { expectClean, simulate } from 'postgrad/testing'
import { actorCriticEpisode, actorCriticGradients } from './actor-critic.js'
import { BatchedAgent, batchedEpisode } from './batched.js'
import type { Episode, Team } from './episode.js'
import { Agent, agentOf, episode } from './program.js'

// As many as PyTorch's own test has (reinforcement_learning_rpc_test).
const observers = ['observer1', 'observer2', 'observer3']
const workers = ['agent', ...observers]

interface Run {
  readonly episodes: readonly Episode[]
  readonly weights: readonly unknown[]
}

const asked = (batched: boolean) => (batched ? batchedEpisode : episode)

async function play(batched: boolean, seed: number, episodes = 3): Promise<Run & { steps: number }> {
  const team: Team = { observers, seed: 5 }
  const simulation = await simulate({ workers, seed }, (sim) =>
    sim.on('agent').run(async (): Promise<Run> => {
      const played: Episode[] = []
      for (let i = 0; i < episodes; i++) played.push(await asked(batched)(team))
      const agent = agentOf(team, batched ? BatchedAgent : Agent)
      const weights = agent.policy.gradients().map((gradient) => [...gradient.dataSync()])
      for (const observer of agent.observers.values()) observer.dispose()
      return { episodes: played, weights }
    }),
  )
  expectClean(simulation)
  return { ...simulation.result, steps: simulation.steps }
}

describe.each([
  ['reinforce', false],
  ['batched', true],
])('%s', (_name, batched) => {
  test('all observers play, and the policy gets a gradient', async () => {
    const { episodes, weights } = await play(batched, 1)
    expect(episodes).toHaveLength(3)
    for (const { rewards, lost } of episodes) {
      expect([rewards.length, lost]).toEqual([3, []])
      for (const reward of rewards) expect(reward).toBeGreaterThanOrEqual(8)
    }
    const all = weights.flat() as number[]
    expect(all.every(Number.isFinite)).toBe(true)
    expect(all.some((x) => x !== 0)).toBe(true)
  })

  test('the same seed gives the same run', async () => {
    expect(await play(batched, 7)).toEqual(await play(batched, 7))
  })

  test('an observer that dies in an episode is left out, the others go on', async () => {
    const team: Team = { observers, seed: 5 }
    const { result } = await simulate({ workers, seed: 3 }, async (sim) => {
      const first = sim.on('agent').run(asked(batched), team)
      // In the middle of it: a step takes some of the world's steps.
      await sim.on('observer2').run(async () => {
        for (let i = 0; i < 5; i++) await new Promise<void>((resolve) => sim.world.clock.defer(resolve))
      })
      sim.crash('observer2')
      return [await first, await sim.on('agent').run(asked(batched), team)]
    })
    expect(result[0]!.lost).toEqual(['observer2'])
    expect(result.map(({ rewards }) => rewards.length)).toEqual([2, 2])
    expect(result[1]!.lost).toEqual([])
  })
})

test('batched: in whatever order the observers ask, the run is the same', async () => {
  const { steps: _, ...first } = await play(true, 1)
  for (const seed of [2, 3]) expect(await play(true, seed)).toMatchObject(first)
})

describe('actor-critic', () => {
  const run = async (seed: number): Promise<Run> => {
    const team: Team = { observers, seed: 5 }
    const simulation = await simulate({ workers: ['agent'], seed, jobs: { rollouts: { threads: 2 } } }, (sim) =>
      sim.on('agent').run(async (): Promise<Run> => {
        const episodes = [await actorCriticEpisode(team), await actorCriticEpisode(team)]
        return { episodes, weights: actorCriticGradients().map((gradient) => [...gradient.dataSync()]) }
      }),
    )
    expectClean(simulation)
    return simulation.result
  }

  test('rollouts in jobs: the order in which they run changes nothing', async () => {
    const first = await run(1)
    for (const { rewards } of first.episodes) expect(rewards).toHaveLength(3)
    const all = first.weights.flat() as number[]
    expect(all.every(Number.isFinite)).toBe(true)
    expect(all.some((x) => x !== 0)).toBe(true)
    for (const seed of [2, 3]) expect(await run(seed)).toEqual(first)
  })
})
