/** Weights between PyTorch and here, both ways; files by `scripts/golden/weights.py` and `weights.mjs`. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import {
  fromTorchOptimizerState,
  loadSafetensors,
  type OptimizerState,
  openSafetensors,
  safetensorsBytes,
  type TorchOptimizerState,
  toTorchOptimizerState,
} from '../index.js'
import { checkClose } from '../optim/small-net.suite.js'
import { goldenFile, goldenJson, Model, trainingOf, writtenHere } from './model.suite.js'

const golden = goldenJson('weights.json') as {
  readonly indices: number[][]
  readonly output: readonly number[]
  readonly middle: readonly number[]
  readonly end: readonly number[]
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
    // toEqual separates −0 from 0, and NaN equals NaN.
    expect(Array.from(x.dataSync())).toEqual(values.map(numberOf))
  })

  test('every half is the number that its bits say', async () => {
    const header = Buffer.from('{"x":{"dtype":"F16","shape":[65536],"data_offsets":[0,131072]}}')
    const bytes = Buffer.alloc(8 + header.length + 131072)
    bytes.writeBigUInt64LE(BigInt(header.length))
    header.copy(bytes, 8)
    for (let half = 0; half < 65536; half++) bytes.writeUInt16LE(half, 8 + header.length + 2 * half)
    const { x } = await loadSafetensors(bytes)
    for (const [half, value] of x!.dataSync().entries()) {
      const [exponent, fraction] = [(half >> 10) & 31, half & 1023]
      const size = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25)
      const unsigned = exponent < 31 ? size : fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN
      const expected = half >> 15 === 0 ? unsigned : -unsigned
      if (!Object.is(value, expected)) throw new Error(`0x${half.toString(16)}: expected ${expected}, got ${value}`)
    }
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
  const { output, indices, metadata } = goldenJson('weights-here.json') as typeof expected
  expect([expected.indices, expected.metadata]).toEqual([indices, metadata])
  for (const [i, value] of expected.output.entries()) expect(Math.abs(value - output[i]!)).toBeLessThan(1e-6)
})

describe('the state of an optimizer', () => {
  const load = async (name: string): Promise<TorchOptimizerState> => {
    const { metadata } = await openSafetensors(readFileSync(goldenFile(name)))
    return { tensors: await loadSafetensors(goldenFile(name)), metadata }
  }

  test('from PyTorch: the training goes on as there', async () => {
    const training = trainingOf(golden.middle)
    training.optimizer.loadStateDict(fromTorchOptimizerState(await load('torch-adam.safetensors')))
    checkClose(training.stepped(5), golden.end, 1e-12, 'parameters')
  })

  test('to PyTorch: the file with which PyTorch has gone on is what is written here, in names and values', async () => {
    const { adam, expected } = await writtenHere()
    const here = goldenJson('weights-here.json') as typeof expected
    checkClose(expected.middle, here.middle, 1e-12, 'parameters in the middle')
    checkClose(expected.end, here.end, 1e-12, 'parameters at the end')
    const [now, then] = [await loadSafetensors(adam), await load('postgrad-adam.safetensors')]
    expect(Object.keys(now)).toEqual(Object.keys(then.tensors))
    for (const [name, t] of Object.entries(now)) checkClose([...t.dataSync()], [...then.tensors[name]!.dataSync()], 1e-12, name)
    expect((await openSafetensors(adam)).metadata).toEqual(then.metadata)
  })

  test('there and back, with all that it has', () => {
    const training = trainingOf(golden.middle)
    training.step()
    const { optimizer } = training
    const made = optimizer.stateDict() as OptimizerState<object>
    expect(fromTorchOptimizerState(toTorchOptimizerState(made))).toEqual(made)
  })

  test.each<[string, object, Record<string, string>]>([
    ['a name that is none', { 'model.weight': null }, { param_groups: '[]' }],
    ['no groups', {}, {}],
    ['groups that are no JSON', {}, { param_groups: '[' }],
    ['groups without parameters', {}, { param_groups: '[{"lr":1}]' }],
  ])('INVALID_ARGUMENT for %s', (_, tensors, metadata) => {
    const read = () => fromTorchOptimizerState({ tensors, metadata } as unknown as TorchOptimizerState)
    expect(read).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', op: 'fromTorchOptimizerState' }))
  })
})
