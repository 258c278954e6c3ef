/** One line per worker on a terminal, redrawn in place: state, a bar where the total is known, and what the program says. */
import cliProgress, { type Bar, type MultiBar } from 'cli-progress'
import type { Progress } from 'postgrad'
import { type Display, oneLine, type WorkerState } from './display.js'

const BAR_WIDTH = 24
const FRAMES_PER_SECOND = 10

interface Line {
  readonly name: string
  state: WorkerState
  progress: Progress | null
}

export class LiveDisplay implements Display {
  private readonly bars: MultiBar<Line>
  private readonly lines = new Map<string, { line: Line; bar: Bar<Line> }>()
  private readonly nameWidth: number
  /** The piece of a line that each worker has begun to print. */
  private readonly begun = new Map<string, string>()
  private closed = false

  constructor(stream: NodeJS.WritableStream, workers: readonly string[]) {
    this.nameWidth = Math.max(...workers.map((name) => name.length))
    this.bars = new cliProgress.MultiBar<Line>({
      format: (_options, { maxWidth }, line) => lineText(line, this.nameWidth, maxWidth),
      stream,
      hideCursor: true,
      clearOnComplete: false,
      gracefulExit: false,
      fps: FRAMES_PER_SECOND,
    })
    for (const name of workers) {
      const line: Line = { name, state: 'starting', progress: null }
      this.lines.set(name, { line, bar: this.bars.create(1, 0, line) })
    }
  }

  readonly output = (text: string, worker: string): void => {
    const pieces = ((this.begun.get(worker) ?? '') + text).split('\n')
    this.begun.set(worker, pieces.pop() ?? '')
    for (const piece of pieces) this.bars.log(`${piece}\n`)
  }

  state(worker: string, state: WorkerState): void {
    this.change(worker, (line) => {
      line.state = state
    })
  }

  progress(worker: string, progress: Progress): void {
    this.change(worker, (line) => {
      line.progress = progress
    })
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    for (const rest of this.begun.values()) if (rest !== '') this.bars.log(`${rest}\n`)
    this.bars.update()
    this.bars.stop()
  }

  private change(worker: string, set: (line: Line) => void): void {
    const entry = this.lines.get(worker)
    if (entry === undefined || this.closed) return
    set(entry.line)
    entry.bar.setTotal(entry.line.progress?.total ?? 1)
    entry.bar.update(entry.line.progress?.done ?? 0, entry.line)
  }
}

/** "worker0  running  ████░░░░ 3/10 loss 2.1", cut to the terminal's width (a line that wraps could not be redrawn). */
export function lineText({ name, state, progress }: Line, nameWidth: number, maxWidth: number): string {
  const parts = [name.padEnd(nameWidth), state.padEnd('starting'.length)]
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
