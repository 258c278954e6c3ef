/** Curves as pictures: an SVG that a browser opens, drawn by echarts without a browser, in the style that all examples share. */
import { writeFile } from 'node:fs/promises'
import { type EChartsOption, init } from 'echarts'

const WIDTH = 960
const HEIGHT = 540
/** In the legend, what the series are. */
const LINE_ICON = 'path://M0 0h24v3h-24z'
const INK = '#2b2f36'
const FAINT = '#6b7280'
const AXIS = { nameLocation: 'middle', nameTextStyle: { color: FAINT, fontSize: 13 }, axisLabel: { color: FAINT, fontSize: 12 } } as const

/** Thin and pale: measured in every step. Strong and dark: the result. Dashed: a line to compare with. */
export const PALE = '#9dc3e6'
export const DARK = '#1f4e8c'
export const LIMIT = '#c0392b'

export interface Curve {
  readonly name: string
  readonly kind: 'pale' | 'dark' | 'limit'
  /** At the end of the line. */
  readonly label?: string
  readonly points: readonly (readonly [x: number, y: number])[]
  readonly dots?: boolean
}

export interface Chart {
  readonly title: string
  readonly subtitle: string
  readonly x: { readonly name: string; readonly max: number }
  readonly y: { readonly name: string; readonly min?: number; readonly max?: number }
  readonly curves: readonly Curve[]
}

export async function writeChart(path: string, chart: Chart): Promise<void> {
  const drawn = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  drawn.setOption(option(chart))
  const svg = drawn.renderToSVGString()
  drawn.dispose()
  await writeFile(path, svg)
}

function option({ title, subtitle, x, y, curves }: Chart): EChartsOption {
  return {
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily: 'system-ui, Helvetica, Arial, sans-serif' },
    title: {
      text: title,
      subtext: subtitle,
      left: 'center',
      top: 12,
      textStyle: { color: INK, fontSize: 18 },
      subtextStyle: { color: FAINT, fontSize: 13 },
    },
    legend: { bottom: 8, itemGap: 28, icon: LINE_ICON, itemHeight: 4, textStyle: { color: INK, fontSize: 13 } },
    grid: { left: 64, right: 128, top: 76, bottom: 84 },
    xAxis: {
      ...AXIS,
      type: 'value',
      name: x.name,
      nameGap: 28,
      min: 0,
      max: x.max,
      axisLabel: { ...AXIS.axisLabel, showMaxLabel: false },
    },
    yAxis: {
      ...AXIS,
      type: 'value',
      name: y.name,
      nameGap: 40,
      scale: true,
      splitLine: { lineStyle: { color: '#eceef1' } },
      ...(y.min === undefined ? {} : { min: y.min }),
      ...(y.max === undefined ? {} : { max: y.max }),
    },
    series: curves.map(series),
  }
}

function series({ name, kind, label, points, dots = false }: Curve) {
  const color = { pale: PALE, dark: DARK, limit: LIMIT }[kind]
  const lineStyle = { pale: { width: 1 }, dark: { width: 2.5 }, limit: { type: 'dashed' as const, width: 2 } }[kind]
  const endLabel = {
    show: true,
    color,
    fontSize: 13,
    fontWeight: kind === 'dark' ? ('bold' as const) : ('normal' as const),
    formatter: label ?? '',
  }
  return {
    name,
    type: 'line' as const,
    ...(dots ? { symbol: 'circle', symbolSize: 7 } : { symbol: 'none' }),
    color,
    lineStyle,
    ...(label === undefined ? {} : { endLabel }),
    data: points.map(([x, y]) => [round(x, 2), round(y, 4)]),
  }
}

/** Digits that nobody can see make the file large. */
export function round(x: number, digits: number): number {
  return Number(x.toFixed(digits))
}
