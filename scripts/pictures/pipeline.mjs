/** Two schedules on one scale, GPipe and 1F1B, with the activations that each rank holds, from the product's lists and its own simulation of them. */
import { pipelineSchedule, simulateSchedule } from '../../packages/postgrad/dist/pipelining.js'
import { page, rect, text } from './svg.mjs'

const SIZES = { ranks: 4, microbatches: 8 }
const NAMES = ['GPipe', '1F1B']
const WIDTH = 600
const LEFT = 58
const RIGHT = 78
const ROW = 28
const BOX = 24

export async function pipeline() {
  const plans = NAMES.map((name) => ({ name, steps: simulateSchedule(pipelineSchedule(name, SIZES)) }))
  const duration = Math.max(...plans.map(({ steps }) => steps.duration))
  const unit = (WIDTH - LEFT - RIGHT) / duration
  const share = (bubble) => `${Math.round(100 * bubble)} % idle`
  const desc = plans
    .map(
      ({ name, steps }) =>
        `${name}: ${share(steps.bubble)}; ranks 0 to 3 hold the activations of ${steps.peakActivations.join(', ')} micro-batches at most`,
    )
    .join('. ')
  return {
    name: 'pipeline',
    draw: (palette) => {
      const parts = [
        rect(LEFT, 6, 16, 14, { fill: palette.callFill, stroke: palette.call, radius: 2 }),
        text(LEFT + 24, 18, 'forward', { fill: palette.ink, anchor: 'start' }),
        rect(LEFT + 96, 6, 16, 14, { fill: palette.gradientFill, stroke: palette.gradient, radius: 2 }),
        text(LEFT + 120, 18, 'backward', { fill: palette.ink, anchor: 'start' }),
        text(LEFT + 212, 18, 'number: micro-batch', { fill: palette.soft, anchor: 'start' }),
        text(WIDTH - 2, 18, 'at most held', { fill: palette.soft, anchor: 'end', size: 12.5 }),
      ]
      let y = 34
      for (const { name, steps } of plans) {
        parts.push(text(LEFT, y + 14, name, { fill: palette.ink, anchor: 'start', size: 14, weight: 600 }))
        parts.push(text(LEFT + 52, y + 14, share(steps.bubble), { fill: palette.soft, anchor: 'start' }))
        y += 24
        for (const [rank, timed] of steps.ranks.entries()) {
          parts.push(text(LEFT - 8, y + 17, `rank ${rank}`, { fill: palette.ink, anchor: 'end' }))
          parts.push(rect(LEFT, y, duration * unit, BOX, { fill: palette.box, radius: 0 }))
          for (const { action, start, end } of timed) {
            const role = action.kind === 'F' ? 'call' : 'gradient'
            const [x, width] = [LEFT + start * unit, (end - start) * unit]
            parts.push(rect(x + 0.5, y, width - 1, BOX, { fill: palette[`${role}Fill`], stroke: palette[role], radius: 2, wide: 0.8 }))
            parts.push(text(x + width / 2, y + 17, String(action.microbatch), { fill: palette.ink, size: 12.5 }))
          }
          const held = steps.peakActivations[rank]
          parts.push(text(WIDTH - 2, y + 17, `${held} of ${SIZES.microbatches}`, { fill: palette.ink, anchor: 'end' }))
          y += ROW
        }
        y += 14
      }
      return page({ width: WIDTH, height: y - 4, title: 'Two schedules of 8 micro-batches on 4 workers', desc: `${desc}.`, parts })
    },
  }
}
