/** Keeps each worker's state and progress, for `postgrad ps`, and passes all to a display. */
import type { Progress } from 'postgrad/jobs'
import type { Display, StreamName, WorkerState } from './display.js'

/** A worker's last state and progress. */
export interface Standing {
  readonly state: WorkerState
  readonly progress: Progress | null
}

export class TrackedDisplay implements Display {
  private readonly display: Display
  private readonly standings = new Map<string, Standing>()

  constructor(display: Display) {
    this.display = display
  }

  standingOf(worker: string): Standing {
    return this.standings.get(worker) ?? { state: 'starting', progress: null }
  }

  state(worker: string, state: WorkerState): void {
    this.standings.set(worker, { ...this.standingOf(worker), state })
    this.display.state(worker, state)
  }

  progress(worker: string, progress: Progress): void {
    this.standings.set(worker, { ...this.standingOf(worker), progress })
    this.display.progress(worker, progress)
  }

  stall(worker: string, silentMs: number | null): void {
    this.display.stall(worker, silentMs)
  }

  print(worker: string, stream: StreamName, line: string): void {
    this.display.print(worker, stream, line)
  }

  note(text: string): void {
    this.display.note(text)
  }

  failure(worker: string | null, error: unknown, lastLines: readonly string[]): void {
    this.display.failure(worker, error, lastLines)
  }

  close(): void {
    this.display.close()
  }
}
