/** IDX files: every type is written and read back, and damaged bytes are refused before they cost room. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { type DType, isTensor, type Tensor, tensor, zeros } from '@postgrad/tensor'
import * as fc from 'fast-check'
import { decodeIdx, encodeIdx, type IdxType, readIdx, writeIdx } from './idx.js'

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const seen = (x: Tensor): unknown => [x.dtype, x.shape, x.toArray()]

describe('reading', () => {
  // Written by hand after the description of the format.
  test.each([
    [
      'ubyte',
      '00000802 00000002 00000003 000102fdfeff',
      'int32',
      [
        [0, 1, 2],
        [253, 254, 255],
      ],
    ],
    ['byte', '00000901 00000002 ff7f', 'int32', [-1, 127]],
    ['short', '00000b01 00000002 ff0000ff', 'int32', [-256, 255]],
    ['int', '00000c01 00000002 80000000 00000102', 'int32', [-(2 ** 31), 258]],
    ['float', '00000d01 00000002 3fc00000 c0000000', 'float32', [1.5, -2]],
    ['double', '00000e01 00000001 3ff8000000000000', 'float64', [1.5]],
    ['a scalar', '00000800 07', 'int32', 7],
    ['nothing', '00000802 00000000 00000003', 'int32', []],
  ])('%s', async (_, hex, dtype, values) => {
    const x = await decodeIdx(bytes(hex))
    expect([x.dtype, x.toArray()]).toEqual([dtype, values])
    expect(seen(await decodeIdx(gzipSync(bytes(hex))))).toEqual(seen(x))
  })

  test('into another dtype', async () => {
    const file = bytes('00000801 00000003 0002ff')
    expect(seen(await decodeIdx(file, { dtype: 'float32' }))).toEqual(['float32', [3], [0, 2, 255]])
    expect(seen(await decodeIdx(file, { dtype: 'bool' }))).toEqual(['bool', [3], [false, true, true]])
  })

  test.each([
    ['empty', ''],
    ['too short for a header', '000008'],
    ['no zeros', '01000801 00000000'],
    ['an unknown type', '00000a01 00000000'],
    ['extents missing', '00000802 00000001'],
    ['an element missing', '00000801 00000002 01'],
    ['a byte too many', '00000801 00000001 0102'],
    ['a shape beyond counting', '00000e03 ffffffff ffffffff ffffffff'],
    ['a shape beyond counting, with a 0 in it', '00000e04 00000000 ffffffff ffffffff ffffffff'],
  ])('refuses %s, gzipped too', async (_, hex) => {
    for (const file of [bytes(hex), gzipSync(bytes(hex))]) await expect(decodeIdx(file)).rejects.toMatchObject({ code: 'IDX_INVALID' })
  })

  test('a gzipped header that promises more than can be there is refused before it is unpacked', async () => {
    const file = gzipSync(bytes('00000e02 00100000 00100000'))
    await expect(decodeIdx(file)).rejects.toMatchObject({ code: 'IDX_INVALID', message: expect.stringContaining('cannot hold') })
    await expect(decodeIdx(gzipSync(bytes('00000801 00000001 01')).subarray(0, 20))).rejects.toMatchObject({ code: 'IDX_INVALID' })
  })
})

describe('writing', () => {
  const TYPES: readonly IdxType[] = ['ubyte', 'byte', 'short', 'int', 'float', 'double']
  const RANGES = { ubyte: [0, 255], byte: [-128, 127], short: [-32768, 32767], int: [-(2 ** 31), 2 ** 31 - 1] } as const

  test('what is written is read', async () => {
    const values = (type: IdxType) =>
      type === 'float' ? fc.float() : type === 'double' ? fc.double() : fc.integer({ min: RANGES[type][0], max: RANGES[type][1] })
    const cases = fc
      .record({ type: fc.constantFrom(...TYPES), rows: fc.integer({ min: 1, max: 4 }), columns: fc.integer({ min: 1, max: 5 }) })
      .chain(({ type, rows, columns }) =>
        fc.record({
          type: fc.constant(type),
          rows: fc.array(fc.array(values(type), { minLength: columns, maxLength: columns }), { minLength: rows, maxLength: rows }),
        }),
      )
    await fc.assert(
      fc.asyncProperty(cases, async ({ type, rows }) => {
        const dtype: DType = type === 'float' ? 'float32' : type === 'double' ? 'float64' : 'int32'
        const x = tensor(rows, { dtype })
        expect(seen(await decodeIdx(encodeIdx(x, { type })))).toEqual(seen(x))
      }),
    )
  })

  test('views, bools, and files that are gzipped by their name', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postgrad-idx-'))
    try {
      const x = tensor(
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        { dtype: 'int32' },
      )
      await writeIdx(join(folder, 'x.gz'), x.T, { type: 'ubyte' })
      await writeIdx(join(folder, 'flags'), tensor([true, false]))
      expect((await readIdx(join(folder, 'x.gz'))).toArray()).toEqual([
        [1, 4],
        [2, 5],
        [3, 6],
      ])
      expect(seen(await readIdx(join(folder, 'flags'), { dtype: 'bool' }))).toEqual(['bool', [2], [true, false]])
      await writeFile(join(folder, 'bad'), 'no IDX')
      const path = join(folder, 'bad')
      await expect(readIdx(path)).rejects.toMatchObject({
        code: 'IDX_INVALID',
        values: { path },
        message: `readIdx: ${path}: expected two bytes of 0 at the beginning, got 0x6e6f. The file is damaged, incomplete, or not an IDX file.`,
        remedy: expect.stringContaining('not an IDX file'),
      })
      await expect(readIdx(join(folder, 'none'))).rejects.toMatchObject({ code: 'IDX_IO' })
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('a file that is not there, or cannot be written, is named, with what to do', async () => {
    const path = join(tmpdir(), 'postgrad-none', 'a.idx')
    const named = { code: 'IDX_IO', values: { path }, remedy: expect.stringContaining('working directory'), cause: { code: 'ENOENT' } }
    await expect(readIdx(path)).rejects.toMatchObject({ ...named, message: expect.stringContaining(`cannot read '${path}'`) })
    await expect(writeIdx(path, zeros([1]))).rejects.toMatchObject({ ...named, message: expect.stringContaining(`cannot write '${path}'`) })
    for (const wrong of [new URL('https://example.org/a.idx'), null as unknown as string]) {
      await expect(readIdx(wrong)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      await expect(writeIdx(wrong, zeros([1]))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  })

  test('refuses a dtype that there is not', async () => {
    await expect(decodeIdx(encodeIdx(tensor([1])), { dtype: 'uint8' as 'int32' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('refuses what a type cannot hold', () => {
    expect(() => encodeIdx(tensor([256], { dtype: 'int32' }), { type: 'ubyte' })).toThrow('0 … 255')
    expect(() => encodeIdx(zeros([1]), { type: 'int' })).toThrow("x.to('int32')")
  })
})

test('mutated bytes give a tensor or IDX_INVALID, nothing else', async () => {
  const files = [bytes('00000802 00000002 00000003 000102fdfeff'), encodeIdx(zeros([2, 3, 4])), encodeIdx(zeros([5], { dtype: 'float64' }))]
  const mutated = fc.record({
    file: fc.constantFrom(...files, ...files.map((file) => new Uint8Array(gzipSync(file)))),
    edits: fc.array(fc.record({ at: fc.nat({ max: 90 }), to: fc.integer({ min: 0, max: 255 }) }), { maxLength: 4 }),
    length: fc.option(fc.nat({ max: 120 }), { freq: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(mutated, async ({ file, edits, length }) => {
      const copy = Uint8Array.from(file).subarray(0, length ?? file.length)
      for (const { at, to } of edits) if (at < copy.length) copy[at] = to
      const result = await decodeIdx(copy).catch((error: unknown) => error)
      if (isTensor(result)) expect(result.dataSync()).toHaveLength(result.numel)
      else expect(isPostgradError(result, 'IDX_INVALID')).toBe(true)
    }),
    { numRuns: 2000 },
  )
})
