/**
 * Draws metrics: reads the files, makes a chart of them (`chartOf`, a pure function), and writes the picture (`svg.ts`). PyTorch: TensorBoard, which needs a server and a browser.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, extname } from 'node:path'
import { invalidArgument } from '@postgrad/tensor/internal'
import { temporaryOf } from '../files/temporary.js'
import { empty, ioFailure, unknownTag } from '../metrics/errors.js'
import { type Metrics, pathOf, readMetrics } from '../metrics/read-metrics.js'
import { checkMetrics, checkPlot, type PlotCurve, type PlotOptions, type PlotPanel } from './options.js'
import { drawable, type Point, smoothed, thinned } from './points.js'
import { type Chart, type Curve, type CurveStyle, type Panel, svgOf } from './svg.js'

/** A run to draw: a metrics file, or what `readMetrics` gave. */
export type PlotRun = string | URL | Metrics

/** More points than the picture has columns of pixels, of which two belong to one interval. */
const POINTS_MAX = 3000

/**
 * Draws metrics as an SVG file that a browser opens: a panel for each tag, a colour for each run. NaN and Infinity are gaps. In a viewer with dark colours the picture is dark.
 * Rejects with INVALID_ARGUMENT, METRICS_IO, METRICS_INVALID, METRICS_EMPTY (a file has no values), METRICS_TAG_UNKNOWN. PyTorch: TensorBoard.
 * @param runs a metrics file, what `readMetrics` gave, or several of them to compare
 * @param path of the picture, which ends in '.svg'; its folder is made if there is none
 * @example await plot('run.jsonl', 'run.svg', { smooth: 0.9 })
 */
export async function plot(runs: PlotRun | readonly PlotRun[], path: string | URL, options: PlotOptions = {}): Promise<void> {
  const op = 'plot'
  checkPlot(options)
  const name = pathOf(op, path)
  if (extname(name).toLowerCase() !== '.svg') throw invalidArgument(op, "a picture whose name ends in '.svg'", `'${name}'`)
  const list = (Array.isArray(runs) ? runs : [runs]) as readonly PlotRun[]
  if (list.length === 0) throw invalidArgument(op, 'at least one run', 'none')
  const metrics = await Promise.all(list.map((run) => (isMetrics(run) ? run : readMetrics(run))))
  const svg = svgOf(chartOf(metrics, options))
  try {
    await mkdir(dirname(name), { recursive: true })
  } catch (error) {
    throw ioFailure(op, 'make the folder of', name, error)
  }
  const temporary = temporaryOf(name)
  try {
    await writeFile(temporary, svg)
    await rename(temporary, name)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}) // The first error is the one to report.
    throw ioFailure(op, 'write', name, error)
  }
}

function isMetrics(run: PlotRun): run is Metrics {
  if (typeof run !== 'object' || run === null || run instanceof URL) return false
  checkMetrics(run)
  return true
}

