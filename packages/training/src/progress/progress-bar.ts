/**
 * Shows how far a loop is: a bar with its rate and the time that is left on a terminal, a line now and then elsewhere. `text.ts` has the texts. It draws within the calls of the program and has no timer, so
 * it keeps no process alive and needs no end. Python: `tqdm`.
 */
import { now as nowMs } from '@postgrad/base/internal'
import { argumentText, checkOptions, invalidArgument, isTensor } from '@postgrad/tensor/internal'
import { barText, lineText, metricsText, type Shown } from './text.js'

/** Options of `ProgressBar` and `progress`. */
export interface ProgressBarOptions {
  /** How many units there are; default the `length` of what `progress` loops over. Without it the bar and the remaining time are left out. */
  readonly total?: number
  /** How many units were done before, such as the steps of a resumed run; default 0. They do not count for the rate. tqdm: `initial`. */
  readonly initial?: number
  /** A text before the bar, such as 'epoch 3'. tqdm: `desc`. */
  readonly label?: string
  /** The name of a unit; default 'it'. */
  readonly unit?: string
  /** Whether to show the rate and the remaining time; default true. */
  readonly rate?: boolean
  /** Where to write; default `process.stderr`, as tqdm does. */
  readonly stream?: ProgressStream
  /** Elsewhere than on a terminal: at most one line in so many milliseconds; default 5000. The first lines come sooner. */
  readonly lineMs?: number
  /** The clock, in milliseconds; default the machine's monotonic one. */
  readonly now?: () => number
}

/** The parts of a stream that a bar needs. */
export interface ProgressStream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** A state to show, as `launch({ onProgress })` gets it from `reportProgress`. */
export interface ProgressReport {
  /** How many units are done. */
  readonly done: number
  /** How many there are. */
  readonly total?: number
  /** A text after the bar. */
  readonly text?: string
}

/** A terminal is drawn at most every so many milliseconds. tqdm: `mininterval`. */
const DRAW_MS = 100
/** The second line comes after so many milliseconds, each later one after twice the pause before, up to `lineMs`. */
const FIRST_PAUSE_MS = 500
const LINE_MS = 5000
const COLUMNS = 80
/** Weight of the newest interval in the rate. tqdm: `smoothing`. */
const SMOOTHING = 0.3
const RATE_MS = 100
const TO_BEGIN = '\r\u001b[K'

const OPTIONS = ['total', 'initial', 'label', 'unit', 'rate', 'stream', 'lineMs', 'now'] as const

/**
 * A progress bar: call `update` for each unit, and `close` at the end. On a terminal it draws one line again and again; elsewhere (a file, a pipe, CI) it writes a line now and then. `progress` makes
 * one for a loop. When all units are done, the bar ends its line; before that, write other lines by `write`, or `close` the bar first. Python: `tqdm`.
 * @example using bar = new ProgressBar({ total: 100, label: 'training' }); bar.update(1)
 * @example
 * const bar = new ProgressBar({ label: 'training' })
 * await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: 2, onProgress: (report) => bar.show(report) })
 * const result = await cluster.on('worker0').run(addOne, x)
 * bar.close() // before the result is printed
 * console.log(String(result))
 */
export class ProgressBar {
  private readonly stream: ProgressStream
  private readonly label: string
  private readonly unit: string
  private readonly showsRate: boolean
  private readonly lineMs: number
  private readonly now: () => number
  private readonly startMs: number
  private readonly initial: number
  private total: number | null
  private done: number
  private text = ''
  private rate: number | null = null
  private rateFrom: { readonly ms: number; readonly done: number }
  private nextMs = Number.NEGATIVE_INFINITY
  private pauseMs = FIRST_PAUSE_MS
  /** The text in the line of the terminal, or in the last line elsewhere; '' in a line that is still empty. */
  private last = ''
  /** The state that was drawn last. */
  private drawn: ProgressReport | null = null
  /** Whether the bar has ended its line, since all units are done. */
  private isComplete = false
  private state: 'open' | 'closed' = 'open'

