/** Draws the loss curve. */
import { type LogRow, writeRun } from '../shared/log.js'
import type { TrainReport } from './program.js'

/**
 * The training loss of every step (thin), the held-out loss, and the unigram distribution's as a line, in nats per character over seconds.
 * @returns the path of the log
 */
export async function writeCurve(
  path: string,
  { training, heldOut, kernels, steps, seconds }: TrainReport,
  unigram: number,
  source: string,
): Promise<string> {
  const held = heldOut.map(({ loss, ...at }): LogRow => ({ ...at, heldOut: loss }))
  const rows = [...training.map((point): LogRow => ({ ...point })), ...held].sort((a, b) => a.step - b.step || a.seconds! - b.seconds!)
  return await writeRun(path, rows, {
    title: 'A character model learns on three workers',
    subtitle: `${source} · ${steps} steps in ${seconds.toFixed(1)} s · kernels ${kernels.trainer}`,
    x: 'seconds',
    panels: [
      {
        name: 'nats per character',
        lines: [{ name: 'unigram distribution', label: `unigram ${unigram.toFixed(2)}`, value: unigram }],
        curves: [
          { tag: 'loss', name: 'training, every step', style: 'pale' },
          { tag: 'heldOut', name: 'held-out text', label: `held out ${heldOut.at(-1)!.loss.toFixed(2)}`, dots: true },
        ],
      },
    ],
  })
}
