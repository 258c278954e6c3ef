/**
 * Rows of SMART against FAST (the limit of these rows): the lineage's cost in forward, the effect of the plan and fewer reports on backward, and bytes. FAST
 * does not handle unused results; its figures are the cost of counting alone.
 */
import { type ModeCost, modePasses, type Shape } from '../modes.js'
import { others, type PassStage } from '../pass-stage.js'
import type { RowPlan } from '../row.js'

const PROGRAMS: readonly (readonly [about: string, shape: Shape, calls: number, workers: number, n: number])[] = [
  ["the design note's pass", 'note', 1, 2, 300],
  ['a ping-pong of 1,000 calls', 'chain', 1000, 2, 2],
  ['a fan-out of 64 calls over 8 workers', 'fan', 64, 9, 20],
]
const TURNS_MAX = 9

/** Seconds for each call, in µs. */
const perCall = (calls: number) => (seconds: number, n: number) => (seconds / (n * calls)) * 1e6

export function modeRows(stage: PassStage): RowPlan[] {
  return PROGRAMS.flatMap(([about, shape, calls, workers, n]): RowPlan[] => {
    const row = (name: string, unit: string, of: (cost: ModeCost) => number, figure: RowPlan['figure']): RowPlan => {
      const run = (mode: 'smart' | 'fast') =>
        stage.with(workers, async (worker0, times) => of(await worker0.run(modePasses, times, shape, calls, others(workers - 1), mode)))
      return {
        name: `SMART against FAST, ${about}: ${name}`,
        ...{ unit, n, turnsMax: TURNS_MAX, higherIsBetter: false, figure, peers: {}, aim: () => null },
        ...{ ours: run('smart'), limit: run('fast') },
      }
    }
    return [
      row('CPU time of all of it, per call', 'µs', ({ seconds }) => seconds, perCall(calls)),
      row('CPU time of forward, per call', 'µs', ({ forwardSeconds }) => forwardSeconds, perCall(calls)),
      row('CPU time of backward, per call', 'µs', ({ backwardSeconds }) => backwardSeconds, perCall(calls)),
      row(
        'bytes of a message',
        'bytes',
        ({ bytes, messages }) => bytes / messages,
        (bytes) => bytes,
      ),
    ]
  })
}
