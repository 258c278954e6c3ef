/** Draws a run of `--heap`: memory over time, in the style of the sweeps. */
import { type EChartsOption, init } from 'echarts'
import { FAINT, GRID, HEIGHT, INK, WIDTH } from '../plots/picture.js'
import { type HeapRun, MEASURES, type Measure } from './run.js'

const COLORS: Readonly<Record<Measure, string>> = {
  rss: '#c0392b',
  touched: '#8a8f98',
  claimed: '#1f4e8c',
  live: '#2e8b57',
  heapUsed: '#b7791f',
}

export function heapPicture({ machine, workers, seed, samples }: HeapRun): string {
  const drawn = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  const axis = { nameLocation: 'middle', nameTextStyle: { color: FAINT, fontSize: 13 }, axisLabel: { color: FAINT, fontSize: 12 } } as const
  drawn.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily: 'system-ui, Helvetica, Arial, sans-serif' },
    title: {
      text: 'Memory while tensors of mixed sizes travel',
      subtext: `${workers} workers, seed ${seed}, ${machine}`,
      left: 'center',
      top: 10,
      textStyle: { color: INK, fontSize: 17 },
      subtextStyle: { color: FAINT, fontSize: 12 },
    },
    legend: { bottom: 6, itemGap: 20, textStyle: { color: INK, fontSize: 12 } },
    grid: { left: 72, right: 40, top: 72, bottom: 108 },
    xAxis: {
      ...axis,
      type: 'value',
      name: 'minutes',
      nameGap: 30,
      min: 0,
      max: (samples.at(-1)?.seconds ?? 0) / 60,
      splitLine: { show: false },
    },
    yAxis: { ...axis, type: 'value', name: 'MiB', nameGap: 48, min: 0, splitLine: { lineStyle: { color: GRID } } },
    series: Object.entries(MEASURES).map(([name, text]) => ({
      name: text,
      type: 'line',
      symbol: 'none',
      color: COLORS[name as Measure],
      lineStyle: { width: 1.5 },
      data: samples.map(({ seconds, mebibytes }) => [Number((seconds / 60).toFixed(2)), mebibytes[name as Measure]]),
    })),
  } satisfies EChartsOption)
  const svg = drawn.renderToSVGString()
  drawn.dispose()
  return svg
}
