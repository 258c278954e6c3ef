/**
 * Combines the workers' notes of a step: its actions on one clock, for `drawPipeline`, and their costs, for `simulateSchedule`. So a user can compare plan and measurement. Uses
 * `simulation.ts`.
 */
import { isCommunication, type PipelineAction } from './action.js'
import type { PipelineSchedule } from './schedule.js'
import { keyOf, measured, needsOf, type PipelineSimulation, type TimedAction } from './simulation.js'

/**
 * The measured actions of one `step` on all ranks, put on one clock. The clocks of workers begin at different times. This function shifts each rank so that
 * nothing begins before its inputs are complete, and takes the middle of what the forward and backward passes between two ranks leave open.
 * @example
 * const schedule = pipelineSchedule('1F1B', { ranks: 2, microbatches: 4 })
 * const { ranks: actions } = simulateSchedule(schedule, { F: 1, B: 2 }) // in place of the `actions` of each rank's pipeline.step()
 * const steps = measuredSteps(schedule, actions)
 * steps.duration // 15
 * const picture = drawPipeline([{ title: 'measured', steps }])
 */
export function measuredSteps(schedule: PipelineSchedule, actions: readonly (readonly TimedAction[])[]): PipelineSimulation {
  const needs = needsOf({ ...schedule, ranks: [] })
  const done = new Map<number, { readonly rank: number; readonly end: number }>()
  const computed = actions.map((timed) => timed.filter(({ action }) => !isCommunication(action.kind)))
  for (const [rank, timed] of computed.entries()) for (const { action, end } of timed) done.set(keyOf(action), { rank, end })
  /** By pair of ranks a, b: how far b's clock must be moved forward, at least, if a's stays. */
  const least = new Map<string, number>()
  for (const [rank, timed] of computed.entries()) {
    for (const { action, start } of timed) {
      const need = needs(action)
      const source = need === null ? undefined : done.get(keyOf(need))
      if (source === undefined || source.rank === rank) continue
      const pair = `${source.rank} ${rank}`
      least.set(pair, Math.max(least.get(pair) ?? Number.NEGATIVE_INFINITY, source.end - start))
    }
  }
  const shifts = new Map([[0, 0]])
  for (const [a, shift] of shifts) {
    for (const b of computed.keys()) {
      const [forward, back] = [least.get(`${a} ${b}`), least.get(`${b} ${a}`)]
      if (shifts.has(b) || (forward === undefined && back === undefined)) continue
      shifts.set(b, shift + (forward === undefined ? -back! : back === undefined ? forward : (forward - back) / 2))
    }
  }
  return measured(
    computed.map((timed, rank) => {
      const shift = shifts.get(rank) ?? 0
      return timed.map(({ action, start, end }) => ({ action, start: start + shift, end: end + shift }))
    }),
  )
}

/**
 * The average cost of the actions of each stage and kind, as `costs` for `simulateSchedule`. The simulation then shows the step without any waiting for
 * messages.
 * @example
 * const schedule = pipelineSchedule('1F1B', { ranks: 2, microbatches: 4 })
 * const { ranks: actions } = simulateSchedule(schedule, { F: 1, B: 2 }) // in place of the `actions` of each rank's pipeline.step()
 * simulateSchedule(schedule, measuredCosts(actions)).duration // 15
 */
export function measuredCosts(actions: readonly (readonly TimedAction[])[]): (action: PipelineAction) => number {
  const sums = new Map<string, { cost: number; count: number }>()
  const keyOf = ({ stage, kind }: PipelineAction): string => `${stage}${kind}`
  for (const { action, start, end } of actions.flat()) {
    const sum = sums.get(keyOf(action)) ?? { cost: 0, count: 0 }
    sums.set(keyOf(action), { cost: sum.cost + end - start, count: sum.count + 1 })
  }
  return (action) => {
    const { cost, count } = sums.get(keyOf(action)) ?? { cost: 0, count: 1 }
    return isCommunication(action.kind) ? 0 : cost / count
  }
}
