/**
 * Random graphs of views, in-place writes, hooks, custom functions and passes next to PyTorch, errors included: `npm run soak -- --graphs 100000 with-torch`. It needs
 * python3 with torch, and says so where there is none.
 */
import { expect, test } from '@jest/globals'
import type { Program } from './builder.fixture.js'
import { difference, shrink, text } from './compare.fixture.js'
import { randomProgram } from './program.fixture.js'
import { runProgram } from './run.fixture.js'
import { Torch } from './torch.fixture.js'

const GRAPHS = Number(process.env.POSTGRAD_SOAK_GRAPHS ?? 2_000)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 1)
const BATCH = 200
/** Of one kind of difference so many are shrunk and shown. */
const SHOWN = 2

test('graphs differ from PyTorch in nothing', async () => {
  const torch = await Torch.start()
  const found = new Map<string, { count: number; shown: string[] }>()
  const listed = new Map<string, number>()
  let [refused, passes] = [0, 0]
  const compare = async (programs: readonly Program[]) => {
    // PyTorch works meanwhile.
    const answer = torch.run(programs)
    const outcomes = programs.map(runProgram)
    const there = await answer
    return programs.map((program, i) => {
      const here = outcomes[i]!
      for (const [k, outcome] of here.steps.entries()) {
        if (outcome === null) continue
        if ('error' in outcome) refused++
        else if (['backward', 'grad'].includes(program.steps[k]!.op)) passes++
      }
      return there[i] === null ? null : difference(program, here, there[i]!)
    })
  }
  try {
    for (let at = FIRST; at < FIRST + GRAPHS; at += BATCH) {
      const programs = Array.from({ length: Math.min(BATCH, FIRST + GRAPHS - at) }, (_, i) => randomProgram(at + i))
      for (const [i, one] of (await compare(programs)).entries()) {
        if (one === null) continue
        if (one.isListed) {
          listed.set(one.kind, (listed.get(one.kind) ?? 0) + 1)
          continue
        }
        const seen = found.get(one.kind) ?? { count: 0, shown: [] }
        found.set(one.kind, seen)
        seen.count++
        if (seen.shown.length >= SHOWN) continue
        const [counted, run] = [refused, passes]
        const smallest = await shrink(programs[i]!, async (candidates) =>
          (await compare(candidates)).map((other) => other?.kind === one.kind),
        )
        const [last] = await compare([smallest])
        ;[refused, passes] = [counted, run]
        seen.shown.push(`${text(smallest)}\n  ${last?.text}`)
      }
    }
  } finally {
    torch.close()
  }
  console.log(
    `seeds ${FIRST} to ${FIRST + GRAPHS - 1} next to PyTorch ${torch.version}: ${passes} passes, ${refused} steps refused by both, ${torch.crashes} crashes of PyTorch; listed: ${[...listed].map(([kind, count]) => `${count} × ${kind}`).join(', ')}`,
  )
  const report = [...found].map(([kind, { count, shown }]) => `${count} × ${kind}\n${shown.join('\n')}`)
  expect(report.join('\n\n')).toBe('')
})
