/** PyTorch beside us: drives `python/torch_peer.py` if Debian's `python3-torch` is on the machine. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Contestant } from './row.js'

const PYTHON = '/usr/bin/python3'
const SCRIPT = fileURLToPath(new URL('../python/torch_peer.py', import.meta.url))
const START_MS = 60_000

export class TorchPeer {
  readonly version: string
  private readonly child: ChildProcess
  private readonly answers: AsyncIterator<string>

  private constructor(version: string, child: ChildProcess, answers: AsyncIterator<string>) {
    this.version = version
    this.child = child
    this.answers = answers
  }

  /** Null, with the reason on `say`, where PyTorch is not to be had. */
  static async start(say: (line: string) => void): Promise<TorchPeer | null> {
    const child = spawn(PYTHON, [SCRIPT], { stdio: ['pipe', 'pipe', 'ignore'] })
    const failed = new Promise<null>((resolve) => {
      child.once('error', () => resolve(null))
      child.once('exit', () => resolve(null))
      setTimeout(() => resolve(null), START_MS).unref()
    })
    const answers = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
    const first = await Promise.race([failed, answers.next()])
    if (first === null || first.done) {
      child.kill('SIGKILL')
      say('PyTorch: not on this machine (Debian: apt-get install python3-torch), so its column is empty')
      return null
    }
    const { ready } = JSON.parse(first.value) as { ready: string }
    return new TorchPeer(ready, child, answers)
  }

  /** The function of that name in the script. */
  work(name: string): Contestant {
    return async (n) => {
      this.child.stdin!.write(`${JSON.stringify({ name, n })}\n`)
      const { value, done } = await this.answers.next()
      if (done) throw new Error(`the PyTorch process ended during ${name}`)
      return (JSON.parse(value) as { seconds: number }).seconds
    }
  }

  async close(): Promise<void> {
    if (this.child.exitCode !== null) return
    const exited = new Promise((resolve) => this.child.once('exit', resolve))
    this.child.stdin!.end()
    const late = setTimeout(() => this.child.kill('SIGKILL'), 5000)
    await exited
    clearTimeout(late)
  }
}
