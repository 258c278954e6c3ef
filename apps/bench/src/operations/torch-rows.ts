/** PyTorch's rows, of `python/operations.py`: a process of its own for each choice of kernels and threads. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { coreTaken, openblasEnv } from '../peers/openblas.js'

const PYTHON = '/usr/bin/python3'
const SCRIPT = fileURLToPath(new URL('../../python/operations.py', import.meta.url))
/** 128-bit kernels in OpenBLAS, in PyTorch's own loops and in oneDNN: what WebAssembly has. */
const NARROW = { OPENBLAS_CORETYPE: 'NEHALEM', ATEN_CPU_CAPABILITY: 'default', DNNL_MAX_CPU_ISA: 'SSE41' }

export class TorchRows {
  readonly version: string
  readonly names: ReadonlySet<string>
  /** The core whose kernels OpenBLAS took, as it says. */
  readonly core: string
  private readonly child: ChildProcess
  private readonly answers: AsyncIterator<string>

  private constructor(version: string, names: readonly string[], core: string, child: ChildProcess, answers: AsyncIterator<string>) {
    this.version = version
    this.names = new Set(names)
    this.core = core
    this.child = child
    this.answers = answers
  }

  /** @throws Error with the end of its stderr if PyTorch is not there */
  static async start(threads: number, isNarrow: boolean): Promise<TorchRows> {
    // A core that is set in the shell holds for the other choice.
    const env = { ...openblasEnv(process.env, threads), ...(isNarrow ? NARROW : {}) }
    const child = spawn(PYTHON, [SCRIPT, String(threads)], { stdio: ['pipe', 'pipe', 'pipe'], env })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.stdin.on('error', () => {})
    const failed = new Promise<never>((_, reject) => {
      child.once('error', reject)
      child.once('close', () => reject(new Error(stderr.trim().split('\n').at(-1) || 'PyTorch ended without a word')))
    })
    failed.catch(() => {})
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const first = await Promise.race([answers.next(), failed])
    if (first.done) return failed
    const { version, rows } = JSON.parse(first.value) as { version: string; rows: string[] }
    return new TorchRows(version, rows, coreTaken(stderr) ?? 'not known', child, answers)
  }

  /** Seconds of so many times. */
  async run(name: string, times: number): Promise<number> {
    this.child.stdin!.write(`${JSON.stringify({ name, times })}\n`)
    const { value, done } = await this.answers.next()
    if (done) throw new Error(`PyTorch ended during ${name}`)
    return (JSON.parse(value) as { seconds: number }).seconds
  }

  close(): void {
    this.child.stdin!.end()
  }
}
