/**
 * Draws a run as a sequence diagram, an SVG that any browser opens: one lifeline per worker, time runs down, an arrow for each frame where it arrived,
 * and the faults of frames and workers. Of a long run it draws the beginning and the end, and counts the events between them.
 *
 *          worker0            worker1            worker2
 *     #3      │── call add #1 ──▶│                  │
 *     #4      │                  │── call mul #1 ──▶│
 *     #5      │                  │◀╌ result of mul #1 ╌ ✕        lost
 *             ├──────────────── 50 ms ──────────────┤
 */
import { stripVTControlCharacters } from 'node:util'
import type { NamedEvent } from './trace-event.js'

/** Options of `trace.diagram`. */
export interface DiagramOptions {
  /** The line above the diagram. Default: none. */
  readonly title?: string
  /** The line below the diagram, for example why the run ended. Default: none. */
  readonly note?: string
  /** How many events to draw. Of more events, the diagram shows the first and the last ones. Default 300. */
  readonly eventsMax?: number
  /** Whether to draw also deferred turns, acknowledgements of sessions, and timers that belong to no worker. Default false. */
  readonly all?: boolean
}

const EVENTS_MAX = 300
const ROW = 26
const LEFT = 118
const TOP = 96
const COLUMN_MAX = 290
const COLUMN_MIN = 110
/** Of all columns, if there are many. */
const WIDTH = 1500
/** About how wide a letter of the labels is. */
const LETTER = 5.9

/** By family; what is not listed is grey. */
const COLOURS: Readonly<Record<string, string>> = {
  call: '#1d4ed8',
  result: '#0f766e',
  error: '#b91c1c',
  reference: '#7e22ce',
  gradient: '#c2410c',
  pass: '#a16207',
  context: '#475569',
  group: '#be185d',
}
const GREY = '#64748b'

export function diagram(events: readonly NamedEvent[], count: number, options: DiagramOptions): string {
  return new Drawing(events, count, options).text()
}

class Drawing {
  private readonly workers: readonly string[]
  private readonly column: number
  private readonly width: number
  private readonly parts: string[] = []
  private readonly shown: readonly NamedEvent[]
  private readonly options: DiagramOptions
  private readonly leftOut: number
  private readonly before: number
  private y = TOP + ROW
  /** By worker: where its present life, or its death, begins. */
  private readonly since = new Map<string, number>()
  private readonly dead = new Set<string>()

  constructor(events: readonly NamedEvent[], count: number, options: DiagramOptions) {
    this.options = options
    this.before = count - events.length
    const isDrawn = (event: NamedEvent) =>
      options.all === true ||
      (event.kind !== 'defer' &&
        event.family !== 'ack' &&
        (event.from !== '' || event.kind === 'time') &&
        !isPlace(event.from) &&
        !isPlace(event.to))
    this.shown = events.filter(isDrawn)
    this.leftOut = events.length - this.shown.length
    const names = new Set(
      events.flatMap(({ from, to }) => [from, to]).filter((name) => name !== '' && (options.all === true || !isPlace(name))),
    )
    this.workers = [...names].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    this.column = Math.min(COLUMN_MAX, Math.max(COLUMN_MIN, WIDTH / Math.max(1, this.workers.length)))
    this.width = Math.max(640, LEFT + this.column * this.workers.length + 40)
    for (const name of this.workers) this.since.set(name, TOP)
  }

  text(): string {
    const max = this.options.eventsMax ?? EVENTS_MAX
    const head = this.shown.length <= max ? this.shown.length : Math.floor(max / 3)
    const tail = this.shown.length <= max ? this.shown.length : this.shown.length - (max - head)
    if (this.before > 0) this.gap(`${this.before} earlier events were not kept`)
    let lastMs: number | null = null
    for (const [index, event] of this.shown.entries()) {
      if (index === head && tail > head) this.gap(`${tail - head} events are left out`)
      if (index >= head && index < tail) {
        this.lives(event)
        continue
      }
      if (event.kind === 'time') this.time(event.timeMs)
      else {
        if (lastMs === null && event.timeMs > 0) this.time(event.timeMs)
        this.event(event)
      }
      lastMs = event.timeMs
    }
    return this.page()
  }

