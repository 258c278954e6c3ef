/** CSV: columns with types, missing values, lines of errors, and streams that end. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { Generator } from '@postgrad/tensor'
import * as fc from 'fast-check'
import { type CsvOptions, type CsvSchema, csvDataset, readCsv } from './csv.js'
import { DataLoader } from './data-loader.js'

const IRIS = ['length,width,species,count,isWild', '5.1,3.5,setosa,2,true', '7,,"Iris ""v"", two', 'lines",-3,0', '.5e1,1,x,7,FALSE'].join(
  '\n',
)
const COLUMNS = { count: 'int32', length: 'float64', width: 'float32', isWild: 'bool', species: 'string' } as const

/** In pieces of one byte, so that nothing depends on where a chunk ends. */
const bytewise = (text: string): Uint8Array[] => [...Buffer.from(text)].map((byte) => Uint8Array.of(byte))

const failure = async <C extends CsvSchema>(text: string, options: CsvOptions<C>): Promise<PostgradError> =>
  readCsv([text], options).then(
    () => {
      throw new Error('it was accepted')
    },
    (error) => error,
  )

describe('readCsv', () => {
  test.each([
    ['whole', [IRIS]],
    ['byte by byte', bytewise(IRIS)],
    ['with other line ends and a mark', [`\ufeff${IRIS.replaceAll('\n', '\r\n')}\r\n\r\n`]],
  ])('columns by name and type, %s', async (_, source) => {
    const { count, length, width, isWild, species } = await readCsv(source, { columns: COLUMNS })
    expect([count.dtype, count.toArray()]).toEqual(['int32', [2, -3, 7]])
    expect([length.dtype, length.toArray()]).toEqual(['float64', [5.1, 7, 5]])
    expect([width.dtype, width.toArray()]).toEqual(['float32', [3.5, Number.NaN, 1]])
    expect([isWild.dtype, isWild.toArray()]).toEqual(['bool', [true, false, false]])
    expect(species.map((one) => one.replaceAll('\r', ''))).toEqual(['setosa', 'Iris "v", two\nlines', 'x'])
  })

  test('names that are given, another delimiter, comments, infinities, what stands for missing', async () => {
    const text = '# measured\n1;-;inf\n2;4;-Infinity\n'
    const columns = await readCsv([text], {
      columns: { b: 'int32', c: 'float32' },
      header: ['a', 'b', 'c'],
      delimiter: ';',
      comment: '#',
      missing: ['-'],
      fill: { b: -1 },
    })
    expect([columns.b.toArray(), columns.c.toArray()]).toEqual([
      [-1, 4],
      [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    ])
  })

  test('a file, gzipped too; a URL; a file that is not there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postgrad-csv-'))
    try {
      await writeFile(join(folder, 'a.csv'), 'x\n1\n2\n')
      await writeFile(join(folder, 'a.csv.gz'), gzipSync('x\n1\n2\n'))
      await writeFile(join(folder, 'cut.csv.gz'), gzipSync('x\n1\n2\n').subarray(0, 20))
      const columns = { x: 'int32' } as const
      for (const path of [join(folder, 'a.csv'), join(folder, 'a.csv.gz'), pathToFileURL(join(folder, 'a.csv'))]) {
        expect((await readCsv(path, { columns })).x.toArray()).toEqual([1, 2])
      }
      for (const none of [join(folder, 'none.csv'), join(folder, 'none.csv.gz'), pathToFileURL(join(folder, 'none.csv'))]) {
        await expect(readCsv(none, { columns })).rejects.toMatchObject({
          code: 'CSV_IO',
          message: expect.stringMatching(/cannot read '.*none.csv.*ENOENT.*working directory/s),
          values: { path: String(none) },
          cause: { code: 'ENOENT' },
        })
      }
      await expect(readCsv(folder, { columns })).rejects.toMatchObject({ code: 'CSV_IO', remedy: expect.stringContaining('folder') })
      await expect(readCsv(new URL('https://example.org/a.csv'), { columns })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      const cut = expect(readCsv(join(folder, 'cut.csv.gz'), { columns })).rejects
      await cut.toMatchObject({ code: 'CSV_INVALID', message: expect.stringContaining('unexpected end of file') })
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test.each([
    ['\n', '\r\n'],
    ['\r\n', '\n'],
    ['\r', '\n'],
  ])('a row of names that ends in %j, and rows that end in %j', async (first, other) => {
    const text = ['x,name', '1,Ann', '2,"Bo"', '3,"C\ny"', ''].join(other).replace(other, first)
    for (const source of [[text], bytewise(text)]) {
      const { x, name } = await readCsv(source, { columns: { x: 'int32', name: 'string' } })
      expect([x.toArray(), name]).toEqual([
        [1, 2, 3],
        ['Ann', 'Bo', 'C\ny'],
      ])
    }
  })

  test('characters of several bytes, and pairs of surrogates, wherever a piece ends; UTF-16 with its mark', async () => {
    const text = 'x,name\n1,"中ä😀"\n2,é'
    const sources: Iterable<string | Uint8Array>[] = [[Buffer.from(`\ufeff${text}`, 'utf16le')]]
    for (const whole of [Buffer.from(text), text]) {
      for (let at = 0; at <= whole.length; at++) sources.push([whole.slice(0, at), whole.slice(at)])
    }
    sources.push([...text], bytewise(`\ufeff${text}`))
    for (const source of sources) {
      expect((await readCsv(source, { columns: { name: 'string' } })).name).toEqual(['中ä😀', 'é'])
    }
  })

  test.each([
    ['a letter of Latin-1', Buffer.from('x,name\n1,Bo\n2,Zoë\n', 'latin1'), 3],
    ['half a character at the end', Buffer.from('x,name\n1,é').subarray(0, -1), 2],
    ['half a mark', Uint8Array.of(0xff), 1],
  ])('bytes that are no text are refused with their line: %s', async (_, bytes, line) => {
    for (const source of [[bytes], [...bytes].map((byte) => Uint8Array.of(byte))]) {
      await expect(readCsv(source, { columns: { name: 'string' } })).rejects.toMatchObject({
        code: 'CSV_INVALID',
        message: expect.stringContaining(`line ${line}: expected text in UTF-8`),
        values: { line },
      })
    }
    const text = [Buffer.from(bytes).toString('latin1')]
    if (line === 3) expect((await readCsv(text, { columns: { name: 'string' } })).name).toEqual(['Bo', 'Zoë'])
  })

  test('a file with names and no rows', async () => {
    expect((await readCsv(['x\n'], { columns: { x: 'int32' } })).x.shape).toEqual([0])
  })
})

/** None of them may reach csv-parse, whose errors are its own. */
const WRONG_OPTIONS = [{ comment: 5 }, { missing: 5 }, { onBadRow: 5 }, { fill: null }].map((one) => ({ columns: { a: 'int32' }, ...one }))

describe('what is wrong is told with its line', () => {
  test.each([
    [
      'a word for a number',
      'x\n1\nmany\n',
      { x: 'float32' },
      'line 3: expected a number in column \'x\', got "many"',
      { line: 3, column: 'x' },
    ],
    ['a fraction for an integer', 'x\n1.5', { x: 'int32' }, 'an integer within 32 bits', { line: 2 }],
    ['an integer beyond 32 bits', 'x\n2147483648', { x: 'int32' }, '"2147483648"', { line: 2 }],
    ['nothing for an integer', 'x,y\n1,1\n,1', { x: 'int32' }, 'got ""', { line: 3 }],
    ['a number for a bool', 'x\n2', { x: 'bool' }, 'true, false, 1 or 0', { line: 2 }],
    ['a hexadecimal number', 'x\n0x10', { x: 'float64' }, 'a number', { line: 2 }],
    ['a field too few', 'x,y\n1,2\n3\n', { x: 'float32' }, 'expected 2 fields, got 1', { line: 3 }],
    ['a field too many', 'x\n1,2\n', { x: 'float32' }, 'expected 1 fields, got 2', { line: 2 }],
    ['a quote that is not closed', 'x\n1\n"2\n', { x: 'float32' }, 'Quote', { line: 3 }],
    ['a quote within a field', 'x,name\n1,19" monitor\n', { x: 'float32', name: 'string' }, 'Quote', { line: 2 }],
    ['text behind a quote', 'x,name\n1,"a"b\n', { x: 'float32', name: 'string' }, 'Quote', { line: 2 }],
  ] as const)('%s', async (_, text, columns, message, values) => {
    const error = await failure(text, { columns })
    expect(error).toMatchObject({ code: 'CSV_INVALID', values })
    expect(error.message).toContain(message)
  })

  test('columns that are not there, or twice, or none; an empty file', async () => {
    expect(await failure('a,b\n1,2', { columns: { c: 'int32' } })).toMatchObject({
      code: 'CSV_COLUMN_MISSING',
      values: { columns: ['a', 'b'] },
    })
    expect((await failure('a,a\n1,2', { columns: { a: 'int32' } })).code).toBe('CSV_COLUMN_MISSING')
    expect((await failure('a\n1', { columns: {} })).code).toBe('INVALID_ARGUMENT')
    for (const options of [
      undefined,
      {},
      { columns: { a: 'int32' }, header: false },
      { columns: { a: 'int32' }, delimiter: '' },
      ...WRONG_OPTIONS,
    ]) {
      expect((await failure('a\n1', options as unknown as { columns: { a: 'int32' } })).code).toBe('INVALID_ARGUMENT')
    }
    await expect(readCsv(undefined as unknown as string, { columns: { a: 'int32' } })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect((await failure('a\n1', { columns: { a: 'int8' as 'int32' } })).code).toBe('INVALID_ARGUMENT')
    expect((await failure('a\n1', { columns: { a: 'string' }, fill: { a: 1 } })).code).toBe('INVALID_ARGUMENT')
    // It has no row that onBadRow could leave out.
    for (const onBadRow of [null, () => {}]) {
      expect(await failure('', { columns: { a: 'int32' }, ...(onBadRow && { onBadRow }) })).toMatchObject({
        code: 'CSV_INVALID',
        message:
          "csv: line 1: expected a row of names, got nothing. Look whether this is the right file. To read an empty one as no rows, name the columns: { header: ['x', 'y'] }.",
        values: { line: 1 },
      })
    }
    expect((await readCsv([''], { columns: { a: 'int32' }, header: ['a'] })).a.shape).toEqual([0])
  })

  test('onBadRow: told, and left out', async () => {
    const lines: number[] = []
    const columns = await readCsv(['x\n1\nmany\n2,3\n4"5\n6\n'], {
      columns: { x: 'int32' },
      onBadRow: ({ values }) => lines.push(values.line as number),
    })
    expect([columns.x.toArray(), lines.sort()]).toEqual([
      [1, 6],
      [3, 4, 5],
    ])
  })
})

describe('csvDataset', () => {
  test('batches by the DataLoader, and reads the file again in each epoch', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postgrad-csv-'))
    try {
      await writeFile(join(folder, 'a.csv'), 'x,label,name\n0.5,1,a\n1.5,0,b\n2.5,1,c\n')
      const dataset = csvDataset(join(folder, 'a.csv'), { columns: { x: 'float64', label: 'int32', name: 'string' } })
      const loader = new DataLoader(dataset, { batchSize: 2, generator: new Generator(0) })
      for (let epoch = 0; epoch < 2; epoch++) {
        const seen: unknown[] = []
        for await (const { x, label, name } of loader) seen.push([x.dtype, x.toArray(), label.dtype, label.toArray(), name])
        expect(seen).toEqual([
          ['float64', [0.5, 1.5], 'int32', [1, 0], ['a', 'b']],
          ['float64', [2.5], 'int32', [1], ['c']],
        ])
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('reads ahead no further than streams do, and lets go when the loop ends', async () => {
    let [given, closed] = [0, false]
    async function* lines(): AsyncGenerator<string> {
      try {
        for (yield 'x\n'; given < 5000; given++) yield `${given}\n`.padStart(1000, '0')
      } finally {
        closed = true
      }
    }
    for await (const { x } of csvDataset(lines(), { columns: { x: 'int32' } }) as AsyncIterable<{ x: { itemSync(): unknown } }>) {
      if (x.itemSync() === 3) break
    }
    await new Promise((resolve) => setImmediate(resolve))
    expect(closed).toBe(true)
    // A few buffers of 16 to 64 KiB, in lines of 1000 bytes.
    expect(given).toBeLessThan(1000)
  })
})

test('numbers that are written are read', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ a: fc.double({ noNaN: true }), b: fc.string() }), { minLength: 1 }), async (rows) => {
      const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`
      const text = ['a,b', ...rows.map(({ a, b }) => `${a},${quoted(b)}`)].join('\n')
      const read = await readCsv([text], { columns: { a: 'float64', b: 'string' } })
      expect(read.a.toArray()).toEqual(rows.map(({ a }) => (a === 0 ? Number(String(a)) : a)))
      expect(read.b).toEqual(rows.map(({ b }) => b))
    }),
  )
})
