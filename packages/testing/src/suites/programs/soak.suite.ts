/** Random programs times random orders of delivery: one seed after the other, with what a report needs. `programs.sim.test.ts` and `.soak.test.ts` run it. */

import { type GenerateOptions, type GoldenProgram, generate, programDifferences, stepsOf } from '@postgrad/testing-cases/programs'
import { crashRun } from './crash.suite.js'
import { oraclesOf, simulatedRun } from './oracle.suite.js'

export interface Report {
  readonly programs: number
  /** Programs whose passes FAST may run, all of them. */
  readonly legal: number
  /** How their passes end in FAST. */
  readonly ends: Readonly<Record<string, number>>
  readonly orders: number
  readonly steps: number
  readonly perMinute: number
  /** One line each, beginning with the seed; empty. */
  readonly failed: readonly string[]
}

/** Each seed is a program and an order of delivery, in SMART and in FAST: `runs` orders for each program, all different seeds. */
export async function overPrograms(
  count: number,
  { first = 0, runs = 1, ...options }: GenerateOptions & { readonly first?: number; readonly runs?: number } = {},
): Promise<Report> {
  const failed: string[] = []
  const orders = new Set<string>()
  const ends: Record<string, number> = {}
  let legal = 0
  let steps = 0
  const startMs = performance.now()
  for (let seed = first; seed < first + count; seed++) {
    const program = generate(seed, options)
    for (const block of program.blocks) for (const _ of stepsOf(block.steps)) steps++
    try {
      const oracles = await oraclesOf(program)
      if (oracles.fast.isFastLegal) legal++
      for (const end of Object.values(oracles.fast.outcome.ends)) ends[end ?? 'well'] = (ends[end ?? 'well'] ?? 0) + 1
      for (let run = 0; run < runs; run++) {
        for (const mode of ['smart', 'fast'] as const) {
          const { problem, hash } = await simulatedRun(program, oracles[mode], seed + run * 1_000_003, mode)
          orders.add(hash)
          if (problem !== null) failed.push(`program ${seed}, order ${seed + run * 1_000_003}, ${problem}`)
        }
      }
    } catch (error) {
      failed.push(`program ${seed}: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
  const perMinute = Math.round((count * 60_000) / (performance.now() - startMs))
  return { programs: count, legal, ends, orders: orders.size, steps, perMinute, failed }
}

export function reportLine({ programs, legal, ends, orders, steps, perMinute, failed }: Report): string {
  return `${programs} programs (${legal} that FAST may run, ${steps} steps, passes in FAST end ${JSON.stringify(ends)}), ${orders} orders of delivery, ${failed.length} failures, ${perMinute} programs a minute`
}

/** Differences of the inlined program from PyTorch's numbers, and from it under an order of delivery: in SMART or in FAST, by the seed. */
export async function goldenProblems({ program, seed, ...golden }: GoldenProgram): Promise<string[]> {
  const oracles = await oraclesOf(program)
  const { problems } = programDifferences(oracles.smart.outcome, { program, seed, ...golden })
  const mode = seed % 2 === 0 ? 'smart' : 'fast'
  const { problem } = await simulatedRun(program, oracles[mode], seed, mode)
  return problem === null ? [...problems] : [...problems, problem]
}

export interface CrashesReport {
  readonly programs: number
  readonly crashed: number
  /** How the programs ended. */
  readonly ends: Readonly<Record<string, number>>
  /** The latest end, in virtual time. */
  readonly lastMs: number
  readonly perMinute: number
  /** One line each, beginning with the seed; empty. */
  readonly failed: readonly string[]
}

/** Each seed is a program, an order of delivery and one or two deaths; in SMART and FAST by turns. */
export async function overCrashes(count: number, first = 0): Promise<CrashesReport> {
  const failed: string[] = []
  const ends: Record<string, number> = {}
  let crashed = 0
  let lastMs = 0
  const startMs = performance.now()
  for (let seed = first; seed < first + count; seed++) {
    const mode = seed % 2 === 0 ? 'smart' : 'fast'
    try {
      const report = await crashRun(seed, mode)
      const end = report.end ?? 'the root crashed'
      ends[end] = (ends[end] ?? 0) + 1
      crashed += report.crashed
      if (report.end !== null) lastMs = Math.max(lastMs, report.endMs)
      if (report.problems.length > 0) failed.push(`program ${seed}: ${report.problems.join('; ')}`)
    } catch (error) {
      failed.push(`program ${seed}, ${mode}: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
  const perMinute = Math.round((count * 60_000) / (performance.now() - startMs))
  return { programs: count, crashed, ends, lastMs, perMinute, failed }
}

export function crashLine({ programs, crashed, ends, lastMs, perMinute, failed }: CrashesReport): string {
  const how = JSON.stringify(ends)
  return `${programs} programs, ${crashed} workers crashed, ends ${how}, the last after ${lastMs} ms, ${failed.length} failures, ${perMinute} programs a minute`
}
