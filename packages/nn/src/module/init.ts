/**
 * Initial values of parameters: functions that fill a tensor in place, unrecorded even for a leaf that requires grad, and return it. Random ones
 * draw from the given generator or the scope's. PyTorch: `torch.nn.init`; exported as `init`.
 */
import { currentGenerator, type Generator, rand, randn, Tensor } from '@postgrad/tensor'
import { allocate, argumentText, checkTensor, invalidArgument, isFloating, raw, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkOneOf } from './check.js'

/** Options of every function that draws random numbers. */
export interface InitOptions {
  /** The source of the random numbers. Default: the generator of the scope, else that of the thread. */
  readonly generator?: Generator
}

/** The function after a layer, for `calculateGain`. */
export type Nonlinearity = 'linear' | 'conv1d' | 'conv2d' | 'sigmoid' | 'tanh' | 'relu' | 'leakyRelu' | 'selu'
const NONLINEARITIES = ['linear', 'conv1d', 'conv2d', 'sigmoid', 'tanh', 'relu', 'leakyRelu', 'selu'] as const

/** Options of `kaimingUniform_` and `kaimingNormal_`. */
export interface KaimingOptions extends InitOptions {
  /** The negative slope of a leakyRelu after the layer; default 0. */
  readonly a?: number
  /** The quantity whose variance stays the same from layer to layer: 'fanIn' (default) the activations in forward, 'fanOut' the gradients in backward. */
  readonly mode?: 'fanIn' | 'fanOut'
  /** The function after the layer; default 'leakyRelu'. */
  readonly nonlinearity?: Nonlinearity
}

/**
 * Fills x with uniform numbers from [low, high), by default [0, 1), and returns it. PyTorch: `torch.nn.init.uniform_`.
 * @throws INVALID_ARGUMENT if low is above high, or x is int32 or bool
 * @example init.uniform_(zeros([2, 3]), -0.1, 0.1) // shape [2, 3]: each element is at least −0.1 and below 0.1
 */
export function uniform_(x: Tensor, low = 0, high = 1, options: InitOptions = {}): Tensor {
  if (!(low <= high)) throw invalidArgument('uniform_', 'low ≤ high', `${low} and ${high}`, 'Swap them.')
  return raw.copy_(x, raw.add(raw.mul(rand(...drawn('uniform_', x, options)), high - low), low))
}

/**
 * Fills x with normal numbers of this mean (default 0) and standard deviation (default 1), and returns it. PyTorch: `torch.nn.init.normal_`.
 * @throws INVALID_ARGUMENT if std is negative, or x is int32 or bool
 * @example init.normal_(zeros([2, 3]), 0, 0.02) // shape [2, 3]: the standard deviation is about 0.02
 */
export function normal_(x: Tensor, mean = 0, std = 1, options: InitOptions = {}): Tensor {
  if (!(std >= 0)) throw invalidArgument('normal_', 'a std ≥ 0', std, 'Pass its absolute value.')
  return raw.copy_(x, raw.add(raw.mul(randn(...drawn('normal_', x, options)), std), mean))
}

/**
 * Fills x with normal numbers that are drawn again until they are in [low, high], by default [−2, 2], and returns it. PyTorch: `torch.nn.init.trunc_normal_`.
 * @throws INVALID_ARGUMENT if low is not below high, std is not positive, or x is int32 or bool
 * @example init.truncNormal_(zeros([2, 3]), 0, 1, -2, 2) // shape [2, 3]: each element is from −2 to 2
 */
export function truncNormal_(x: Tensor, mean = 0, std = 1, low = -2, high = 2, options: InitOptions = {}): Tensor {
  if (!(std > 0)) throw invalidArgument('truncNormal_', 'a std > 0', std, 'Use constant_() for a single value.')
  if (!(low < high)) throw invalidArgument('truncNormal_', 'low < high', `${low} and ${high}`)
  const draw = truncated((low - mean) / std, (high - mean) / std, options.generator ?? currentGenerator())
  const [, { dtype }] = drawn('truncNormal_', x, options)
  const array = allocate(dtype, x.numel)
  for (let i = 0; i < array.length; i++) array[i] = Math.min(Math.max(mean + std * draw(), low), high)
  return raw.copy_(x, Tensor.over(dtype, x.shape, array))
}

/**
 * Fills x with one number, and returns it. PyTorch: `torch.nn.init.constant_`. @throws INVALID_ARGUMENT if `value` is not a number that x can hold
 * @example init.constant_(zeros([3]), 0.5) // [0.5, 0.5, 0.5]
 */
export function constant_(x: Tensor, value: number): Tensor {
  return filled('constant_', x, value)
}

/**
 * Fills x with ones, and returns it. PyTorch: `torch.nn.init.ones_`.
 * @example init.ones_(zeros([2, 2])) // [[1, 1], [1, 1]]
 */
