/** The picture of a step, and workers' clocks put on one scale. */
import { expect, test } from '@jest/globals'
import { type PipelineScheduleName, pipelineSchedule } from './generators.js'
import { measuredCosts, measuredSteps } from './measured-steps.js'
import { drawPipeline } from './picture.js'
import { withCommunications } from './schedule.js'
import { simulateSchedule } from './simulation.js'

test('PIP-14 clocks that began at different times: the steps as they were', () => {
  for (const name of ['GPipe', 'ZBVZeroBubble', 'Interleaved1F1B'] as const) {
    const schedule = withCommunications(pipelineSchedule(name, { ranks: 3, microbatches: 6 }))
    const steps = simulateSchedule(schedule)
    const shifts = [1000, -20.5, 3]
    const own = steps.ranks.map((timed, rank) =>
      timed.map(({ action, start, end }) => ({ action, start: start + shifts[rank]!, end: end + shifts[rank]! })),
    )
    const found = measuredSteps(schedule, own)
    expect(found.duration).toBeCloseTo(steps.duration, 9)
    expect(found.bubble).toBeCloseTo(steps.bubble, 9)
  }
})

test('PIP-14 costs of what was measured: by stage and kind, the mean', () => {
  const schedule = withCommunications(pipelineSchedule('1F1B', { ranks: 2, microbatches: 2 }))
  const steps = simulateSchedule(schedule, ({ stage, kind, microbatch }) => (kind === 'F' ? 1 + 2 * stage + microbatch : 4))
  const costOf = measuredCosts(steps.ranks)
  expect(schedule.ranks.flat().map((action) => `${action.stage}${action.kind} ${costOf(action)}`)).toEqual(
    expect.arrayContaining(['0F 1.5', '1F 3.5', '0B 4', '0SEND_F 0', '1RECV_F 0']),
  )
})

const drawn = (name: PipelineScheduleName, ranks: number, microbatches: number, unit?: string): string => {
  const steps = simulateSchedule(withCommunications(pipelineSchedule(name, { ranks, microbatches })))
  return drawPipeline([{ title: `planned <${name}>`, steps, ...(unit !== undefined && { unit }) }])
}
const widthOf = (svg: string): number => Number(/<svg [^>]*?width="(\d+)"/.exec(svg)![1])

test('PIP-14 a box for each action, its number in it, colours by kind, idle shares, a scale', () => {
  const svg = drawn('1F1B', 2, 3, 'ms')
  expect(svg.match(/<g>/g)).toHaveLength(12)
  expect(svg).toContain('planned &lt;1F1B&gt;<tspan class="sum" dx="12">12 ms, 25.0 % idle')
  expect(svg).toContain('<title>1B2: stage 1, backward, micro-batch 2, 8 to 10 ms</title>')
  expect(svg.match(/class="number"[^>]*>\d</g)).toHaveLength(12)
  expect(svg.match(/class="key"[^>]*>[^<]*/g)!.map((each) => each.split('>')[1])).toEqual(['forward', 'backward', 'idle'])
  expect(svg.match(/% idle, holds up to \d/g)).toEqual(['% idle, holds up to 2', '% idle, holds up to 1'])
  expect(svg.match(/class="tick"[^>]*>[^<]*/g)!.map((each) => each.split('>')[1])).toEqual([
    '0 ms',
    '2 ms',
    '4 ms',
    '6 ms',
    '8 ms',
    '10 ms',
    '12 ms',
  ])
})

test('PIP-14 a plan and a measurement on one scale', () => {
  const schedule = pipelineSchedule('1F1B', { ranks: 2, microbatches: 3 })
  const [planned, twice] = [1, 2].map((cost) => simulateSchedule(schedule, { F: cost, B: 2 * cost }))
  const svg = drawPipeline([
    { title: 'planned', steps: planned! },
    { title: 'measured', steps: twice! },
  ])
  const rows = [...svg.matchAll(/class="idle" x="70" y="\d+" width="([\d.]+)"/g)].map(([, width]) => Number(width))
  expect(rows.map((width) => width / rows[0]!)).toEqual([1, 1, 2, 2])
})

test('PIP-14 a long step is wide enough for its numbers, up to a limit', () => {
  expect(widthOf(drawn('1F1B', 2, 3))).toBeLessThan(1300)
  const long = drawn('ZBVZeroBubble', 4, 32)
  expect(widthOf(long)).toBeGreaterThan(2500)
  expect(long.match(/class="number"/g)!.length).toBe(long.match(/<g>/g)!.length)
  expect(long).toContain('of the stages of one rank a later one is stronger in colour')
  expect(widthOf(drawn('1F1B', 2, 2000))).toBeLessThan(12_500)
})

test('PIP-14 nothing, and steps in which no time passes, as in a simulation', () => {
  const none = simulateSchedule(pipelineSchedule('GPipe', { ranks: 2, microbatches: 2 }), () => 0)
  for (const svg of [drawPipeline([]), drawPipeline([{ title: 'no time', steps: none }])]) expect(svg).not.toMatch(/NaN|Infinity/)
})
