/**
 * Reads chosen columns of CSV files with types, as tensors or row by row. csv-parse finds rows and fields (quotes, line ends, chunks). This file converts
 * the fields, and names the line of an error. It streams: `csvDataset` holds a few rows of a file, `readCsv` the chosen columns.
 */
import { createReadStream } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import { type DType, type Tensor, tensor } from '@postgrad/tensor'
import { invalidArgument, isDType } from '@postgrad/tensor/internal'
import type { Info, Parser } from 'csv-parse'
import { textOf as messageOf } from './batch.js'
import { textOf } from './csv-text.js'
import type { IterableDataset } from './dataset.js'
import { checkPath, ioFailure, isOfFileSystem } from './file-errors.js'

/** The type of a column: 'bool' reads true, false, 1 and 0, in upper or lower case; 'int32' reads only whole numbers. */
export type CsvType = DType | 'string'
/** The columns to read, by name, with their types: `{ age: 'float32', name: 'string' }`. */
export type CsvSchema = Readonly<Record<string, CsvType>>

/**
 * Where CSV comes from: a path or `file:` URL (a '.gz' file is unpacked while it is read), or the text in pieces. Bytes must be UTF-8, or UTF-16 with a byte order
 * mark. For another encoding, pass decoded text: `createReadStream(path, 'latin1')`.
 */
export type CsvSource = string | URL | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>

/** Options of `readCsv` and `csvDataset`. */
export interface CsvOptions<C extends CsvSchema> {
  /** The columns to read, by name, with their types. Other columns are skipped, and may contain anything. */
  readonly columns: C
  /** The names of the columns in the file. true (default): the first row has them. An array: the file has no such row. */
  readonly header?: true | readonly string[]
  /** The character between fields. Default ','. */
  readonly delimiter?: string
  /** Lines that begin with this text are skipped. Default: none are skipped. */
  readonly comment?: string
  /** The texts that mean a missing value, in columns other than strings. Default: '', 'NA', 'NaN', 'nan', 'null'. */
  readonly missing?: readonly string[]
  /** The number that replaces a missing value, by column. Default: NaN for float32 and float64. For int32 and bool, a row with a missing value is a bad row. */
  readonly fill?: { readonly [K in keyof C]?: number }
  /** Receives the error of each bad row, and the row is left out. Default: the first bad row ends reading with its error. Unclosed quotes are reported some rows early. */
  readonly onBadRow?: (error: PostgradError) => void
}

/** The result of `readCsv`, by column: a tensor of shape [rows], or an array of strings. */
export type CsvColumns<C extends CsvSchema> = { -readonly [K in keyof C]: C[K] extends 'string' ? string[] : Tensor }
/** A row of `csvDataset`, by column: a 0-d tensor, or a string. `defaultCollate` makes columns of rows. */
export type CsvRow<C extends CsvSchema> = { -readonly [K in keyof C]: C[K] extends 'string' ? string : Tensor }

const MISSING = ['', 'NA', 'NaN', 'nan', 'null'] as const
/** A row that is longer, for want of a closing quote, is an error and not a file in memory. */
const ROW_CHARACTERS_MAX = 2 ** 24

/**
 * Reads the chosen columns of all rows of a CSV file. PyTorch has no such function; pandas: `read_csv`. To make a tensor of shape [rows, 2] from two columns, write
 * `stack([a, b], 1)`.
 * @throws CSV_INVALID if a row is bad, with `values.line` (the line in which the row ends), and `values.column` if one field is bad; CSV_COLUMN_MISSING;
 * CSV_IO if the file cannot be read; INVALID_ARGUMENT
 * @example
 * const { sepal, species } = await readCsv(['sepal,species\n5.1,setosa\n6.2,virginica\n'], {
 *   columns: { sepal: 'float64', species: 'string' },
 * })
 * sepal // [5.1, 6.2]
 * species // ['setosa', 'virginica']
 */
