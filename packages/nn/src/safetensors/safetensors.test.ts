/** Files with false headers, files that are cut off, saves that fail. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { Generator, ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { Linear, loadSafetensors, openSafetensors, type StateDict, safetensorsBytes, saveSafetensors } from '../index.js'

const values = (t: Tensor) => Array.from(t.dataSync())

/** A file of this header and so many bytes of data; the length may lie. */
function file(header: unknown, dataBytes: number, length?: bigint): Uint8Array {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header))
  const out = Buffer.alloc(8 + text.length + dataBytes)
  out.writeBigUInt64LE(length ?? BigInt(text.length))
  text.copy(out, 8)
  return out
}

const info = (dtype: string, shape: readonly unknown[], begin: number, end: number) => ({ dtype, shape, data_offsets: [begin, end] })
const one = (dtype: string, shape: readonly unknown[], end: number) => file({ x: info(dtype, shape, 0, end) }, end)

describe('SAFETENSORS_INVALID', () => {
  const cases: [string, Uint8Array, string][] = [
    ['no bytes', new Uint8Array(0), 'at least 8 bytes'],
    ['7 bytes', new Uint8Array(7), 'at least 8 bytes'],
    ['a header beyond the file', file('{}', 0, 3n), 'a header within the file'],
    ['a header beyond the limit', file('{}', 0, 100_000_001n), 'at most 100000000'],
    ['a header of 2⁶⁴ − 1 bytes', file('{}', 0, 2n ** 64n - 1n), 'at most 100000000'],
    ['an empty header', file('', 0), "'{'"],
    ['a header that is an array', file('[]', 0), "'{'"],
    ['a space before the brace', file(' {}', 0), "'{'"],
    ['a byte order mark', file('\uFEFF{}', 0), "'{'"],
    ['bytes that are no UTF-8', Buffer.concat([file('{}', 0, 3n), Buffer.from([0xff])]), 'UTF-8'],
    ['JSON that ends early', file('{"x":', 0), "'{'"],
    ['JSON that goes on', file('{}{}', 0), 'the end of the header'],
    ['a comma too many', file('{"__metadata__":{},}', 0), 'a string'],
    ['a string that does not end', file('{"x', 0), 'a string of JSON'],
    ['a bad escape', file('{"\\x":{}}', 0), 'a string of JSON'],
    ['half a character', file('{"\\ud800":{}}', 0), 'whole characters'],
    [
      'a tensor twice',
      file('{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}', 0),
      'once',
    ],
    ['metadata twice', file('{"__metadata__":{},"__metadata__":{}}', 0), 'once'],
    ['a name of metadata twice', file('{"__metadata__":{"a":"1","a":"2"}}', 0), 'once'],
    ['metadata that is no text', file('{"__metadata__":{"a":1}}', 0), 'a string'],
    ['a field twice', file('{"x":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[0,0]}}', 0), 'once'],
    ['a field that is missing', file('{"x":{"dtype":"F32","shape":[0]}}', 0), 'two data_offsets'],
    ['a field that is unknown', file('{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"y":1}}', 0), 'dtype, shape and data_offsets'],
    ['one offset', file('{"x":{"dtype":"F32","shape":[0],"data_offsets":[0]}}', 0), 'two data_offsets'],
    ['three offsets', file('{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0,0]}}', 0), 'at most 2'],
    ['a negative extent', one('F32', [-1], 4), 'an integer'],
    ['an extent with a fraction', one('F32', [1.5], 4), 'an integer'],
    ['an extent that is written as a fraction', file('{"x":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}', 4), 'an integer'],
    ['an extent with an exponent', file('{"x":{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}}', 4), 'an integer'],
    ['an extent with a zero before it', file('{"x":{"dtype":"F32","shape":[01],"data_offsets":[0,4]}}', 4), 'an integer'],
    ['an extent that is text', one('F32', ['1'], 4), 'an integer'],
    ['an extent beyond 2⁵³', file('{"x":{"dtype":"F32","shape":[9007199254740993],"data_offsets":[0,4]}}', 4), 'an integer'],
    ['extents whose product overflows', one('F32', [2 ** 30, 2 ** 30], 4), 'a countable size'],
    ['extents whose product overflows before a 0', one('F32', [2 ** 52, 2 ** 52, 0], 0), 'a countable size'],
    ['65 dimensions', one('F32', Array(65).fill(1), 4), 'at most 64'],
    ['fewer bytes than the shape needs', one('F32', [2], 4), '8 bytes'],
    ['more bytes than the shape needs', one('F64', [1], 16), '8 bytes'],
    ['offsets in the wrong order', file({ x: info('F32', [0], 4, 0) }, 4), 'bytes'],
    ['a hole before', file({ x: info('F32', [1], 4, 8) }, 8), 'to begin'],
    ['a hole between', file({ x: info('F32', [1], 0, 4), y: info('F32', [1], 8, 12) }, 12), 'to begin'],
    ['an overlap', file({ x: info('F32', [2], 0, 8), y: info('F32', [2], 4, 12) }, 12), 'to begin'],
    ['the same bytes twice', file({ x: info('F32', [1], 0, 4), y: info('F32', [1], 0, 4) }, 4), 'to begin'],
    ['a rest', file({ x: info('F32', [1], 0, 4) }, 5), 'fill the 5 bytes'],
    ['less data than the tensors have', file({ x: info('F32', [1], 0, 4) }, 3), 'fill the 3 bytes'],
    ['nesting without end', file(`{"x":${'['.repeat(100_000)}`, 0), "'{'"],
  ]
  test.each(cases)('%s', async (_, bytes, expected) => {
    await expect(openSafetensors(bytes)).rejects.toMatchObject({
      code: 'SAFETENSORS_INVALID',
      message: expect.stringContaining(expected),
      remedy: expect.any(String),
    })
  })

  test('a BOOL that is neither 0 nor 1', async () => {
    const bytes = one('BOOL', [2], 2)
    bytes[bytes.length - 1] = 2
    await expect(loadSafetensors(bytes)).rejects.toMatchObject({ code: 'SAFETENSORS_INVALID', values: { name: 'x' } })
  })
})

