/** The mailbox of a worker: its lanes, and the messages of each, from the protocol's own table. */
import { Lane } from '../../packages/base/dist/internal.js'
import { MESSAGE_TABLE } from '../../packages/wire/dist/internal.js'
import { line, page, rect, text, widthOf } from './svg.mjs'

const WIDTH = 560
const ROLES = { signal: 'error', control: 'result', gradient: 'gradient', task: 'pass', call: 'call' }
/** Lanes without messages: their items are the worker's own. */
const OWN = { signal: 'stop, kill', task: 'nodes of the graph that are ready to run' }
/** Of the lane with most kinds of messages, these are shown, and the rest is counted. */
const SHOWN = ['RESULT', 'EXCEPTION', 'CALL_CANCEL', 'PASS_REPORT', 'PASS_ABORT', 'CLEANUP_CONTEXT', 'RREF_FETCH', 'STREAM_ITEM']

export async function mailbox() {
  const lanes = Object.entries(Lane)
    .sort(([, a], [, b]) => a - b)
    .map(([name, number]) => {
      const names = Object.values(MESSAGE_TABLE)
        .filter(({ lane }) => lane === number)
        .map((spec) => spec.name)
      const shown = names.length > SHOWN.length ? names.filter((one) => SHOWN.includes(one)) : names
      const words =
        names.length === 0
          ? [OWN[name]]
          : wrapped([...shown, ...(shown.length < names.length ? [`${names.length - shown.length} more`] : [])])
      return { name, words }
    })
  const title = 'The mailbox of a worker'
  const desc = `Links from other workers fill five lanes: ${lanes.map(({ name }) => name).join(', ')}. The worker takes one item at a time, from the highest lane in which something waits.`
  const draw = (palette) => {
    const parts = []
    parts.push(text(8, 20, 'messages from other workers', { fill: palette.ink, anchor: 'start', size: 14, weight: 600 }))
    parts.push(line(50, 30, 50, 56, { stroke: palette.ink, arrow: true }))
    let y = 62
    const top = y
    for (const { name, words } of lanes) {
      const height = 14 + 20 * words.length
      parts.push(rect(8, y, WIDTH - 152, height, { fill: palette[`${ROLES[name]}Fill`], stroke: palette[ROLES[name]] }))
      parts.push(text(20, y + height / 2 + 5, name, { size: 14, fill: palette.ink, anchor: 'start', weight: 600 }))
      for (const [i, each] of words.entries())
        parts.push(text(96, y + 22 + 20 * i, each, { size: 12.5, fill: palette.ink, anchor: 'start' }))
      y += height + 8
    }
    const middle = (top + y - 8) / 2
    parts.push(line(WIDTH - 140, middle, WIDTH - 114, middle, { stroke: palette.ink, arrow: true }))
    parts.push(rect(WIDTH - 110, middle - 38, 106, 76, { fill: palette.box, stroke: palette.line }))
    for (const [i, each] of ['the worker', 'takes one', 'at a time'].entries())
      parts.push(text(WIDTH - 57, middle - 14 + 19 * i, each, { fill: palette.ink, weight: 600 }))
    parts.push(
      text(8, y + 14, 'higher lanes go first; a lane that waits too long gets the next turn', { fill: palette.soft, anchor: 'start' }),
    )
    return page({ width: WIDTH, height: y + 24, title, desc, parts })
  }
  return { name: 'mailbox', draw }
}

function wrapped(names) {
  const lines = ['']
  for (const name of names) {
    const longer = lines.at(-1) === '' ? name : `${lines.at(-1)}, ${name}`
    if (widthOf(longer, 12.5) > WIDTH - 285) lines.push(name)
    else lines[lines.length - 1] = longer
  }
  return lines.map((each, i) => (i < lines.length - 1 ? `${each},` : each))
}