export async function readCsv<const C extends CsvSchema>(source: CsvSource, options: CsvOptions<C>): Promise<CsvColumns<C>> {
  checkOptions(options)
  const columns = Object.keys(options.columns).map((): (number | string)[] => [])
  for await (const row of rowsOf(source, options)) row.forEach((value, i) => void columns[i]!.push(value))
  return Object.fromEntries(
    Object.entries(options.columns).map(([name, type], i) => [
      name,
      type === 'string' ? columns[i] : tensor(columns[i] as number[], { dtype: type }),
    ]),
  ) as CsvColumns<C>
}

/**
 * Makes a dataset that reads a CSV file row by row, in the file's order, without holding the whole file in memory. Each iteration reads the file again.
 * @throws INVALID_ARGUMENT. An iteration fails with the errors of `readCsv`
 * @example
 * const rows = csvDataset('people.csv', { columns: { height: 'float32', name: 'string' } })
 * for await (const { height, name } of new DataLoader(rows, { batchSize: 32 })) console.log(height.shape, name) // [32] and 32 names
 */
export function csvDataset<const C extends CsvSchema>(source: CsvSource, options: CsvOptions<C>): IterableDataset<CsvRow<C>> {
  checkOptions(options)
  checkSource(source)
  const schema = Object.entries(options.columns)
  return {
    async *[Symbol.asyncIterator]() {
      for await (const row of rowsOf(source, options)) {
        yield Object.fromEntries(
          schema.map(([name, type], i) => [name, type === 'string' ? row[i] : tensor(row[i] as number, { dtype: type })]),
        ) as CsvRow<C>
      }
    },
  }
}

/** The values of each good row, in the order of `options.columns`; bools as 0 and 1. */
async function* rowsOf<C extends CsvSchema>(
  source: CsvSource,
  options: CsvOptions<C>,
): AsyncGenerator<(number | string)[], void, undefined> {
  checkOptions(options)
  checkSource(source)
  const path = typeof source === 'string' || source instanceof URL ? source : null
  const name = path === null ? null : String(path)
  const bad = (error: PostgradError): void => {
    if (options.onBadRow === undefined) throw error
    options.onBadRow(error)
  }
  let names = options.header === undefined || options.header === true ? null : options.header
  let fields: Field[] | null = null
  // Late: every worker's start would load it, and few read CSV.
  const { parse, CsvError } = await import('csv-parse')
  const parser = parserOf(
    parse,
    textOf(path === null ? (source as Exclude<CsvSource, string | URL>) : bytesOf(path), noText(name)),
    options,
    (error) => bad(unreadable(name, error)),
  )
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[]; info: Info }>) {
      if (names === null) {
        names = record
        continue
      }
      fields ??= fieldsOf(names, options, name)
      const row = valuesOf(record, fields, names.length, info.lines, name)
      if (isPostgradError(row)) bad(row)
      else yield row
    }
    // A file without rows has to have the columns all the same.
    if (names === null) throw empty(name)
    fields ??= fieldsOf(names, options, name)
  } catch (error) {
    if (isCsvError(error, CsvError)) throw unreadable(name, error)
    throw path !== null && isOfFileSystem(error) ? ioFailure('CSV_IO', 'csv', 'read', path, error) : error
  } finally {
    parser.destroy()
  }
}

function parserOf<C extends CsvSchema>(
  parse: typeof import('csv-parse').parse,
  text: AsyncIterable<string>,
  { delimiter = ',', comment, onBadRow }: CsvOptions<C>,
  skipped: (error: CsvParseError) => void,
): Parser {
  const parser = parse({
    bom: true,
    info: true,
    delimiter,
    // All of them, since rows of one file may end in different ways: csv-parse would take the first row's for all.
    record_delimiter: ['\r\n', '\n', '\r'],
    ...(comment === undefined ? {} : { comment, comment_no_infix: true }),
    skip_empty_lines: true,
    max_record_size: ROW_CHARACTERS_MAX,
    // This file reports wrong lengths, with the line.
    relax_column_count: true,
    ...(onBadRow === undefined
      ? {}
      : {
          skip_records_with_error: true,
          on_skip: (error: unknown): undefined => {
            skipped(error as CsvParseError)
          },
        }),
  })
  // An error in the text ends the parser, and the loop over it rejects with it.
  pipeline(Readable.from(text, { objectMode: false }), parser, () => {})
  return parser
}

