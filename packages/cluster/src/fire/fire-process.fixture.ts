/** One process of a group under fire, as its test sees it. `fire-group.fixture.ts` and `namespaces.real.test.ts` start some. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Ask, Failure, Look, MemberOptions, Told } from './fixtures/fire-member.js'

const MEMBER = new URL('./fixtures/fire-member.js', import.meta.url)
/** A process that has not come by then hangs. */
export const START_MS = 30_000

/** Of a process that the test did not kill, or that had something to complain of. */
export class MemberFailed extends Error {
  /** What it says itself; null if it says nothing. */
  readonly failure: Failure | null

  constructor(message: string, failure: Failure | null = null) {
    super(message)
    this.failure = failure
  }
}

export class FireMember {
  readonly rank: number
  readonly exited: Promise<void>
  isStopped = false
  /** By this test. */
  isKilled = false
  isGone = false
  id = -1
  complaints = ''
  private readonly child: ChildProcess
  private readonly listeners = new Set<(told: Told) => void>()
  private readonly gone = new Set<() => void>()
  code: number | null = null

  /** @param through a command with arguments that runs the one after it, as the same process */
  constructor(rank: number, options: MemberOptions, through: readonly string[] = []) {
    this.rank = rank
    // jest's own flags must not reach the child.
    const { NODE_OPTIONS: _, ...env } = process.env
    const [command, ...args] = [...through, process.execPath, fileURLToPath(MEMBER), JSON.stringify({ rank, ...options })]
    this.child = spawn(command!, args, {
      env,
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.complaints += text
    })
    this.child.on('message', (told: Told) => {
      for (const listener of [...this.listeners]) listener(told)
    })
    this.child.on('error', () => {})
    this.exited = new Promise((resolve) => {
      this.child.on('close', (code) => {
        this.code = code
        this.isGone = true
        for (const tellGone of [...this.gone]) tellGone()
        resolve()
      })
    })
  }

  /** When it is a member. Rejects with what `init` has rejected with. */
  async ready(): Promise<void> {
    const told = await this.hear(START_MS, (one) => one.told === 'ready' || one.told === 'failed')
    if (told.told === 'failed') throw new MemberFailed(`rank ${this.rank} did not come: ${told.failure.message}`, told.failure)
    this.id = (told as Extract<Told, { told: 'ready' }>).id
  }

  tell(asked: Ask): void {
    if (!this.isGone && this.child.connected) this.child.send(asked, () => {})
  }

  async look(timeoutMs: number): Promise<Look> {
    const heard = this.hear(timeoutMs, ({ told }) => told === 'look')
    this.tell({ ask: 'look' })
    return ((await heard) as Extract<Told, { told: 'look' }>).look
  }

  listen(listener: (told: Told) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** The first word for which `isIt`. Rejects when the process ends before, or after so many ms. */
  hear(timeoutMs: number, isIt: (told: Told) => boolean): Promise<Told> {
    return new Promise((resolve, reject) => {
      const over = (): void => {
        stop()
        this.gone.delete(ended)
        clearTimeout(timer)
      }
      const ended = (): void => {
        over()
        reject(new MemberFailed(`rank ${this.rank} has ended (${this.code}): ${this.complaints}`))
      }
      const stop = this.listen((told) => {
        if (!isIt(told)) return
        over()
        resolve(told)
      })
      const timer = setTimeout(() => {
        over()
        reject(new MemberFailed(`rank ${this.rank} has said nothing for ${timeoutMs} ms`))
      }, timeoutMs)
      this.gone.add(ended)
      if (this.isGone) ended()
    })
  }

  stop(): void {
    this.isStopped = true
    this.child.kill('SIGSTOP')
  }

  goOn(): void {
    if (!this.isStopped) return
    this.isStopped = false
    this.child.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    this.isKilled = true
    this.child.kill('SIGKILL')
    await this.exited
  }

  /** Waits for its own end. */
  async end(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), timeoutMs)
    await this.exited
    clearTimeout(timer)
  }
}
