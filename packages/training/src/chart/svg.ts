/**
 * Draws a chart as SVG by echarts, without a browser. A chart is a description: panels one below the other over one x axis, each with its curves. `plot.ts` makes it of metrics. Dark viewers get dark
 * colours: the SVG has a style for `prefers-color-scheme: dark`, which says for each colour of the bright picture what takes its place.
 *
 * echarts is loaded when something is drawn, and not before. It is CommonJS, and what users install has the parts that are needed here as one file (`scripts/bundle-echarts.mjs`): hence `require`.
 */
import { createRequire } from 'node:module'
import type { EChartsOption, EChartsType } from 'echarts'
import type { Point } from './points.js'

interface Echarts {
  init(dom: null, theme: null, options: { renderer: 'svg'; ssr: true; width: number; height: number }): EChartsType
}

/** Pale: measured in every step. Dark: the result. Dashed: a line to compare with. */
export type CurveStyle = 'pale' | 'dark' | 'dashed'

export interface Curve {
  readonly name: string
  /** Curves of one name have one number, which chooses their colour. */
  readonly color: number
  readonly style: CurveStyle
  readonly inLegend: boolean
  readonly points: readonly Point[]
  /** At the end of the line. */
  readonly label: string | null
  readonly dots: boolean
}

export interface Panel {
  /** The name of the y axis. */
  readonly name: string
  readonly min: number | null
  readonly max: number | null
  readonly isLog: boolean
  readonly curves: readonly Curve[]
}

export interface Chart {
  readonly title: string
  readonly subtitle: string
  readonly xName: string
  readonly xMin: number
  readonly xMax: number
  readonly panels: readonly Panel[]
}

const WIDTH = 960
/** Of one panel alone, and of each of several; above and below the panels. */
const PANEL = 380
const PANEL_OF_MANY = 240
const GAP = 56
const TOP = 76
const BOTTOM = 84
const LEFT = 76
const RIGHT = 128

/** In the legend, what the series are. */
const LINE_ICON = 'path://M0 0h24v3h-24z'

/** Each colour, and what takes its place in the dark. */
const PAPER = ['#ffffff', '#16181d'] as const
const INK = ['#2b2f36', '#e6e8eb'] as const
const FAINT = ['#6b7280', '#9aa1ac'] as const
const GRID = ['#eceef1', '#2c3038'] as const
const LIMIT = ['#c0392b', '#f07f73'] as const
const DARK = [
  ['#1f4e8c', '#7db3f0'],
  ['#b45309', '#f2a65a'],
  ['#2f7d32', '#7ccf80'],
  ['#6a3d9a', '#c3a1ea'],
  ['#00796b', '#5fd0c2'],
  ['#ad1457', '#f48fb1'],
] as const
const PALE = [
  ['#9dc3e6', '#34557d'],
  ['#f0c38e', '#74502a'],
  ['#a5d6a7', '#35613a'],
  ['#cab2d6', '#59437a'],
  ['#80cbc4', '#27625b'],
  ['#f4a9c4', '#7a3450'],
] as const

/** The picture as text. */
export function svgOf(chart: Chart): string {
  const echarts = createRequire(import.meta.url)('echarts') as Echarts
  const drawn = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: heightOf(chart) })
  try {
    drawn.setOption(optionOf(chart))
    return withDark(drawn.renderToSVGString())
  } finally {
    drawn.dispose()
  }
}

/** Attributes have less weight than a style, so the picture itself stays as it is. */
function withDark(svg: string): string {
  const pairs = [PAPER, INK, FAINT, GRID, LIMIT, ...DARK, ...PALE]
  const rules = pairs.flatMap(([bright, dark]) => ['fill', 'stroke'].map((name) => `[${name}="${bright}"]{${name}:${dark}}`))
  const style = `<style>@media (prefers-color-scheme:dark){${rules.join('')}}</style>`
  return svg.replace(/<svg[^>]*>/, (tag) => `${tag}\n${style}`)
}

const panelHeight = ({ panels }: Chart): number => (panels.length === 1 ? PANEL : PANEL_OF_MANY)
const heightOf = (chart: Chart): number => TOP + chart.panels.length * (panelHeight(chart) + GAP) - GAP + BOTTOM

function optionOf(chart: Chart): EChartsOption {
  const { title, subtitle, panels } = chart
  const height = panelHeight(chart)
  const axis = { nameLocation: 'middle', nameTextStyle: { color: FAINT[0], fontSize: 13 } } as const
  const axisLabel = { color: FAINT[0], fontSize: 12 }
  const axisLine = { lineStyle: { color: FAINT[0] } }
  return {
    animation: false,
    backgroundColor: PAPER[0],
    textStyle: { fontFamily: 'system-ui, Helvetica, Arial, sans-serif' },
    title: {
      text: title,
      subtext: subtitle,
      left: 'center',
      top: 12,
      textStyle: { color: INK[0], fontSize: 18 },
      subtextStyle: { color: FAINT[0], fontSize: 13 },
    },
    legend: { data: legendOf(chart), bottom: 8, itemGap: 28, icon: LINE_ICON, itemHeight: 4, textStyle: { color: INK[0], fontSize: 13 } },
    grid: panels.map((_, i) => ({ left: LEFT, right: RIGHT, top: TOP + i * (height + GAP), height })),
    xAxis: panels.map((_, gridIndex) => ({
      ...axis,
      gridIndex,
      type: 'value' as const,
      // The panels share it.
      name: gridIndex === panels.length - 1 ? chart.xName : '',
      nameGap: 28,
      min: chart.xMin,
      max: chart.xMax,
      axisLine: { onZero: false, ...axisLine },
      axisTick: axisLine,
      axisLabel: { ...axisLabel, showMaxLabel: false },
      splitLine: { show: false },
    })),
    yAxis: panels.map(({ name, min, max, isLog }, gridIndex) => ({
      ...axis,
      gridIndex,
      type: isLog ? ('log' as const) : ('value' as const),
      name,
      nameGap: 52,
      scale: true,
      axisLine: { show: true, ...axisLine },
      axisTick: axisLine,
      axisLabel,
      splitLine: { lineStyle: { color: GRID[0] } },
      ...(min === null ? {} : { min }),
      ...(max === null ? {} : { max }),
    })),
    series: panels.flatMap(({ curves }, at) => curves.map((curve) => seriesOf(curve, at))),
  } as EChartsOption
}

const legendOf = ({ panels }: Chart): string[] => [
  ...new Set(panels.flatMap(({ curves }) => curves.filter(({ inLegend }) => inLegend).map(({ name }) => name))),
]

function seriesOf({ name, color: number, style, points, label, dots }: Curve, at: number) {
  const color = style === 'dashed' ? LIMIT[0] : (style === 'pale' ? PALE : DARK)[number % DARK.length]![0]
  const lineStyle = { pale: { width: 1 }, dark: { width: 2.5 }, dashed: { type: 'dashed', width: 2 } }[style]
  return {
    name,
    type: 'line',
    xAxisIndex: at,
    yAxisIndex: at,
    ...(dots ? { symbol: 'circle', symbolSize: 7 } : { symbol: 'none' }),
    color,
    lineStyle: { ...lineStyle, color },
    ...(label === null
      ? {}
      : // A text would be a template of echarts, in which {c} is a value.
        { endLabel: { show: true, color, fontSize: 13, fontWeight: style === 'dark' ? 'bold' : 'normal', formatter: () => label } }),
    data: points.map(([x, y]) => [short(x), y === null ? '-' : short(y)]),
  }
}

/** Digits that nobody can see make the file large. */
const short = (x: number): number => Number(x.toPrecision(6))
