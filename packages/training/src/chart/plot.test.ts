/** Plots: the chart that metrics become, and the picture. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Metrics } from '../metrics/read-metrics.js'
import type { PlotOptions } from './options.js'
import { chartOf, plot } from './plot.js'
import { type Point, smoothed, thinned } from './points.js'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postgrad-plot-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A run of these values of `loss`, from step 1. */
function runOf(path: string, loss: readonly number[], more: Readonly<Record<string, number>> = {}): Metrics {
  const rows = loss.map((x, i) => ({ step: i + 1, seconds: i / 2, values: { loss: x, ...more } }))
  return { path, rows, tags: ['loss', ...Object.keys(more)], truncated: null, outOfOrder: null }
}
const RUN = runOf('out/run.jsonl', [4, 2, 1], { accuracy: 0.5 })

test('TR-30 a panel for each tag', () => {
  const chart = chartOf([RUN], {})
  expect([chart.title, chart.xName, chart.xMin, chart.xMax]).toEqual(['run', 'step', 0, 3])
  expect(chart.panels.map(({ name, curves }) => [name, curves.map(({ points }) => points)])).toEqual([
    [
      'loss',
      [
        [
          [1, 4],
          [2, 2],
          [3, 1],
        ],
      ],
    ],
    [
      'accuracy',
      [
        [
          [1, 0.5],
          [2, 0.5],
          [3, 0.5],
        ],
      ],
    ],
  ])
  expect(chartOf([RUN], { tags: ['accuracy'], x: 'seconds' }).panels[0]!.curves[0]!.points).toEqual([
    [0, 0.5],
    [0.5, 0.5],
    [1, 0.5],
  ])
})

test('TR-30 several runs are compared, by the names that differ', () => {
  const names = (...paths: string[]) =>
    chartOf(
      paths.map((path) => runOf(path, [1])),
      {},
    ).panels[0]!.curves.map(({ name }) => name)
  expect(names('out/a.jsonl', 'out/b.jsonl')).toEqual(['a', 'b'])
  expect(names('a/run.jsonl', 'b/run.jsonl')).toEqual(['a/run', 'b/run'])
  expect(names('run.jsonl', 'run.csv')).toEqual(['run.jsonl', 'run.csv'])
  expect(names('run.csv', 'run.csv')).toEqual(['run.csv #1', 'run.csv #2'])
  const colors = chartOf([runOf('a.csv', [1]), runOf('b.csv', [1])], { smooth: 0.5 }).panels[0]!.curves
  expect(colors.map(({ color, style, inLegend }) => [color, style, inLegend])).toEqual([
    [0, 'pale', false],
    [1, 'pale', false],
    [0, 'dark', true],
    [1, 'dark', true],
  ])
})

test('TR-30 smoothing is the mean of TensorBoard', () => {
  // weight 0.5: (2·0.5·0.5 + 4·0.5) / (0.25 + 0.5), and the first value itself.
  expect(
    smoothed(
      [
        [1, 2],
        [2, null],
        [3, 4],
      ],
      0.5,
    ),
  ).toEqual([
    [1, 2],
    [2, null],
    [3, 2.5 / 0.75],
  ])
  const [pale, dark] = chartOf([RUN], { smooth: 0.5, tags: ['loss'] }).panels[0]!.curves
  expect([pale!.style, pale!.name, dark!.style, dark!.name]).toEqual(['pale', 'values', 'dark', 'smoothed 0.5'])
})

test('TR-30 panels have several curves and lines', () => {
  const panels = [
    {
      curves: [{ tag: 'loss', style: 'pale' as const, name: 'every step' }, 'accuracy'],
      name: 'both',
      min: 0,
      lines: [{ name: 'best', value: 1 }],
    },
  ]
  const [panel] = chartOf([RUN], { panels }).panels
  expect([panel!.name, panel!.min, panel!.max]).toEqual(['both', 0, null])
  expect(panel!.curves.map(({ name, style, color }) => [name, style, color])).toEqual([
    ['every step', 'pale', 0],
    ['best', 'dashed', 0],
    ['accuracy', 'dark', 0],
  ])
  expect(panel!.curves[1]!.points).toEqual([
    [0, 1],
    [3, 1],
  ])
})

test('TR-31 gaps', () => {
  const values = [1, Number.NaN, -1, Number.POSITIVE_INFINITY, 2]
  const ys = (options: PlotOptions) => chartOf([runOf('run.csv', values)], options).panels[0]!.curves[0]!.points.map(([, y]) => y)
  expect(ys({})).toEqual([1, null, -1, null, 2])
  expect(ys({ log: true })).toEqual([1, null, null, null, 2])
  const none = () => chartOf([runOf('run.csv', [-1, 0, Number.NaN])], { log: true })
  expect(none).toThrow("expected a value above 0 in each tag, for a logarithmic axis, got 'loss', which has none. Leave log out")
})

