/** The picture of the first page: one call to another worker, and the gradients that come back through it. */
import { line, page, rect, text } from './svg.mjs'

const [WIDTH, HEIGHT] = [580, 400]
const LEFT = { x: 8, width: 190 }
const RIGHT = { x: 382, width: 190 }
/** The messages, in order. */
const MESSAGES = [
  { y: 104, role: 'call', words: '1  call add(t1, t2)', toRight: true },
  { y: 166, role: 'result', words: '2  its result', toRight: false },
  { y: 262, role: 'gradient', words: '3  gradient of t3', toRight: true },
  { y: 324, role: 'gradient', words: '4  gradients of t1, t2', toRight: false },
]

export function twoWorkers() {
  const desc =
    'worker0 calls add on worker1 with the tensors t1 and t2, and receives the result t3. Its backward pass sends the gradient of t3 to worker1. worker1 sends the gradients of t1 and t2 back.'
  const draw = (palette) => {
    const parts = []
    for (const [{ x, width }, name] of [
      [LEFT, 'worker0'],
      [RIGHT, 'worker1'],
    ]) {
      parts.push(rect(x, 8, width, HEIGHT - 16, { fill: palette.box, stroke: palette.line, radius: 10 }))
      parts.push(text(x + width / 2, 38, name, { size: 18, weight: 600, fill: palette.ink }))
    }
    parts.push(line(8, 214, WIDTH - 8, 214, { stroke: palette.line, dash: '6 4', wide: 1 }))
    const box = (place, y, words, fill, stroke) => {
      parts.push(rect(place.x + 12, y, place.width - 24, 40, { fill: palette[fill], stroke: palette[stroke], radius: 6 }))
      parts.push(text(place.x + place.width / 2, y + 25, words, { size: 14, fill: palette.ink }))
    }
    box(LEFT, 84, 't1, t2', 'callFill', 'call')
    box(RIGHT, 115, 't3 = add(t1, t2)', 'callFill', 'call')
    box(LEFT, 146, 'loss = sum(t3 · t4)', 'resultFill', 'result')
    box(LEFT, 242, 'ctx.backward([loss])', 'passFill', 'pass')
    box(RIGHT, 273, 'backward of add', 'passFill', 'pass')
    box(LEFT, 304, 'grads of t1, t2, t4', 'gradientFill', 'gradient')
    const [from, to] = [LEFT.x + LEFT.width + 8, RIGHT.x - 8]
    for (const { y, role, words, toRight } of MESSAGES) {
      parts.push(line(toRight ? from : to, y, toRight ? to : from, y, { stroke: palette[role], arrow: true, wide: 2 }))
      parts.push(text((from + to) / 2, y - 9, words, { size: 13.5, weight: 600, fill: palette[role] }))
    }
    parts.push(text(LEFT.x + LEFT.width / 2, 64, 'forward', { size: 13, fill: palette.soft }))
    parts.push(text(RIGHT.x + RIGHT.width / 2, 64, 'runs add', { size: 13, fill: palette.soft }))
    parts.push(text(LEFT.x + LEFT.width / 2, 376, 'next to their parameters', { size: 13, fill: palette.soft }))
    return page({ width: WIDTH, height: HEIGHT, title: 'A call to another worker, and its gradients', desc, parts })
  }
  return { name: 'two-workers', draw }
}
