/** Watches all live runs, and draws their tables once a second: in place on a terminal, below each other elsewhere. */
import { EXIT } from '../exit-codes.js'
import type { Surroundings } from '../surroundings.js'
import { runtimeDir } from './runtime-dir.js'
import type { Snapshot } from './snapshot.js'
import { type FoundRun, findRuns, watchRun } from './status-client.js'
import { topText } from './tables.js'

export interface TopOptions {
  /** Only this run. */
  readonly pid?: number
  /** End after so many tables. */
  readonly count?: number
}

const INTERVAL_MS = 1000
const ALTERNATE_SCREEN = '\x1b[?1049h\x1b[?25l'
const NORMAL_SCREEN = '\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const ERASE_LINE = '\x1b[K'
const ERASE_BELOW = '\x1b[J'
const [ROWS, COLUMNS] = [24, 80]

/** @returns the exit code */
export async function top({ pid, count }: TopOptions, around: Surroundings): Promise<number> {
  const watching = new Watching(runtimeDir(around.env), pid)
  const { stdout, stdin } = around
  const isTerminal = stdout.isTTY === true
  let stop = (): void => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  const stopListening = around.onSignal(() => stop())
  const onKey = (key: Buffer): void => {
    if (key.includes('q') || key.includes('\x03')) stop()
  }
  watching.look()
  if (pid !== undefined && watching.isEmpty) {
    around.stderr.write(`postgrad: no run ${pid} is here\n`)
    stopListening()
    return EXIT.failed
  }
  if (isTerminal) stdout.write(ALTERNATE_SCREEN)
  if (isTerminal && stdin.isTTY) stdin.setRawMode(true).resume().on('data', onKey)
  let drawn = 0
  const draw = (): void => {
    watching.look()
    // The one run that was to be watched has ended.
    if (pid !== undefined && watching.isEmpty) {
      stop()
      return
    }
    const lines = watching.lines()
    stdout.write(isTerminal ? screenOf(lines, stdout.rows || ROWS, stdout.columns || COLUMNS) : `${lines.join('\n')}\n\n`)
    if (++drawn === count) stop()
  }
  // The first snapshots take a moment.
  const timer = setInterval(draw, INTERVAL_MS)
  await stopped
  clearInterval(timer)
  stopListening()
  watching.close()
  if (isTerminal && stdin.isTTY) stdin.off('data', onKey).setRawMode(false).pause()
  if (isTerminal) stdout.write(NORMAL_SCREEN)
  return EXIT.done
}

/** As much as there is room for. */
export function screenOf(lines: readonly string[], rows: number, columns: number): string {
  const shown = lines.length < rows ? lines : [...lines.slice(0, rows - 2), `and ${lines.length - rows + 2} more lines`]
  return `${HOME}${shown.map((line) => `${line.slice(0, columns)}${ERASE_LINE}\n`).join('')}${ERASE_BELOW}`
}

interface Watched {
  now: Snapshot | null
  before: Snapshot | null
  why: string | null
  stop: () => void
}

/** The runs that are there, with the last two snapshots of each. */
class Watching {
  private readonly folder: string
  private readonly pid: number | undefined
  private readonly runs = new Map<number, Watched>()

  constructor(folder: string, pid: number | undefined) {
    this.folder = folder
    this.pid = pid
  }

  get isEmpty(): boolean {
    return this.runs.size === 0
  }

  /** For runs that have come. Throws where the folder is not this user's alone. */
  look(): void {
    for (const run of findRuns(this.folder)) {
      if (!this.runs.has(run.pid) && (this.pid === undefined || run.pid === this.pid)) this.watch(run)
    }
  }

  lines(): readonly string[] {
    const runs = [...this.runs].sort(([a], [b]) => a - b)
    if (runs.length === 0) return ['nothing runs here']
    return runs.flatMap(([pid, { now, before, why }], at) => [
      ...(at === 0 ? [] : ['']),
      ...(why !== null ? [`${pid}  ${why}`] : now === null ? [`${pid}  …`] : topText(now, before)),
    ])
  }

  close(): void {
    for (const { stop } of this.runs.values()) stop()
    this.runs.clear()
  }

  private watch(run: FoundRun): void {
    const watched: Watched = { now: null, before: null, why: null, stop: () => {} }
    this.runs.set(run.pid, watched)
    watched.stop = watchRun(run, {
      onSnapshot: (snapshot) => {
        watched.before = watched.now
        watched.now = snapshot
      },
      onEnd: (why) => {
        if (why === null) this.runs.delete(run.pid)
        else watched.why = why
      },
    })
  }
}