export function ones_(x: Tensor): Tensor {
  return filled('ones_', x, 1)
}

/**
 * Fills x with zeros, and returns it. PyTorch: `torch.nn.init.zeros_`.
 * @example
 * new Sequential(new Linear(2, 3)).apply((m) => {
 *   if (m instanceof Linear && m.bias !== null) init.zeros_(m.bias)
 * })
 */
export function zeros_(x: Tensor): Tensor {
  return filled('zeros_', x, 0)
}

/**
 * Fills x [n, m] with ones on the diagonal and zeros elsewhere, and returns it. PyTorch: `torch.nn.init.eye_`. @throws SHAPE_MISMATCH if x is not a matrix
 * @example init.eye_(zeros([2, 3])) // [[1, 0, 0], [0, 1, 0]]
 */
export function eye_(x: Tensor): Tensor {
  if (x.ndim !== 2) throw shapeMismatch('eye_', 'a matrix', shapeText(x.shape), 'Only a matrix can be the identity.')
  raw.fill_(x, 0)
  raw.fill_(raw.diagonal(x), 1)
  return x
}

/**
 * Fills x with uniform numbers of the variance gain² · 2 / (fan in + fan out), Glorot's scheme, and returns it. PyTorch: `torch.nn.init.xavier_uniform_`.
 * @throws SHAPE_MISMATCH if x has fewer than two dimensions; INVALID_ARGUMENT if x is int32 or bool
 * @example init.xavierUniform_(new Linear(4, 2).weight).shape // [2, 4]
 */
export function xavierUniform_(x: Tensor, gain = 1, options: InitOptions = {}): Tensor {
  const { fanIn, fanOut } = fans('xavierUniform_', x)
  const bound = gain * Math.sqrt(6 / (fanIn + fanOut))
  return uniform_(x, -bound, bound, options)
}

/**
 * Fills x with normal numbers of the variance gain² · 2 / (fan in + fan out), Glorot's scheme, and returns it. PyTorch: `torch.nn.init.xavier_normal_`.
 * @throws SHAPE_MISMATCH if x has fewer than two dimensions; INVALID_ARGUMENT if x is int32 or bool
 * @example init.xavierNormal_(new Linear(4, 2).weight, init.calculateGain('tanh')).shape // [2, 4]
 */
export function xavierNormal_(x: Tensor, gain = 1, options: InitOptions = {}): Tensor {
  const { fanIn, fanOut } = fans('xavierNormal_', x)
  return normal_(x, 0, gain * Math.sqrt(2 / (fanIn + fanOut)), options)
}

/**
 * Fills x with uniform numbers of the variance gain² / fan, He's scheme, and returns it. The gain is that of `nonlinearity`. PyTorch:
 * `torch.nn.init.kaiming_uniform_`.
 * @throws SHAPE_MISMATCH if x has fewer than two dimensions; INVALID_ARGUMENT if an option is not valid, or x is int32 or bool
 * @example init.kaimingUniform_(new Linear(4, 2).weight, { nonlinearity: 'relu' }).shape // [2, 4]
 */
export function kaimingUniform_(x: Tensor, options: KaimingOptions = {}): Tensor {
  const bound = Math.sqrt(3) * kaimingStd('kaimingUniform_', x, options)
  return uniform_(x, -bound, bound, options)
}

/**
 * Fills x with normal numbers of the variance gain² / fan, He's scheme, and returns it. The gain is that of `nonlinearity`. PyTorch:
 * `torch.nn.init.kaiming_normal_`.
 * @throws SHAPE_MISMATCH if x has fewer than two dimensions; INVALID_ARGUMENT if an option is not valid, or x is int32 or bool
 * @example init.kaimingNormal_(new Conv2d(3, 8, 3).weight, { mode: 'fanOut', nonlinearity: 'relu' }).shape // [8, 3, 3, 3]
 */
export function kaimingNormal_(x: Tensor, options: KaimingOptions = {}): Tensor {
  return normal_(x, 0, kaimingStd('kaimingNormal_', x, options), options)
}

/**
 * Fills x [rows, …] with a random orthogonal matrix [rows, rest], and returns it. Its rows, or its columns if there are fewer, are orthogonal and of length
 * `gain` (default 1). PyTorch: `torch.nn.init.orthogonal_`.
 * @throws SHAPE_MISMATCH if x has fewer than two dimensions; INVALID_ARGUMENT if x is int32 or bool
 * @example
 * const w = init.orthogonal_(zeros([2, 4]))
 * w.matmul(w.T) // close to [[1, 0], [0, 1]]
 */