  /** @throws INVALID_ARGUMENT */
  constructor(options: ProgressBarOptions = {}) {
    checkOptions('ProgressBar', options, OPTIONS)
    const {
      total = null,
      initial = 0,
      label = '',
      unit = 'it',
      rate = true,
      stream = process.stderr,
      lineMs = LINE_MS,
      now = nowMs,
    } = options
    const op = 'ProgressBar'
    if (total !== null) checkCount(op, 'total', total)
    checkCount(op, 'initial', initial)
    if (lineMs !== Number.POSITIVE_INFINITY) checkCount(op, 'lineMs', lineMs)
    checkIs(op, 'a text as label', typeof label === 'string', label)
    checkIs(op, 'a text as unit', typeof unit === 'string', unit)
    checkIs(op, 'true or false as rate', typeof rate === 'boolean', rate)
    checkIs(op, 'a stream with write(text) as stream', typeof (stream as Partial<ProgressStream> | null)?.write === 'function', stream)
    checkIs(op, 'a function as now', typeof now === 'function', now)
    this.total = total
    this.initial = initial
    this.done = initial
    this.label = label
    this.unit = unit
    this.showsRate = rate
    this.stream = stream
    this.lineMs = lineMs
    this.now = now
    this.startMs = now()
    this.rateFrom = { ms: this.startMs, done: initial }
  }

  /** Adds `count` units. @throws INVALID_ARGUMENT */
  update(count = 1): void {
    checkCount('update', 'a count', count)
    this.set(this.done + count)
  }

  /** Shows this state, for `launch(program, { onProgress: (report) => bar.show(report) })`. @throws INVALID_ARGUMENT */
  show(report: ProgressReport): void {
    const op = 'show'
    checkIs(op, 'a report { done, total?, text? }', typeof report === 'object' && report !== null, report)
    const { done, total, text } = report
    checkCount(op, 'done', done)
    if (total !== undefined) checkCount(op, 'total', total)
    checkIs(op, 'a text as text', text === undefined || typeof text === 'string', text)
    if (total !== undefined) this.total = total
    if (text !== undefined) this.text = text
    this.set(done)
  }

  /** Shows metrics after the bar, from the next drawing on: `bar.postfix({ loss: 0.25 })`, or a text. tqdm: `set_postfix`. @throws INVALID_ARGUMENT */
  postfix(metrics: Readonly<Record<string, number | string>> | string): void {
    checkMetrics(metrics)
    this.text = typeof metrics === 'string' ? metrics : metricsText(metrics)
  }

  /** Writes a line above the bar. `console.log` would write into the bar. tqdm: `write`. */
  write(text: string): void {
    if (!this.stream.isTTY || this.last === '') {
      this.stream.write(`${text}\n`)
      return
    }
    this.stream.write(`${TO_BEGIN}${text}\n${this.last}`)
  }

  /** Shows the last state, and ends the bar: nothing is shown afterwards. Idempotent. */
  close(): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    const { drawn, done, total, text } = this
    // A bar that never showed anything leaves nothing.
    if (drawn === null) return
    const isShown = drawn.done === done && drawn.total === (total ?? undefined) && drawn.text === text
    if (!isShown || (this.stream.isTTY && this.last !== '')) this.drawEnd()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  private set(done: number): void {
    if (this.state === 'closed') return
    this.done = done
    const ms = this.now()
    this.measure(ms)
    const wasComplete = this.isComplete
    this.isComplete = this.total !== null && done >= this.total
    if (this.isComplete && !wasComplete) {
      this.drawEnd()
      return
    }
    if (ms < this.nextMs) return
    this.nextMs = ms + (this.stream.isTTY ? DRAW_MS : this.pauseMs)
    if (!this.stream.isTTY) this.pauseMs = Math.min(2 * this.pauseMs, Math.max(this.lineMs, 0))
    this.draw()
  }

