/** A sweep as a picture: an SVG with logarithmic axes, drawn by echarts without a browser. */
import { type EChartsOption, init } from 'echarts'
import type { Sweep } from './sweep.js'

export const [WIDTH, HEIGHT] = [800, 480]
export const [INK, FAINT, GRID] = ['#2b2f36', '#6b7280', '#eceef1']
/** Ours, PyTorch's, the raw limit's. */
const COLORS = ['#1f4e8c', '#c0392b', '#8a8f98']
const DASHED_FROM = 2

export function pictureOf({ title, x, y, base, sizes, series }: Sweep, machine: string): string {
  const drawn = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  const axis = { type: 'log', nameLocation: 'middle', nameTextStyle: { color: FAINT, fontSize: 13 } } as const
  const axisLabel = { color: FAINT, fontSize: 12 }
  const [from, to] = [Math.min(...sizes), Math.max(...sizes)]
  const figures = series.flatMap(({ us }) => us).filter((value) => value !== null)
  drawn.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily: 'system-ui, Helvetica, Arial, sans-serif' },
    title: {
      text: title,
      subtext: machine,
      left: 'center',
      top: 10,
      textStyle: { color: INK, fontSize: 17 },
      subtextStyle: { color: FAINT, fontSize: 12 },
    },
    legend: { bottom: 6, itemGap: 28, textStyle: { color: INK, fontSize: 13 } },
    grid: { left: 72, right: 72, top: 72, bottom: 84 },
    xAxis: {
      ...axis,
      name: x,
      nameGap: 30,
      logBase: base,
      splitNumber: Math.round(Math.log(to / from) / Math.log(base)),
      min: from,
      max: to,
      axisLabel: { ...axisLabel, formatter: base === 16 ? binary : decimal },
      splitLine: { show: false },
    },
    yAxis: {
      ...axis,
      name: y,
      nameGap: 48,
      min: 10 ** Math.floor(Math.log10(Math.min(...figures))),
      max: 10 ** Math.ceil(Math.log10(Math.max(...figures))),
      axisLabel: { ...axisLabel, formatter: time },
      splitLine: { lineStyle: { color: GRID } },
      minorSplitLine: { show: true, lineStyle: { color: GRID, width: 0.5 } },
    },
    series: series.map(({ name, us }, i) => ({
      name,
      type: 'line',
      symbol: 'circle',
      symbolSize: 7,
      color: COLORS[i % COLORS.length]!,
      lineStyle: { width: 2.5, type: i >= DASHED_FROM ? 'dashed' : 'solid' },
      endLabel: { show: true, color: COLORS[i % COLORS.length]!, fontSize: 12, formatter: ({ value }) => time((value as number[])[1]!) },
      data: us.flatMap((value, k) => (value === null ? [] : [[sizes[k]!, Number(value.toPrecision(4))]])),
    })),
  } satisfies EChartsOption)
  const svg = drawn.renderToSVGString()
  drawn.dispose()
  return svg
}

/** 1048576 → 1 Mi */
function binary(value: number): string {
  const power = Math.floor(Math.log2(value) / 10)
  return `${three(value / 2 ** (10 * power))}${['', ' Ki', ' Mi', ' Gi'][power]}`
}

function decimal(value: number): string {
  return value >= 1000 ? `${three(value / 1000)}k` : three(value)
}

function time(us: number): string {
  if (us >= 1e6) return `${three(us / 1e6)} s`
  return us >= 1000 ? `${three(us / 1000)} ms` : `${three(us)} µs`
}

function three(value: number): string {
  return String(Number(value.toPrecision(3)))
}
