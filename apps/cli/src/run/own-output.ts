/**
 * Takes the output of a program in this very process from its streams before it is written, so that it gets a prefix or becomes a line of JSON. Postgrad's own
 * lines bypass that, by `around`.
 */
import type { OutputSink } from 'postgrad/types'
import type { Surroundings } from '../surroundings.js'

type Write = NodeJS.WriteStream['write']

export class OwnOutput {
  /** The surroundings with streams that write past what diverts them. */
  readonly around: Surroundings
  private readonly streams: { readonly stdout: NodeJS.WriteStream; readonly stderr: NodeJS.WriteStream }
  private readonly writes: { readonly stdout: Write; readonly stderr: Write }

  constructor(around: Surroundings) {
    const { stdout, stderr } = around
    this.streams = { stdout, stderr }
    this.writes = { stdout: stdout.write, stderr: stderr.write }
    const past = (stream: NodeJS.WriteStream, write: Write): NodeJS.WriteStream =>
      Object.create(stream, { write: { value: (text: string) => write.call(stream, text) } }) as NodeJS.WriteStream
    this.around = { ...around, stdout: past(stdout, this.writes.stdout), stderr: past(stderr, this.writes.stderr) }
  }

  divert(worker: string, sinks: Readonly<Record<'stdout' | 'stderr', OutputSink>>): void {
    for (const name of ['stdout', 'stderr'] as const) {
      const write = (
        chunk: string | Uint8Array,
        encoding?: BufferEncoding | ((error?: Error | null) => void),
        done?: (error?: Error | null) => void,
      ): boolean => {
        const told = typeof encoding === 'function' ? encoding : done
        const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8')
        sinks[name](text, worker)
        if (told !== undefined) queueMicrotask(() => told())
        return true
      }
      this.streams[name].write = write as Write
    }
  }

  restore(): void {
    for (const name of ['stdout', 'stderr'] as const) this.streams[name].write = this.writes[name]
  }
}
