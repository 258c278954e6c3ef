/**
 * Runs PyTorch, started once, on batches of programs, with a script of `scripts/golden/`, by default `random_graphs.py`, and returns its outcomes. About one program in 75,000 crashes PyTorch 1.13; then
 * it is started again. If it does not start again, or crashes more often, `run` throws, since nothing would be compared.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Program } from './builder.fixture.js'
import type { Outcome } from './run.fixture.js'

const PYTHON = process.env.PYTHON ?? '/usr/bin/python3'
/** Characters of its stderr: they say why it could not start. */
const COMPLAINTS_MAX = 4000
/** One run may have so many crashes, and one more for each of so many programs. */
const CRASHES_MAX = 3
const PROGRAMS_PER_CRASH = 20_000
const SCRIPTS = new URL('../../../../scripts/golden/', import.meta.url)

export class Torch<Asked = Program, Answer = Outcome> {
  readonly version: string
  /** How often the process has died of a program. */
  crashes = 0
  private programs = 0
  private readonly start: () => Process
  private process: Process

  private constructor(version: string, start: () => Process, process: Process) {
    this.version = version
    this.start = start
    this.process = process
  }

  /** @throws Error where python3 has no torch, with what to do */
  static async start<Asked = Program, Answer = Outcome>(python = PYTHON, script = 'random_graphs.py'): Promise<Torch<Asked, Answer>> {
    const start = () => startProcess(python, script)
    const process = start()
    const greeting = await process.lines.next()
    if (!greeting.done) return new Torch<Asked, Answer>((JSON.parse(greeting.value) as { torch: string }).torch, start, process)
    throw new Error(
      `this test needs PyTorch under ${python} (Debian: apt-get install python3-torch; another one: set PYTHON), and it did not start: ${await process.complaints()}`,
    )
  }

  /**
   * Gives the outcome of each program; null for a program that crashes PyTorch.
   * @throws Error if PyTorch doesn't start again after a crash, or crashes too often
   */
  async run(programs: readonly Asked[]): Promise<(Answer | null)[]> {
    const outcomes: (Answer | null)[] = []
    while (outcomes.length < programs.length) {
      this.process.child.stdin!.write(`${JSON.stringify(programs.slice(outcomes.length))}\n`)
      while (outcomes.length < programs.length) {
        const { value, done } = await this.process.lines.next()
        outcomes.push(done ? null : JSON.parse(value))
        this.programs++
        if (!done) continue
        await this.restart()
        break
      }
    }
    return outcomes
  }

  private async restart(): Promise<void> {
    this.crashes++
    const allowed = CRASHES_MAX + Math.floor(this.programs / PROGRAMS_PER_CRASH)
    const last = await this.process.complaints()
    if (this.crashes > allowed)
      throw new Error(`PyTorch has crashed ${this.crashes} times in ${this.programs} programs, last with: ${last}`)
    this.process = this.start()
    const { done } = await this.process.lines.next()
    if (done) throw new Error(`PyTorch has crashed, and did not start again: ${await this.process.complaints()}`)
  }

  close(): void {
    this.process.child.stdin!.end()
  }
}

interface Process {
  readonly child: ChildProcess
  readonly lines: AsyncIterator<string>
  /** The end of its stderr, once it has ended. */
  complaints(): Promise<string>
}

function startProcess(python: string, script: string): Process {
  // Debian's OpenBLAS takes slow kernels on newer processors otherwise.
  const env = { OPENBLAS_CORETYPE: 'HASWELL', ...process.env }
  const child = spawn(python, ['-W', 'ignore', fileURLToPath(new URL(script, SCRIPTS))], { stdio: ['pipe', 'pipe', 'pipe'], env })
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-COMPLAINTS_MAX)
  })
  child.on('error', (error) => {
    complaints += error.message
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  // Its end shows in the answers.
  child.stdin.on('error', () => {})
  const complained = async () => {
    await ended
    return complaints.trim()
  }
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](), complaints: complained }
}