/** @throws INVALID_ARGUMENT (no run has a value of x; an axis is logarithmic and a tag has no value above 0), METRICS_EMPTY, METRICS_TAG_UNKNOWN */
export function chartOf(runs: readonly Metrics[], options: PlotOptions): Chart {
  const { x = 'step', smooth = 0, log = false, title = namesOf(runs).join(', '), subtitle = '' } = options
  for (const { path, tags } of runs) if (tags.length === 0) throw empty('plot', path)
  const tags = [...new Set(runs.flatMap((run) => run.tags))]
  const wanted = options.panels ?? (options.tags ?? tags).map((tag): PlotPanel => ({ curves: [tag] }))
  const xs = runs.flatMap(({ rows }) => rows.map((row) => row[x])).filter(Number.isFinite)
  if (xs.length === 0) throw invalidArgument('plot', `files that have '${x}'`, 'files without', "Leave x out, or pass x: 'step'.")
  const [xMin, xMax] = xs.reduce(
    ([low, high], each) => [Math.min(low, each), Math.max(high, each)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  )
  const drawing: Drawing = {
    perTag: options.panels === undefined,
    runs,
    names: namesOf(runs),
    tags,
    x,
    smooth,
    log,
    xMin: Math.min(0, xMin),
    xMax: Math.max(xMax, xMin + 1e-9),
  }
  return {
    title,
    subtitle,
    xName: options.xName ?? x,
    xMin: drawing.xMin,
    xMax: drawing.xMax,
    panels: wanted.map((panel) => panelOf(panel, drawing)),
  }
}

/** Of one run, the pale curve and the dark one next to it have the same colour. */
type ColoredCurve = PlotCurve & { readonly color: number }

interface Drawing {
  /** Whether each panel has one tag alone. */
  readonly perTag: boolean
  readonly runs: readonly Metrics[]
  readonly names: readonly string[]
  readonly tags: readonly string[]
  readonly x: 'step' | 'seconds'
  readonly smooth: number
  readonly log: boolean
  readonly xMin: number
  readonly xMax: number
}

function panelOf({ curves, name, lines = [], min, max }: PlotPanel, drawing: Drawing): Panel {
  const { runs, tags, log, xMin, xMax } = drawing
  const given = curves.map((curve): PlotCurve => (typeof curve === 'string' ? { tag: curve } : curve))
  const list = given.map(
    (curve, at): ColoredCurve => ({
      ...curve,
      color: given.slice(0, at).filter(({ style = 'dark' }) => style === (curve.style ?? 'dark')).length,
    }),
  )
  const unknown = list.find(({ tag }) => !tags.includes(tag))
  if (unknown !== undefined)
    throw unknownTag(
      'plot',
      unknown.tag,
      tags,
      runs.map(({ path }) => path),
    )
  for (const { tag } of log ? list : []) {
    const values = runs.flatMap(({ rows }) => rows.flatMap((row) => (Object.hasOwn(row.values, tag) ? [row.values[tag]!] : [])))
    if (!values.some((value) => drawable(value, true) !== null))
      throw invalidArgument(
        'plot',
        'a value above 0 in each tag, for a logarithmic axis',
        `'${tag}', which has none`,
        'Leave log out, or draw other tags.',
      )
  }
  const dashed = lines.map(
    ({ name: lineName, value, label = null }): Curve => ({
      ...{ name: lineName, color: 0, style: 'dashed', label, dots: false, inLegend: true },
      points: [
        [xMin, value],
        [xMax, value],
      ],
    }),
  )
  const drawn = list.flatMap((curve) => runs.flatMap((run, i) => curvesOf(curve, run, i, drawing)))
  // The last ones lie on top.
  const order: readonly CurveStyle[] = ['pale', 'dashed', 'dark']
  const all = [...drawn, ...dashed].sort((a, b) => order.indexOf(a.style) - order.indexOf(b.style))
  return { name: name ?? list.map(({ tag }) => tag).join(', '), min: min ?? null, max: max ?? null, isLog: log, curves: all }
}

/** A curve of one run; if it is smoothed, the values next to it. */
function curvesOf(curve: ColoredCurve, run: Metrics, i: number, { runs, names, x, smooth, log, perTag }: Drawing): Curve[] {
  const { tag, name = tag, style = 'dark', label = null, dots = false } = curve
  const values = run.rows
    .filter((row) => Object.hasOwn(row.values, tag) && Number.isFinite(row[x]))
    .map((row): Point => [row[x], drawable(row.values[tag]!, log)])
  const isOne = runs.length === 1
  // The axis of a tag's panel has its name.
  const own = isOne ? name : perTag ? names[i]! : `${names[i]}: ${name}`
  const base = { color: isOne ? curve.color : i, dots, points: thinned(values, POINTS_MAX) }
  if (smooth === 0 || style === 'pale') return [{ ...base, name: own, style, label, inLegend: !(isOne && perTag) }]
  const [pale, dark] = isOne && perTag ? ['values', `smoothed ${smooth}`] : [`${own}, values`, own]
  return [
    { ...base, name: pale, style: 'pale', label: null, inLegend: isOne && perTag },
    { ...base, name: dark, style: 'dark', label, inLegend: true, dots: false, points: thinned(smoothed(values, smooth), POINTS_MAX) },
  ]
}

/** The shortest ends of the paths that differ: 'a' and 'b' of runs/a.jsonl and runs/b.jsonl, 'a/run' and 'b/run' of a/run.jsonl and b/run.jsonl. */
function namesOf(runs: readonly Metrics[]): readonly string[] {
  const parts = runs.map(({ path }) => path.split(/[\\/]/))
  for (let kept = 1; kept <= Math.max(...parts.map(({ length }) => length)); kept++) {
    const names = parts.map((each) => each.slice(-kept).join('/'))
    const stems = names.map((name) => name.slice(0, name.length - extname(name).length))
    for (const some of [stems, names]) if (new Set(some).size === some.length) return some
  }
  return runs.map(({ path }, i) => `${path} #${i + 1}`)
}
