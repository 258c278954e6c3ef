/**
 * One line per worker at the foot of a terminal, redrawn in place: state, a bar if the total is known, and the program's text. Output of workers goes
 * above these lines, in the same write that redraws them, so that the terminal never shows the one inside of the other.
 */
import type { Progress } from 'postgrad/jobs'
import { errorText } from '../error-text.js'
import { type Display, oneLine, type StreamName, stallText, type WorkerState } from './display.js'

const BAR_WIDTH = 24
const FRAME_MS = 50
/** Of a terminal that does not say, or says 0. */
const [COLUMNS, ROWS] = [80, 24]

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const ERASE_BELOW = '\x1b[0J'
const up = (rows: number): string => (rows === 0 ? '' : `\x1b[${rows}A`)

interface Line {
  readonly name: string
  state: WorkerState
  isStalled?: boolean
  progress: Progress | null
}

/** The part of a terminal that is used. */
export interface Terminal {
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

export class LiveDisplay implements Display {
  private readonly terminal: Terminal
  private readonly err: Terminal
  private readonly isErrHere: boolean
  private readonly prefix: (worker: string, stream: StreamName) => string
  private readonly lines = new Map<string, Line>()
  private readonly nameWidth: number
  /** The lines at the foot now. */
  private drawn: readonly string[] = []
  /** What was printed since. */
  private above = ''
  private frame: NodeJS.Timeout | null = null
  private closed = false

  /**
   * @param err stderr; null: it is the same terminal
   * @param prefix before each line of the program
   */
  constructor(
    terminal: Terminal,
    workers: readonly string[],
    err: Terminal | null = null,
    prefix: (worker: string, stream: StreamName) => string = () => '',
  ) {
    this.terminal = terminal
    this.err = err ?? terminal
    this.isErrHere = err === null
    this.prefix = prefix
    this.nameWidth = Math.max(...workers.map((name) => name.length))
    for (const name of workers) this.lines.set(name, { name, state: 'starting', progress: null })
    this.draw()
  }

  print(worker: string, stream: StreamName, line: string): void {
    const text = `${this.prefix(worker, stream)}${line}`
    if (stream === 'stdout' || this.isErrHere) this.aboveLines(text)
    else this.err.write(`${text}\n`)
  }

  note(text: string): void {
    this.aboveLines(`postgrad: ${text}`)
  }

  failure(worker: string | null, error: unknown, lastLines: readonly string[]): void {
    this.err.write(errorText(error, worker === null ? null : `worker '${worker}'`, lastLines))
  }

  /** A line between what has scrolled away and the foot. */
  aboveLines(text: string): void {
    if (this.closed) {
      this.terminal.write(`${text}\n`)
      return
    }
    this.above += `${text}\n`
    this.drawSoon()
  }

  state(worker: string, state: WorkerState): void {
    this.change(worker, (line) => {
      line.state = state
      line.isStalled = false
    })
  }

  progress(worker: string, progress: Progress): void {
    this.change(worker, (line) => {
      line.progress = progress
    })
  }

  stall(worker: string, silentMs: number | null): void {
    // Where each process is one worker, others have no line here.
    if (!this.lines.has(worker)) this.aboveLines(stallText(worker, silentMs))
    this.change(worker, (line) => {
      line.isStalled = silentMs !== null
    })
  }

  close(): void {
    if (this.closed) return
    this.draw()
    this.closed = true
    this.terminal.write(SHOW_CURSOR)
  }

  private change(worker: string, set: (line: Line) => void): void {
    const line = this.lines.get(worker)
    if (line === undefined || this.closed) return
    set(line)
    this.drawSoon()
  }

  private drawSoon(): void {
    this.frame ??= setTimeout(() => this.draw(), FRAME_MS)
  }

  private draw(): void {
    if (this.frame !== null) clearTimeout(this.frame)
    this.frame = null
    const columns = this.terminal.columns || COLUMNS
    const rows = this.terminal.rows || ROWS
    // A terminal that became narrower since has wrapped them.
    const height = this.drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)), 0)
    this.drawn = footLines([...this.lines.values()], this.nameWidth, columns - 1, rows - 1)
    this.terminal.write(`${HIDE_CURSOR}${up(height)}\r${ERASE_BELOW}${this.above}${this.drawn.map((line) => `${line}\n`).join('')}`)
    this.above = ''
  }
}

/** As many workers as there is room for: what has scrolled away could not be redrawn. */
export function footLines(lines: readonly Line[], nameWidth: number, columns: number, rows: number): readonly string[] {
  const room = lines.length <= rows ? lines.length : Math.max(0, rows - 1)
  const shown = lines.slice(0, room).map((line) => lineText(line, nameWidth, columns))
  return room === lines.length ? shown : [...shown, `and ${lines.length - room} more workers`]
}

/** "worker0  running  ████░░░░ 3/10 loss 2.1", cut to the terminal's width (a line that wraps could not be redrawn). */
export function lineText({ name, state, isStalled = false, progress }: Line, nameWidth: number, maxWidth: number): string {
  const parts = [name.padEnd(nameWidth), (isStalled ? 'stalled' : state).padEnd('starting'.length)]
  if (progress !== null) {
    const { done, total, text } = progress
    if (total !== undefined && total > 0) parts.push(`${bar(done / total)} ${done}/${total}`)
    else parts.push(String(done))
    if (text !== undefined) parts.push(oneLine(text))
  }
  const line = parts.join('  ').trimEnd()
  return line.length > maxWidth ? `${line.slice(0, Math.max(0, maxWidth - 1))}…` : line
}

function bar(share: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * BAR_WIDTH)
  return '█'.repeat(full) + '░'.repeat(BAR_WIDTH - full)
}