function bytesOf(path: string | URL): Readable {
  const bytes = createReadStream(path)
  if (!/\.gz$/.test(String(path))) return bytes
  const unpacked = builtin<typeof import('node:zlib')>('node:zlib').createGunzip()
  pipeline(bytes, unpacked, () => {})
  return unpacked
}

interface Field {
  readonly name: string
  readonly type: CsvType
  /** Its place in a row. */
  readonly at: number
  readonly missing: ReadonlySet<string>
  /** undefined: a row without a value is bad. */
  readonly fill: number | undefined
}

/** @throws CSV_COLUMN_MISSING */
function fieldsOf<C extends CsvSchema>(names: readonly string[], options: CsvOptions<C>, source: string | null): Field[] {
  const missing = new Set(options.missing ?? MISSING)
  return Object.entries(options.columns).map(([name, type]) => {
    const at = names.indexOf(name)
    if (at < 0 || names.indexOf(name, at + 1) >= 0) {
      throw new PostgradError('CSV_COLUMN_MISSING', {
        op: 'csv',
        expected: `one column '${name}'${source === null ? '' : ` in ${source}`}`,
        got: at < 0 ? `the columns ${names.map((one) => `'${one}'`).join(', ')}` : 'two of that name',
        remedy: 'Pass { header } with the names if the first row has none.',
        values: { column: name, columns: names, source },
      })
    }
    const isFloat = type === 'float32' || type === 'float64'
    return { name, type, at, missing, fill: options.fill?.[name] ?? (isFloat ? Number.NaN : undefined) }
  })
}

function valuesOf(
  record: readonly string[],
  fields: readonly Field[],
  width: number,
  line: number,
  source: string | null,
): (number | string)[] | PostgradError {
  if (record.length !== width) return invalid(source, line, `${width} fields`, `${record.length}`)
  const values: (number | string)[] = []
  for (const { name, type, at, missing, fill } of fields) {
    const text = record[at] as string
    if (type === 'string') {
      values.push(text)
      continue
    }
    const trimmed = text.trim()
    const value = missing.has(trimmed) ? fill : READERS[type](trimmed)
    if (value === undefined) return invalid(source, line, `${EXPECTED[type]} in column '${name}'`, JSON.stringify(text), name)
    values.push(value)
  }
  return values
}

const REAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i
const INFINITE = /^([+-]?)inf(?:inity)?$/i
const BOOLS: Readonly<Record<string, number>> = { true: 1, false: 0, '1': 1, '0': 0 }

