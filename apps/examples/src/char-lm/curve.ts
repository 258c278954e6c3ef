/** The loss curve as a picture: an SVG that a browser opens, drawn by echarts without a browser. */
import { writeFile } from 'node:fs/promises'
import { init } from 'echarts'
import type { Point, TrainReport } from './program.js'

const WIDTH = 960
const HEIGHT = 540
/** In the legend, what the series are. */
const LINE_ICON = 'path://M0 0h24v3h-24z'
const INK = '#2b2f36'
const FAINT = '#6b7280'
const TRAINING = '#9dc3e6'
const HELD_OUT = '#1f4e8c'
const UNIGRAM = '#c0392b'

/** The training loss of every step (thin), the held-out loss, and the unigram distribution's as a line, in nats per character over seconds. */
export async function writeCurve(path: string, report: TrainReport, unigram: number, source: string): Promise<void> {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  chart.setOption(option(report, unigram, source))
  const svg = chart.renderToSVGString()
  chart.dispose()
  await writeFile(path, svg)
}

function option({ training, heldOut, kernels, steps, seconds }: TrainReport, unigram: number, source: string) {
  const points = (all: readonly Point[]) => all.map((p) => [round(p.seconds, 2), round(p.loss, 4)])
  const last = heldOut.at(-1)!.loss
  const axis = { nameLocation: 'middle', nameTextStyle: { color: FAINT, fontSize: 13 }, axisLabel: { color: FAINT, fontSize: 12 } } as const
  return {
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily: 'system-ui, Helvetica, Arial, sans-serif' },
    title: {
      text: 'A character model learns on three workers',
      subtext: `${source} · ${steps} steps in ${seconds.toFixed(1)} s · kernels ${kernels.trainer}`,
      left: 'center',
      top: 12,
      textStyle: { color: INK, fontSize: 18 },
      subtextStyle: { color: FAINT, fontSize: 13 },
    },
    legend: { bottom: 8, itemGap: 28, icon: LINE_ICON, itemHeight: 4, textStyle: { color: INK, fontSize: 13 } },
    grid: { left: 64, right: 128, top: 76, bottom: 84 },
    xAxis: {
      ...axis,
      type: 'value',
      name: 'seconds',
      nameGap: 28,
      min: 0,
      max: Math.max(round(seconds, 2), 0.1),
      axisLabel: { ...axis.axisLabel, showMaxLabel: false },
    },
    yAxis: { ...axis, type: 'value', name: 'nats per character', nameGap: 40, scale: true, splitLine: { lineStyle: { color: '#eceef1' } } },
    series: [
      {
        name: 'training, every step',
        type: 'line',
        symbol: 'none',
        color: TRAINING,
        lineStyle: { width: 1 },
        data: points(training),
      },
      {
        name: 'unigram distribution',
        type: 'line',
        symbol: 'none',
        color: UNIGRAM,
        lineStyle: { type: 'dashed', width: 2 },
        endLabel: { show: true, color: UNIGRAM, fontSize: 13, formatter: `unigram ${unigram.toFixed(2)}` },
        data: [0, seconds].map((x) => [round(x, 2), round(unigram, 4)]),
      },
      {
        name: 'held-out text',
        type: 'line',
        symbol: 'circle',
        symbolSize: 7,
        color: HELD_OUT,
        lineStyle: { width: 2.5 },
        endLabel: { show: true, color: HELD_OUT, fontSize: 13, fontWeight: 'bold', formatter: `held out ${last.toFixed(2)}` },
        data: points(heldOut),
      },
    ],
  }
}

/** Digits that nobody can see make the file large. */
function round(x: number, digits: number): number {
  return Number(x.toFixed(digits))
}
