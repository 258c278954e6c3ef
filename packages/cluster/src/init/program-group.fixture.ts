/** A program in processes that join by `init`, for tests: `group.on(name).run(…)` runs its functions there, as on a cluster's workers. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { InitOptions } from './init.js'

const MEMBER = fileURLToPath(new URL('./fixtures/program-member.js', import.meta.url))

/** What a process is asked: to run something, or to end. How it answers; first it says that it has joined. */
export type Ask = { readonly run: string; readonly args: readonly unknown[] } | 'end'
export type Answer = { readonly value: unknown } | { readonly failed: string }

export class ProgramGroup {
  private readonly folder = mkdtempSync(join(tmpdir(), 'program-group-'))
  private readonly members: ReadonlyMap<string, Process>

  private constructor(program: URL, worldSize: number, options: InitOptions) {
    const initMethod = pathToFileURL(join(this.folder, 'meeting')).href
    const start = (rank: number) => new Process(program, { initMethod, rank, worldSize, ...options })
    this.members = new Map(Array.from({ length: worldSize }, (_, rank) => [`worker${rank}`, start(rank)]))
  }

  /** As many processes as `worldSize`, called worker0 and on, which have imported the program and met by a file. Rejects when one does not come. */
  static async start(program: URL, worldSize: number, options: InitOptions): Promise<ProgramGroup> {
    const group = new ProgramGroup(program, worldSize, options)
    try {
      await Promise.all([...group.members.values()].map((member) => member.answer()))
      return group
    } catch (error) {
      for (const { child } of group.members.values()) child.kill()
      await group.close().catch(() => {})
      throw error
    }
  }

  /** One run at a time on each worker. `run` takes and gives what `structuredClone` does, and rejects with what the process says of a failure. */
  on(worker: string): { run(name: string, ...args: readonly unknown[]): Promise<unknown> } {
    const member = this.members.get(worker)!
    return {
      run(run, ...args) {
        member.child.send({ run, args } satisfies Ask)
        return member.answer()
      },
    }
  }

  /** All end together. Rejects with what they had to complain of, and with exit codes other than 0. */
  async close(): Promise<void> {
    const members = [...this.members.values()]
    for (const { child } of members) if (child.connected) child.send('end' satisfies Ask)
    const ends = await Promise.all(members.map((member) => member.ended))
    rmSync(this.folder, { recursive: true, force: true })
    if (ends.join('') !== '') throw new Error(ends.join(''))
  }
}

class Process {
  readonly child: ChildProcess
  /** With what it had to complain of. */
  readonly ended: Promise<string>

  constructor(program: URL, options: InitOptions) {
    // jest's own flags must not reach the child.
    const { NODE_OPTIONS: _, ...env } = process.env
    const args = [program.href, JSON.stringify(options)]
    this.child = fork(MEMBER, args, { env, execArgv: [], serialization: 'advanced', stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
    let complaints = ''
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      complaints += text
    })
    this.ended = once(this.child, 'close').then(([code]) => (code === 0 ? complaints : `${complaints}exit code ${code}\n`))
  }

  async answer(): Promise<unknown> {
    const end = this.ended.then((complaints): Answer => ({ failed: `the process has ended: ${complaints}` }))
    const answer = await Promise.race([once(this.child, 'message').then(([message]) => message as Answer), end])
    if ('failed' in answer) throw new Error(answer.failed)
    return answer.value
  }
}