function real(text: string): number | undefined {
  if (REAL.test(text)) return Number(text)
  const infinite = INFINITE.exec(text)
  return infinite === null ? undefined : infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

const READERS: Readonly<Record<DType, (text: string) => number | undefined>> = {
  float32: real,
  float64: real,
  int32: (text) => (/^[+-]?\d+$/.test(text) && (Number(text) | 0) === Number(text) ? Number(text) : undefined),
  bool: (text) => BOOLS[text.toLowerCase()],
}

const EXPECTED: Readonly<Record<DType, string>> = {
  float32: 'a number',
  float64: 'a number',
  int32: 'an integer within 32 bits',
  bool: 'true, false, 1 or 0',
}

/** @throws INVALID_ARGUMENT */
function checkOptions<C extends CsvSchema>(options: CsvOptions<C> | undefined): void {
  const { columns = {} as C, fill = {}, header = true, delimiter = ',', comment, missing = [], onBadRow } = options ?? {}
  const names = Object.keys(columns)
  if (names.length === 0)
    throw invalidArgument('csv', 'at least one column', 'none', "Name them with their types: { columns: { x: 'float32' } }.")
  for (const [name, type] of Object.entries(columns)) {
    if (type !== 'string' && !isDType(type)) throw invalidArgument('csv', `a dtype or 'string' for column '${name}'`, type)
  }
  if (header !== true && !Array.isArray(header)) {
    throw invalidArgument('csv', 'header: true, or the names', header, "Without a row of names, name all columns: { header: ['x', 'y'] }.")
  }
  if (typeof delimiter !== 'string' || delimiter === '') throw invalidArgument('csv', 'a delimiter', JSON.stringify(delimiter))
  if (comment !== undefined && typeof comment !== 'string') throw invalidArgument('csv', 'a text for comment', comment)
  if (!Array.isArray(missing)) throw invalidArgument('csv', 'an array for missing', missing)
  if (onBadRow !== undefined && typeof onBadRow !== 'function') throw invalidArgument('csv', 'a function for onBadRow', onBadRow)
  if (typeof fill !== 'object' || fill === null) throw invalidArgument('csv', 'an object for fill', fill)
  for (const name of Object.keys(fill)) {
    if (columns[name] === undefined || columns[name] === 'string') {
      throw invalidArgument('csv', 'fill for columns of numbers that are read', `one for '${name}'`)
    }
  }
}

/** @throws INVALID_ARGUMENT */
function checkSource(source: unknown): void {
  const s = source as Partial<Iterable<unknown> & AsyncIterable<unknown>> | null | undefined
  if (source instanceof URL) checkPath('csv', source)
  if (source instanceof URL || typeof s?.[Symbol.iterator] === 'function' || typeof s?.[Symbol.asyncIterator] === 'function') return
  throw invalidArgument('csv', 'a path, a URL, or the text in pieces', source === null ? 'null' : typeof source)
}

interface CsvParseError {
  readonly code: string
  readonly message: string
  readonly lines?: number
}

/** Of csv-parse, which gives its errors codes of many kinds and no name, or of zlib: a file that is damaged. */
function isCsvError(error: unknown, CsvError: typeof import('csv-parse').CsvError): error is CsvParseError {
  return error instanceof CsvError || /^Z_/.test(String((error as { code?: unknown } | null)?.code))
}

function unreadable(source: string | null, error: CsvParseError): PostgradError {
  const isTooLong = error.code === 'CSV_MAX_RECORD_SIZE'
  const what = isTooLong ? `expected a row of at most ${ROW_CHARACTERS_MAX} characters, got a longer one` : messageOf(error)
  return new PostgradError('CSV_INVALID', {
    op: 'csv',
    message: `${place(source, error.lines ?? null)}: ${what}`,
    remedy: error.code.startsWith('Z_')
      ? 'The file is damaged, incomplete, or not gzipped as its name says.'
      : isTooLong
        ? 'Split the row. If the row should be short, look for a quote that is not closed.'
        : 'See that quotes are closed and doubled inside.',
    values: { source, line: error.lines ?? null },
    cause: error,
  })
}

function noText(source: string | null): (line: number) => PostgradError {
  return (line) =>
    new PostgradError('CSV_INVALID', {
      op: 'csv',
      message: `${place(source, line)}: expected text in UTF-8, got other bytes`,
      remedy: "Convert the file, or pass its text: createReadStream(path, 'latin1') from node:fs reads the encoding of Western Windows.",
      values: { source, line },
    })
}

function invalid(source: string | null, line: number, expected: string, got: string, column?: string): PostgradError {
  return new PostgradError('CSV_INVALID', {
    op: 'csv',
    message: `${place(source, line)}: expected ${expected}, got ${got}`,
    remedy: 'Correct the row, name missing values by { missing, fill }, or pass { onBadRow } to leave such rows out.',
    values: { source, line, ...(column !== undefined && { column }) },
  })
}

/** `onBadRow` does not get it: there is no row to leave out. */
function empty(source: string | null): PostgradError {
  return new PostgradError('CSV_INVALID', {
    op: 'csv',
    message: `${place(source, 1)}: expected a row of names, got nothing`,
    remedy: "Look whether this is the right file. To read an empty one as no rows, name the columns: { header: ['x', 'y'] }.",
    values: { source, line: 1 },
  })
}

const place = (source: string | null, line: number | null): string =>
  [source, line === null ? null : `line ${line}`].filter((one) => one !== null).join(', ')
