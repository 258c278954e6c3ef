/** A sequence diagram: a lifeline for each worker, time runs down. Rows come from `record.mjs`, and the arrows among them are numbered. */
import { line, page, rect, text } from './svg.mjs'

const LEFT = 30
const HEAD = 30
const TOP = 34
const BAR = 10
const RULE = 46

/**
 * `rows`: in order, each `{ arrow: [from, to], label, sub, role }`, `{ mark: worker, label, role, ends }` or `{ rule: label }`. A worker's lifeline ends at a mark with `ends`,
 * until the next rule.
 * `bars`: `{ at, from, to, role }`, where a function runs; from and to are rows.
 */
export function sequence({ title, desc, workers, rows, bars, width = 560 }) {
  const column = (width - LEFT) / workers.length
  const x = (name) => LEFT + column * (workers.indexOf(name) + 0.5)
  let y = TOP
  const placed = rows.map((row) => {
    const height = row.arrow !== undefined ? (row.sub === undefined ? 38 : 48) : row.rule !== undefined ? RULE : 22
    const at = { row, y: y + (row.rule !== undefined ? RULE - 12 : row.arrow === undefined ? 12 : 20) }
    y += height
    return at
  })
  const bottom = y + 6
  /** Where a lifeline is drawn: not through the words of a rule, and not after an end. */
  const spansOf = (name) => {
    const spans = []
    let from = HEAD
    for (const { row, y } of placed) {
      if (row.rule !== undefined) {
        if (from !== null) spans.push([from, y - 22])
        from = y
      } else if (row.mark === name && row.ends === true) {
        spans.push([from, y])
        from = null
      }
    }
    return from === null ? spans : [...spans, [from, bottom]]
  }
  return (palette) => {
    const parts = []
    for (const name of workers) {
      for (const [from, to] of spansOf(name)) parts.push(line(x(name), from, x(name), to, { stroke: palette.line, dash: '2 4', wide: 1.2 }))
      parts.push(rect(x(name) - 52, 4, 104, HEAD - 4, { fill: palette.box, stroke: palette.line }))
      parts.push(text(x(name), 22, name, { size: 14, fill: palette.ink, weight: 600 }))
    }
    for (const bar of bars) {
      const from = placed[bar.from].y
      const to = placed[Math.min(bar.to, placed.length - 1)].y
      parts.push(
        rect(x(bar.at) - BAR / 2, from, BAR, Math.max(8, to - from), {
          fill: palette[`${bar.role}Fill`],
          stroke: palette[bar.role],
          radius: 2,
        }),
      )
    }
    let number = 0
    for (const { row, y } of placed) {
      if (row.arrow !== undefined) parts.push(...arrow(row, y, ++number))
      else if (row.rule !== undefined) {
        parts.push(line(4, y, width - 4, y, { stroke: palette.line, dash: '6 4', wide: 1 }))
        parts.push(text(4, y - 5, row.rule, { size: 13, fill: palette.soft, anchor: 'start', weight: 600 }))
      } else {
        const isLast = workers.indexOf(row.mark) === workers.length - 1 && workers.length > 1
        const sideways = isLast ? -12 : 12
        parts.push(
          text(x(row.mark) + sideways, y + 4, row.label, {
            fill: palette[row.role],
            anchor: isLast ? 'end' : 'start',
            weight: row.role === 'error' ? 600 : 400,
          }),
        )
      }
    }
    return page({ width, height: bottom + 6, title, desc, parts })

    function arrow({ arrow: [from, to], label, sub, role }, y, number) {
      const colour = palette[role]
      const way = Math.sign(x(to) - x(from))
      // Of an arrow over several columns the words are in the first, so that no lifeline runs through them.
      const middle = x(from) + (way * column) / 2
      return [
        line(x(from) + (way * BAR) / 2, y, x(to) - way * (BAR / 2 + 1), y, { stroke: colour, arrow: true }),
        text(middle, y - 6, label, { size: 12.5, fill: colour, weight: 600 }),
        ...(sub === undefined ? [] : [text(middle, y + 14, sub, { size: 12, fill: palette.soft })]),
        text(12, y + 4, String(number), { fill: palette.soft, weight: 600 }),
      ]
    }
  }
}
