/**
 * The two formats of a metrics file, as text. Nothing here touches a file: `metrics-writer.ts` writes one, `read-metrics.ts` reads one.
 *
 *     run.jsonl   {"step":1,"seconds":0.052,"loss":2.31,"accuracy":"NaN"}      one object for each line
 *     run.csv     step,seconds,loss,accuracy                                     a column for each tag; a cell is empty where a line lacks the tag
 *                 1,0.052,2.31,NaN
 *
 * JSON has no NaN and no Infinity, so they are the strings "NaN", "Infinity" and "-Infinity" there. Every number is read back with the same bits.
 */
import { extname } from 'node:path'
import { invalidArgument } from '@postgrad/tensor/internal'
import { invalidLine } from './errors.js'

export type Format = 'jsonl' | 'csv'

/** One line: the values of one step, and the seconds since the run began. */
export interface Row {
  readonly step: number
  /** NaN in a file that lacks them. */
  readonly seconds: number
  readonly values: ReadonlyMap<string, number>
}

/** A line of a file, with its text. */
export interface Line extends Row {
  readonly text: string
}

/** The content of a file. */
export interface Content {
  readonly lines: readonly Line[]
  /** Tags in the order in which they first appear; of CSV, those of the header. */
  readonly tags: readonly string[]
  /** The text of a last line that a killed run did not finish; null: the last line is whole. */
  readonly truncated: string | null
  /** Whether a writer can append to the file: each line ends in a line feed, and CSV has the columns of `csvHeader(tags)`. */
  readonly isOurs: boolean
}

export const STEP = 'step'
export const SECONDS = 'seconds'
const NOT_FINITE = ['NaN', 'Infinity', '-Infinity'] as const

/** @throws INVALID_ARGUMENT */
export function formatOf(op: string, path: string): Format {
  const extension = extname(path).toLowerCase()
  if (extension === '.csv') return 'csv'
  if (extension === '.jsonl' || extension === '.ndjson') return 'jsonl'
  throw invalidArgument(op, "a file whose name ends in '.jsonl', '.ndjson' or '.csv'", `'${path}'`)
}

/** -0 keeps its sign. */
const numberText = (x: number): string => (Object.is(x, -0) ? '-0' : String(x))

export function jsonText({ step, seconds, values }: Row): string {
  const all: [string, number][] = [[STEP, step], ...(Number.isNaN(seconds) ? [] : [[SECONDS, seconds] as [string, number]]), ...values]
  const pairs = all.map(([name, x]) => `${JSON.stringify(name)}:${Number.isFinite(x) ? numberText(x) : JSON.stringify(String(x))}`)
  return `{${pairs.join(',')}}\n`
}

export function csvText({ step, seconds, values }: Row, tags: readonly string[]): string {
  const cells = tags.map((tag) => (values.has(tag) ? numberText(values.get(tag)!) : ''))
  return `${[numberText(step), Number.isNaN(seconds) ? '' : numberText(seconds), ...cells].join(',')}\n`
}

export const csvHeader = (tags: readonly string[]): string => `${[STEP, SECONDS, ...tags].map(cellText).join(',')}\n`

const cellText = (text: string): string => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** @throws METRICS_INVALID */
export function parse(op: string, path: string, format: Format, text: string): Content {
  const texts = text.replace(/^\uFEFF/, '').split('\n')
  // Every line ends in a line feed, so the last text is empty, or belongs to a line that was not finished.
  const rest = texts.pop()!
  const whole = texts.map((each) => each.replace(/\r$/, ''))
  return format === 'jsonl' ? parseJson(op, path, whole, rest) : parseCsv(op, path, whole, rest, text.includes('\r'))
}