  private measure(ms: number): void {
    const { ms: fromMs, done } = this.rateFrom
    if (ms - fromMs < RATE_MS && this.rate !== null) return
    if (ms === fromMs) return
    const newest = (1000 * (this.done - done)) / (ms - fromMs)
    this.rate = this.rate === null ? newest : SMOOTHING * newest + (1 - SMOOTHING) * this.rate
    this.rateFrom = { ms, done: this.done }
  }

  /** In the end, the rate of the whole. The line ends here, so that what the program prints next has a line of its own. */
  private drawEnd(): void {
    const ms = this.now() - this.startMs
    if (ms > 0) this.rate = (1000 * (this.done - this.initial)) / ms
    this.draw()
    if (!this.stream.isTTY) return
    this.stream.write('\n')
    this.last = ''
  }

  private draw(): void {
    const { label, done, total, unit, text: postfix } = this
    const seconds = (this.now() - this.startMs) / 1000
    const shown: Shown = { label, done, total, unit, seconds, rate: this.showsRate ? this.rate : null, postfix }
    const text = this.stream.isTTY ? barText(shown, (this.stream.columns || COLUMNS) - 1) : lineText(shown)
    this.drawn = { done, text: postfix, ...(total === null ? {} : { total }) }
    if (text === this.last) return
    this.last = text
    this.stream.write(this.stream.isTTY ? `${TO_BEGIN}${text}` : `${text}\n`)
  }
}

/** A loop with its bar: `for await` over it, and `postfix` within. */
export interface ProgressLoop<T> extends ProgressBar, AsyncIterable<T> {}

/**
 * Shows a bar while a program loops over `items`: a DataLoader, any other iterable, or an async one. The total is the `length` of `items` if it has one. The bar ends with the loop, also by `break` or an error.
 * Python: `tqdm(items)`.
 * @throws INVALID_ARGUMENT
 * @example for await (const batch of progress([1, 2, 3], { label: 'epoch 1' })) console.log(batch)
 */
export function progress<T>(items: AsyncIterable<T> | Iterable<T>, options: ProgressBarOptions = {}): ProgressLoop<T> {
  checkOptions('progress', options, OPTIONS)
  const { [Symbol.asyncIterator]: asynchronous, [Symbol.iterator]: synchronous } = Object(items) as Partial<AsyncIterable<T> & Iterable<T>>
  if (typeof asynchronous !== 'function' && typeof synchronous !== 'function')
    throw invalidArgument(
      'progress',
      'an iterable',
      argumentText(items),
      'Pass an array or a DataLoader; for steps without one, write new ProgressBar({ total }).',
    )
  const { length } = items as { readonly length?: unknown }
  const total = options.total ?? (isCount(length) ? length : undefined)
  return new Loop(items, { ...options, ...(total === undefined ? {} : { total }) })
}

class Loop<T> extends ProgressBar implements ProgressLoop<T> {
  private readonly items: AsyncIterable<T> | Iterable<T>

  constructor(items: AsyncIterable<T> | Iterable<T>, options: ProgressBarOptions) {
    super(options)
    this.items = items
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    try {
      for await (const item of this.items) {
        yield item
        this.update()
      }
    } finally {
      this.close()
    }
  }
}

const isCount = (x: unknown): x is number => typeof x === 'number' && x >= 0 && x < Number.POSITIVE_INFINITY

function checkCount(op: string, name: string, x: unknown): void {
  checkIs(op, `a finite number from 0 as ${name}`, isCount(x), x)
}

function checkMetrics(metrics: unknown): void {
  if (typeof metrics === 'string') return
  const isRecord = typeof metrics === 'object' && metrics !== null && !(Symbol.iterator in metrics)
  checkIs('postfix', 'an object with metrics by name, or a text', isRecord, metrics)
  for (const [name, value] of Object.entries(metrics as object)) {
    const isShown = typeof value === 'number' || typeof value === 'string'
    checkIs('postfix', `a number or a text as '${name}'`, isShown, value, isTensor(value) ? 'Pass await x.item().' : undefined)
  }
}

function checkIs(op: string, expected: string, holds: boolean, got: unknown, remedy?: string): void {
  if (!holds) throw invalidArgument(op, expected, argumentText(got), remedy)
}
