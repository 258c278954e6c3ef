/**
 * Writes the metrics of a training loop to a file, a line for each step. `format.ts` has the formats, `read-metrics.ts` reads the file. PyTorch:
 * `torch.utils.tensorboard.SummaryWriter`.
 *
 * Note [A line is written, or an error says that it is not]
 * A line waits in memory for at most `flushMs`. All writes are synchronous: so a program that ends by `process.exit` or by an uncaught error still writes its last lines (the listener of 'exit'),
 * and a writer works in a simulated worker, which cannot wait for files. After a write that failed (a full disk) the lines stay in memory, the next write begins where the failed one stopped, and
 * `flush` and `close` reject until all is written. A write by the timer has no caller, so it prints a warning, once; a write at the exit prints an error, and the process gets the exit code 1.
 * The timer does not keep the thread alive: a thread that has nothing else to do ends, and writes. `cluster.close` gives a worker the time for that, `cluster.kill` does not.
 *
 * Note [A checkpoint has the length of the file]
 * `stateDict` writes and syncs all lines, then gives their count: so a checkpoint on disk never has lines that the file lacks. `loadStateDict` only keeps the count. The next write removes the later lines:
 * if another worker refuses the load, the state from before is loaded again, and the file must be as it was.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { clearTimeout, now as nowMs, setTimeout } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { argumentText, checkOptions, invalidArgument, isReadable, isTensor } from '@postgrad/tensor/internal'
import { addAtExit, printAtExit, removeAtExit } from '../files/at-exit.js'
import { temporaryOf } from '../files/temporary.js'
import { closed, ioFailure, notReadAtExit, notReadYet } from './errors.js'
import { type Content, csvHeader, csvText, type Format, formatOf, jsonText, parse, SECONDS, STEP } from './format.js'
import { pathOf } from './read-metrics.js'

/** A value of a metric: a number, or a tensor of one element, such as a loss. */
export type MetricsValue = number | Tensor

/** Options of `MetricsWriter`. */
export interface MetricsWriterOptions {
  /** If the file has lines of an earlier run: those of this step and later ones are removed. Default: the first step that is written. PyTorch: `purge_step`. */
  readonly purgeStep?: number
  /** For how many milliseconds a line may wait in memory; default 1000. With Infinity a line waits until `flush`, `close`, `stateDict` or the end of the thread. PyTorch: `flush_secs`, 120 s. */
  readonly flushMs?: number
  /** The clock of `seconds`, in milliseconds; default the machine's monotonic one. Seconds of NaN are left out. */
  readonly now?: () => number
}

/** The state of a `MetricsWriter`: plain data, for `loadStateDict`. */
export interface MetricsWriterState {
  /** How many lines the file had; null: the run had not written a line. */
  readonly lines: number | null
  /** The run's `seconds` at that time; null as for `lines`. */
  readonly seconds: number | null
}

/** A line that is not written yet. */
interface Entry {
  readonly step: number
  readonly seconds: number
  readonly values: Map<string, number>
  /** Tags whose tensor is still read from its device. */
  readonly awaited: Set<string>
}

const FLUSH_MS = 1000
/** Node takes a longer delay for 1 ms. */
const DELAY_MS_MAX = 2 ** 31 - 1
const IN_MEMORY = 'The lines that are not written are still in memory: flush() and close() fail until they are written.'

/**
 * Writes metrics to a file, a line for each step: JSON lines ('.jsonl', '.ndjson') or CSV ('.csv'). Each line has the step, the seconds since the run began, and the values by tag. `postgrad plot` and
 * `plot` draw the file, `readMetrics` reads it.
 *
 * If the file exists, the run continues it. The lines before the first step that is written stay; the lines from that step on, which a killed run wrote after its last checkpoint, are removed. So a run
 * that begins at its first step replaces the file. Only one writer may write a file at a time.
 *
 * A thread that ends writes its lines, and so does a worker at `cluster.close`. A killed thread loses its lines since the last write, as do workers if the main thread calls `process.exit`.
 *
 * In a checkpoint, let the writer be a part: `checkpoints.steps({ model, metrics }, …)`. Then the file has all lines up to the checkpoint, also after `kill -9`, and a load removes those after it.
 *
 * PyTorch: `torch.utils.tensorboard.SummaryWriter`.
 * @example await using writer = new MetricsWriter('run.jsonl'); writer.log({ loss: 0.25 }, 1)
 */
