/** The picture of a step, and workers' clocks put beside each other. */
import { expect, test } from '@jest/globals'
import { pipelineSchedule } from './generators.js'
import { drawPipeline, measuredCosts, measuredSteps } from './picture.js'
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

test('PIP-14 a box for each action, its number in it, colours by kind', () => {
  const steps = simulateSchedule(pipelineSchedule('1F1B', { ranks: 2, microbatches: 3 }))
  const svg = drawPipeline([
    { title: 'planned <1F1B>', steps },
    { title: 'measured', steps, unit: 'ms' },
  ])
  expect(svg.match(/<g>/g)).toHaveLength(24)
  expect(svg).toContain('planned &lt;1F1B&gt;')
  expect(svg).toContain('<title>1B2: 8 to 10 ms</title>')
  expect(svg).toContain('12 ms, 25.0 % idle')
  expect(svg.match(/class="key"/g)).toHaveLength(2)
})
