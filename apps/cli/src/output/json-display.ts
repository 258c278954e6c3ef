/**
 * Lines of JSON on stdout, for programs that read them: `{ time, worker, stream, text }` for each line that a worker prints, `{ time, worker, event, … }` for
 * its states. `worker` is null for an event of the whole run.
 */
import { isPostgradError } from 'postgrad'
import type { Progress } from 'postgrad/jobs'
import type { Display, StreamName, WorkerState } from './display.js'

/** The name of each state in the lines. 'starting' has no line. */
const EVENTS: Readonly<Record<WorkerState, string | null>> = {
  starting: null,
  running: 'started',
  done: 'done',
  failed: 'failed',
  died: 'died',
  stopped: 'stopped',
  restarting: 'restarting',
}

export class JsonDisplay implements Display {
  private readonly write: (text: string) => void
  private readonly wallMs: () => number

  constructor(write: (text: string) => void, wallMs: () => number) {
    this.write = write
    this.wallMs = wallMs
  }

  state(worker: string, state: WorkerState): void {
    const event = EVENTS[state]
    if (event !== null) this.line(worker, { event })
  }

  progress(worker: string, { done, total, text }: Progress): void {
    this.line(worker, { event: 'progress', done, ...(total === undefined ? {} : { total }), ...(text === undefined ? {} : { text }) })
  }

  stall(worker: string, silentMs: number | null): void {
    this.line(worker, silentMs === null ? { event: 'recovered' } : { event: 'stalled', silentMs })
  }

  print(worker: string, stream: StreamName, text: string): void {
    this.line(worker, { stream, text })
  }

  note(text: string): void {
    this.line(null, { event: 'note', text })
  }

  failure(worker: string | null, error: unknown, lastLines: readonly string[]): void {
    this.line(worker, {
      event: 'failure',
      message: messageOf(error),
      ...(isPostgradError(error) ? { code: error.code, values: error.values } : {}),
      ...(lastLines.length === 0 ? {} : { lastLines }),
    })
  }

  close(): void {}

  private line(worker: string | null, rest: Readonly<Record<string, unknown>>): void {
    this.write(`${JSON.stringify({ time: new Date(this.wallMs()).toISOString(), worker, ...rest })}\n`)
  }
}

function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | null)?.message
  return typeof message === 'string' ? message : String(error)
}
