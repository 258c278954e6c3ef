/** The output of a run: the display that fits the streams and the flags, whole lines of workers' output, and their last lines. */
import type { OutputSink } from 'postgrad/types'
import type { Surroundings } from '../surroundings.js'
import type { Display, StreamName } from './display.js'
import { JsonDisplay } from './json-display.js'
import { LastLines } from './last-lines.js'
import { LiveDisplay } from './live-display.js'
import { PlainDisplay } from './plain-display.js'
import { Prefix, showsColour } from './prefix.js'
import { TrackedDisplay } from './tracked-display.js'
import { WholeLines } from './whole-lines.js'

export interface OutputOptions {
  readonly output?: 'plain' | 'json'
  /** Undefined: where workers are in several processes. */
  readonly prefix?: boolean
  /** Undefined: on a terminal, unless NO_COLOR says otherwise. */
  readonly color?: boolean
}

/** Of a run. */
export interface Processes {
  /** Whether lines have prefixes where no flag says it. */
  readonly hasPrefix: boolean
  /** Others write to the same terminal: no line is drawn again. */
  readonly isShared: boolean
}

export class Screen {
  readonly display: TrackedDisplay
  readonly lastLines = new LastLines()
  /** For `launch`; null: what workers print goes where they print it, byte by byte. */
  readonly sinks: { readonly stdout: OutputSink; readonly stderr: OutputSink } | null
  private readonly lines: readonly WholeLines[]
  private readonly stopWarnings: () => void
  private isEnded = false

  constructor(options: OutputOptions, workers: readonly string[], around: Surroundings, { hasPrefix, isShared }: Processes) {
    const { stdout, stderr } = around
    const isPrefixed = options.prefix ?? hasPrefix
    const prefixes = {
      stdout: new Prefix(workers, showsColour(options.color, stdout.isTTY, around.env)),
      stderr: new Prefix(workers, showsColour(options.color, stderr.isTTY, around.env)),
    }
    const prefix = (worker: string, stream: StreamName): string => (isPrefixed ? prefixes[stream].before(worker) : '')
    const out = (text: string): unknown => stdout.write(text)
    const err = (text: string): unknown => stderr.write(text)
    let display: Display
    this.stopWarnings = () => {}
    if (options.output === 'json') display = new JsonDisplay(out, around.wallMs)
    else if (stdout.isTTY && !isShared) {
      const live = new LiveDisplay(stdout, workers, stderr.isTTY ? null : stderr, prefix)
      display = live
      // Node writes them past the streams: between the bars of a terminal.
      this.stopWarnings = around.onWarning((text) => (stderr.isTTY ? live.aboveLines(text) : stderr.write(`${text}\n`)))
    } else display = new PlainDisplay(err, out, around.now, prefix)
    this.display = new TrackedDisplay(display)
    const taker = (stream: StreamName): WholeLines =>
      new WholeLines((line, worker) => {
        this.lastLines.add(worker, line)
        this.display.print(worker, stream, line)
      })
    const [ofStdout, ofStderr] = [taker('stdout'), taker('stderr')]
    this.lines = [ofStdout, ofStderr]
    // What one worker alone prints to a pipe or a file nobody interrupts.
    const passes = workers.length === 1 && display instanceof PlainDisplay && !isPrefixed
    this.sinks = passes ? null : { stdout: ofStdout.take, stderr: ofStderr.take }
  }

  /** Prints what was begun, and lets go of the terminal. */
  end(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.stopWarnings()
    for (const lines of this.lines) lines.flush()
    this.display.close()
  }
}
