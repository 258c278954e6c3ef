/** A child process of the bench, which answers each message with a number. It ends with this process. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export class Child {
  private readonly child: ChildProcess

  constructor(entry: URL) {
    this.child = fork(fileURLToPath(entry), [], { serialization: 'advanced' })
  }

  /** Rejects when the process ends instead. One question at a time. */
  async ask(message: object): Promise<number> {
    this.child.send(message)
    const settled = new AbortController()
    const { signal } = settled
    try {
      const ended = once(this.child, 'exit', { signal }).then(([code, by]) => {
        throw new Error(`a process of the benchmark has ended (${code ?? by})`)
      })
      const answered = once(this.child, 'message', { signal }).then(([answer]) => (answer as { readonly value: number }).value)
      // The loser is aborted, which is not an error.
      void ended.catch(() => {})
      void answered.catch(() => {})
      return await Promise.race([answered, ended])
    } finally {
      settled.abort()
    }
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const exit = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await exit
  }
}
