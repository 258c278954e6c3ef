/** The command `plot`, on files of the test. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { bridge } from '../bridge.js'
import { commandTree, main } from '../commands/cli.js'
import { treeOf } from '../completion/tree.js'
import { surroundings } from '../surroundings.fixture.js'

let folder = ''
const file = (name: string): string => join(folder, name)
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postgrad-plot-'))
  writeFileSync(file('a.jsonl'), '{"step":1,"seconds":0,"loss":2,"accuracy":0.5}\n{"step":2,"seconds":1,"loss":1,"accuracy":0.75}\n')
  writeFileSync(file('b.csv'), 'step,seconds,loss\n1,0,3\n2,1,')
  writeFileSync(file('empty.jsonl'), '')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function plot(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const around = surroundings()
  const code = await main(['plot', ...args], '1.2.3', around, bridge)
  return { code, out: around.out(), err: around.err() }
}

test('CLI-95 a file becomes a picture next to it', async () => {
  const path = file('a.jsonl')
  const { code, out, err } = await plot(path)
  expect([code, err, out]).toEqual([0, '', `${file('a.svg')}: loss, accuracy\n  ${path}: 2 lines, steps 1 to 2\n`])
  expect(readFileSync(file('a.svg'), 'utf8')).toMatch(/^<svg /)
})

test('CLI-95 several files, options, JSON; an unfinished line is reported', async () => {
  const [a, b, svg] = [file('a.jsonl'), file('b.csv'), file('both.svg')]
  const { code, out, err } = await plot(
    a,
    b,
    '-o',
    svg,
    '--tags',
    'loss',
    '--smooth',
    '0.9',
    '--x',
    'seconds',
    '--log',
    '--title',
    'T',
    '--json',
  )
  expect([code, err]).toEqual([0, `postgrad plot: the last line of ${b} is not finished; it was left out.\n`])
  expect(JSON.parse(out)).toEqual({
    out: svg,
    tags: ['loss'],
    runs: [
      { path: a, lines: 2, lastStep: 2, truncated: null, outOfOrder: null },
      { path: b, lines: 1, lastStep: 1, truncated: '2,1,', outOfOrder: null },
    ],
  })
})

test('CLI-95 a file of two runs at once is drawn with a warning', async () => {
  const path = file('two.jsonl')
  writeFileSync(path, [1, 2, 3, 2, 3, 4].map((step) => `{"step":${step},"seconds":${step},"loss":1}\n`).join(''))
  const { code, err } = await plot(path)
  expect([code, err]).toEqual([0, `postgrad plot: the steps of ${path} are not in order at step 2: did two runs write this file?\n`])
})

test('CLI-96 the picture of another program stays; that of this command is drawn again', async () => {
  const [path, svg] = [file('own.jsonl'), file('own.svg')]
  writeFileSync(path, '{"step":1,"seconds":0,"loss":2}\n')
  writeFileSync(svg, '<svg></svg>')
  expect(await plot(path)).toEqual({
    code: 1,
    out: '',
    err: `postgrad plot: another program wrote ${svg}. Name another picture: -o ${file('own')}.plot.svg\n`,
  })
  expect(readFileSync(svg, 'utf8')).toBe('<svg></svg>')
  expect((await plot(path, '-o', svg)).code).toBe(0)
  expect((await plot(path)).code).toBe(0)
})

test('CLI-97 a logarithmic axis reports values that it cannot show, and needs one that it can', async () => {
  const [some, none] = [file('some.jsonl'), file('none.jsonl')]
  const linesOf = (...values: number[]): string => values.map((loss, at) => `{"step":${at},"seconds":${at},"loss":${loss}}\n`).join('')
  writeFileSync(some, linesOf(1, 0, -1, 2))
  writeFileSync(none, linesOf(-1, 0))
  const { code, err } = await plot(some, '--log')
  expect([code, err]).toEqual([0, 'postgrad plot: 2 values of loss left out: a logarithmic axis shows values above 0 alone.\n'])
  expect(await plot(none, '--log')).toMatchObject({ code: 1, out: '', err: expect.stringContaining("got 'loss', which has none") })
  expect((await plot(none)).code).toBe(0)
})

test('CLI-95 what cannot be drawn says why, with exit code 1; what makes no sense has 2', async () => {
  const missing = await plot(file('missing.jsonl'))
  expect(missing.code).toBe(1)
  expect(missing.err).toContain(`cannot read '${file('missing.jsonl')}'`)
  expect(missing.err).toContain('code: METRICS_IO')
  expect((await plot(file('empty.jsonl'))).err).toContain('code: METRICS_EMPTY')
  const unknown = await plot(file('a.jsonl'), '--tags', 'loss,lost')
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining("expected one of the tags 'loss', 'accuracy', got 'lost'")])
  expect((await plot(file('a.jsonl'), '-o', file('a.png'))).err).toContain('.svg')
  for (const args of [[], [file('a.jsonl'), '--smooth', '1'], [file('a.jsonl'), '--tags', 'a,,b'], [file('a.jsonl'), '--x', 'epoch']])
    expect((await plot(...args)).code).toBe(2)
})

test('CLI-95 the shells complete files', () => {
  const tree = treeOf(commandTree('1.2.3', { around: surroundings(), bridge, exitWith: () => {} }))
  expect(tree.commands.find(({ name }) => name === 'plot')!.argument).toEqual({ kind: 'file' })
})
