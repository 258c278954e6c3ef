/** Sweeps: figures from contestants' times, and the files. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { writeSweeps } from './plots.js'
import { measureSweep, type SweepPlan } from './sweep.js'

const plan: SweepPlan = {
  id: 'made-up',
  title: 'Of nothing',
  x: 'size',
  y: 'time a pass',
  base: 2,
  sizes: [1, 2, 4],
  series: [
    // A pass takes 50 ms a size, and is as many parts.
    { name: 'linear', at: (size) => async (n) => 0.05 * size * n, parts: (size) => size },
    { name: 'quick & small', max: 2, at: (size) => async (n) => 1e-6 * size * size * n },
  ],
}

test("figures are medians, per part, and null beyond a contestant's largest size", async () => {
  const calls: number[] = []
  const { series } = await measureSweep(
    {
      ...plan,
      sizes: [1],
      series: [
        ...plan.series,
        {
          name: 'unsteady',
          at: () => async (n) => {
            calls.push(n)
            return n * (calls.length % 2 === 0 ? 9 : 1)
          },
        },
      ],
    },
    3,
    () => {},
  )
  expect(series.map(({ us }) => us.map((value) => Math.round(value! * 1000) / 1000))).toEqual([[50_000], [1], [1_000_000]])
  // Warm after three seconds (1, 9, …), then three turns of one pass.
  expect(calls).toEqual([1, 1, 1, 1, 1])
  const whole = await measureSweep(plan, 1, () => {})
  expect(whole.series.map(({ us }) => us.map((value) => value && Math.round(value)))).toEqual([
    [50_000, 50_000, 50_000],
    [1, 4, null],
  ])
})

test('a picture and its figures are written', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'plots-'))
  try {
    const said: string[] = []
    const into = join(folder, 'new')
    expect(await writeSweeps([plan], '2 cores', { folder: into, turns: 1, say: (line) => said.push(line) })).toEqual(['made-up'])
    const figures = JSON.parse(await readFile(join(into, 'made-up.json'), 'utf8'))
    expect(figures).toMatchObject({ machine: '2 cores', turns: 1, sizes: [1, 2, 4] })
    expect(figures.series.map(({ name }: { name: string }) => name)).toEqual(['linear', 'quick & small'])
    const picture = await readFile(join(into, 'made-up.svg'), 'utf8')
    for (const text of ['Of nothing', '2 cores', 'quick &amp; small', '50 ms', '4 µs']) expect(picture).toContain(text)
    expect(said).toEqual([expect.stringContaining('made-up.svg: linear')])
  } finally {
    await rm(folder, { recursive: true })
  }
})
