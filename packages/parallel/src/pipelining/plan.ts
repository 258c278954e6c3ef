/**
 * The plan that all workers of a pipeline must share: else one would wait for a value that none makes. They send its hash with their requests, the plan only if hashes differ, so
 * that the error names the difference. Used by `stage-link.ts`, `pipeline.ts`.
 */
import { PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'

export interface Plan {
  readonly hash: string
  /** In words, each to be compared with the same one of another plan. */
  readonly parts: readonly string[]
  /** Named, where it was given by name. Lists that are equal are one schedule, whatever its name. */
  readonly schedule: string
  /** By rank: its actions, with blanks between them. */
  readonly ranks: readonly string[]
}

export function planOf(plan: Omit<Plan, 'hash'>): Plan {
  const { createHash } = builtin<typeof import('node:crypto')>('node:crypto')
  const text = JSON.stringify([plan.parts, plan.ranks])
  return { ...plan, hash: createHash('sha256').update(text).digest('hex').slice(0, 16) }
}

export function mismatch(self: string, own: Plan, other: string, others: Plan): PostgradError {
  const [here, there] = difference(own, others)
  return new PostgradError('PIPELINE_MISMATCH', {
    op: 'Pipeline.step',
    message: `the workers have different plans: '${self}' has ${here}, '${other}' has ${there}`,
    remedy:
      'Give all workers of a pipeline the same workers in the same order, schedule, scaleGrads and loss, and let all call step, or all eval.',
    values: { worker: other, own: here, other: there },
  })
}

/** The parts that differ, of each. */
function difference(a: Plan, b: Plan): readonly [string, string] {
  const pairs = a.parts.map((part, i) => [part, b.parts[i]!] as const).filter(([x, y]) => x !== y)
  const isSameSchedule = a.ranks.join() === b.ranks.join()
  if (!isSameSchedule && a.schedule !== b.schedule) pairs.push([a.schedule, b.schedule])
  // Other stages or micro-batches change all lists.
  if (pairs.length === 0) pairs.push(firstAction(a, b, (action) => !action.includes('_')) ?? firstAction(a, b, () => true)!)
  return [pairs.map(([x]) => x).join(', '), pairs.map(([, y]) => y).join(', ')]
}

/** Communications follow from the computations, unless a schedule has its own. */
function firstAction(a: Plan, b: Plan, counts: (action: string) => boolean): readonly [string, string] | null {
  for (let rank = 0; rank < Math.max(a.ranks.length, b.ranks.length); rank++) {
    const [x, y] = [a, b].map(({ ranks }) => (ranks[rank] ?? '').split(' ').filter((action) => action !== '' && counts(action))) as [
      string[],
      string[],
    ]
    for (let i = 0; i < Math.max(x.length, y.length); i++) {
      if (x[i] !== y[i])
        return [x[i], y[i]].map((action) => `${action ?? 'nothing'} as action ${i + 1} of rank ${rank}`) as [string, string]
    }
  }
  return null
}
