/**
 * Random programs on workers that crash: a pass ends in the oracle's gradients or in a typed error, within a bound of virtual time, and then the survivors
 * run another program, whose bits must be those of its own inlined run.
 */
import { isPostgradError } from '@postgrad/base'
import { Random } from '@postgrad/sim/internal'
import { bitsText } from '@postgrad/testing-cases'
import { generate, type Mode, nameOf, type Program, runProgram, useDevice } from '@postgrad/testing-cases/programs'
import { leaks } from '../../check/expect-clean.js'
import type { FaultRule } from '../../faults/message-kind.js'
import { type SimCluster, simulate } from '../../simulate/simulate.js'
import { inlinedRun } from './oracle.suite.js'

/** Messages of the road of a program, one of which its receiver, or another worker, does not survive. */
const KINDS = ['CALL', 'RESULT', 'REMOTE_CALL', 'RREF_FETCH', 'PROPAGATE_GRADIENTS', 'PASS_REPORT', 'CLEANUP_CONTEXT'] as const
const NTH_MAX = 6
/** Of calls and passes: nobody gets so far. */
const RPC_TIMEOUT_MS = 3000
/** A death ends all waits for the worker; they need no deadline. */
const BOUND_MS = 1000

/** The codes of a program that meets a death. */
const TYPED: ReadonlySet<string> = new Set(['WORKER_DIED', 'CONTEXT_RELEASED'])

/** Far from those of the first programs. */
const SURVIVORS_SEED = 500_000_000

interface NextPass {
  readonly program: Program
  readonly bits: string
}

export interface CrashReport {
  /** `right`, or the code of the error; null where the root itself crashed. */
  readonly end: string | null
  readonly crashed: number
  /** Of the end. */
  readonly endMs: number
  /** Empty. */
  readonly problems: readonly string[]
}

/** One or two workers die, of early messages mostly. */
function planOf(random: Random, workers: number): FaultRule[] {
  return Array.from({ length: 1 + Number(random.below(4) === 0) }, () => {
    const kind = KINDS[random.below(KINDS.length)]!
    const match = { kind, nth: 1 + random.below(NTH_MAX) }
    const rule = { match, do: 'crash', untilMs: BOUND_MS } as const
    return random.below(3) === 0 ? { ...rule, worker: `worker${1 + random.below(workers - 1)}` } : rule
  })
}

const after = (sim: SimCluster, ms: number) => new Promise<null>((resolve) => sim.world.clock.setTimer(ms, () => resolve(null)))

export async function crashRun(seed: number, mode: Mode, device = 'cpu'): Promise<CrashReport> {
  const program = generate(seed, { tidy: mode === 'fast' })
  const random = new Random(~seed)
  const faults = planOf(random, program.workers)
  const oracle = await inlinedRun(program, { unused: mode === 'fast' ? 'fast' : 'none', device })
  const problems: string[] = []
  let end: string | null = null
  let endMs = 0
  const simulation = await simulate({ workers: program.workers, seed, rpcTimeoutMs: RPC_TIMEOUT_MS, faults }, async (sim) => {
    const isDead = (name: string) => sim.world.isCrashed(name)
    if (device !== 'cpu') for (const { name } of sim.workers) await sim.on(name).run(useDevice, device)
    const main = sim
      .on('worker0')
      .run(runProgram, JSON.stringify(program), { mode })
      .then(
        (outcome) => {
          if (bitsText(outcome) !== oracle.bits && !isDead('worker0'))
            problems.push(`${bitsText(outcome)}, the inlined program gives ${oracle.bits}`)
          return 'right'
        },
        (error: unknown) => {
          if (isPostgradError(error) && TYPED.has(error.code)) return error.code
          if (!isDead('worker0')) problems.push(`ended with ${error instanceof Error ? error.stack : String(error)}`)
          return 'untyped'
        },
      )
    end = await Promise.race([main, after(sim, BOUND_MS)])
    endMs = sim.world.nowMs
    if (isDead('worker0')) end = null
    else if (end === null) problems.push(`the program has not ended after ${BOUND_MS} ms`)
    // Until all know of deaths and releases.
    await after(sim, BOUND_MS)
    return await nextPass(sim, program, seed, mode, problems)
  })
  const next = simulation.result
  if (next !== null) {
    const { bits } = await inlinedRun(next.program, { unused: mode === 'fast' ? 'fast' : 'none', device })
    if (next.bits !== bits) problems.push(`on the survivors ${next.bits}, the inlined program gives ${bits}`)
  }
  const { crashed, debugInfo } = simulation
  problems.push(...leaks(debugInfo, { except: crashed, allow: ['deadLetters'] }))
  return { end, crashed: crashed.length, endMs, problems: problems.map((problem) => `${mode}: ${problem}`) }
}

/** Another program on the survivors, and its bits: its inlined run, outside of the world, must give the same. */
async function nextPass(sim: SimCluster, { workers }: Program, seed: number, mode: Mode, problems: string[]): Promise<NextPass | null> {
  const names = Array.from({ length: workers }, (_, i) => `worker${i}`).filter((name) => !sim.world.isCrashed(name))
  if (names.length === 0) return null
  const program = generate(seed + SURVIVORS_SEED, { workers: names.length, tidy: mode === 'fast' })
  const onSurvivors: Program = { ...program, names }
  try {
    const outcome = await sim.on(nameOf(onSurvivors, 0)).run(runProgram, JSON.stringify(onSurvivors), { mode })
    return { program, bits: bitsText(outcome) }
  } catch (error) {
    problems.push(`on the survivors ${error instanceof Error ? error.stack : String(error)}`)
    return null
  }
}
