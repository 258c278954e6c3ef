/** The last lines of each worker, for the report of one that died: on the screen they are far above, between other workers' lines. */

export const LAST_LINES = 20
/** A line is cut here: a worker that prints a file in one line must not fill the report. */
const LINE_LENGTH_MAX = 400

export class LastLines {
  private readonly lines = new Map<string, string[]>()

  add(worker: string, line: string): void {
    const lines = this.lines.get(worker) ?? []
    this.lines.set(worker, lines)
    lines.push(line.length > LINE_LENGTH_MAX ? `${line.slice(0, LINE_LENGTH_MAX)}…` : line)
    if (lines.length > LAST_LINES) lines.shift()
  }

  /** Oldest first. */
  of(worker: string): readonly string[] {
    return this.lines.get(worker) ?? []
  }
}
