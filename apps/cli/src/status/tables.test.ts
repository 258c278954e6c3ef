/** Tables of text and their cells. */
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import type { Snapshot, WorkerRow } from './snapshot.js'
import { bytesText, durationText, psText, tableText, topText } from './tables.js'
import { screenOf } from './top.js'

const COUNTS = {
  waiting: 2,
  waitingMax: 9,
  served: 100,
  failed: 0,
  pending: 1,
  contexts: 3,
  passes: 0,
  owned: 4,
  held: 5,
  actors: 6,
  heapBytes: 17_785_840,
  buffersBytes: 500,
}
const ROW: WorkerRow = {
  name: 'worker0',
  id: 0,
  state: 'running',
  progress: { done: 1, total: 4, text: 'loss 2\n3' },
  counts: COUNTS,
  isFresh: true,
  traffic: null,
}
const SNAPSHOT: Snapshot = { version: 1, pid: 77, program: 'p.ts', args: ['--x'], upMs: 61_000, restarts: 0, workers: [ROW] }

test('columns are as wide as their widest cell, numbers to the right', () => {
  const lines = tableText<[string, string]>(
    [
      { title: 'A', cell: ([a]) => a },
      { title: 'COUNT', isNumber: true, cell: ([, b]) => b },
    ],
    [
      ['long name', '7'],
      ['x', '123456'],
    ],
  )
  expect(lines).toEqual(['A           COUNT', 'long name       7', 'x          123456'])
})

describe('ps and top', () => {
  test('a run, its workers, and one that is silent', () => {
    const lines = psText([
      { pid: 77, snapshot: SNAPSHOT },
      { pid: 78, silent: 'does not answer for 3 s' },
    ])
    expect(lines[0]).toBe('77  p.ts --x  up 1 min 1 s, 1 worker')
    expect(lines[2]).toMatch(/^ {2}worker0 {2}running +2 +100 +1 +3 +4\+5 +6 +17 MiB +500 B {2}1\/4 \(25%\) loss 2 3$/)
    expect(lines.slice(3)).toEqual(['', '78  does not answer for 3 s'])
  })

  test('CLI-52 one that does not answer is busy, and one that never did has no numbers', () => {
    const stale = {
      ...SNAPSHOT,
      restarts: 2,
      workers: [
        { ...ROW, isFresh: false },
        { ...ROW, name: 'b', isFresh: false, counts: null, state: 'done' },
      ],
    }
    const lines = psText([{ pid: 77, snapshot: stale }])
    expect(lines[0]).toContain('2 workers, started again 2 times')
    expect(lines[2]).toMatch(/worker0 {2}busy +2/)
    expect(lines[3]).toMatch(/b +done +- +- +- +- +- +- +- +-/)
    expect(psText([{ pid: 77, snapshot: { ...SNAPSHOT, workers: [] } }])[1]).toBe('  no worker is there yet')
  })

  test('rates are those of the time between two snapshots, of the same worker', () => {
    const traffic = (sent: number, received: number) => ({ sent, received })
    const before = { ...SNAPSHOT, workers: [{ ...ROW, traffic: traffic(10, 20) }] }
    const after = { ...SNAPSHOT, upMs: 63_000, workers: [{ ...ROW, counts: { ...COUNTS, served: 150 }, traffic: traffic(110, 20) }] }
    expect(topText(after, before)[2]).toMatch(/running +2 +150 +25 +50 +0 +1 +3 /)
    expect(topText(after, null)[2]).toMatch(/running +2 +\d+ +- +- +- +1 +3 /)
    const again = { ...after, workers: [{ ...after.workers[0]!, id: 9 }] }
    expect(topText(again, before)[2]).toMatch(/running +2 +\d+ +- +- +- +1 +3 /)
    const reset = { ...after, workers: [{ ...ROW, counts: { ...COUNTS, served: 1 }, traffic: traffic(0, 0) }] }
    expect(topText(reset, before)[2]).toMatch(/running +2 +\d+ +- +- +- +1 +3 /)
  })

  test('a screen holds as many lines as there is room for, none wider than it', () => {
    const plain = (text: string): string[] => stripVTControlCharacters(text).trimEnd().split('\n')
    const lines = Array.from({ length: 40 }, (_, i) => `line ${i} ${'x'.repeat(100)}`)
    const shown = plain(screenOf(lines, 10, 20))
    expect(shown).toHaveLength(9)
    expect(shown.at(-1)).toBe('and 32 more lines')
    expect(Math.max(...shown.map((line) => line.length))).toBe(20)
    expect(plain(screenOf(lines.slice(0, 9), 10, 20)).at(-1)).toContain('line 8')
  })
})

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.0 KiB'],
  [10_240, '10 KiB'],
  [17_785_840, '17 MiB'],
  [2 ** 52, '4096 TiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(bytesText(bytes)).toBe(text)
})

test.each([
  [999, '0 s'],
  [61_000, '1 min 1 s'],
  [3_725_000, '1 h 2 min'],
  [90_000_000, '1 d 1 h'],
])('%d ms are %s', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})
