/**
 * Draws metrics: reads the files, makes a chart of them (`chartOf`, a pure function), and writes the picture (`svg.ts`). PyTorch: TensorBoard, which needs a server and a browser.
 */
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname, extname } from 'node:path'
import { argumentText, checkOptions, invalidArgument, isListOf } from '@postgrad/tensor/internal'
import { empty, ioFailure, unknownTag } from '../metrics/errors.js'
import { type Metrics, pathOf, readMetrics } from '../metrics/read-metrics.js'
import { drawable, type Point, smoothed, thinned } from './points.js'
import { type Chart, type Curve, type CurveStyle, type Panel, svgOf } from './svg.js'

/** A run to draw: a metrics file, or what `readMetrics` gave. */
export type PlotRun = string | URL | Metrics

/** A curve of a panel of `plot`. */
export interface PlotCurve {
  /** The tag of the values. */
  readonly tag: string
  /** The name in the legend; default the tag. */
  readonly name?: string
  /** 'pale' for measurements, 'dark' for a result; default 'dark'. */
  readonly style?: 'pale' | 'dark'
  /** A text at the end of the curve. */
  readonly label?: string
  /** Whether to mark each value; default false. */
  readonly dots?: boolean
}

/** A dashed line across a panel of `plot`, to compare with. */
export interface PlotLine {
  /** The name in the legend. */
  readonly name: string
  /** The height of the line, in the unit of the panel. */
  readonly value: number
  /** A text at the end of the line. */
  readonly label?: string
}

/** A panel of `plot`: curves over one y axis. */
export interface PlotPanel {
  /** The tags, or curves with names and styles. */
  readonly curves: readonly (string | PlotCurve)[]
  /** The name of the y axis; default the tags. */
  readonly name?: string
  /** Dashed lines across the panel. */
  readonly lines?: readonly PlotLine[]
  /** The lower end of the y axis; default by the values. */
  readonly min?: number
  /** The upper end of the y axis; default by the values. */
  readonly max?: number
}

/** Options of `plot`. */
export interface PlotOptions {
  /** The tags to draw, a panel for each; default all. */
  readonly tags?: readonly string[]
  /** Panels with several curves, names and lines, in place of `tags`. */
  readonly panels?: readonly PlotPanel[]
  /** The quantity of the x axis; default 'step'. */
  readonly x?: 'step' | 'seconds'
  /** The name of the x axis; default that of `x`. */
  readonly xName?: string
  /** How much to smooth, from 0 (the default) to below 1, as in TensorBoard. The values themselves are drawn pale, the smoothed curve dark. */
  readonly smooth?: number
  /** Whether the y axes are logarithmic; default false. Values that are not above 0 are gaps then, and a tag needs one that is. */
  readonly log?: boolean
  /** The title; default the names of the runs. */
  readonly title?: string
  /** A line below the title. */
  readonly subtitle?: string
}

const OPTIONS = ['tags', 'panels', 'x', 'xName', 'smooth', 'log', 'title', 'subtitle'] as const
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
  checkOptions(op, options, OPTIONS)
  const name = pathOf(op, path)
  if (extname(name).toLowerCase() !== '.svg') throw invalidArgument(op, "a picture whose name ends in '.svg'", `'${name}'`)
  const list = (Array.isArray(runs) ? runs : [runs]) as readonly PlotRun[]
  if (list.length === 0) throw invalidArgument(op, 'at least one run', 'none')
  const metrics = await Promise.all(list.map((run) => (isMetrics(run) ? run : readMetrics(run))))
  const svg = svgOf(chartOf(metrics, options))
  try {
    await mkdir(dirname(name), { recursive: true })
    const temporary = `${name}.tmp`
    await writeFile(temporary, svg)
    await rename(temporary, name)
  } catch (error) {
    throw ioFailure(op, 'write', name, error)
  }
}

function isMetrics(run: PlotRun): run is Metrics {
  return typeof run === 'object' && run !== null && Array.isArray((run as Partial<Metrics>).rows)
}

/** @throws INVALID_ARGUMENT (also if an axis is logarithmic and a tag has no value above 0), METRICS_EMPTY, METRICS_TAG_UNKNOWN */
export function chartOf(runs: readonly Metrics[], options: PlotOptions): Chart {
  const { x = 'step', smooth = 0, log = false, title = namesOf(runs).join(', '), subtitle = '' } = options
  if (x !== 'step' && x !== 'seconds') throw invalidArgument('plot', "'step' or 'seconds' as x", argumentText(x))
  if (!(typeof smooth === 'number' && smooth >= 0 && smooth < 1))
    throw invalidArgument('plot', 'smooth from 0 to below 1', argumentText(smooth))
  for (const { path, tags } of runs) if (tags.length === 0) throw empty('plot', path)
  const tags = [...new Set(runs.flatMap((run) => run.tags))]
  const wanted = options.panels ?? tagsOf(options.tags ?? tags).map((tag): PlotPanel => ({ curves: [tag] }))
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

function tagsOf(tags: readonly string[]): readonly string[] {
  if (isListOf(tags, (tag) => typeof tag === 'string') && tags.length > 0) return tags
  throw invalidArgument('plot', 'an array of tags', argumentText(tags), "Write { tags: ['loss'] }.")
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
  if (!isListOf(curves, (each) => each !== null) || curves.length === 0)
    throw invalidArgument('plot', 'at least one curve in each panel', argumentText(curves), "Write { curves: ['loss'] }.")
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
      String(unknown.tag),
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
