/** The log of an example, JSON lines with one a step, and next to it the picture, which is drawn from the log. */
import { rm } from 'node:fs/promises'
import { join, parse } from 'node:path'
import { MetricsWriter, plot } from 'postgrad/training'
import type { PlotOptions } from 'postgrad/types'
import { meanOver } from './means.js'

/** The values of a step, by tag, and when they were measured, if that is known. */
export interface LogRow {
  readonly step: number
  readonly seconds?: number
  readonly [tag: string]: number | undefined
}

/** `out/ddp.svg` → `out/ddp.jsonl`, which replaces an earlier one, as the picture does. Gives its path. */
export async function writeLog(picture: string, rows: readonly LogRow[]): Promise<string> {
  const { dir, name } = parse(picture)
  const path = join(dir, `${name}.jsonl`)
  // A log of an earlier run, of other settings perhaps: the writer would continue it.
  await rm(path, { force: true })
  let ms = 0
  await using writer = new MetricsWriter(path, { now: () => ms })
  for (const { step, seconds = Number.NaN, ...values } of rows) {
    ms = 1000 * seconds
    writer.log(values as Readonly<Record<string, number>>, step)
  }
  return path
}

/** The log, and the picture. */
export async function writeRun(picture: string, rows: readonly LogRow[], options: PlotOptions): Promise<string> {
  const log = await writeLog(picture, rows)
  await plot(log, picture, options)
  return log
}

/** A row for each loss, and in the last row of each `window` steps their mean. */
export function lossRows(losses: readonly number[], window: number): LogRow[] {
  const means = meanOver(losses, window)
  return losses.map((loss, i) => {
    const isLast = (i + 1) % window === 0 || i + 1 === losses.length
    return { step: i + 1, loss, ...(isLast ? { mean: means[Math.floor(i / window)]! } : {}) }
  })
}
