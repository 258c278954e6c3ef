/**
 * Two runs save into one directory, and are killed while they do: each checkpoint that is listed is whole, and all its files are of one run.
 * `npm run soak -- --kills 200 checkpoint/runs` kills more.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { Random } from '@postgrad/sim/internal'
import { Checkpoints } from './checkpoints.js'
import { beginRun } from './runs.fixture.js'

const PROGRAM = fileURLToPath(new URL('./runs-child.fixture.js', import.meta.url))
const KILLS = Number(process.env.POSTGRAD_SOAK_KILLS ?? (process.env.POSTGRAD_SOAK === '1' ? 200 : 3))
const SEED = Number(process.env.POSTGRAD_SOAK_SEED ?? 1)
/** How long a run may take to start and save, on a machine that does much else. */
const PATIENCE_MS = 60_000

class Child {
  readonly number: number
  readonly process: ChildProcess
  readonly counts = { saving: 0, saved: 0, busy: 0 }
  private readonly ended: Promise<unknown>
  private errors = ''
  private rest = ''

  constructor(directory: string, number: number) {
    this.number = number
    this.process = spawn(process.execPath, [PROGRAM, directory, String(number)], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.ended = new Promise((resolve) => this.process.once('close', resolve))
    this.process.stdout!.on('data', (text) => {
      const lines = (this.rest + text).split('\n')
      this.rest = lines.pop()!
      for (const line of lines) this.counts[line as 'saving']++
    })
    this.process.stderr!.on('data', (text) => {
      this.errors += text
    })
  }

  /** Waits until it has said `what` once more. */
  async says(what: 'saving' | 'saved'): Promise<void> {
    const [before, until] = [this.counts[what], performance.now() + PATIENCE_MS]
    while (this.counts[what] === before) {
      if (this.process.exitCode !== null || performance.now() > until) {
        throw new Error(`run ${this.number} ended, or did nothing in ${PATIENCE_MS} ms: ${this.errors}`)
      }
      await sleep(1)
    }
  }

  /** Idempotent. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL')
    await this.ended
  }
}

test(
  `CP-18 ${KILLS} kills during saves of two runs in one directory, seed ${SEED}: what is listed is whole, and of one run`,
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'postgrad-runs-'))
    const random = new Random(SEED)
    const reader = await beginRun()
    const totals = { saving: 0, saved: 0, busy: 0, listed: 0 }
    let number = 1
    const children = [new Child(directory, number++), new Child(directory, number++)]
    const count = ({ counts }: Child) => {
      for (const key of ['saving', 'saved', 'busy'] as const) totals[key] += counts[key]
    }
    try {
      for (let kill = 0; kill < KILLS; kill++) {
        const which = random.below(2)
        const [victim, other] = [children[which]!, children[1 - which]!]
        await victim.says('saving')
        await sleep(random.below(30))
        await victim.kill()
        count(victim)
        // The survivor, too, is in the middle of something while the directory is looked at.
        other.process.kill('SIGSTOP')
        totals.listed += await checkAll(directory, reader, `seed ${SEED}, kill ${kill}`)
        other.process.kill('SIGCONT')
        // Nobody waits for a lock that a killed run has left.
        await other.says('saved')
        children[which] = new Child(directory, number++)
      }
      for (const child of children) {
        await child.says('saved')
        await child.kill()
        count(child)
      }
      totals.listed += await checkAll(directory, reader, 'the end')
      // The next save removes files of broken ones.
      await reader.workers[0].run(() =>
        new Checkpoints(directory, { keep: 1 }).save(1e9, { here: reader.here, there: reader.there, who: 0 }),
      )
      expect(readdirSync(directory)).toEqual(['step-001000000000'])
    } finally {
      for (const child of children) await child.kill()
      await reader.close()
      rmSync(directory, { recursive: true })
    }
    console.log(`${KILLS} kills: ${JSON.stringify(totals)}`)
  },
  24 * 3_600_000,
)

test.each([
  ['save', 'CHECKPOINT_FAILED'],
  ['load', 'CHECKPOINT_NOT_FOUND'],
])(
  'CP-12 a %s that is forgotten and fails is an unhandled rejection',
  async (what, code) => {
    const directory = mkdtempSync(join(tmpdir(), 'postgrad-runs-'))
    // A file, where a directory is needed.
    const path = join(directory, 'file')
    writeFileSync(path, '')
    const program = fileURLToPath(new URL('./forgotten.fixture.js', import.meta.url))
    const child = spawn(process.execPath, [program, path, what], { stdio: ['ignore', 'ignore', 'pipe'] })
    let errors = ''
    child.stderr.on('data', (text) => {
      errors += text
    })
    const status = await new Promise((resolve) => child.once('close', resolve))
    rmSync(directory, { recursive: true })
    expect([status, errors]).toEqual([1, expect.stringContaining(code)])
  },
  60_000,
)

/** How many there were. */
async function checkAll(directory: string, { workers, here, there, values }: Awaited<ReturnType<typeof beginRun>>, where: string) {
  return await workers[0].run(async () => {
    const checkpoints = new Checkpoints(directory)
    const [listed, verified] = [await checkpoints.list(), await checkpoints.list({ verify: true })]
    expect([where, verified]).toEqual([where, listed])
    for (const { step } of listed) {
      const loaded = await checkpoints.load({ here, there }, { step })
      expect([where, step, await values()]).toEqual([where, step, [loaded.values.who]])
    }
    return listed.length
  })
}
