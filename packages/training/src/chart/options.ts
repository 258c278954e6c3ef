/** The options of `plot`, and their checks, which come before a file is read. */
import { argumentText, checkOptions, invalidArgument, isListOf } from '@postgrad/tensor/internal'
import type { Metrics } from '../metrics/read-metrics.js'

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
  /** Panels with several curves, names and lines; without `tags`. */
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
const PANEL = ['curves', 'name', 'lines', 'min', 'max'] as const
const CURVE = ['tag', 'name', 'style', 'label', 'dots'] as const
const LINE = ['name', 'value', 'label'] as const
const OP = 'plot'

const isText = (x: unknown): x is string => typeof x === 'string'
const isFlag = (x: unknown): x is boolean => typeof x === 'boolean'

/** @throws INVALID_ARGUMENT */
export function checkPlot(options: PlotOptions): void {
  checkOptions(OP, options, OPTIONS)
  const { tags, panels, x, xName, smooth, log, title, subtitle } = options
  if (tags !== undefined && !(isListOf(tags, isText) && tags.length > 0)) fail('an array of tags', tags, "Write { tags: ['loss'] }.")
  if (tags !== undefined && panels !== undefined)
    throw invalidArgument(OP, 'either tags or panels', 'both', 'Name the tags in the panels: { panels: [{ curves: [tag] }] }.')
  check("'step' or 'seconds' as x", x, x === 'step' || x === 'seconds')
  check('smooth from 0 to below 1', smooth, typeof smooth === 'number' && smooth >= 0 && smooth < 1)
  check('true or false as log', log, isFlag(log))
  for (const [name, text] of Object.entries({ xName, title, subtitle })) check(`a text as ${name}`, text, isText(text))
  if (panels === undefined) return
  if (!Array.isArray(panels) || panels.length === 0)
    fail('an array of at least one panel', panels, "Write { panels: [{ curves: ['loss'] }] }.")
  for (const panel of panels) checkPanel(panel)
}

/** Of `readMetrics`, or made by the program. @throws INVALID_ARGUMENT */
export function checkMetrics({ path, tags, rows }: Metrics): void {
  const isRow = (row: unknown): boolean => typeof (row as Partial<Metrics['rows'][number]> | null)?.values === 'object'
  if (isText(path) && isListOf(tags, isText) && isListOf(rows, isRow)) return
  throw invalidArgument(
    OP,
    'metrics { path, rows, tags }',
    'an object without some of them',
    'Pass the result of readMetrics(), or the path of a file.',
  )
}

function checkPanel(panel: PlotPanel): void {
  checkOptions('plot: panel', panel, PANEL, "Write { panels: [{ curves: ['loss'] }] }.")
  const { curves, name, lines, min, max } = panel
  if (!Array.isArray(curves) || curves.length === 0) fail('at least one curve in each panel', curves, "Write { curves: ['loss'] }.")
  for (const curve of curves) if (!isText(curve)) checkCurve(curve)
  check('a text as name of a panel', name, isText(name))
  check('an array of lines', lines, Array.isArray(lines))
  for (const line of lines ?? []) checkLine(line)
  for (const [end, value] of Object.entries({ min, max })) check(`a finite number as ${end}`, value, Number.isFinite(value))
}

function checkCurve(curve: PlotCurve): void {
  checkOptions('plot: curve', curve, CURVE, "Write { curves: ['loss'] } or { curves: [{ tag: 'loss', style: 'pale' }] }.")
  const { tag, name, style, label, dots } = curve
  if (!isText(tag)) fail('a text as tag of a curve', tag)
  check('a text as name of a curve', name, isText(name))
  check("'pale' or 'dark' as style of a curve", style, style === 'pale' || style === 'dark')
  check('a text as label of a curve', label, isText(label))
  check('true or false as dots', dots, isFlag(dots))
}

function checkLine(line: PlotLine): void {
  checkOptions('plot: line', line, LINE, "Write { lines: [{ name: 'best', value: 0.5 }] }.")
  const { name, value, label } = line
  if (!isText(name)) fail('a text as name of a line', name)
  if (!Number.isFinite(value)) fail('a finite number as value of a line', value)
  check('a text as label of a line', label, isText(label))
}

/** Of an option that may be left out. */
function check(expected: string, got: unknown, holds: boolean): void {
  if (got !== undefined && !holds) fail(expected, got)
}

function fail(expected: string, got: unknown, remedy?: string): never {
  throw invalidArgument(OP, expected, argumentText(got), remedy)
}
