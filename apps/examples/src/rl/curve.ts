/** The learning curve as a picture. */
import { writeChart } from '../shared/chart.js'
import type { Settings } from './settings.js'

/** The reward of an episode, and the running reward. */
export interface Point {
  readonly reward: number
  readonly running: number
}

const TITLES = {
  reinforce: 'An agent learns CartPole from its observers (REINFORCE)',
  batched: 'An agent learns CartPole from observers whom it answers at once (REINFORCE)',
  'actor-critic': 'An actor and its critic learn CartPole from jobs',
} as const

export async function writeCurve(
  path: string,
  points: readonly Point[],
  { variant, observers, target }: Settings,
  seconds: number,
): Promise<void> {
  const last = points.at(-1)?.running ?? 0
  await writeChart(path, {
    title: TITLES[variant],
    subtitle: `${observers} ${observers === 1 ? 'observer' : 'observers'} · ${points.length} episodes in ${seconds.toFixed(1)} s`,
    x: { name: 'episodes', max: Math.max(points.length, 1) },
    y: { name: 'reward (steps upright)', min: 0, max: 500 },
    curves: [
      { name: 'each episode, mean of all observers', kind: 'pale', points: points.map(({ reward }, i) => [i + 1, reward] as const) },
      {
        name: `solved (${target})`,
        kind: 'limit',
        points: [0, Math.max(points.length, 1)].map((x) => [x, target] as const),
      },
      {
        name: 'running reward',
        kind: 'dark',
        label: `running ${last.toFixed(0)}`,
        points: points.map(({ running }, i) => [i + 1, running] as const),
      },
    ],
  })
}
