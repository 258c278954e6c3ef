/**
 * Draws from distributions that tensors describe: bernoulli, multinomial, normal, and permutations. Public. rand and randn, which need no tensor,
 * are in `create.ts`. Results have no history: a draw is not differentiable. Arguments are read synchronously.
 */

import { CPU, hasDevices } from '../heap/memory.js'
import { rawOperations as ops } from '../raw/operations.js'
import { onOneDevice } from '../tensor/arguments.js'
import { checkOptions, checkTensor } from '../tensor/check-argument.js'
import type { RandomOptions } from '../tensor/create.js'
import { generatorOf, homeOf, randn } from '../tensor/create.js'
import { drawPermutation, drawReals } from '../tensor/draw.js'
import { Tensor } from '../tensor/tensor.js'
import { allocate, INT32_SPAN, isDType, isFloating, type TypedArray } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { Generator } from '../values/generator.js'
import { broadcastShapes, type Shape } from '../values/shape.js'

/** Options of `bernoulli`, `normal` and `randperm`. */
export interface SampleOptions {
  /** The source of the random numbers. Default: the generator of the scope, else that of the thread. */
  readonly generator?: Generator
}

/** Options of `multinomial`. */
export interface MultinomialOptions extends SampleOptions {
  /** Whether an index may be drawn more than once; default false. */
  readonly replacement?: boolean
}

/**
 * 1 with the probability at each place of p, else 0, in the dtype of p. PyTorch: `torch.bernoulli`.
 * @throws DTYPE_MISMATCH if p is int32 or bool; INVALID_ARGUMENT if a probability is not from 0 to 1
 * @example bernoulli(tensor([0, 1, 1])) // [0, 1, 1]
 */
export function bernoulli(p: Tensor, options?: SampleOptions): Tensor {
  checkTensor('bernoulli', 'probabilities', p)
  if (!isFloating(p.dtype)) throw dtypeMismatch('bernoulli', 'probabilities in float32 or float64', p.dtype, "Convert with to('float32').")
  if (options !== undefined) checkOptions('bernoulli', options, ['generator'])
  const generator = generatorOf('bernoulli', options)
  const array = p.dataSync()
  for (let i = 0; i < array.length; i++) {
    if (!(array[i]! >= 0 && array[i]! <= 1)) throw invalidArgument('bernoulli', 'probabilities from 0 to 1', array[i]!)
  }
  const drawn = uniforms(array.length, generator)
  for (let i = 0; i < array.length; i++) array[i] = Number(drawn[i]! < array[i]!)
  return Tensor.over(p.dtype, p.shape, array, p.storage.memory)
}

/** Multiples of 2⁻⁵³ in [0, 1). */
function uniforms(n: number, generator: Generator): Float64Array {
  const out = Tensor.uninitialized('float64', [n], CPU)
  drawReals(out, 'uniform', generator)
  return out.storage.host as Float64Array
}

/**
 * Indices (int32), drawn by weight: weights [n] → [count], weights [rows, n] → [rows, count]. The weights need not add up to 1. PyTorch: `torch.multinomial`.
 * @throws INVALID_ARGUMENT if weights are negative, not finite or all 0, or if without `replacement` fewer than `count` weights are above 0; SHAPE_MISMATCH if
 * `weights` has other dimensions
 * @example multinomial(tensor([0, 3, 0]), 2, { replacement: true }) // [1, 1]
 */
export function multinomial(weights: Tensor, count: number, options?: MultinomialOptions): Tensor {
  checkTensor('multinomial', 'weights', weights)
  if (!isFloating(weights.dtype))
    throw dtypeMismatch('multinomial', 'weights in float32 or float64', weights.dtype, "Convert with to('float32').")
  if (weights.ndim !== 1 && weights.ndim !== 2) {
    throw shapeMismatch('multinomial', 'weights [n] or [rows, n]', shapeText(weights.shape), 'Reshape the weights.')
  }
  if (!Number.isInteger(count) || count < 1) throw invalidArgument('multinomial', 'a count ≥ 1', count)
  const n = weights.shape.at(-1)!
  const rows = weights.ndim === 1 ? 1 : weights.shape[0]!
  if (options !== undefined) checkOptions('multinomial', options, ['replacement', 'generator'])
  const generator = generatorOf('multinomial', options)
  const values = weights.dataSync()
  const out = new Int32Array(rows * count)
  for (let r = 0; r < rows; r++) {
    const row = values.subarray(r * n, (r + 1) * n)
    checkWeights(row, count, options?.replacement === true)
    out.set(options?.replacement ? drawAgain(row, count, generator) : drawOnce(row, count, generator), r * count)
  }
  return Tensor.over('int32', weights.ndim === 1 ? [count] : [rows, count], out, weights.storage.memory)
}

