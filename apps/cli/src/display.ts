/**
 * What `postgrad run` shows while a program runs: one contract, two forms. On a terminal one line per worker that is redrawn
 * (`live-display.ts`), elsewhere plain lines (`plain-display.ts`).
 */
import type { Progress } from 'postgrad/jobs'

export type WorkerState = 'starting' | 'running' | 'done' | 'failed' | 'stopped'

export interface Display {
  state(worker: string, state: WorkerState): void
  progress(worker: string, progress: Progress): void
  /** A line that a worker has printed to stdout, or to stderr if that is the same terminal. */
  print(line: string): void
  /** Draws the last state and lets go of the terminal. */
  close(): void
}

/** "3/10 (30%) loss 2.1": the numbers and what the program says beside them. */
export function progressText({ done, total, text }: Progress): string {
  const counts = total === undefined ? `${done}` : `${done}/${total}${total > 0 ? ` (${Math.floor((100 * done) / total)}%)` : ''}`
  return text === undefined ? counts : `${counts} ${oneLine(text)}`
}

export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
