/** The lines of a state file: values come back as they were, however large, or are refused. */
import { describe, expect, test } from '@jest/globals'
import { currentGenerator, isTensor, type Tensor, tensor } from '@postgrad/tensor'
import { entryLines, headLine, type NamedTensors, readState } from './state-lines.js'

/** Writes and reads a value; the file comes in pieces of `piece` bytes. */
async function throughFile(value: unknown, piece = 1 << 20): Promise<{ read: unknown; tensors: NamedTensors; lines: number }> {
  const tensors: NamedTensors = new Map()
  const head = headLine({ worker: 'worker0', generator: currentGenerator().state() })
  const lines = entryLines('part', 'value', value, tensors)
  const bytes = Buffer.concat([head, ...entryLines('skipped', 'module', [1, { a: 2 }], new Map()), ...lines])
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
  }
  const { entries } = await readState('file', pieces(), (kind) => kind === 'value')
  expect(entries.map(({ key }) => key)).toEqual(['skipped', 'part'])
  expect(entries[0]!.tree).toBeNull()
  const read = await entries[1]!.tree!.fill({ tensor: async (name) => tensors.get(name)! })
  return { read, tensors, lines: lines.length }
}

describe('CP-9 what is no tensor', () => {
  test('CP-9 comes back as it was, in pieces of any size', async () => {
    const value = {
      list: [1, [2.5, -0, Number.NaN, Number.POSITIVE_INFINITY, -1e-320], []],
      text: 'naïve \n" ☃ 𝒳',
      half: '\ud835',
      none: null,
      big: -(2n ** 70n),
      not: undefined,
      marks: [['list'], ['end'], ['part', 'x'], { '@': true, end: 'end' }],
      empty: {},
      ['__proto__']: { constructor: 1 },
    }
    for (const piece of [1, 7, 64, 1 << 20]) expect((await throughFile(value, piece)).read).toEqual(value)
    for (const value of [0, 'x', null, undefined, false, [], {}, 3n]) expect((await throughFile(value)).read).toEqual(value)
    const { read } = await throughFile({ ['__proto__']: 5 })
    expect(Object.hasOwn(read as object, '__proto__')).toBe(true)
  })

  test('CP-9 random values come back', async () => {
    for (let seed = 1; seed <= 200; seed++) {
      let state = seed
      const random = (n: number): number => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0
        return (state >>> 8) % n
      }
      const make = (depth: number): unknown => {
        const kind = random(depth > 0 ? 8 : 6)
        if (kind === 6) return Array.from({ length: random(5) }, () => make(depth - 1))
        if (kind === 7) return Object.fromEntries(Array.from({ length: random(5) }, (_, i) => [`k${i}${random(3)}`, make(depth - 1)]))
        return [random(1000) / 7, `text ${random(100)}`, random(2) === 1, null, BigInt(random(1000)), undefined][kind]
      }
      const value = make(5)
      const { read } = await throughFile(value, 1 + random(300)).catch((error: unknown) => {
        throw new Error(`seed ${seed}`, { cause: error })
      })
      expect({ seed, read }).toEqual({ seed, read: value })
    }
  })

  test('CP-9 a long text and a long list are several lines', async () => {
    const text = 'x𝒳'.repeat(1_200_000)
    const value = { [text]: text, list: Array.from({ length: 200_000 }, (_, i) => i / 3) }
    const { read, lines } = await throughFile(value)
    expect(read).toEqual(value)
    expect(lines).toBeGreaterThan(8)
  })

  test('CP-9 what is nested too deeply is refused when it is saved', async () => {
    let deep: unknown = 1
    for (let i = 0; i < 200_000; i++) deep = [deep]
    await expect(throughFile(deep)).rejects.toMatchObject({ code: 'CHECKPOINT_UNSUPPORTED', values: { path: 'part' } })
  })

  test('CP-10 two tensors whose paths read the same both come back', async () => {
    const value = { 'a.b': tensor([1]), a: { b: tensor([2, 2]) }, 'a.b~2': tensor([3]) }
    const { read, tensors } = await throughFile(value)
    const arrays = (each: unknown): unknown => (isTensor(each) ? (each as Tensor).toArray() : each)
    const { 'a.b': first, a, 'a.b~2': third } = read as typeof value
    expect([first, a.b, third].map(arrays)).toEqual([[1], [2, 2], [3]])
    expect(new Set(tensors.keys()).size).toBe(3)
  })

  test.each([
    ['cut off', (bytes: Buffer) => bytes.subarray(0, bytes.lastIndexOf(0x5b))],
    ['an end too many', (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('[["end"]]\n')])],
    ['no JSON', (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('{"key\n')])],
    ['an unknown mark', (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('[["date","1"]]\n')])],
    ['empty', () => Buffer.alloc(0)],
  ])('CP-9 a damaged file: %s', async (_, damage) => {
    const head = headLine({ worker: 'worker0', generator: currentGenerator().state() })
    const bytes = damage(Buffer.concat([head, ...entryLines('part', 'value', [1, 2], new Map())]))
    async function* pieces() {
      yield bytes
    }
    await expect(readState('file', pieces(), () => true)).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT', values: { path: 'file' } })
  })
})