  private event(event: NamedEvent): void {
    const { kind, from, to, step } = event
    const y = this.y
    this.parts.push(`<text class="step" x="${LEFT - 52}" y="${y + 4}">#${step}</text>`)
    switch (kind) {
      case 'frame':
      case 'poll':
      case 'drop':
      case 'duplicate':
      case 'delay':
        this.arrow(event)
        break
      case 'close':
        this.mark(to === '' ? from : to, GREY, '⊣', to === '' ? 'its link has ended' : `the link from ${from} has ended`)
        break
      case 'timer':
        this.mark(from, GREY, '◷', 'timer')
        break
      case 'defer':
        this.mark(from, GREY, '·', 'turn')
        break
      case 'crash':
      case 'restart':
        this.lives(event)
        this.mark(
          from,
          kind === 'crash' ? '#b91c1c' : '#15803d',
          kind === 'crash' ? '✕' : '●',
          kind === 'crash' ? 'crashes' : 'lives again',
        )
        break
      case 'time':
        break
      default:
        kind satisfies never
    }
    this.y += ROW
  }

  /** Lifelines, also where nothing is drawn. */
  private lives({ kind, from }: NamedEvent): void {
    if (kind !== 'crash' && kind !== 'restart') return
    this.lifeline(from, this.y)
    if (kind === 'crash') this.dead.add(from)
    else this.dead.delete(from)
  }

  private lifeline(name: string, to: number): void {
    const from = this.since.get(name) ?? TOP
    const x = this.x(name)
    // First in the file, so that the page has it below the arrows.
    this.parts.unshift(`<line class="${this.dead.has(name) ? 'dead' : 'life'}" x1="${x}" y1="${from}" x2="${x}" y2="${to}"/>`)
    this.since.set(name, to)
  }

  private arrow({ kind, from, to, label, family, timeMs }: NamedEvent): void {
    const [a, b] = [this.x(from), this.x(to)]
    const { y } = this
    const isLost = kind === 'drop'
    const colour = isLost ? '#b91c1c' : kind === 'delay' ? '#d97706' : (COLOURS[family] ?? GREY)
    const end = isLost || kind === 'delay' ? a + (b - a) * 0.72 : b - Math.sign(b - a) * 2
    const dashed = kind === 'frame' || kind === 'poll' ? '' : ' stroke-dasharray="5 4"'
    const tip = `<title>${escaped(`${from} → ${to} at ${timeMs} ms: ${label}`)}</title>`
    const line = `<line x1="${a}" y1="${y}" x2="${end}" y2="${y}" stroke="${colour}"${dashed}${isLost ? '' : ` marker-end="url(#${kind === 'delay' ? 'late' : familyOf(family)})"`}/>`
    const word = isLost ? 'lost: ' : kind === 'delay' ? 'put off: ' : kind === 'duplicate' ? 'repeated: ' : ''
    const room = Math.abs(b - a) - 24
    const text = clipped(word + label, Math.floor(room / LETTER))
    const at = `x="${(a + b) / 2}" y="${y - 5}"`
    const cross = isLost ? `<text class="sign" x="${end + Math.sign(b - a) * 7}" y="${y + 5}" fill="${colour}">✕</text>` : ''
    this.parts.push(`<g>${tip}${line}<text class="label" ${at} fill="${colour}">${escaped(text)}</text>${cross}</g>`)
  }

  private mark(name: string, colour: string, sign: string, text: string): void {
    const x = this.x(name)
    this.parts.push(
      `<text class="sign" x="${x}" y="${this.y + 5}" fill="${colour}">${sign}</text>` +
        `<text class="small" x="${x + 12}" y="${this.y + 4}" fill="${colour}">${escaped(clipped(text, Math.floor((this.column - 20) / LETTER)))}</text>`,
    )
  }

  private time(ms: number): void {
    const { y, width } = this
    this.parts.push(
      `<line class="time" x1="${LEFT - 20}" y1="${y}" x2="${width - 20}" y2="${y}"/><text class="ms" x="${LEFT - 26}" y="${y + 4}">${round(ms)} ms</text>`,
    )
    this.y += ROW
  }

  private gap(text: string): void {
    const { y, width } = this
    this.parts.push(
      `<rect class="gap" x="20" y="${y - 12}" width="${width - 40}" height="24"/><text class="gaptext" x="${width / 2}" y="${y + 4}">… ${escaped(text)} …</text>`,
    )
    this.y += ROW + 12
  }

