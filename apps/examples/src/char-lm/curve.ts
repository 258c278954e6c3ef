/** The loss curve as a picture: an SVG that a browser opens, drawn by echarts without a browser. */
import { writeFile } from 'node:fs/promises'
import * as echarts from 'echarts'
import type { TrainReport } from './program.js'

const WIDTH = 960
const HEIGHT = 540

/** Training loss per step (thin), evaluation loss, and the unigram distribution's loss as a line, in nats per character over seconds. */
export async function writeCurve(path: string, { training, evaluation, device }: TrainReport, unigram: number): Promise<void> {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    title: { text: 'Character model over three workers', subtext: `device ${device}`, left: 'center' },
    legend: { top: 50 },
    grid: { left: 70, right: 40, top: 90, bottom: 60 },
    xAxis: { type: 'value', name: 'seconds', nameLocation: 'middle', nameGap: 30, max: 'dataMax', axisLabel: { showMaxLabel: false } },
    yAxis: { type: 'value', name: 'nats per character', nameLocation: 'middle', nameGap: 45, scale: true },
    series: [
      {
        name: 'training',
        type: 'line',
        showSymbol: false,
        lineStyle: { width: 1 },
        color: '#9db8d9',
        data: training.map((p) => [p.seconds, p.loss]),
      },
      {
        name: 'evaluation',
        type: 'line',
        symbolSize: 6,
        lineStyle: { width: 2 },
        color: '#1f4e8c',
        data: evaluation.map((p) => [p.seconds, p.loss]),
      },
      {
        name: 'unigram distribution',
        type: 'line',
        showSymbol: false,
        lineStyle: { type: 'dashed' },
        color: '#c0392b',
        data: [
          [0, unigram],
          [evaluation.at(-1)?.seconds ?? 1, unigram],
        ],
      },
    ],
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  await writeFile(path, svg)
}