export class MetricsWriter {
  /** The file. */
  readonly path: string
  private readonly format: Format
  private readonly flushMs: number
  private readonly now: () => number
  private readonly purgeStep: number | null
  /** Of an earlier run, until the first write; after `loadStateDict`, the file until the next write. */
  private old: Content | null
  /** How many lines the file has; of `old`, how many stay. null: nothing is written yet, and the first step decides. */
  private lines: number | null = null
  /** The columns of the file, if it is CSV; null before its header is written. */
  private columns: string[] | null = null
  /** Of the run; with an earlier one, so long ago as that had taken. null: nothing is added yet. */
  private startMs: number | null = null
  private readonly madeMs: number
  private readonly entries: Entry[] = []
  private readonly reads = new Set<Promise<void>>()
  /** Lines as bytes, of which a write has written a part at most. */
  private unwritten: Buffer = Buffer.alloc(0)
  private failedRead: unknown = null
  private timer: ReturnType<typeof setTimeout> | null = null
  private warned = false
  private state: 'open' | 'closed' = 'open'
  private readonly atExit = (code: number): void => this.writeLast(code)

  /**
   * Makes the folder of the file if there is none. The file itself appears with the first line.
   * @throws INVALID_ARGUMENT, METRICS_IO (the folder cannot be made, or the file cannot be read), METRICS_INVALID (the file exists, and holds something else)
   */
  constructor(path: string | URL, options: MetricsWriterOptions = {}) {
    const op = 'MetricsWriter'
    checkOptions(op, options, ['purgeStep', 'flushMs', 'now'])
    const { purgeStep = null, flushMs = FLUSH_MS, now = nowMs } = options
    this.path = pathOf(op, path)
    this.format = formatOf(op, this.path)
    if (purgeStep !== null) checkStep(op, 'purgeStep', purgeStep)
    if (typeof flushMs !== 'number' || !(flushMs >= 0)) throw invalidArgument(op, 'milliseconds from 0 as flushMs', argumentText(flushMs))
    if (typeof now !== 'function') throw invalidArgument(op, 'a function as now', argumentText(now))
    this.purgeStep = purgeStep
    this.flushMs = flushMs
    this.now = now
    this.madeMs = now()
    this.old = this.readOld(op)
    addAtExit(this.atExit)
  }

  /** Adds one value. Values of one step that follow each other share a line. PyTorch: `add_scalar`. @throws as `log` */
  addScalar(tag: string, value: MetricsValue, step: number): void {
    this.add('addScalar', [[tag, value]], step)
  }

  /**
   * Adds values of one step, by tag. A tensor is read at once, or if its device computes asynchronously as soon as it can be. PyTorch: `add_scalars`.
   * @throws INVALID_ARGUMENT (a tag that is empty, has a line break, or is 'step' or 'seconds'; a value that is neither a number nor a tensor of one element; a step that is not finite), METRICS_CLOSED
   */
  log(values: Readonly<Record<string, MetricsValue>>, step: number): void {
    // Object.entries would give the places of an array as tags, and nothing of a Map.
    if (typeof values !== 'object' || values === null || isTensor(values) || Symbol.iterator in values)
      throw invalidArgument('log', 'an object with values by tag', argumentText(values), 'Write writer.log({ loss }, step).')
    this.add('log', Object.entries(values), step)
  }

  /** Writes everything that was added. Rejects with METRICS_IO, such as for a full disk: the lines stay in memory, and the next `flush` tries again; with METRICS_CLOSED; or as the reading of a tensor failed. */
  async flush(): Promise<void> {
    if (this.state === 'closed') throw closed('flush', this.path)
    await this.writeAll('flush')
  }

