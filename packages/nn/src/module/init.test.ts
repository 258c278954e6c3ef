/** Initial values: the moments and bounds of their distributions, and errors. */
import { describe, expect, test } from '@jest/globals'
import { Generator, ones, type Tensor, zeros } from '@postgrad/tensor'
import { Conv1d, Conv2d, ConvTranspose2d, Embedding, GRU, init, Linear, type Module, RNN } from '../index.js'

const SEED = 20261120
console.log(`initial values drawn with seed ${SEED}`)
const drawn = () => ({ generator: new Generator(SEED) })
const values = (t: Tensor) => Array.from(t.dataSync()) as number[]
const code = (expected: string) => expect.objectContaining({ code: expected })

function moments(list: readonly number[]): { mean: number; std: number; largest: number } {
  const mean = list.reduce((sum, v) => sum + v, 0) / list.length
  const std = Math.sqrt(list.reduce((sum, v) => sum + (v - mean) ** 2, 0) / list.length)
  return { mean, std, largest: Math.max(...list.map(Math.abs)) }
}

/** Uniform in ±bound: its mean and deviation within five standard errors, its largest value near the bound. */
function expectUniform(list: readonly number[], bound: number): void {
  const { mean, std, largest } = moments(list)
  const error = 5 / Math.sqrt(list.length)
  expect(Math.abs(mean) / bound).toBeLessThan(error)
  expect(Math.abs(std / (bound / Math.sqrt(3)) - 1)).toBeLessThan(error)
  expect(largest).toBeLessThanOrEqual(bound)
  expect(largest).toBeGreaterThan(bound * (1 - 20 / list.length))
}

function expectNormal(list: readonly number[], center: number, deviation: number): void {
  const { mean, std } = moments(list)
  const error = 5 / Math.sqrt(list.length)
  expect(Math.abs(mean - center) / deviation).toBeLessThan(error)
  expect(Math.abs(std / deviation - 1)).toBeLessThan(error)
  // A normal number lies within one deviation with probability 0.6827.
  const within = list.filter((v) => Math.abs(v - center) < deviation).length / list.length
  expect(Math.abs(within - 0.6827)).toBeLessThan(error)
}