test('TR-32 a long curve keeps its peaks and gaps', () => {
  const points = Array.from({ length: 100_000 }, (_, i): Point => [i, i === 51_234 ? 99 : i === 70_001 ? null : Math.sin(i)])
  const kept = thinned(points, 3000)
  expect(kept.length).toBeLessThanOrEqual(3000)
  expect(kept.filter(([, y]) => y === 99 || y === null)).toEqual([
    [51_234, 99],
    [70_001, null],
  ])
  expect(kept.every(([x], i) => i === 0 || x > kept[i - 1]![0])).toBe(true)
  expect(thinned(points.slice(0, 10), 10)).toHaveLength(10)
})

test('TR-33 the picture is SVG, for bright and dark viewers, and each colour has a dark one', async () => {
  const path = join(folder, 'new', 'run.svg')
  await plot([RUN, runOf('b.csv', [3, Number.NaN, 1])], path, { smooth: 0.5, title: 'A <title>', subtitle: 'below', log: true })
  const svg = readFileSync(path, 'utf8')
  expect(svg).toMatch(/^<svg [^>]*>\n<style>@media \(prefers-color-scheme:dark\)\{/)
  expect(svg).toContain('A &lt;title&gt;')
  expect(svg).toContain('accuracy')
  const used = new Set(
    [...svg.replaceAll(/<clipPath.*?<\/clipPath>/gs, '').matchAll(/(?:fill|stroke)="(#\w+|rgb[^"]*)"(?! [a-z-]+="0")/g)].map(
      ([, color]) => color!,
    ),
  )
  for (const color of used) expect([color, svg.includes(`="${color}"]{`)]).toEqual([color, true])
  expect(readdirSync(join(folder, 'new'))).toEqual(['run.svg'])
})

test('TR-33 plots of one path at once leave one whole picture; a failed one leaves nothing', async () => {
  const own = join(folder, 'own')
  const path = join(own, 'run.svg')
  await Promise.all([1, 2, 3].map(() => plot(RUN, path)))
  expect(readFileSync(path, 'utf8')).toMatch(/<\/svg>\s*$/)
  mkdirSync(join(own, 'folder.svg'))
  const failed = plot(RUN, join(own, 'folder.svg'))
  await expect(failed).rejects.toMatchObject({ code: 'METRICS_IO' })
  await expect(failed).rejects.not.toThrow('memory')
  expect(readdirSync(own).sort()).toEqual(['folder.svg', 'run.svg'])
})

test('TR-33 a label is text, and no template', async () => {
  const path = join(folder, 'label.svg')
  await plot(RUN, path, { panels: [{ curves: [{ tag: 'loss', label: '{c} of {a}' }] }] })
  expect(readFileSync(path, 'utf8')).toContain('{c} of {a}')
})

test('TR-34 a file without values, an unknown tag, a wrong argument', async () => {
  const path = join(folder, 'none.jsonl')
  writeFileSync(path, '')
  const out = join(folder, 'none.svg')
  await expect(plot(path, out)).rejects.toMatchObject({ code: 'METRICS_EMPTY', values: { path } })
  const unknown = plot(RUN, out, { tags: ['lost'] })
  await expect(unknown).rejects.toMatchObject({ code: 'METRICS_TAG_UNKNOWN', values: { tag: 'lost', tags: ['loss', 'accuracy'] } })
  await expect(unknown).rejects.toThrow("expected one of the tags 'loss', 'accuracy', got 'lost', which is in none of out/run.jsonl")
  const wrong: PlotOptions[] = [
    { smooth: 1 },
    { x: 'epoch' as never },
    { tags: [] },
    { tag: 'loss' } as never,
    { panels: [{ curves: [] }] },
    { panels: 5 as never },
    { panels: [] },
    { panels: [null] as never },
    { panels: [{ curves: [5] as never }] },
    { panels: [{ curves: [null] as never }] },
    { panels: [{ curves: ['loss'], lines: 5 as never }] },
    { panels: [{ curves: ['loss'], lines: [5] as never }] },
    { panels: [{ curves: ['loss'], lines: [{ name: 'best', value: Number.NaN }] }] },
    { panels: [{ curves: ['loss'], min: Number.NaN }] },
    { panels: [{ curves: [{ tag: 'loss', style: 'thick' as never }] }] },
    { tags: ['loss'], panels: [{ curves: ['loss'] }] },
    { title: 5 as never },
    { log: 1 as never },
  ]
  for (const options of wrong) await expect(plot(RUN, out, options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await expect(plot(RUN, join(folder, 'run.png'))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await expect(plot({ rows: [] } as never, out)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await expect(plot([], out)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await expect(plot(RUN, join(path, 'run.svg'))).rejects.toMatchObject({ code: 'METRICS_IO' })
  expect(existsSync(out)).toBe(false)
})
