/** Settings: the command line of `npm run example rl`, read and checked. */
import { parseArgs } from 'node:util'
import { countOption, numberOption } from '../shared/number-option.js'
import { commandOf, withOptions } from '../shared/place.js'

export const VARIANTS = ['reinforce', 'batched', 'actor-critic'] as const
export type Variant = (typeof VARIANTS)[number]

export interface Settings {
  readonly variant: Variant
  readonly observers: number
  readonly seed: number
  /** Ends at the latest after this many. */
  readonly episodes: number
  /** Ends when the running reward is above this. */
  readonly target: number
  /** Null: `out/rl.svg`. */
  readonly out: string | null
}

const OBSERVERS = 8
const OBSERVERS_MAX = 256
const EPISODES = 3000
/** At which CartPole-v1 counts as solved. */
const TARGET = 475

export const HELP = `Usage: ${withOptions(commandOf('rl'), '[options]')}

An agent learns to balance a pole on a cart (CartPole) from observers that play it.

Options:
  --variant NAME     ${VARIANTS.join(', ')} (default: ${VARIANTS[0]})
                     reinforce: observers are workers, each asks the agent for every action
                     batched: the same, and the agent answers all observers at once
                     actor-critic: each episode is a job in a pool of threads, with a replay buffer
  --observers N      how many play (default: ${OBSERVERS})
  --seed N           of all random numbers (default: 0)
  --episodes N       end after so many at the latest (default: ${EPISODES})
  --target X         end when the running reward is above this, at most 500 (default: ${TARGET})
  --out FILE         where the picture of the rewards goes, and next to it the log;
                     both replace earlier ones (default: out/rl.svg)
  --help             print this`

/** Null: help was asked for. @throws TypeError, RangeError with a message for the user */
export function readSettings(argv: readonly string[]): Settings | null {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args: [...argv],
    options: { variant: text, observers: text, seed: text, episodes: text, target: text, out: text, help: { type: 'boolean' } },
  })
  if (values.help) return null
  const variant = (values.variant ?? VARIANTS[0]) as Variant
  if (!VARIANTS.includes(variant)) throw new RangeError(`--variant: expected one of ${VARIANTS.join(', ')}, got '${variant}'`)
  return {
    variant,
    observers: numberOption(
      values,
      'observers',
      OBSERVERS,
      `a whole number from 1 to ${OBSERVERS_MAX}`,
      (n) => Number.isInteger(n) && n >= 1 && n <= OBSERVERS_MAX,
    ),
    seed: numberOption(values, 'seed', 0, 'a whole number', Number.isSafeInteger),
    episodes: countOption(values, 'episodes', EPISODES),
    target: numberOption(values, 'target', TARGET, 'a number from 0 to below 500', (x) => x >= 0 && x < 500),
    out: values.out ?? null,
  }
}
