/**
 * `launch({ processes })` under fire: while it trains, one of its processes is stopped for a while, or killed. Each round gives the bits of the same training in one
 * place, or a typed error; then dead workers restart, and training continues from its checkpoint. `npm run soak -- --rounds 500 --seed 1 fire`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { Random } from '@postgrad/sim/internal'
import { launcher } from '../clusters.fixture.js'
import * as program from './fixtures/fire-launched.js'
import { type StepBits, TrainingAtHome } from './fixtures/fire-model.js'

const launch = launcher()
const PROGRAM = new URL('./fixtures/fire-launched.js', import.meta.url)
const ROUNDS = Number(process.env.POSTGRAD_SOAK_ROUNDS ?? 500)
const SEED = Number(process.env.POSTGRAD_SOAK_SEED ?? 1)
const WORKERS = 3
const STEPS = 10
const BEGIN_MS_MAX = 60
const STOPPED_MS_MAX = 300

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

test(`CLU-92 CLU-94 INI-10: ${ROUNDS} rounds of training in processes that are stopped and killed, seed ${SEED}`, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'postgrad-fire-'))
  const random = new Random(SEED)
  const home = new TrainingAtHome()
  const counts = { right: 0, died: 0, SIGSTOP: 0, SIGKILL: 0, restarted: 0 }
  const errors: Record<string, number> = {}
  let step = 0
  /** At which step the next training may begin. */
  let possible = [0]
  try {
    const cluster = await launch(PROGRAM, { workers: WORKERS, processes: WORKERS })
    cluster.onWorkerDeath(() => {})
    for (let round = 0; round < ROUNDS; round++) {
      const pids = await Promise.all(cluster.workers.map(({ name }) => cluster.on(name).run(program.pid)))
      const [pid, signal, atMs, lastsMs] = [
        pids[random.below(WORKERS)]!,
        random.coin() ? 'SIGKILL' : 'SIGSTOP',
        random.below(BEGIN_MS_MAX),
        random.below(STOPPED_MS_MAX),
      ] as const
      const training = cluster.on('worker1').run(program.trainOn, directory, WORKERS, STEPS)
      const [end] = await Promise.allSettled([training, strike(pid, signal, atMs, lastsMs)])
      counts[signal]++
      const where = `seed ${SEED}, round ${round}: ${signal} after ${atMs} ms`
      if (end.status === 'fulfilled') {
        counts.right++
        const from = end.value[0]!.step - 1
        expect([where, possible]).toEqual([where, expect.arrayContaining([from])])
        expect([where, end.value]).toEqual([where, expected(home, from)])
        step = from + STEPS
        possible = [step]
      } else {
        counts.died++
        const error: unknown = end.reason
        // What was done with the worker may say so in its own words: a checkpoint that has failed, for example.
        if (!isPostgradError(error)) throw new Error(`${where}: an error without a type`, { cause: error })
        errors[error.code] = (errors[error.code] ?? 0) + 1
        expect([where, signal]).toEqual([where, 'SIGKILL'])
        // A checkpoint may be whole though its result was lost.
        possible.push(possible.at(-1)! + STEPS)
      }
      if (signal === 'SIGKILL') {
        const dead = cluster.workers.filter((_, i) => pids[i] === pid)
        for (const { name } of dead) {
          while (cluster.deathOf(name) === null) await sleep(2)
          await cluster.restart(name)
          counts.restarted++
        }
      }
    }
    await cluster.close()
    console.log(JSON.stringify({ seed: SEED, rounds: ROUNDS, ...counts, errors, step }))
    expect(step).toBeGreaterThan(0)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

async function strike(pid: number, signal: 'SIGKILL' | 'SIGSTOP', atMs: number, lastsMs: number): Promise<void> {
  await sleep(atMs)
  process.kill(pid, signal)
  if (signal === 'SIGKILL') return
  await sleep(lastsMs)
  process.kill(pid, 'SIGCONT')
}

const expected = (home: TrainingAtHome, step: number): StepBits[] => Array.from({ length: STEPS }, (_, i) => home.bits(step + 1 + i))
