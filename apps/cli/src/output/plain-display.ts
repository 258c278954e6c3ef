/**
 * Plain lines for pipes, files and CI: a line when a worker's state changes, and its progress once in a while. They go to stderr, so that
 * stdout carries what the program prints and nothing else.
 */
import type { Progress } from 'postgrad/jobs'
import { errorText } from '../error-text.js'
import { type Display, progressText, type StreamName, stallText, type WorkerState } from './display.js'

/** A log gains nothing from more lines, in ms. The last report is printed when the worker's state changes. */
const LINE_INTERVAL_MS = 1000

export class PlainDisplay implements Display {
  private readonly err: (text: string) => void
  private readonly out: (text: string) => void
  private readonly prefix: (worker: string, stream: StreamName) => string
  private readonly now: () => number
  private readonly printedMs = new Map<string, number>()
  private readonly unprinted = new Map<string, Progress>()

  /**
   * @param err where its own lines go, and what the program prints there
   * @param out where the program's output goes
   * @param now milliseconds, monotonic
   * @param prefix before each line of the program
   */
  constructor(
    err: (text: string) => void,
    out: (text: string) => void,
    now: () => number,
    prefix: (worker: string, stream: StreamName) => string = () => '',
  ) {
    this.err = err
    this.out = out
    this.now = now
    this.prefix = prefix
  }

  print(worker: string, stream: StreamName, line: string): void {
    const write = stream === 'stdout' ? this.out : this.err
    write(`${this.prefix(worker, stream)}${line}\n`)
  }

  note(text: string): void {
    this.err(`postgrad: ${text}\n`)
  }

  failure(worker: string | null, error: unknown, lastLines: readonly string[]): void {
    this.err(errorText(error, worker === null ? null : `worker '${worker}'`, lastLines))
  }

  state(worker: string, state: WorkerState): void {
    this.change(worker, `[${worker}] ${state}`)
  }

  stall(worker: string, silentMs: number | null): void {
    this.change(worker, stallText(worker, silentMs))
  }

  progress(worker: string, progress: Progress): void {
    if (this.now() - (this.printedMs.get(worker) ?? Number.NEGATIVE_INFINITY) >= LINE_INTERVAL_MS) this.report(worker, progress)
    else this.unprinted.set(worker, progress)
  }

  close(): void {
    for (const [worker, progress] of [...this.unprinted]) this.report(worker, progress)
  }

  private change(worker: string, text: string): void {
    const last = this.unprinted.get(worker)
    if (last !== undefined) this.report(worker, last)
    this.err(`${text}\n`)
  }

  private report(worker: string, progress: Progress): void {
    this.unprinted.delete(worker)
    this.printedMs.set(worker, this.now())
    this.err(`[${worker}] ${progressText(progress)}\n`)
  }
}