describe('SAFETENSORS_UNSUPPORTED: a dtype without a counterpart', () => {
  test('refuses that tensor when it is read, and no other', async () => {
    for (const [dtype, bytes] of [
      ['F8_E4M3', 4],
      ['F4', 2],
      ['C64', 32],
      ['toString', 1],
    ] as const) {
      const header = { x: info(dtype, [4], 0, bytes), y: info('F32', [1], bytes, bytes + 4) }
      const opened = await openSafetensors(file(header, bytes + 4))
      expect([...opened.tensors].map(([name, { dtype }]) => [name, dtype])).toEqual([
        ['x', dtype],
        ['y', 'F32'],
      ])
      expect(values(await opened.tensor('y'))).toEqual([0])
      await expect(opened.tensor('x')).rejects.toMatchObject({ code: 'SAFETENSORS_UNSUPPORTED', values: { name: 'x', dtype } })
      await expect(loadSafetensors(file(header, bytes + 4))).rejects.toMatchObject({ code: 'SAFETENSORS_UNSUPPORTED' })
      expect(Object.keys(await loadSafetensors(file(header, bytes + 4), { names: ['y'] }))).toEqual(['y'])
    }
  })

  test('its offsets are checked as any', async () => {
    for (const header of [
      { x: info('F8_E4M3', [4], 0, 3) },
      { x: info('F8_E4M3', [4], 2, 4) },
      { x: info('F8_E4M3', [0], 0, 8), y: info('F8_E4M3', [0], 8, 4) },
    ]) {
      await expect(openSafetensors(file(header, 4))).rejects.toMatchObject({ code: 'SAFETENSORS_INVALID' })
    }
  })
})

