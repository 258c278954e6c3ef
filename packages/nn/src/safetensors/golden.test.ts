/** Weights between PyTorch and here, both ways; files by `scripts/golden/weights.py` and `weights.mjs`. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { loadSafetensors, openSafetensors, safetensorsBytes } from '../index.js'
import { goldenFile, goldenJson, Model, writtenHere } from './model.suite.js'

const golden = goldenJson('weights.json') as {
  readonly indices: number[][]
  readonly output: readonly number[]
  readonly dtypes: Readonly<Record<string, { readonly shape: readonly number[]; readonly values: readonly (number | string | boolean)[] }>>
}

const DTYPES: Readonly<Record<string, string>> = {
  half: 'float32',
  brain: 'float32',
  single: 'float32',
  double: 'float64',
  long: 'int32',
  int: 'int32',
  short: 'int32',
  char: 'int32',
  byte: 'int32',
  flags: 'bool',
  scalar: 'float32',
  nothing: 'float32',
  'naïve, 名': 'float32',
}

function numberOf(value: number | string | boolean): number {
  if (typeof value !== 'string') return Number(value)
  return value === 'nan' ? Number.NaN : value === 'inf' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
}

describe('from PyTorch', () => {
  test('a state dict loads into the module of the same structure, which gives the same output', async () => {
    const model = new Model()
    model.loadStateDict(await loadSafetensors(goldenFile('torch.safetensors')))
    const output = model.outputFor(golden.indices)
    expect(output.length).toBe(golden.output.length)
    for (const [i, value] of output.entries()) expect(Math.abs(value - golden.output[i]!)).toBeLessThan(1e-6)
  })

  test.each(Object.keys(DTYPES))('%s: every value of it', async (name) => {
    const file = await openSafetensors(goldenFile('torch-dtypes.safetensors'))
    const x = await file.tensor(name)
    await file.close()
    const { shape, values } = golden.dtypes[name]!
    expect([x.dtype, x.shape]).toEqual([DTYPES[name], shape])
    // toEqual tells −0 from 0, and takes NaN for equal.
    expect(Array.from(x.dataSync())).toEqual(values.map(numberOf))
  })

  test('a file that is loaded and saved is the same file', async () => {
    const url = goldenFile('torch.safetensors')
    const { metadata } = await openSafetensors(readFileSync(url))
    const again = await safetensorsBytes(await loadSafetensors(url), { metadata })
    expect(Buffer.from(again).equals(readFileSync(url))).toBe(true)
  })

  test('dtypes that would be converted are refused when that is asked for', async () => {
    const file = await openSafetensors(goldenFile('torch-dtypes.safetensors'))
    for (const name of Object.keys(DTYPES)) {
      const native = ['single', 'double', 'int', 'flags', 'scalar', 'nothing', 'naïve, 名'].includes(name)
      const reading = file.tensor(name, { convert: false })
      await (native ? reading : expect(reading).rejects.toMatchObject({ code: 'SAFETENSORS_UNSUPPORTED' }))
    }
    await file.close()
  })
})

test('to PyTorch: the file that PyTorch has read is what is written here, to the byte, and the output what PyTorch has got', async () => {
  const { bytes, expected } = await writtenHere()
  expect(Buffer.from(bytes).equals(readFileSync(goldenFile('postgrad.safetensors')))).toBe(true)
  const { output, ...rest } = goldenJson('weights-here.json') as typeof expected
  expect({ ...expected, output: null }).toEqual({ ...rest, output: null })
  for (const [i, value] of expected.output.entries()) expect(Math.abs(value - output[i]!)).toBeLessThan(1e-6)
})
