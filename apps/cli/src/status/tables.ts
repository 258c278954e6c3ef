/** Tables of text: columns as wide as their widest cell, numbers to the right; and the tables of `ps` and `top`. */
import { oneLine, progressText } from '../output/display.js'
import type { Snapshot, WorkerRow } from './snapshot.js'
import type { RunAnswer } from './status-client.js'

export interface Column<R> {
  readonly title: string
  readonly isNumber?: boolean
  cell(row: R): string
}

export function tableText<R>(columns: readonly Column<R>[], rows: readonly R[]): readonly string[] {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ cell }) => oneLine(cell(row))))]
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]!.length)))
  return cells.map((line) =>
    line
      .map((cell, at) => (columns[at]!.isNumber === true ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!)))
      .join('  ')
      .trimEnd(),
  )
}

/** What a worker's row is compared with: itself, a while ago. */
export interface TimedRow {
  readonly row: WorkerRow
  readonly before: WorkerRow | null
  readonly seconds: number
}

const NOTHING = '-'

const count = (of: (row: WorkerRow) => number | undefined): ((timed: TimedRow) => string) => {
  return ({ row }) => String(of(row) ?? NOTHING)
}

/** How fast a count grows, per second. */
const rate = (of: (row: WorkerRow) => number | undefined): ((timed: TimedRow) => string) => {
  return ({ row, before, seconds }) => {
    const [now, then] = [of(row), before === null ? undefined : of(before)]
    // A worker that was started again counts from 0.
    return now === undefined || then === undefined || now < then || seconds <= 0 ? NOTHING : String(Math.round((now - then) / seconds))
  }
}

const STATE: Column<TimedRow> = {
  title: 'STATE',
  cell: ({ row }) => (row.isFresh || row.state !== 'running' ? row.state : 'busy'),
}
const PROGRESS: Column<TimedRow> = { title: 'PROGRESS', cell: ({ row }) => (row.progress === null ? '' : progressText(row.progress)) }

const CALLS: readonly Column<TimedRow>[] = [
  { title: 'WORKER', cell: ({ row }) => row.name },
  STATE,
  { title: 'MAILBOX', isNumber: true, cell: count(({ counts }) => counts?.waiting) },
  { title: 'SERVED', isNumber: true, cell: count(({ counts }) => counts?.served) },
]

const HELD: readonly Column<TimedRow>[] = [
  { title: 'PENDING', isNumber: true, cell: count(({ counts }) => counts?.pending) },
  { title: 'CONTEXTS', isNumber: true, cell: count(({ counts }) => counts?.contexts) },
  { title: 'RREFS', isNumber: true, cell: ({ row: { counts } }) => (counts === null ? NOTHING : `${counts.owned}+${counts.held}`) },
  { title: 'ACTORS', isNumber: true, cell: count(({ counts }) => counts?.actors) },
  { title: 'HEAP', isNumber: true, cell: ({ row: { counts } }) => (counts === null ? NOTHING : bytesText(counts.heapBytes)) },
  { title: 'BUFFERS', isNumber: true, cell: ({ row: { counts } }) => (counts === null ? NOTHING : bytesText(counts.buffersBytes)) },
]

const RATES: readonly Column<TimedRow>[] = [
  { title: 'CALLS/s', isNumber: true, cell: rate(({ counts }) => counts?.served) },
  { title: 'SENT/s', isNumber: true, cell: rate(({ traffic }) => traffic?.sent) },
  { title: 'RECEIVED/s', isNumber: true, cell: rate(({ traffic }) => traffic?.received) },
]

/** `postgrad ps`: every run with its workers below. */
export function psText(answers: readonly RunAnswer[]): readonly string[] {
  return answers.flatMap((answer, at) => {
    const gap = at === 0 ? [] : ['']
    if (!('snapshot' in answer)) return [...gap, `${answer.pid}  ${answer.silent}`]
    return [...gap, titleOf(answer.snapshot), ...workersText(answer.snapshot, null, 0)]
  })
}

/** `postgrad top`: the same with what happens in a second. @param before the snapshot before this one */
export function topText(snapshot: Snapshot, before: Snapshot | null): readonly string[] {
  const seconds = before === null ? 0 : (snapshot.upMs - before.upMs) / 1000
  return [titleOf(snapshot), ...workersText(snapshot, before, seconds, RATES)]
}

function workersText(
  snapshot: Snapshot,
  before: Snapshot | null,
  seconds: number,
  more: readonly Column<TimedRow>[] = [],
): readonly string[] {
  if (snapshot.workers.length === 0) return ['  no worker is there yet']
  const rows = snapshot.workers.map((row) => ({ row, before: before?.workers.find(({ id }) => id === row.id) ?? null, seconds }))
  return tableText([...CALLS, ...more, ...HELD, PROGRESS], rows).map((line) => `  ${line}`)
}

function titleOf({ pid, program, args, upMs, restarts, workers }: Snapshot): string {
  const command = oneLine([program, ...args].join(' '))
  const times = restarts === 0 ? '' : `, started again ${restarts} times`
  return `${pid}  ${command}  up ${durationText(upMs)}, ${workers.length} ${workers.length === 1 ? 'worker' : 'workers'}${times}`
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** 17785840 → '17 MiB'. */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`
}

/** 3725000 → '1 h 2 min'. */
export function durationText(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}
