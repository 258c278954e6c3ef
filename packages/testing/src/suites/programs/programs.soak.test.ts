/**
 * Random distributed programs, many seeds: `npm run soak -- --programs 100000 --programs-from 0 testing/dist/programs`, with three roots and two passes at
 * least `--passes 20000`, with second derivatives `--second 5000`, and with crashes `--crashes 20000`.
 * Prints how many a minute, and what failed with its seed; `generate(seed)` makes the program again.
 */
import { expect, test } from '@jest/globals'
import { generate, goldenPrograms } from '@postgrad/testing-cases/programs'
import { inlinedRun, simulatedRun } from './oracle.suite.js'
import { crashLine, goldenProblems, overCrashes, overPrograms, reportLine } from './soak.suite.js'

const PROGRAMS = Number(process.env.POSTGRAD_SOAK_PROGRAMS ?? 2000)
const FIRST = Number(process.env.POSTGRAD_SOAK_PROGRAMS_FROM ?? 0)
const PASSES = Number(process.env.POSTGRAD_SOAK_PASSES ?? 2000)
const SECOND = Number(process.env.POSTGRAD_SOAK_SECOND ?? 500)
const CRASHES = Number(process.env.POSTGRAD_SOAK_CRASHES ?? 1000)
const CRASHES_FIRST = Number(process.env.POSTGRAD_SOAK_CRASHES_FROM ?? 0)
/** Reported on the way. */
const PART = 5000

test(`TK-60, DA-46 ${PROGRAMS} programs from ${FIRST}: the bits of the inlined program`, async () => {
  const failed: string[] = []
  for (let first = FIRST; first < FIRST + PROGRAMS; first += PART) {
    const report = await overPrograms(Math.min(PART, FIRST + PROGRAMS - first), { first })
    failed.push(...report.failed)
    console.log(`seeds from ${first}: ${reportLine(report)}`)
  }
  expect(failed).toEqual([])
})

test(`TK-60, DA-34, DA-48 ${PASSES} programs of at least three roots and two passes from ${FIRST}: the bits of the inlined program, under two orders of delivery each`, async () => {
  const failed: string[] = []
  for (let first = FIRST; first < FIRST + PASSES; first += PART) {
    const report = await overPrograms(Math.min(PART, FIRST + PASSES - first), { first, runs: 2, rootsMin: 3, passesMin: 2 })
    failed.push(...report.failed)
    console.log(`seeds from ${first}: ${reportLine(report)}`)
  }
  expect(failed).toEqual([])
})

test(`DA-66 ${SECOND} programs with one more pass over the gradients of the others from ${FIRST}: the bits of the inlined program`, async () => {
  const failed: string[] = []
  for (let seed = FIRST; seed < FIRST + SECOND; seed++) {
    const program = generate(seed)
    const { problem } = await simulatedRun(program, await inlinedRun(program, { second: true }), seed, 'smart', { second: true })
    if (problem !== null) failed.push(`program ${seed}: ${problem}`)
  }
  expect(failed).toEqual([])
})

test('TK-62 all programs with PyTorch’s numbers, inlined and under an order of delivery, agree with them', async () => {
  for (const golden of goldenPrograms())
    expect({ seed: golden.seed, problems: await goldenProblems(golden) }).toEqual({ seed: golden.seed, problems: [] })
})

test(`TK-63 ${CRASHES} programs whose workers crash, from ${CRASHES_FIRST}: right gradients or a typed error, and right ones on the survivors`, async () => {
  const failed: string[] = []
  for (let first = CRASHES_FIRST; first < CRASHES_FIRST + CRASHES; first += PART) {
    const report = await overCrashes(Math.min(PART, CRASHES_FIRST + CRASHES - first), first)
    failed.push(...report.failed)
    console.log(`seeds from ${first}: ${crashLine(report)}`)
  }
  expect(failed).toEqual([])
})