function parseJson(op: string, path: string, texts: readonly string[], rest: string): Content {
  const tags = new Set<string>()
  const lines: Line[] = []
  const take = (text: string, at: number): void => {
    if (text.trim() === '') return
    const line = jsonLine(op, path, text, at)
    for (const tag of line.values.keys()) tags.add(tag)
    lines.push(line)
  }
  texts.forEach((text, i) => {
    take(text, i + 1)
  })
  // A closing brace shows that only the line feed is missing.
  const isWhole = rest.trim() !== '' && isJson(rest)
  if (isWhole) take(rest, texts.length + 1)
  return { lines, tags: [...tags], truncated: isWhole || rest === '' ? null : rest, isOurs: !isWhole }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function jsonLine(op: string, path: string, text: string, at: number): Line {
  let found: unknown
  try {
    found = JSON.parse(text)
  } catch {
    throw invalidLine(op, path, at, 'a JSON object', excerpt(text))
  }
  if (typeof found !== 'object' || found === null || Array.isArray(found)) throw invalidLine(op, path, at, 'a JSON object', excerpt(text))
  const { [STEP]: step, [SECONDS]: seconds, ...others } = found as Record<string, unknown>
  if (typeof step !== 'number') throw invalidLine(op, path, at, `a number as "${STEP}"`, excerpt(JSON.stringify(step) ?? 'none'))
  const values = new Map<string, number>()
  for (const [tag, value] of Object.entries(others)) {
    const x = typeof value === 'number' ? value : NOT_FINITE.some((each) => each === value) ? Number(value) : null
    if (x === null) throw invalidLine(op, path, at, `a number as "${tag}"`, excerpt(JSON.stringify(value)))
    values.set(tag, x)
  }
  return { step, seconds: typeof seconds === 'number' ? seconds : Number.NaN, values, text }
}

function parseCsv(op: string, path: string, texts: readonly string[], rest: string, hasReturns: boolean): Content {
  const truncated = rest === '' ? null : rest
  if (texts.length === 0) return { lines: [], tags: [], truncated, isOurs: true }
  const header = cellsOf(texts[0]!)
  const [stepAt, secondsAt] = [header.indexOf(STEP), header.indexOf(SECONDS)]
  if (stepAt < 0) throw invalidLine(op, path, 1, `a header with the column '${STEP}'`, excerpt(texts[0]!))
  const isTag = (name: string): boolean => name !== STEP && name !== SECONDS
  const tags = [...new Set(header.filter(isTag))]
  let isOurs = !hasReturns && `${texts[0]}\n` === csvHeader(tags)
  const lines: Line[] = []
  for (const [i, text] of texts.entries()) {
    if (i === 0 || text === '') continue
    const cells = cellsOf(text)
    if (cells.length > header.length) throw invalidLine(op, path, i + 1, `${header.length} cells`, `${cells.length}`)
    isOurs &&= cells.length === header.length
    const numbers = cells.map((cell) => (cell === '' ? null : cellNumber(op, path, i + 1, cell)))
    const step = numbers[stepAt] ?? null
    if (step === null) throw invalidLine(op, path, i + 1, `a number in the column '${STEP}'`, 'none')
    const values = new Map<string, number>()
    header.forEach((tag, at) => {
      const x = numbers[at] ?? null
      if (isTag(tag) && x !== null) values.set(tag, x)
    })
    lines.push({ step, seconds: numbers[secondsAt] ?? Number.NaN, values, text })
  }
  return { lines, tags, truncated, isOurs }
}

function cellNumber(op: string, path: string, at: number, cell: string): number {
  const x = Number(cell)
  if (Number.isNaN(x) && cell.toLowerCase() !== 'nan') throw invalidLine(op, path, at, 'numbers', excerpt(cell))
  return x
}

/** Of one line; a quoted cell may hold commas, and a doubled quote for a quote. */
function cellsOf(text: string): string[] {
  if (!text.includes('"')) return text.split(',')
  return [...text.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!)
}

const EXCERPT_MAX = 60
const excerpt = (text: string): string => (text.length > EXCERPT_MAX ? `${text.slice(0, EXCERPT_MAX)}…` : text || 'nothing')