describe('integers that int32 cannot hold', () => {
  const eight = (dtype: string, write: (data: DataView) => void, bytes = 8) => {
    const out = one(dtype, [1], bytes)
    write(new DataView(out.buffer, out.byteOffset + out.length - bytes))
    return out
  }

  test.each<[string, Uint8Array]>([
    ['I64 2³¹', eight('I64', (data) => data.setBigInt64(0, 2n ** 31n, true))],
    ['I64 −2³¹ − 1', eight('I64', (data) => data.setBigInt64(0, -(2n ** 31n) - 1n, true))],
    ['I64 2³²', eight('I64', (data) => data.setBigInt64(0, 2n ** 32n, true))],
    ['U64 2⁶⁴ − 1', eight('U64', (data) => data.setBigUint64(0, 2n ** 64n - 1n, true))],
    ['U64 2³¹', eight('U64', (data) => data.setBigUint64(0, 2n ** 31n, true))],
    ['U32 2³¹', eight('U32', (data) => data.setUint32(0, 2 ** 31, true), 4)],
  ])('%s: SAFETENSORS_RANGE', async (_, bytes) => {
    await expect(loadSafetensors(bytes)).rejects.toMatchObject({ code: 'SAFETENSORS_RANGE', values: { name: 'x' } })
  })

  test.each<[string, Uint8Array, number]>([
    ['I64 −2³¹', eight('I64', (data) => data.setBigInt64(0, -(2n ** 31n), true)), -(2 ** 31)],
    ['U64 2³¹ − 1', eight('U64', (data) => data.setBigUint64(0, 2n ** 31n - 1n, true)), 2 ** 31 - 1],
    ['U32 2³¹ − 1', eight('U32', (data) => data.setUint32(0, 2 ** 31 - 1, true), 4), 2 ** 31 - 1],
  ])('%s is one that it can', async (_, bytes, expected) => {
    expect(values((await loadSafetensors(bytes)).x!)).toEqual([expected])
  })
})

describe('what is valid though it looks odd', () => {
  test('a header without tensors, whitespace behind it, tensors in any order of the JSON', async () => {
    expect(await loadSafetensors(file('{} \n\t ', 0))).toEqual({})
    const { tensors } = await openSafetensors(
      file({ b: info('F32', [1], 4, 8), a: info('F32', [1], 0, 4), none: info('I8', [0], 4, 4) }, 8),
    )
    expect([...tensors.keys()]).toEqual(['a', 'none', 'b'])
  })

  test('names that are names of objects', async () => {
    const state: StateDict = Object.fromEntries(['__proto__', 'constructor', '', '"\\\n', '🜁'].map((name, i) => [name, tensor([i])]))
    const loaded = await loadSafetensors(await safetensorsBytes(state))
    expect(Object.keys(loaded).sort()).toEqual(Object.keys(state).sort())
    for (const [name, t] of Object.entries(state)) expect(values(loaded[name]!)).toEqual(values(t))
    expect(Object.getPrototypeOf(loaded)).toBe(Object.prototype)
  })
})

describe('the reference writer’s layout', () => {
  test('by falling alignment, then by the bytes of the name; padded to 8', async () => {
    const state = {
      z: ones([3]),
      '\uFF5E': ones([1]),
      '\u{1F701}': ones([1]),
      a: tensor([true]),
      i: tensor([1], { dtype: 'int32' }),
      d: zeros([1], { dtype: 'float64' }),
    }
    const bytes = await safetensorsBytes(state, { metadata: { a: 'b' } })
    const length = Number(new DataView(bytes.buffer).getBigUint64(0, true))
    const text = Buffer.from(bytes.subarray(8, 8 + length)).toString()
    expect([length % 8, text.startsWith('{"__metadata__":{"a":"b"},"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},')]).toEqual([
      0,
      true,
    ])
    expect(Object.keys(JSON.parse(text))).toEqual(['__metadata__', 'd', 'z', '\uFF5E', '\u{1F701}', 'i', 'a'])
  })

  test('views are written as what they show', async () => {
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ])
    const { t, row, wide } = await loadSafetensors(
      await safetensorsBytes({ t: x.T, row: x.select(0, 1), wide: x.narrow(0, 0, 1).expand([2, 3]) }),
    )
    expect([t, row, wide].map((one) => one!.toArray())).toEqual([x.T.toArray(), [4, 5, 6], [[1, 2, 3], [1, 2, 3]]]) // biome-ignore format: rows
  })

  test('refuses what the format cannot say', async () => {
    for (const [state, metadata] of [
      [{ __metadata__: ones([1]) }, {}],
      [{ '\uD800': ones([1]) }, {}],
      [{ x: 1 as unknown as Tensor }, {}],
      [{}, { a: 1 as unknown as string }],
    ] as const) {
      await expect(safetensorsBytes(state as StateDict, { metadata })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  })
})

