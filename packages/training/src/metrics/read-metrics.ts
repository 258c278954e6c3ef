/** Reads the files that a `MetricsWriter` wrote, in both formats of `format.ts`. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { argumentText, invalidArgument } from '@postgrad/tensor/internal'
import { ioFailure } from './errors.js'
import { formatOf, parse, type Row } from './format.js'

/** The metrics of one step. */
export interface MetricsRow {
  /** The step, as the program passed it. */
  readonly step: number
  /** Seconds since the run began; a resumed run continues them. NaN if the file has none. */
  readonly seconds: number
  /** The values of the step, by tag. */
  readonly values: Readonly<Record<string, number>>
}

/** The metrics of a run, as `readMetrics` reads them. */
export interface Metrics {
  /** The file. */
  readonly path: string
  /** In the order of the file. Lines of one step that follow each other are one row, unless a tag comes twice. */
  readonly rows: readonly MetricsRow[]
  /** All tags, in the order in which they first appear. */
  readonly tags: readonly string[]
  /** The text of an unfinished last line, which a run leaves that was killed while it wrote; `rows` does not have it. null: the last line is whole. */
  readonly truncated: string | null
  /** The first step before which the steps, or the seconds, go back, as they do if two runs write one file at the same time; null: all lines are in order. */
  readonly outOfOrder: number | null
}

/**
 * Reads a metrics file: JSON lines ('.jsonl', '.ndjson') or CSV ('.csv'). Every number has the bits that were written, NaN and Infinity included. A last line that is not finished is skipped, and is in
 * `truncated`. Rejects with METRICS_IO (the file cannot be read), METRICS_INVALID (a line does not hold metrics), INVALID_ARGUMENT.
 * @example
 * const { rows, tags } = await readMetrics('out/run.jsonl') // tags: ['loss']
 * for (const { step, values } of rows) console.log(step, values.loss)
 */
export async function readMetrics(path: string | URL): Promise<Metrics> {
  const op = 'readMetrics'
  const name = pathOf(op, path)
  const format = formatOf(op, name)
  const text = await readFile(name, 'utf8').catch((error: unknown) => {
    throw ioFailure(op, 'read', name, error)
  })
  const { lines, tags, truncated } = parse(op, name, format, text)
  return { path: name, rows: joined(lines).map(publicRow), tags, truncated, outOfOrder: outOfOrder(lines) }
}

/** One writer's steps may repeat, but its seconds do not go back. */
function outOfOrder(rows: readonly Row[]): number | null {
  const at = rows.findIndex((row, i) => i > 0 && (row.step < rows[i - 1]!.step || row.seconds < rows[i - 1]!.seconds))
  return rows[at]?.step ?? null
}

const publicRow = ({ step, seconds, values }: Row): MetricsRow => ({ step, seconds, values: Object.fromEntries(values) })

/** Neighbouring lines of one step are one row. A step that comes again later, or with the same tag, has a row of its own. */
function joined(rows: readonly Row[]): Row[] {
  const found: Row[] = []
  for (const row of rows) {
    const last = found.at(-1)
    if (last !== undefined && last.step === row.step && ![...row.values.keys()].some((tag) => last.values.has(tag))) {
      found[found.length - 1] = { ...last, values: new Map([...last.values, ...row.values]) }
    } else found.push(row)
  }
  return found
}

/** @throws INVALID_ARGUMENT */
export function pathOf(op: string, path: string | URL): string {
  if (typeof path === 'string' && path !== '') return path
  if (path instanceof URL && path.protocol === 'file:') return fileURLToPath(path)
  throw invalidArgument(op, 'a path, or a file: URL', path instanceof URL ? path.href : argumentText(path))
}
