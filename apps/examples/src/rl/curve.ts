/** The learning curve as a picture. */
import { writeRun } from '../shared/log.js'
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

/** @returns the path of the log */
export async function writeCurve(
  path: string,
  points: readonly Point[],
  { variant, observers, target }: Settings,
  seconds: number,
): Promise<string> {
  const rows = points.map((point, i) => ({ step: i + 1, ...point }))
  return await writeRun(path, rows, {
    title: TITLES[variant],
    subtitle: `${observers} ${observers === 1 ? 'observer' : 'observers'} · ${points.length} episodes in ${seconds.toFixed(1)} s`,
    xName: 'episodes',
    panels: [
      {
        name: 'reward (steps upright)',
        min: 0,
        max: 500,
        lines: [{ name: `solved (${target})`, value: target }],
        curves: [
          { tag: 'reward', name: 'each episode, mean of all observers', style: 'pale' },
          { tag: 'running', name: 'running reward', label: `running ${(points.at(-1)?.running ?? 0).toFixed(0)}` },
        ],
      },
    ],
  })
}