describe('in place', () => {
  test('uniform_, normal_, constant_, ones_, zeros_, eye_, on a leaf that requires grad and on a view', () => {
    expectUniform(values(init.uniform_(zeros([50, 80], { requiresGrad: true }), -2, 2, drawn())), 2)
    expectNormal(values(init.normal_(zeros([4000]), 3, 0.5, drawn())), 3, 0.5)
    const matrix = ones([2, 3], { requiresGrad: true })
    expect(values(init.constant_(matrix, 7))).toEqual([7, 7, 7, 7, 7, 7])
    expect(init.eye_(matrix)).toBe(matrix)
    expect(values(matrix)).toEqual([1, 0, 0, 0, 1, 0])
    expect([matrix.isLeaf, matrix.requiresGrad]).toEqual([true, true])
    const whole = zeros([3])
    init.ones_(whole.narrow(0, 1, 1))
    expect(values(whole)).toEqual([0, 1, 0])
    expect(values(init.zeros_(whole))).toEqual([0, 0, 0])
  })

  // A weight of 32 outputs and 16 · 3 inputs.
  const weight = () => zeros([32, 16, 3])
  test('by fans', () => {
    expectUniform(values(init.xavierUniform_(weight(), 2, drawn())), 2 * Math.sqrt(6 / (48 + 96)))
    expectNormal(values(init.xavierNormal_(weight(), 1, drawn())), 0, Math.sqrt(2 / (48 + 96)))
    expectUniform(values(init.kaimingUniform_(weight(), { nonlinearity: 'relu', ...drawn() })), Math.sqrt(6 / 48))
    expectUniform(values(init.kaimingUniform_(weight(), { a: Math.sqrt(5), ...drawn() })), 1 / Math.sqrt(48))
    expectNormal(values(init.kaimingNormal_(weight(), { mode: 'fanOut', nonlinearity: 'tanh', ...drawn() })), 0, 5 / 3 / Math.sqrt(96))
  })

  test.each([
    ['wide', 0, 1, -2, 2],
    ['one side', 1, 2, 0, 10],
    ['narrow', 0, 1, 0.1, 0.3],
    ['a tail', 0, 1, 4, 9],
    ['a tail below', 0, 1, -9, -4],
  ] as const)('truncNormal_, %s: mean as by integration, nothing outside', (_, mean, std, low, high) => {
    const list = values(init.truncNormal_(zeros([4000], { dtype: 'float64' }), mean, std, low, high, drawn()))
    expect(Math.min(...list)).toBeGreaterThanOrEqual(low)
    expect(Math.max(...list)).toBeLessThanOrEqual(high)
    let [mass, first, second] = [0, 0, 0]
    for (let k = 0; k < 100_000; k++) {
      const x = low + ((high - low) * (k + 0.5)) / 100_000
      const density = Math.exp(-(((x - mean) / std) ** 2) / 2)
      mass += density
      first += density * x
      second += density * x * x
    }
    const expected = { mean: first / mass, std: Math.sqrt(second / mass - (first / mass) ** 2) }
    const got = moments(list)
    expect(Math.abs(got.mean - expected.mean) / expected.std).toBeLessThan(5 / Math.sqrt(4000))
    expect(Math.abs(got.std / expected.std - 1)).toBeLessThan(0.1)
  })

  test.each([
    [[6, 4], 4],
    [[4, 6], 4],
    [[5, 3, 2], 5],
  ] as const)('orthogonal_ of %j', (shape, count) => {
    const x = init.orthogonal_(zeros(shape, { dtype: 'float64' }), 2, drawn()).reshape([shape[0], -1])
    const product = x.shape[0]! <= x.shape[1]! ? x.matmul(x.T) : x.T.matmul(x)
    const rows = product.toArray() as number[][]
    expect(rows.length).toBe(count)
    for (const [i, row] of rows.entries()) for (const [j, v] of row.entries()) expect(v).toBeCloseTo(i === j ? 4 : 0, 12)
  })

  test('gains', () => {
    expect(init.calculateGain('linear')).toBe(1)
    expect(init.calculateGain('relu')).toBeCloseTo(Math.SQRT2)
    expect(init.calculateGain('leakyRelu', 1)).toBeCloseTo(1)
    expect(init.calculateGain('tanh')).toBeCloseTo(5 / 3)
  })

  test.each([
    ['SHAPE_MISMATCH', () => init.xavierUniform_(zeros([3]))],
    ['SHAPE_MISMATCH', () => init.orthogonal_(zeros([3]))],
    ['SHAPE_MISMATCH', () => init.eye_(zeros([3]))],
    ['INVALID_ARGUMENT', () => init.uniform_(zeros([3], { dtype: 'int32' }))],
    ['INVALID_ARGUMENT', () => init.kaimingNormal_(zeros([3, 3]), { mode: 'fan_in' as 'fanIn' })],
    ['INVALID_ARGUMENT', () => init.calculateGain('swish' as 'relu')],
    ['INVALID_ARGUMENT', () => init.calculateGain('leakyRelu', 'x' as unknown as number)],
    ['INVALID_ARGUMENT', () => init.truncNormal_(zeros([1]), 0, 1, 2, 1)],
    // torch.nn.init.normal_(x, 0, -1), uniform_(x, 1, 0): PyTorch raises
    ['INVALID_ARGUMENT', () => init.normal_(zeros([1]), 0, -1)],
    ['INVALID_ARGUMENT', () => init.uniform_(zeros([1]), 1, 0)],
  ])('%s', (expected, fn) => {
    expect(fn).toThrow(code(expected))
  })
})

describe('the defaults of modules', () => {
  test.each([
    ['Linear', () => new Linear(16, 64), 1 / 4],
    ['Conv1d', () => new Conv1d(8, 64, 5, { groups: 2 }), 1 / Math.sqrt(4 * 5)],
    ['Conv2d', () => new Conv2d(4, 64, [3, 2]), 1 / Math.sqrt(4 * 6)],
    ['ConvTranspose2d', () => new ConvTranspose2d(32, 8, 3), 1 / Math.sqrt(8 * 9)],
    ['RNN', () => new RNN(25, 25), 1 / 5],
    ['GRU', () => new GRU(9, 16), 1 / 4],
  ] as readonly (readonly [string, () => Module, number])[])('%s: uniform', (_, make, bound) => {
    expectUniform(make().parameters().flatMap(values), bound)
  })

  test('Embedding: normal, its padding 0', () => {
    const { weight } = new Embedding(200, 20, { paddingIdx: 3 })
    expect(values(weight.select(0, 3)).every((v) => v === 0)).toBe(true)
    expectNormal(values(weight.narrow(0, 4, 196)), 0, 1)
  })
})
