/** `--heap`: slope, picture, a short run. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { type HeapRun, MEASURES, trendOf } from './run.js'
import { watchHeap } from './watch.js'

const line = (from: number, perSecond: number) => Array.from({ length: 11 }, (_, i) => [i, from + i * perSecond] as const)

test('a trend is the line of least squares; flat is what rises by a twentieth at most', () => {
  expect(trendOf(line(100, 2))).toEqual({ mean: 110, perHour: 7200, rise: 20 / 110, isFlat: false })
  expect(trendOf(line(100, 0.5))).toMatchObject({ isFlat: true })
  expect(trendOf(line(100, -5))).toMatchObject({ mean: 75, isFlat: true })
  expect(trendOf([])).toEqual({ mean: 0, perHour: 0, rise: 0, isFlat: true })
})

test('a short run writes its figures and a picture, and says the trends', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'heap-'))
  try {
    const said: string[] = []
    const run = await watchHeap({ minutes: 1 / 30, seed: 7, folder, say: (text) => said.push(text) })
    const written: HeapRun = JSON.parse(await readFile(join(folder, 'heap.json'), 'utf8'))
    expect(written).toEqual(JSON.parse(JSON.stringify(run)))
    for (const { segments, steps, mebibytes } of run.samples) {
      expect(steps).toBeGreaterThan(0)
      expect(mebibytes.claimed).toBeCloseTo(segments / 8, 0)
      expect(mebibytes.live).toBeLessThanOrEqual(mebibytes.touched)
    }
    const picture = await readFile(join(folder, 'heap.svg'), 'utf8')
    for (const text of ['seed 7', ...Object.values(MEASURES)]) expect(picture).toContain(text)
    expect(said.filter((text) => text.startsWith('last half'))).toHaveLength(Object.keys(MEASURES).length)
  } finally {
    await rm(folder, { recursive: true })
  }
})