describe('files', () => {
  let folder: string
  const path = () => join(folder, 'model.safetensors')
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'postgrad-safetensors-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  /** Longer than what is read at once, and not a multiple of it. */
  const large = () => tensor(Float64Array.from({ length: 100_001 }, (_, i) => i / 7))

  test('are written and read whole, the same bytes as in memory, and nothing is left beside them', async () => {
    const state = { large: large(), small: tensor([1, 2]) }
    await saveSafetensors(path(), { small: ones([1]) })
    await saveSafetensors(path(), state, { metadata: { step: '7' } })
    expect(await readdir(folder)).toEqual(['model.safetensors'])
    expect((await readFile(path())).equals(await safetensorsBytes(state, { metadata: { step: '7' } }))).toBe(true)
    const loaded = await loadSafetensors(path())
    for (const [name, t] of Object.entries(state)) expect(values(loaded[name]!)).toEqual(values(t))
    expect(Object.keys(await loadSafetensors(path(), { names: ['small'] }))).toEqual(['small'])
  })

  test('an open one gives single tensors, then is closed', async () => {
    await saveSafetensors(path(), { x: tensor([1]), y: large() })
    const file = await openSafetensors(path())
    expect(values(await file.tensor('x'))).toEqual([1])
    await expect(file.tensor('z')).rejects.toMatchObject({ code: 'SAFETENSORS_NOT_FOUND' })
    await truncate(path(), 1000)
    await expect(file.tensor('y')).rejects.toMatchObject({
      code: 'SAFETENSORS_INVALID',
      // The path once.
      message: expect.stringMatching(/^safetensors: '[^']+': expected byte \d+, got the end of the file: it has become shorter/),
    })
    await file.close()
    await file.close()
    await expect(file.tensor('x')).rejects.toMatchObject({ code: 'SAFETENSORS_CLOSED' })
  })

  test('a step while it is saved: SAFETENSORS_CHANGED, and the file before stays', async () => {
    await saveSafetensors(path(), { x: tensor([1]) })
    const before = await readFile(path())
    const x = large()
    const saving = saveSafetensors(path(), { x })
    x.add_(1)
    await expect(saving).rejects.toMatchObject({ code: 'SAFETENSORS_CHANGED' })
    expect([await readdir(folder), (await readFile(path())).equals(before)]).toEqual([['model.safetensors'], true])
  })

  test('what cannot be read or written: SAFETENSORS_IO with its cause', async () => {
    await expect(loadSafetensors(path())).rejects.toMatchObject({ code: 'SAFETENSORS_IO', cause: { code: 'ENOENT' } })
    await expect(loadSafetensors(folder)).rejects.toMatchObject({ code: 'SAFETENSORS_IO', cause: { code: 'EISDIR' } })
    execFileSync('mkfifo', [path()])
    await expect(loadSafetensors(path())).rejects.toMatchObject({ code: 'SAFETENSORS_IO', message: expect.stringContaining('pipe') })
    await rm(path())
    await expect(saveSafetensors(join(folder, 'none', 'x'), {})).rejects.toMatchObject({
      code: 'SAFETENSORS_IO',
      cause: { code: 'ENOENT' },
    })
    await writeFile(path(), 'text')
    await expect(saveSafetensors(join(path(), 'x'), {})).rejects.toMatchObject({ code: 'SAFETENSORS_IO', cause: { code: 'ENOTDIR' } })
    await expect(saveSafetensors(folder, {})).rejects.toMatchObject({ code: 'SAFETENSORS_IO' })
    expect(await readdir(folder)).toEqual(['model.safetensors'])
  })

  test('what is no path, or no state dict: INVALID_ARGUMENT, with what to do', async () => {
    for (const bad of [undefined, 5, new URL('https://example.org/model.safetensors')]) {
      await expect(loadSafetensors(bad as unknown as string)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      await expect(saveSafetensors(bad as unknown as string, {})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
    for (const bad of [undefined, null, new Linear(1, 1)]) {
      await expect(saveSafetensors(path(), bad as unknown as StateDict)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        remedy: expect.stringContaining('stateDict()'),
      })
    }
  })
})

/**
 * Whatever a few bytes of a file are changed to: a typed error, or tensors that hold the file's data, all of it and nothing else. That also bounds
 * what is allocated.
 */
test('fuzzed', async () => {
  const seed = Number(process.env.FUZZ_SEED ?? 20_261_120)
  const random = new Generator(seed)
  const state = {
    weight: tensor([[1.5, -2, 3]]),
    bias: tensor([1, 2], { dtype: 'int32' }),
    flags: tensor([true, false, true]),
    scale: tensor(0.25, { dtype: 'float64' }),
    none: zeros([0, 4]),
  }
  const original = await safetensorsBytes(state, { metadata: { format: 'pt', note: 'é' } })
  const headerEnd = 8 + Number(new DataView(original.buffer).getBigUint64(0, true))
  const likely = Buffer.from('0123456789[]{},:"\\ -.eFIU_')
  let [errors, loads] = [0, 0]
  for (let round = 0; round < 4000; round++) {
    let bytes = Buffer.from(original)
    for (let n = random.integer(1, random.integer(2, 5)); n > 0; n--) {
      const at = random.integer(0, random.integer(0, 4) === 0 ? bytes.length : Math.min(headerEnd, bytes.length))
      const value = random.integer(0, 2) === 0 ? random.integer(0, 256) : likely[random.integer(0, likely.length)]!
      const how = random.integer(0, 8)
      if (how === 0) bytes = bytes.subarray(0, at + 1)
      else if (how === 1) bytes = Buffer.concat([bytes.subarray(0, at), Buffer.of(value), bytes.subarray(at)])
      else if (how === 2) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1), Buffer.of(value)])
      else bytes[at] = value
    }
    try {
      const file = await openSafetensors(bytes)
      const parts: Uint8Array[] = []
      for (const name of file.tensors.keys()) {
        const t = await file.tensor(name, { convert: false })
        const data = t.dataSync()
        parts.push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
      }
      const length = Number(bytes.readBigUInt64LE(0))
      expect(Buffer.concat(parts).equals(bytes.subarray(8 + length))).toBe(true)
      loads++
    } catch (error) {
      if (!(isPostgradError(error) && error.code.startsWith('SAFETENSORS_'))) {
        throw new Error(`FUZZ_SEED=${seed}, round ${round}: ${bytes.toString('latin1')}`, { cause: error })
      }
      errors++
    }
  }
  // Both happen: a test that only ever sees one of them shows nothing.
  expect([errors > 1000, loads > 20]).toEqual([true, true])
  console.log(`safetensors fuzzed with seed ${seed}: ${errors} refused, ${loads} loaded`)
})

test('bytes that have gone to another thread are refused, with what to do', async () => {
  const gone = await safetensorsBytes({ x: ones([2]) })
  structuredClone(gone.buffer, { transfer: [gone.buffer as ArrayBuffer] })
  await expect(loadSafetensors(gone)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('Pass a copy') })
})

test('what is wrong with a file names the file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postgrad-safetensors-'))
  const path = join(folder, 'weights.safetensors')
  try {
    await writeFile(path, new Uint8Array(7))
    const named = (code: string) => ({ code, values: { path }, message: expect.stringContaining(`safetensors: '${path}': expected`) })
    await expect(loadSafetensors(path)).rejects.toMatchObject(named('SAFETENSORS_INVALID'))
    await writeFile(path, one('F8_E4M3', [1], 1))
    await expect(loadSafetensors(path)).rejects.toMatchObject(named('SAFETENSORS_UNSUPPORTED'))
    await using file = await openSafetensors(path)
    await expect(file.tensor('y')).rejects.toMatchObject(named('SAFETENSORS_NOT_FOUND'))
    await expect(loadSafetensors(new Uint8Array(7))).rejects.toMatchObject({ message: expect.stringMatching(/^safetensors: expected/) })
  } finally {
    await rm(folder, { recursive: true })
  }
})
