/** PyTorch, started once: takes programs in batches, gives what `scripts/golden/random_graphs.py` says of each. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Program } from './builder.fixture.js'
import type { Outcome } from './run.fixture.js'

const PYTHON = process.env.PYTHON ?? '/usr/bin/python3'
/** Characters of its stderr: they say why it could not start. */
const COMPLAINTS_MAX = 4000
const SCRIPT = fileURLToPath(new URL('../../../../scripts/golden/random_graphs.py', import.meta.url))

export class Torch {
  readonly version: string
  /** How often the process has died of a program. */
  crashes = 0
  private process: Process

  private constructor(version: string, process: Process) {
    this.version = version
    this.process = process
  }

  /** @throws Error where python3 has no torch, with what to do */
  static async start(): Promise<Torch> {
    const process = startProcess()
    const { value, done } = await process.lines.next()
    if (!done) return new Torch((JSON.parse(value) as { torch: string }).torch, process)
    throw new Error(
      `this test needs PyTorch under ${PYTHON} (Debian: apt-get install python3-torch; another one: set PYTHON), and it did not start: ${process.complaints()}`,
    )
  }

  /** Of each program what came of it; null of one that PyTorch crashes at. */
  async run(programs: readonly Program[]): Promise<(Outcome | null)[]> {
    const outcomes: (Outcome | null)[] = []
    while (outcomes.length < programs.length) {
      this.process.child.stdin!.write(`${JSON.stringify(programs.slice(outcomes.length))}\n`)
      while (outcomes.length < programs.length) {
        const { value, done } = await this.process.lines.next()
        outcomes.push(done ? null : JSON.parse(value))
        if (!done) continue
        this.crashes++
        this.process = startProcess()
        await this.process.lines.next()
        break
      }
    }
    return outcomes
  }

  close(): void {
    this.process.child.stdin!.end()
  }
}

interface Process {
  readonly child: ChildProcess
  readonly lines: AsyncIterator<string>
  /** The end of its stderr. */
  complaints(): string
}

function startProcess(): Process {
  // Debian's OpenBLAS takes slow kernels on newer processors otherwise.
  const env = { OPENBLAS_CORETYPE: 'HASWELL', ...process.env }
  const child = spawn(PYTHON, ['-W', 'ignore', SCRIPT], { stdio: ['pipe', 'pipe', 'pipe'], env })
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-COMPLAINTS_MAX)
  })
  child.on('error', (error) => {
    complaints += error.message
  })
  // Its end shows in the answers.
  child.stdin.on('error', () => {})
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](), complaints: () => complaints.trim() }
}
