/**
 * Plain lines for pipes, files and CI: a line when a worker's state changes, and its progress once in a while. They go to stderr, so that
 * stdout carries what the program prints and nothing else.
 */
import type { Progress } from 'postgrad/jobs'
import { type Display, progressText, type WorkerState } from './display.js'

/** A log gains nothing from more lines, in ms. The last report is printed when the worker's state changes. */
const LINE_INTERVAL_MS = 1000

export class PlainDisplay implements Display {
  private readonly write: (text: string) => void
  private readonly out: (text: string) => void
  private readonly now: () => number
  private readonly printedMs = new Map<string, number>()
  private readonly unprinted = new Map<string, Progress>()

  /**
   * @param write where its own lines go
   * @param out where those of the program go
   * @param now milliseconds, monotonic
   */
  constructor(write: (text: string) => void, out: (text: string) => void, now: () => number) {
    this.write = write
    this.out = out
    this.now = now
  }

  print(line: string): void {
    this.out(`${line}\n`)
  }

  state(worker: string, state: WorkerState): void {
    const last = this.unprinted.get(worker)
    if (last !== undefined) this.report(worker, last)
    this.write(`[${worker}] ${state}\n`)
  }

  progress(worker: string, progress: Progress): void {
    if (this.now() - (this.printedMs.get(worker) ?? Number.NEGATIVE_INFINITY) >= LINE_INTERVAL_MS) this.report(worker, progress)
    else this.unprinted.set(worker, progress)
  }

  close(): void {
    for (const [worker, progress] of [...this.unprinted]) this.report(worker, progress)
  }

  private report(worker: string, progress: Progress): void {
    this.unprinted.delete(worker)
    this.printedMs.set(worker, this.now())
    this.write(`[${worker}] ${progressText(progress)}\n`)
  }
}