  private page(): string {
    const { title = '', note = '', all } = this.options
    const bottom = this.y + 8
    for (const name of this.workers) this.lifeline(name, bottom)
    const left =
      all === true || this.leftOut === 0 ? '' : `${this.leftOut} deferred turns, acknowledgements and timers of the world are not drawn.`
    const notes = [...wrapped(note, Math.floor((this.width - 60) / 6.6)), ...(left === '' ? [] : [left])]
    const height = bottom + 40 + notes.length * 17
    const boxes = this.workers.map((name) => {
      const text = clipped(name, Math.floor((this.column - 20) / 7))
      const wide = this.column - 24
      const x = this.x(name)
      return `<rect class="box" x="${x - wide / 2}" y="${TOP - 34}" width="${wide}" height="26" rx="4"/><text class="name" x="${x}" y="${TOP - 16}">${escaped(text)}<title>${escaped(name)}</title></text>`
    })
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${height}" viewBox="0 0 ${this.width} ${height}">`,
      `<style>${STYLE}</style><defs>${MARKERS}</defs><rect width="100%" height="100%" fill="#fff"/>`,
      `<text class="title" x="20" y="32">${escaped(clipped(title, Math.floor((this.width - 40) / 9)))}<title>${escaped(title)}</title></text>`,
      ...this.parts,
      ...boxes,
      ...notes.map(
        (line, index) => `<text class="${line === left ? 'left' : 'note'}" x="20" y="${bottom + 32 + index * 17}">${escaped(line)}</text>`,
      ),
      '</svg>\n',
    ].join('\n')
  }

  /** The world's own events are left of all workers. */
  private x(name: string): number {
    if (name === '') return LEFT
    return Math.round(LEFT + this.column * (this.workers.indexOf(name) + 0.5))
  }
}

function familyOf(family: string): string {
  return COLOURS[family] === undefined ? 'other' : family
}

const MARKERS = Object.entries({ ...COLOURS, other: GREY, late: '#d97706' })
  .map(
    ([id, colour]) =>
      `<marker id="${id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="${colour}"/></marker>`,
  )
  .join('')

const STYLE = [
  'text{font-family:system-ui,"DejaVu Sans",sans-serif}',
  '.title{font-size:15px;font-weight:600;fill:#0f172a}.name{font-size:12px;font-weight:600;text-anchor:middle;fill:#0f172a}',
  '.label{font-size:11px;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}.small{font-size:10px;paint-order:stroke;stroke:#fff;stroke-width:3px}.sign{font-size:14px;text-anchor:middle}',
  '.step{font-size:10px;fill:#94a3b8}.ms{font-size:11px;text-anchor:end;fill:#334155;font-weight:600}.note{font-size:12px;fill:#b91c1c;white-space:pre}.left{font-size:11px;fill:#64748b}',
  '.box{fill:#f1f5f9;stroke:#94a3b8}.life{stroke:#cbd5e1;stroke-width:1.5}.dead{stroke:#fca5a5;stroke-width:1.5;stroke-dasharray:2 5}',
  '.time{stroke:#94a3b8;stroke-dasharray:1 3}.gap{fill:#fef9c3}.gaptext{font-size:12px;text-anchor:middle;fill:#713f12}',
].join('')

function clipped(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, Math.max(1, max - 1))}…`
}

/** Lines of a note, none longer than the page is wide, and not without end. */
function wrapped(text: string, max: number): string[] {
  if (text === '') return []
  const lines = stripVTControlCharacters(text)
    .split('\n')
    .flatMap((line) => {
      const out: string[] = []
      for (let at = 0; at < Math.max(1, line.length); at += max) out.push(line.slice(at, at + max))
      return out
    })
  return lines.length <= NOTE_LINES_MAX ? lines : [...lines.slice(0, NOTE_LINES_MAX), '…']
}

const NOTE_LINES_MAX = 24

function round(ms: number): number {
  return Math.round(ms * 100) / 100
}

/** A name in parentheses, as the controller's, is not a worker's. */
function isPlace(name: string): boolean {
  return name.startsWith('(')
}

function escaped(text: string): string {
  // Control characters make a file that no XML parser reads.
  return text
    .replaceAll(/\p{Cc}/gu, ' ')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
