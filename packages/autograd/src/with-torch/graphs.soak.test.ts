/**
 * Random graphs of views, in-place writes, hooks, custom functions and passes next to PyTorch, errors included: `npm run soak -- --graphs 100000 with-torch`. It needs
 * python3 with torch, or says that it is missing.
 */
import { expect, test } from '@jest/globals'
import type { Program } from './builder.fixture.js'
import { difference, isRounding } from './compare.fixture.js'
import type { Difference } from './listed.fixture.js'
import { randomProgram } from './program.fixture.js'
import { runProgram } from './run.fixture.js'
import { shrink, text } from './shrink.fixture.js'
import { Torch } from './torch.fixture.js'

const GRAPHS = Number(process.env.POSTGRAD_SOAK_GRAPHS ?? 2_000)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 1)
const BATCH = 200
const CRASHED: Difference = { kind: 'PyTorch crashes', text: '', isListed: true }
const ROUNDED: Difference = { kind: 'the rounding of float32 decides', text: '', isListed: true }
/** How many differences of one kind are shrunk and shown. */
const SHOWN = 2

const said = (counts: ReadonlyMap<string, number>) => [...counts].map(([kind, n]) => `${n} × ${kind}`).join(', ')

test('graphs differ from PyTorch in nothing', async () => {
  const torch = await Torch.start()
  const found = new Map<string, { count: number; shown: string[] }>()
  const listed = new Map<string, number>()
  const count = (kind: string) => listed.set(kind, (listed.get(kind) ?? 0) + 1)
  const refused = new Map<string, number>()
  let [whole, passes] = [0, 0]
  const compare = async (programs: readonly Program[], note?: (kind: string) => void) => {
    // PyTorch works meanwhile.
    const answer = torch.run(programs)
    const outcomes = programs.map(runProgram)
    const there = await answer
    return programs.map((program, i) => {
      const here = outcomes[i]!
      let found = there[i] === null ? CRASHED : difference(program, here, there[i]!, note)
      if (found !== null && !found.isListed && isRounding(program, here, there[i]!)) found = ROUNDED
      if (note === undefined || found !== null) return found
      whole++
      for (const [k, outcome] of here.steps.entries()) {
        if (outcome === null) continue
        if ('error' in outcome) refused.set(outcome.error, (refused.get(outcome.error) ?? 0) + 1)
        else if (['backward', 'grad'].includes(program.steps[k]!.op)) passes++
      }
      return null
    })
  }
  try {
    for (let at = FIRST; at < FIRST + GRAPHS; at += BATCH) {
      const programs = Array.from({ length: Math.min(BATCH, FIRST + GRAPHS - at) }, (_, i) => randomProgram(at + i))
      for (const [i, one] of (await compare(programs, count)).entries()) {
        if (one === null) continue
        if (one.isListed) {
          count(one.kind)
          continue
        }
        const seen = found.get(one.kind) ?? { count: 0, shown: [] }
        found.set(one.kind, seen)
        seen.count++
        if (seen.shown.length >= SHOWN) continue
        const smallest = await shrink(programs[i]!, async (candidates) =>
          (await compare(candidates)).map((other) => other?.kind === one.kind),
        )
        const [last] = await compare([smallest])
        seen.shown.push(`${text(smallest)}\n  ${last?.text}`)
      }
    }
  } finally {
    torch.close()
  }
  // The stdout of tests is not shown.
  console.error(
    `seeds ${FIRST} to ${FIRST + GRAPHS - 1} next to PyTorch ${torch.version}: ${whole} graphs the same to their end, with ${passes} passes; steps refused by both: ${said(refused)}; listed: ${said(listed)}`,
  )
  // Programs that are not compared to their end show little; of a few all may be so.
  expect(whole).toBeGreaterThan(GRAPHS / 2 - 10)
  const report = [...found].map(([kind, { count, shown }]) => `${count} × ${kind}\n${shown.join('\n')}`)
  expect(report.join('\n\n')).toBe('')
})
