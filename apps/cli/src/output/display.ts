/**
 * The interface of the three displays of `postgrad run`: on a terminal one line per worker that is redrawn (`live-display.ts`),
 * elsewhere plain lines (`plain-display.ts`), or JSON lines for programs that read them (`json-display.ts`).
 */
import type { Progress } from 'postgrad/jobs'

export type WorkerState = 'starting' | 'running' | 'done' | 'failed' | 'died' | 'stopped' | 'restarting'
export type StreamName = 'stdout' | 'stderr'

export interface Display {
  state(worker: string, state: WorkerState): void
  progress(worker: string, progress: Progress): void
  /** A worker has stalled for `silentMs` ms; null: it has recovered, and its state stays. */
  stall(worker: string, silentMs: number | null): void
  /** A whole line that a worker has printed. */
  print(worker: string, stream: StreamName, line: string): void
  /** A line of postgrad itself, in the middle of a run. */
  note(text: string): void
  /** Why the run ends as it does, when the display is closed. @param worker null: no worker is at fault */
  failure(worker: string | null, error: unknown, lastLines: readonly string[]): void
  /** Draws the last state and lets go of the terminal. */
  close(): void
}

/** "3/10 (30%) loss 2.1": the numbers, and then the program's text. */
export function progressText({ done, total, text }: Progress): string {
  const counts = total === undefined ? `${done}` : `${done}/${total}${total > 0 ? ` (${Math.floor((100 * done) / total)}%)` : ''}`
  return text === undefined ? counts : `${counts} ${oneLine(text)}`
}

/** "[worker1] stalled: no turn for 10 s" */
export function stallText(worker: string, silentMs: number | null): string {
  return `[${worker}] ${silentMs === null ? 'recovered' : `stalled: no turn for ${Math.round(silentMs / 1000)} s`}`
}

export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
