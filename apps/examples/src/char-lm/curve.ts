/** Draws the loss curve. */
import { round, writeChart } from '../shared/chart.js'
import type { Point, TrainReport } from './program.js'

/** The training loss of every step (thin), the held-out loss, and the unigram distribution's as a line, in nats per character over seconds. */
export async function writeCurve(
  path: string,
  { training, heldOut, kernels, steps, seconds }: TrainReport,
  unigram: number,
  source: string,
): Promise<void> {
  const points = (all: readonly Point[]) => all.map((p) => [p.seconds, p.loss] as const)
  await writeChart(path, {
    title: 'A character model learns on three workers',
    subtitle: `${source} · ${steps} steps in ${seconds.toFixed(1)} s · kernels ${kernels.trainer}`,
    x: { name: 'seconds', max: Math.max(round(seconds, 2), 0.1) },
    y: { name: 'nats per character' },
    curves: [
      { name: 'training, every step', kind: 'pale', points: points(training) },
      {
        name: 'unigram distribution',
        kind: 'limit',
        label: `unigram ${unigram.toFixed(2)}`,
        points: [0, seconds].map((x) => [x, unigram] as const),
      },
      { name: 'held-out text', kind: 'dark', label: `held out ${heldOut.at(-1)!.loss.toFixed(2)}`, points: points(heldOut), dots: true },
    ],
  })
}