  /** Writes everything, and ends the writer. Idempotent. Rejects as `flush` does; the writer is still open then. */
  async close(): Promise<void> {
    if (this.state === 'closed') return
    await this.writeAll('close')
    this.state = 'closed'
    removeAtExit(this.atExit)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /**
   * Writes everything that was added, and returns the position in the file, for a checkpoint. It does not wait: if a tensor is still read from its device, it throws READ_NOT_SYNCHRONOUS.
   * @throws METRICS_CLOSED, METRICS_IO, READ_NOT_SYNCHRONOUS
   */
  stateDict(): MetricsWriterState {
    const op = 'stateDict'
    if (this.state === 'closed') throw closed(op, this.path)
    this.writeReady(op)
    if (this.entries.length > 0) throw notReadYet(op, this.path, this.entries[0]!.step)
    if (this.lines !== null && this.old === null) this.writing(op, IN_MEMORY, () => this.append(true))
    return { lines: this.lines, seconds: this.startMs === null ? null : this.seconds() }
  }

  /**
   * Continues the file after the lines that it had at the time of `stateDict`. The next write removes all later lines, those that are still in memory included. `seconds` continues, too.
   * @throws INVALID_ARGUMENT, METRICS_CLOSED, METRICS_IO, METRICS_INVALID
   */
  loadStateDict(state: MetricsWriterState): void {
    const op = 'loadStateDict'
    if (this.state === 'closed') throw closed(op, this.path)
    const { lines, seconds } = stateOf(op, state)
    this.old = this.readOld(op)
    this.entries.length = 0
    this.unwritten = Buffer.alloc(0)
    this.columns = null
    this.lines = lines
    this.startMs = seconds === null ? null : this.now() - 1000 * (seconds || 0)
  }

  private add(op: string, values: readonly (readonly [tag: string, value: MetricsValue])[], step: number): void {
    if (this.state === 'closed') throw closed(op, this.path)
    checkStep(op, 'a step', step)
    for (const [tag, value] of values) {
      checkTag(op, tag)
      checkValue(op, tag, value)
    }
    this.startMs ??= this.madeMs - 1000 * this.secondsBefore(step)
    const last = this.entries.at(-1)
    const isShared = last?.step === step && !values.some(([tag]) => last.values.has(tag) || last.awaited.has(tag))
    const entry = isShared ? last : { step, seconds: this.seconds(), values: new Map<string, number>(), awaited: new Set<string>() }
    if (!isShared) this.entries.push(entry)
    for (const [tag, value] of values) {
      if (typeof value === 'number') entry.values.set(tag, value)
      else if (isReadable(value)) entry.values.set(tag, value.itemSync())
      else this.read(entry, tag, value)
    }
    this.flushLater()
  }

  /** Node's timer would keep the thread alive. */
  private flushLater(): void {
    if (this.timer !== null || this.flushMs === Number.POSITIVE_INFINITY) return
    this.timer = setTimeout(() => this.onTimer(), Math.min(this.flushMs, DELAY_MS_MAX))
    this.timer.unref()
  }

  private read(entry: Entry, tag: string, value: Tensor): void {
    entry.awaited.add(tag)
    const done = value.item().then(
      (x) => {
        entry.values.set(tag, x)
      },
      (error: unknown) => {
        this.failedRead ??= error
      },
    )
    const read = done.then(() => {
      entry.awaited.delete(tag)
      this.reads.delete(read)
    })
    this.reads.add(read)
  }

  private seconds(): number {
    return Math.round(this.now() - this.startMs!) / 1000
  }

  /** The time that the earlier run had taken when it came to this step. */
  private secondsBefore(step: number): number {
    return this.kept(step).at(-1)?.seconds || 0
  }

  private kept(first: number): Content['lines'] {
    const all = this.old?.lines ?? []
    return this.lines === null ? all.filter((line) => line.step < (this.purgeStep ?? first)) : all.slice(0, this.lines)
  }

  private readOld(op: string): Content | null {
    try {
      mkdirSync(dirname(this.path), { recursive: true })
    } catch (error) {
      throw ioFailure(op, 'make the folder of', this.path, error)
    }
    try {
      return parse(op, this.path, this.format, readFileSync(this.path, 'utf8'))
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ENOENT') return null
      if ((error as { syscall?: unknown }).syscall !== undefined) throw ioFailure(op, 'read', this.path, error)
      throw error
    }
  }

  private onTimer(): void {
    this.timer = null
    this.writeUnattended()
    // A tensor of a slow device, or a disk that is full: later once more.
    if (this.state === 'open' && this.entries.length + this.unwritten.length > 0) this.flushLater()
  }

  /** Without a caller who could get the error. */
  private writeUnattended(): void {
    try {
      this.writeReady('flush')
    } catch (error) {
      if (this.warned) return
      this.warned = true
      process.emitWarning((error as Error).message, 'METRICS_IO')
    }
  }

  /** When the thread ends: no warning would be printed any more, and no tensor arrives. */
  private writeLast(exitCode: number): void {
    const lost = this.entries.flatMap(({ step, awaited }) => [...awaited].map((tag) => `'${tag}' of step ${step}`))
    for (const { awaited } of this.entries) awaited.clear()
    const errors: unknown[] = this.failedRead === null ? [] : [this.failedRead]
    if (lost.length > 0) errors.push(notReadAtExit(this.path, lost))
    try {
      this.writeReady('exit', 'The lines that are not written are lost.')
    } catch (error) {
      errors.push(error)
    }
    for (const error of errors) printAtExit(`MetricsWriter: ${(error as { message?: unknown })?.message ?? error}`)
    if (errors.length > 0 && exitCode === 0) process.exitCode = 1
  }

  private async writeAll(op: string): Promise<void> {
    while (this.reads.size > 0) await Promise.all(this.reads)
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    this.writeReady(op)
    const { failedRead } = this
    this.failedRead = null
    if (failedRead !== null) throw failedRead
  }

  /** Writes the lines up to the first that waits for a tensor. @throws METRICS_IO */
  private writeReady(op: string, unwritten = IN_MEMORY): void {
    const waits = this.entries.findIndex(({ awaited }) => awaited.size > 0)
    const ready = waits < 0 ? this.entries : this.entries.slice(0, waits)
    const isLoaded = this.old !== null && this.lines !== null
    if (ready.length === 0 && this.unwritten.length === 0 && !isLoaded) return
    this.writing(op, unwritten, () => {
      this.removeOld(ready)
      if (ready.length === 0 && this.unwritten.length === 0) return
      this.widen(ready)
      const text = ready.map((entry) => (this.format === 'csv' ? csvText(entry, this.columns!) : jsonText(entry))).join('')
      // From here on the lines are bytes, which `append` takes off as it writes them.
      this.unwritten = Buffer.concat([this.unwritten, Buffer.from(text)])
      this.lines = (this.lines ?? 0) + ready.length
      this.entries.splice(0, ready.length)
      this.append()
      this.warned = false
    })
  }

  private writing(op: string, unwritten: string, fn: () => void): void {
    try {
      fn()
    } catch (error) {
      throw ioFailure(op, 'write', this.path, error, unwritten)
    }
  }

  /** Before the first line, or the first after a load: removes lines that this run writes again, and one that an earlier run did not finish. Other programs' columns become those of this writer. */
  private removeOld(ready: readonly Entry[]): void {
    const { old } = this
    if (old === null || (ready.length === 0 && this.lines === null)) return
    const kept = this.kept(ready[0]?.step ?? 0)
    if (kept.length > 0 && this.format === 'csv') this.columns = [...old.tags]
    if (kept.length < old.lines.length || old.truncated !== null || kept.length === 0 || !old.isOurs) {
      const header = this.columns === null ? '' : csvHeader(this.columns)
      this.replace(header + kept.map((line) => (this.columns === null ? `${line.text}\n` : csvText(line, this.columns))).join(''))
    }
    this.lines = kept.length
    this.old = null
  }

  /** A header that has all tags; a file with a shorter one is written again. */
  private widen(ready: readonly Entry[]): void {
    if (this.format !== 'csv') return
    const known = new Set(this.columns ?? [])
    const added = [...new Set(ready.flatMap(({ values }) => [...values.keys()]))].filter((tag) => !known.has(tag))
    if (this.columns !== null && added.length === 0) return
    const columns = [...known, ...added]
    if (this.columns === null) this.unwritten = Buffer.concat([this.unwritten, Buffer.from(csvHeader(columns))])
    else {
      this.append()
      const [, ...lines] = readFileSync(this.path, 'utf8').split('\n')
      const cells = ','.repeat(added.length)
      this.replace(csvHeader(columns) + lines.map((line) => (line === '' ? '' : `${line}${cells}\n`)).join(''))
    }
    this.columns = columns
  }

  /** Whole, or not at all. */
  private replace(text: string): void {
    const temporary = temporaryOf(this.path)
    try {
      writeFileSync(temporary, text)
      renameSync(temporary, this.path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
  }

  /** @param isSynced also waits until the disk has all lines */
  private append(isSynced = false): void {
    if (this.unwritten.length === 0 && !isSynced) return
    const file = openSync(this.path, 'a')
    try {
      while (this.unwritten.length > 0) this.unwritten = this.unwritten.subarray(writeSync(file, this.unwritten))
      if (isSynced) fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }
}

function stateOf(op: string, state: MetricsWriterState): MetricsWriterState {
  const { lines, seconds } = Object(state) as Partial<MetricsWriterState>
  const isCount = lines === null || (Number.isSafeInteger(lines) && lines! >= 0)
  if (isCount && (seconds === null || typeof seconds === 'number')) return { lines: lines!, seconds }
  throw invalidArgument(op, 'a state of a MetricsWriter', argumentText(state), 'Pass the result of stateDict().')
}

function checkStep(op: string, what: string, step: number): void {
  if (!Number.isFinite(step)) throw invalidArgument(op, `a finite number as ${what}`, argumentText(step))
}

function checkTag(op: string, tag: string): void {
  const isTag = typeof tag === 'string' && tag !== '' && !/[\r\n]/.test(tag) && tag !== STEP && tag !== SECONDS
  if (!isTag)
    throw invalidArgument(
      op,
      `a tag in one line, other than '${STEP}' and '${SECONDS}'`,
      typeof tag === 'string' ? JSON.stringify(tag) : argumentText(tag),
    )
}

function checkValue(op: string, tag: string, value: MetricsValue): void {
  if (typeof value === 'number' || (isTensor(value) && value.numel === 1)) return
  const got = isTensor(value) ? `a tensor of shape [${value.shape.join(', ')}]` : argumentText(value)
  throw invalidArgument(op, `a number, or a tensor of one element, as '${tag}'`, got, 'Reduce it first, for example by mean().')
}