export function orthogonal_(x: Tensor, gain = 1, options: InitOptions = {}): Tensor {
  if (x.ndim < 2) throw shapeMismatch('orthogonal_', 'at least two dimensions', shapeText(x.shape), 'Use reshape() to make a matrix.')
  if (x.numel === 0) return x
  const rows = x.shape[0]!
  const columns = x.numel / rows
  const [count, length] = rows < columns ? [rows, columns] : [columns, rows]
  const vectors = orthonormal(count, length, options.generator ?? currentGenerator())
  const [, { dtype }] = drawn('orthogonal_', x, options)
  const array = allocate(dtype, x.numel)
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) array[r * columns + c] = gain * (rows < columns ? vectors[r]![c]! : vectors[c]![r]!)
  }
  return raw.copy_(x, Tensor.over(dtype, x.shape, array))
}

/**
 * The factor for the initial standard deviation of a layer before this nonlinearity, which keeps the scale of activations. `slope` is that of leakyRelu, 0.01
 * by default. PyTorch: `torch.nn.init.calculate_gain`.
 * @throws INVALID_ARGUMENT if the nonlinearity is unknown, or the slope is not a finite number
 * @example
 * init.calculateGain('relu') // 1.4142
 * init.calculateGain('leakyRelu', 0.2) // 1.3868
 */
export function calculateGain(nonlinearity: Nonlinearity, slope = 0.01): number {
  checkOneOf('calculateGain', 'nonlinearity', nonlinearity, NONLINEARITIES)
  if (!Number.isFinite(slope)) throw invalidArgument('calculateGain', 'a finite number as the slope', argumentText(slope))
  if (nonlinearity === 'tanh') return 5 / 3
  if (nonlinearity === 'relu') return Math.SQRT2
  if (nonlinearity === 'leakyRelu') return Math.sqrt(2 / (1 + slope ** 2))
  return nonlinearity === 'selu' ? 3 / 4 : 1
}

/** A draw's arguments. */
function drawn(op: string, x: Tensor, { generator }: InitOptions) {
  checkTensor(op, 'what to fill', x)
  if (!isFloating(x.dtype)) throw invalidArgument(op, 'a tensor of floating point', x.dtype, "Convert it with to('float32').")
  return [x.shape, generator === undefined ? { dtype: x.dtype } : { dtype: x.dtype, generator }] as const
}

function filled(op: string, x: Tensor, value: number): Tensor {
  checkTensor(op, 'what to fill', x)
  return raw.fill_(x, value)
}

/** Into how many inputs and outputs one element of a weight [out, in, …window] enters. */
function fans(op: string, x: Tensor): { fanIn: number; fanOut: number } {
  checkTensor(op, 'what to fill', x)
  if (x.ndim < 2) {
    throw shapeMismatch(
      op,
      'at least two dimensions',
      shapeText(x.shape),
      'A vector has no inputs and outputs: use uniform_() or normal_().',
    )
  }
  const window = x.shape.slice(2).reduce((product, extent) => product * extent, 1)
  return { fanIn: x.shape[1]! * window, fanOut: x.shape[0]! * window }
}

function kaimingStd(op: string, x: Tensor, { a = 0, mode = 'fanIn', nonlinearity = 'leakyRelu' }: KaimingOptions): number {
  checkOneOf(op, 'mode', mode, ['fanIn', 'fanOut'])
  const fan = fans(op, x)[mode]
  return fan === 0 ? 0 : calculateGain(nonlinearity, a) / Math.sqrt(fan)
}

/** `count` random vectors of this length, each of length 1 and orthogonal to the others (Gram and Schmidt, twice for the sake of rounding). */
function orthonormal(count: number, length: number, generator: Generator): Float64Array[] {
  const vectors: Float64Array[] = []
  while (vectors.length < count) {
    const v = Float64Array.from({ length }, () => generator.normal())
    for (let pass = 0; pass < 2; pass++) {
      for (const u of vectors) {
        const along = dot(u, v)
        for (let i = 0; i < length; i++) v[i]! -= along * u[i]!
      }
    }
    const norm = Math.sqrt(dot(v, v))
    // One that lies in the others' span, which hardly happens, is drawn again.
    if (norm > 1e-10) vectors.push(v.map((value) => value / norm))
  }
  return vectors
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

/** Draws standard normal numbers from [low, high], by rejection: of normal numbers where most of them fit, else of uniform ones. */
function truncated(low: number, high: number, generator: Generator): () => number {
  if (low < 0 && high > 0 && high - low > 2) {
    return () => {
      for (;;) {
        const z = generator.normal()
        if (z >= low && z <= high) return z
      }
    }
  }
  // The point nearest to 0 is the likeliest. Where the density has fallen by e⁻³⁷ from it, the interval may end.
  const nearest = Math.min(Math.max(0, low), high)
  const far = Math.sqrt(nearest ** 2 + 74)
  const [from, to] = [Math.max(low, -far), Math.min(high, far)]
  return () => {
    for (;;) {
      const z = from + (to - from) * generator.uniform64()
      if (generator.uniform64() < Math.exp((nearest ** 2 - z ** 2) / 2)) return z
    }
  }
}