function checkWeights(row: TypedArray, count: number, replacement: boolean): void {
  let above = 0
  for (let i = 0; i < row.length; i++) {
    const w = row[i]!
    if (!(w >= 0 && w < Number.POSITIVE_INFINITY)) throw invalidArgument('multinomial', 'finite weights ≥ 0', w)
    if (w > 0) above++
  }
  if (above < (replacement ? 1 : count)) {
    throw invalidArgument(
      'multinomial',
      replacement ? 'a weight above 0' : `at least ${count} weights above 0, since nothing is drawn twice`,
      `${above}`,
      'Draw fewer, or pass { replacement: true }.',
    )
  }
}

function drawAgain(row: TypedArray, count: number, generator: Generator): Float64Array {
  let total = 0
  const sums = new Float64Array(row.length)
  for (let i = 0; i < row.length; i++) {
    total += row[i]!
    sums[i] = total
  }
  // Each drawn number becomes its index.
  const drawn = uniforms(count, generator)
  for (let k = 0; k < count; k++) {
    const at = drawn[k]! * total
    // The first sum above it; a weight of 0 has no room before its sum.
    let low = 0
    let high = sums.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (sums[middle]! > at) high = middle
      else low = middle + 1
    }
    drawn[k] = low
  }
  return drawn
}

/** By exponential clocks: who rings first, at a rate that is the weight, is drawn first. */
function drawOnce(row: TypedArray, count: number, generator: Generator): number[] {
  const times = uniforms(row.length, generator)
  const places: number[] = []
  for (let i = 0; i < row.length; i++) {
    times[i] = -Math.log(1 - times[i]!) / row[i]!
    if (row[i]! > 0) places.push(i)
  }
  return places.sort((a, b) => times[a]! - times[b]!).slice(0, count)
}

/**
 * Normal random numbers with the given means and standard deviations, which broadcast. If both are numbers, `shape` is required. PyTorch: `torch.normal`.
 * @throws INVALID_ARGUMENT if a deviation is negative, or both are numbers and `shape` is missing; SHAPE_MISMATCH if the shapes do not broadcast
 * @example normal(tensor([0, 100]), 1) // shape [2]
 */
export function normal(mean: Tensor | number, std: Tensor | number, shape?: Shape, options?: RandomOptions): Tensor {
  if (options !== undefined) checkOptions('normal', options, ['dtype', 'device', 'requiresGrad', 'generator'])
  if (typeof std === 'number' && !(std >= 0)) throw invalidArgument('normal', 'a standard deviation ≥ 0', std)
  if (typeof mean !== 'number') checkTensor('normal', 'the mean, or a number', mean)
  if (typeof std !== 'number') {
    checkTensor('normal', 'the standard deviation, or a number', std)
    const wrong = std.dataSync().find((s) => !(s >= 0))
    if (wrong !== undefined) throw invalidArgument('normal', 'standard deviations ≥ 0', wrong, 'Apply exp() or softplus() first.')
  }
  const shapes = [mean, std].flatMap((x) => (typeof x === 'number' ? [] : [x.shape]))
  if (shapes.length === 0 && shape === undefined) throw invalidArgument('normal', 'a shape with two numbers', 'none', 'Pass the shape.')
  const whole = [...shapes, ...(shape === undefined ? [] : [shape])].reduce((a, b) => broadcastShapes('normal', a, b))
  const wide = [mean, std].some((x) => typeof x !== 'number' && x.dtype === 'float64')
  const like = [mean, std].find((x) => typeof x !== 'number')
  const noise = randn(whole, {
    dtype: wide ? 'float64' : 'float32',
    ...(like === undefined ? {} : { device: like.device }),
    ...options,
    requiresGrad: false,
  })
  if (hasDevices) onOneDevice({ name: 'normal' }, [noise, std, mean])
  const drawn = ops.add(ops.mul(noise, std), mean)
  return options?.requiresGrad ? drawn.requiresGrad_(true) : drawn
}

/**
 * The numbers 0 … n−1 in random order; int32 unless `dtype` is another. PyTorch: `torch.randperm`.
 * @throws INVALID_ARGUMENT if n is not a count from 0 to 2³¹
 * @example randperm(5).sort().values // [0, 1, 2, 3, 4]
 */
export function randperm(n: number, options?: RandomOptions): Tensor {
  if (!Number.isInteger(n) || n < 0 || n > INT32_SPAN) throw invalidArgument('randperm', 'a count from 0 to 2^31', n)
  if (options !== undefined) checkOptions('randperm', options, ['dtype', 'device', 'requiresGrad', 'generator'])
  const dtype = options?.dtype ?? 'int32'
  if (!isDType(dtype) || dtype === 'bool') throw dtypeMismatch('randperm', 'int32, float32 or float64', String(dtype), 'Pass one of these.')
  const generator = generatorOf('randperm', options)
  const array = allocate(dtype, n)
  drawPermutation(array, generator)
  const out = Tensor.over(dtype, [n], array, homeOf('randperm', options))
  return options?.requiresGrad ? out.requiresGrad_(true) : out
}
