/** PyTorch as a peer: drives `python/torch_peer.py` if the machine has Debian's `python3-torch`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Contestant } from '../row.js'
import { coreTaken, openblasEnv } from './openblas.js'

const PYTHON = '/usr/bin/python3'
const SCRIPT = fileURLToPath(new URL('../../python/torch_peer.py', import.meta.url))
const START_MS = 60_000
const CLOSE_MS = 5000
/** Characters of its stderr: the last line says why it could not. */
const COMPLAINTS_MAX = 4000

/** The script's first line. */
interface Ready {
  readonly ready: string
  readonly processes: readonly number[]
}

export class TorchPeer {
  readonly version: string
  private readonly processes: readonly number[]
  private readonly child: ChildProcess
  private readonly answers: AsyncIterator<string>
  private readonly ended: Promise<unknown>

  private constructor({ ready, processes }: Ready, child: ChildProcess, answers: AsyncIterator<string>, ended: Promise<unknown>) {
    this.version = ready
    this.processes = processes
    this.child = child
    this.answers = answers
    this.ended = ended
  }

  /** Null, with the reason on `say`, where PyTorch is not to be had. */
  static async start(say: (line: string) => void, processes = 2): Promise<TorchPeer | null> {
    const env = openblasEnv(process.env, 1)
    const child = spawn(PYTHON, [SCRIPT, String(processes)], { stdio: ['pipe', 'pipe', 'pipe'], env })
    let complaints = ''
    let core: string | null = null
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaints = (complaints + text).slice(-COMPLAINTS_MAX)
      if (core !== null) return
      core = coreTaken(complaints)
      if (core !== null) say(`PyTorch: OpenBLAS takes the kernels of ${core} (OPENBLAS_CORETYPE: ${env.OPENBLAS_CORETYPE ?? 'not set'})`)
    })
    // Its end shows in the answers; a write to a process that has gone says nothing more.
    child.stdin.on('error', () => {})
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('close', () => resolve(complaints.trim().split('\n').at(-1) || 'it ended without a word'))
    })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`not ready after ${START_MS / 1000} s`), START_MS)
    })
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const ready = async (): Promise<Ready | string> => {
      const { value, done } = await answers.next()
      return done ? ended : JSON.parse(value)
    }
    const first = await Promise.race([ended, late, ready()])
    clearTimeout(timer)
    if (typeof first !== 'string') {
      const peer = new TorchPeer(first, child, answers, ended)
      peer.signal('SIGSTOP')
      return peer
    }
    child.kill('SIGKILL')
    const absent = /ENOENT|No module named 'torch'/.test(first)
    say(
      `PyTorch: ${absent ? 'not on this machine (Debian: apt-get install python3-torch)' : `could not start (${first})`}, so its column is empty`,
    )
    return null
  }

  /** The function of that name in the script, called with n and these. */
  work(name: string, ...args: readonly number[]): Contestant {
    return async (n) => {
      this.signal('SIGCONT')
      this.child.stdin!.write(`${JSON.stringify({ name, n, args })}\n`)
      const { value, done } = await this.answers.next()
      this.signal('SIGSTOP')
      if (done) throw new Error(`the PyTorch process ended during ${name}`)
      return (JSON.parse(value) as { seconds: number }).seconds
    }
  }

  /** TensorPipe's threads poll without rest, so both processes stop while others are measured. */
  private signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    for (const pid of this.processes) {
      try {
        process.kill(pid, signal)
      } catch (error) {
        // It has gone; that shows in the answers.
        if ((error as { code?: string }).code !== 'ESRCH') throw error
      }
    }
  }

  async close(): Promise<void> {
    this.signal('SIGCONT')
    this.child.stdin!.end()
    const late = setTimeout(() => this.child.kill('SIGKILL'), CLOSE_MS)
    await this.ended
    clearTimeout(late)
  }
}

/**
 * PyTorch in more processes than two: started when somebody asks for so many, since they would slow the others, and ended when somebody asks for another
 * number of them.
 */
export class LazyTorch {
  readonly version: string
  private readonly say: (line: string) => void
  private world: { readonly processes: number; readonly peer: Promise<TorchPeer | null> } | null = null

  constructor(say: (line: string) => void, version: string) {
    this.say = say
    this.version = version
  }

  /** Among a row's peers. */
  get name(): string {
    return `pytorch ${this.version}`
  }

  /** As `TorchPeer.work`, with worker0 to worker`processes − 1`. */
  work(processes: number, name: string, ...args: readonly number[]): Contestant {
    return async (n) => {
      if (this.world?.processes !== processes) {
        await this.close()
        this.world = { processes, peer: TorchPeer.start(this.say, processes) }
      }
      const peer = await this.world.peer
      if (peer === null) throw new Error('PyTorch was there at first and could not be started again')
      return peer.work(name, ...args)(n)
    }
  }

  async close(): Promise<void> {
    const { peer } = this.world ?? {}
    this.world = null
    await (await peer)?.close()
  }
}
