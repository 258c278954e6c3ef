/**
 * Joins the output of several workers into whole lines: a worker writes a line in parts, and parts of others would come between them. `screen.ts`
 * has one for each of its two streams.
 */
export class WholeLines {
  private readonly write: (line: string, worker: string) => void
  /** The line that each worker has begun. */
  private readonly begun = new Map<string, string>()

  /** @param write gets lines without their end */
  constructor(write: (line: string, worker: string) => void) {
    this.write = write
  }

  readonly take = (text: string, worker: string): void => {
    const lines = ((this.begun.get(worker) ?? '') + text).split('\n')
    this.begun.set(worker, lines.pop()!)
    for (const line of lines) this.write(line, worker)
  }

  /** Writes the lines that never ended. */
  flush(): void {
    const rest = [...this.begun]
    this.begun.clear()
    for (const [worker, line] of rest) if (line !== '') this.write(line, worker)
  }
}
