/** Functions that make tensors from nothing: from nested arrays, of one value, of a range, at random. Public. */

import { PostgradError } from '@postgrad/base'
import { DETACHED, isDetached } from '@postgrad/base/internal'
import { CPU, type Memory } from '../heap/memory.js'
import { byteLength, DTYPES, type DType, elementOf, INT32_SPAN, isDType, isFloating, type TypedArray } from '../values/dtype.js'
import { checkHolds, dtypeMismatch, invalidArgument, shapeText } from '../values/errors.js'
import { currentGenerator, type Generator } from '../values/generator.js'
import type { TensorJson } from '../values/json.js'
import type { NestedArray } from '../values/read.js'
import { checkRoom } from '../values/room.js'
import { checkShape, inferShape, numelOf, type Shape } from '../values/shape.js'
import { elementsOf } from './bytes.js'
import { argumentText, checkOptions, checkTensor } from './check-argument.js'
import { currentDevice, type Device, type DeviceSpec, deviceFor, kernelsAt } from './device.js'
import { drawIntegers, drawReals } from './draw.js'
import { fromJson, isTensorJson } from './from-json.js'
import { isTensor, Tensor } from './tensor.js'

/** Options of every function that makes a tensor. */
export interface TensorOptions {
  /** The dtype of the elements. Default float32; in functions whose name ends in `Like`, the dtype of the given tensor. */
  readonly dtype?: DType
  /**
   * The device of the tensor. Default: the device of the scope; in functions whose name ends in `Like`, that of the given tensor. @throws DEVICE_UNKNOWN if the
   * device is unknown
   */
  readonly device?: Device | DeviceSpec
  /** Whether backward passes give the tensor a gradient; default false. @throws REQUIRES_GRAD_NEEDS_FLOAT if the tensor is int32 or bool */
  readonly requiresGrad?: boolean
}

/** Options of every function that makes a tensor of random numbers. */
export interface RandomOptions extends TensorOptions {
  /** The source of the random numbers. Default: the generator of the scope, else that of the thread. */
  readonly generator?: Generator
}

/** The tensor `x`, made in this process, as the options ask. */
function finish(op: string, x: Tensor, options: TensorOptions | undefined): Tensor {
  return marked(upload(x, homeOf(op, options)), options)
}

function marked(x: Tensor, options: TensorOptions | undefined): Tensor {
  return options?.requiresGrad ? x.requiresGrad_(true) : x
}

/** Where what is made will lie. */
export function homeOf(op: string, options: TensorOptions | undefined): Memory {
  return (options?.device === undefined ? currentDevice() : deviceFor(op, options.device)).home
}

/** A tensor of the cpu, or a copy of it in another memory. */
export function upload(x: Tensor, home: Memory): Tensor {
  return home === CPU ? x : Tensor.over(x.dtype, x.shape, elementsOf(x), home)
}

function dtypeOf<O extends TensorOptions>(
  op: string,
  options: O | undefined,
  otherwise: DType,
  known: readonly (keyof O & string)[] = OPTIONS,
): DType {
  if (options !== undefined) checkOptions(op, options, known, REMEDY)
  const dtype = options?.dtype ?? otherwise
  if (!isDType(dtype)) throw dtypeMismatch(op, `one of ${DTYPES.join(', ')}`, String(dtype), 'Pass one of these names.')
  return dtype
}

const OPTIONS = ['dtype', 'device', 'requiresGrad'] as const satisfies readonly (keyof TensorOptions)[]
const RANDOM_OPTIONS = [...OPTIONS, 'generator'] as const satisfies readonly (keyof RandomOptions)[]
const REMEDY = "Write { dtype: 'float64', device: 'cpu', requiresGrad: true }."

/** The dtype that a typed array has of itself; null for those without a counterpart. */
function dtypeOfArray(array: ArrayBufferView): DType | null {
  // By tag: `instanceof` fails across realms.
  switch (Object.prototype.toString.call(array)) {
    case '[object Float32Array]':
      return 'float32'
    case '[object Float64Array]':
      return 'float64'
    case '[object Int32Array]':
      return 'int32'
    case '[object Uint8Array]':
      return 'bool'
    default:
      return null
  }
}

/** Elements that are converted as `to` does: those of a typed array, which has a dtype of its own. */
function storing(dtype: DType, shape: Shape, from: ArrayLike<number>): Tensor {
  const [out, array] = onHost(dtype, shape)
  for (let i = 0; i < from.length; i++) array[i] = elementOf(dtype, from[i]!)
  return out
}

/** A tensor of this process, and its elements, to be written. */
function onHost(dtype: DType, shape: Shape): [Tensor, TypedArray] {
  const out = Tensor.uninitialized(dtype, shape, CPU)
  return [out, out.storage.host!]
}

/** @throws INVALID_ARGUMENT for a number that the dtype cannot hold */
function storingNumbers(dtype: DType, shape: Shape, from: readonly number[]): Tensor {
  if (dtype === 'int32') for (const value of from) checkHolds('tensor', dtype, value)
  return storing(dtype, shape, from)
}

/**
 * Makes a tensor from a number, a boolean, nested arrays of them, or a typed array (1-D). The data is always copied. Numbers become float32, whole numbers too
 * (PyTorch: int64), since JavaScript has one type for 1 and 1.0. Operations that take indices or classes accept such a tensor. Booleans become bool. A typed
 * array keeps its type; a Uint8Array becomes bool. `dtype` converts. The result of `toJSON()` becomes the same tensor again. PyTorch: `torch.tensor`.
 * @throws TENSOR_RAGGED if nested arrays differ in length or depth; INVALID_ARGUMENT for other values, holes in arrays, and numbers that int32 cannot hold;
 * DTYPE_MISMATCH if the dtype is unknown
 * @example tensor([[1, 2], [3, 4]], { requiresGrad: true }) // [[1, 2], [3, 4]]
 */
export function tensor(data: NestedArray | TypedArray | TensorJson, options?: TensorOptions): Tensor {
  if (isTensorJson(data) && !isTensor(data)) {
    const { dtype, shape, flat } = fromJson('tensor', data)
    return finish('tensor', storingNumbers(dtypeOf('tensor', options, dtype), shape, flat), options)
  }
  if (ArrayBuffer.isView(data)) {
    const own = dtypeOfArray(data)
    if (own === null) {
      throw invalidArgument('tensor', 'a Float32Array, Float64Array, Int32Array or Uint8Array', argumentText(data))
    }
    if (isDetached(data)) throw invalidArgument('tensor', 'a typed array with its bytes', DETACHED.got, DETACHED.remedy)
    const dtype = dtypeOf('tensor', options, own)
    if (dtype !== own || own === 'bool') return finish('tensor', storing(dtype, [data.length], data), options)
    const [out, array] = onHost(dtype, [data.length])
    array.set(data)
    return finish('tensor', out, options)
  }
  const shape: number[] = []
  for (let level: unknown = data; Array.isArray(level); level = level[0]) shape.push(level.length)
  const flat: number[] = []
  const kinds = { number: false, boolean: false }
  collect(data, shape, 0, flat, kinds)
  const dtype = dtypeOf('tensor', options, kinds.boolean && !kinds.number ? 'bool' : 'float32')
  return finish('tensor', storingNumbers(dtype, shape, flat), options)
}

/**
 * Makes a tensor of `shape` (default [length]) on the memory of `array`, without a copy. A write to the array changes the tensor, and the other way round. A
 * backward pass does not notice writes to the array. A Uint8Array (bool) may hold only 0 and 1. PyTorch: `from_numpy`.
 * @throws INVALID_ARGUMENT if `array` is not such an array, or a Uint8Array holds other values; SHAPE_MISMATCH if the shape has another number of elements
 * @example fromTypedArray(new Float32Array([1, 2, 3, 4]), [2, 2]) // [[1, 2], [3, 4]]
 */
export function fromTypedArray(array: TypedArray, shape?: Shape, options?: Pick<TensorOptions, 'requiresGrad'>): Tensor {
  const dtype = ArrayBuffer.isView(array) ? dtypeOfArray(array) : null
  if (dtype === null) {
    throw invalidArgument(
      'fromTypedArray',
      'a Float32Array, Float64Array, Int32Array or Uint8Array',
      argumentText(array),
      'Use tensor() for other data.',
    )
  }
  if (isDetached(array)) throw invalidArgument('fromTypedArray', 'a typed array with its bytes', DETACHED.got, DETACHED.remedy)
  if (dtype === 'bool' && array.some((value) => value > 1)) {
    throw invalidArgument('fromTypedArray', 'a Uint8Array of 0 and 1', 'other values', 'Use tensor(array), which makes 1 of all others.')
  }
  if (options !== undefined) checkOptions('fromTypedArray', options, ['requiresGrad'])
  return marked(Tensor.over(dtype, inferShape('fromTypedArray', shape ?? [array.length], array.length), array), options)
}

const EQUALLY_DEEP = 'Nest all values equally deep: a tensor has one shape.'

function collect(data: unknown, shape: Shape, d: number, flat: number[], kinds: { number: boolean; boolean: boolean }): void {
  if (Array.isArray(data)) {
    if (data.length !== shape[d]) {
      throw new PostgradError('TENSOR_RAGGED', {
        op: 'tensor',
        expected: d < shape.length ? `arrays of length ${shape[d]} at depth ${d}` : `numbers at depth ${d}`,
        got: `an array of length ${data.length}`,
        remedy: d < shape.length ? 'Pad the shorter rows: a tensor has one shape.' : EQUALLY_DEEP,
        values: { depth: d, shape: [...shape] },
      })
    }
    for (const item of data) collect(item, shape, d + 1, flat, kinds)
  } else if (typeof data === 'number' || typeof data === 'boolean') {
    if (d !== shape.length) {
      throw new PostgradError('TENSOR_RAGGED', {
        op: 'tensor',
        expected: `arrays of length ${shape[d]} at depth ${d}`,
        got: `a ${typeof data}`,
        remedy: EQUALLY_DEEP,
        values: { depth: d, shape: [...shape] },
      })
    }
    kinds[typeof data as 'number' | 'boolean'] = true
    flat.push(Number(data))
  } else {
    throw invalidArgument('tensor', 'numbers, booleans, arrays of them, or a typed array', argumentText(data), remedyFor(data))
  }
}

function remedyFor(data: unknown): string | undefined {
  if (isTensor(data)) return 'Use stack([x, y]) to put tensors together, x.clone() to copy one.'
  if (data instanceof Promise) return 'Await the promise first.'
  if (ArrayBuffer.isView(data)) return 'Make arrays of it first: rows.map((row) => [...row]).'
  return undefined
}

/**
 * A tensor of zeros, float32 unless `dtype` is another. PyTorch: `torch.zeros`.
 * @throws INVALID_ARGUMENT if the shape is not valid; TENSOR_TOO_LARGE if it exceeds the longest array or the memory of the machine (all functions here)
 * @example zeros([2, 3], { dtype: 'float64' }) // [[0, 0, 0], [0, 0, 0]]
 */
export function zeros(shape: Shape, options?: TensorOptions): Tensor {
  checkShape('zeros', shape)
  const dtype = dtypeOf('zeros', options, 'float32')
  checkRoom('zeros', dtype, numelOf(shape))
  return marked(Tensor.empty(dtype, shape.slice(), homeOf('zeros', options)), options)
}

/**
 * A tensor of ones, float32 unless `dtype` is another. PyTorch: `torch.ones`.
 * @throws INVALID_ARGUMENT if the shape is not valid
 * @example ones([2, 2]) // [[1, 1], [1, 1]]
 */
export function ones(shape: Shape, options?: TensorOptions): Tensor {
  return filled('ones', shape, 1, options)
}

/**
 * A tensor with `value` in every element: bool if it is a boolean, else float32 unless `dtype` is another. PyTorch: `torch.full`.
 * @throws INVALID_ARGUMENT if the shape is not valid, or int32 cannot hold the number
 * @example full([2, 2], 7) // [[7, 7], [7, 7]]
 */
export function full(shape: Shape, value: number | boolean, options?: TensorOptions): Tensor {
  return filled('full', shape, value, options, typeof value === 'boolean' ? 'bool' : 'float32')
}

function filled(
  op: string,
  shape: Shape,
  given: number | boolean,
  options: TensorOptions | undefined,
  otherwise: DType = 'float32',
): Tensor {
  checkShape(op, shape)
  const value = typeof given === 'boolean' ? Number(given) : given
  if (typeof value !== 'number') throw invalidArgument(op, 'a number or a boolean to fill it with', argumentText(value))
  const dtype = dtypeOf(op, options, otherwise)
  checkHolds(op, dtype, value)
  checkRoom(op, dtype, numelOf(shape))
  return marked(filledAt(homeOf(op, options), dtype, shape.slice(), value), options)
}

/** A tensor of one value. On another device a kernel writes it, so no elements go there. */
export function filledAt(home: Memory, dtype: DType, shape: Shape, value: number): Tensor {
  const out = Tensor.uninitialized(dtype, shape, home)
  if (out.storage.kind === 'managed') out.storage.host!.fill(elementOf(dtype, value))
  else kernelsAt(home).fill[dtype](value, out)
  return out
}

/**
 * A tensor of zeros with the shape of x, and its dtype unless `dtype` is another. PyTorch: `torch.zeros_like`.
 * @example zerosLike(tensor([true, false])) // [false, false]
 */
export function zerosLike(x: Tensor, options?: TensorOptions): Tensor {
  checkTensor('zerosLike', 'the model', x)
  const dtype = dtypeOf('zerosLike', options, x.dtype)
  return marked(Tensor.empty(dtype, x.shape, options?.device === undefined ? x.storage.memory : homeOf('zerosLike', options)), options)
}

/** The options, with the model's device where they name none. */
function likeModel(x: Tensor, options: TensorOptions | undefined): TensorOptions | undefined {
  return (x.storage.memory === CPU && currentDevice().home === CPU) || options?.device !== undefined
    ? options
    : { ...options, device: x.device }
}

/**
 * A tensor of ones with the shape of x, and its dtype unless `dtype` is another. PyTorch: `torch.ones_like`.
 * @example onesLike(tensor([5, 6])) // [1, 1]
 */
export function onesLike(x: Tensor, options?: TensorOptions): Tensor {
  checkTensor('onesLike', 'the model', x)
  return filled('onesLike', x.shape, 1, likeModel(x, options), x.dtype)
}

/**
 * A tensor with `value` in every element, the shape of x, and its dtype unless `dtype` is another. PyTorch: `torch.full_like`.
 * @example fullLike(zeros([2, 2]), 7) // [[7, 7], [7, 7]]
 */
export function fullLike(x: Tensor, value: number | boolean, options?: TensorOptions): Tensor {
  checkTensor('fullLike', 'the model', x)
  return filled('fullLike', x.shape, value, likeModel(x, options), x.dtype)
}

/**
 * The same as `zeros`: postgrad does not give out memory that was not written. PyTorch: `torch.empty`.
 * @example empty([2]) // [0, 0]: never old memory
 */
export function empty(shape: Shape, options?: TensorOptions): Tensor {
  return zeros(shape, options)
}

/**
 * The same as `zerosLike`: postgrad does not give out memory that was not written. PyTorch: `torch.empty_like`.
 * @example emptyLike(tensor([true, false])) // [false, false]
 */
export function emptyLike(x: Tensor, options?: TensorOptions): Tensor {
  return zerosLike(x, options)
}

/**
 * An n × m matrix with ones on the diagonal; m is n by default. PyTorch: `torch.eye`.
 * @example eye(2, 3) // [[1, 0, 0], [0, 1, 0]]
 */
export function eye(n: number, m = n, options?: TensorOptions): Tensor {
  checkShape('eye', [n, m])
  const [out, array] = onHost(dtypeOf('eye', options, 'float32'), [n, m])
  array.fill(0)
  for (let i = 0; i < Math.min(n, m); i++) array[i * m + i] = 1
  return finish('eye', out, options)
}

/**
 * The numbers start, start + step, … below end. `arange(end)` counts from 0. float32 unless `dtype` is another (PyTorch: int64 for integers); usable as indices
 * all the same. PyTorch: `torch.arange`.
 * @throws INVALID_ARGUMENT if the step does not lead from start to end
 * @example arange(0, 1, 0.25) // [0, 0.25, 0.5, 0.75]
 */
export function arange(end: number, options?: TensorOptions): Tensor
export function arange(start: number, end: number, step?: number, options?: TensorOptions): Tensor
export function arange(first: number, second?: number | TensorOptions, step = 1, last?: TensorOptions): Tensor {
  const [start, end, options] = typeof second === 'number' ? [first, second, last] : [0, first, second]
  if (typeof start !== 'number' || typeof end !== 'number' || typeof step !== 'number') {
    throw invalidArgument('arange', 'numbers: an end, or start, end and step', [first, second, step].map(argumentText).join(', '))
  }
  const length = Math.max(0, Math.ceil((end - start) / step))
  // Not by the length, which rounds −0.5 up to 0.
  if (!Number.isFinite(length) || step === 0 || (end - start) / step < 0) {
    throw invalidArgument(
      'arange',
      'a finite range whose step leads from start to end',
      `start ${start}, end ${end}, step ${step}`,
      'Swap the ends, or change the sign of the step.',
    )
  }
  const dtype = dtypeOf('arange', options, 'float32')
  // As PyTorch: as many as in real numbers, but with ends and steps of integers.
  const whole = dtype === 'int32' ? Math.trunc : (x: number) => x
  const [from, by] = [whole(start), whole(step)]
  if (by === 0) throw invalidArgument('arange', 'an integer step for int32', `step ${step}`, 'Pass an integer step, or float32 as dtype.')
  checkRoom('arange', dtype, length)
  const [out, array] = onHost(dtype, [length])
  for (let i = 0; i < length; i++) array[i] = elementOf(dtype, from + i * by)
  return finish('arange', out, options)
}

/**
 * `steps` evenly spaced numbers from start to end, both included; float32 unless `dtype` is another. PyTorch: `torch.linspace`.
 * @throws INVALID_ARGUMENT if `steps` is negative
 * @example linspace(0, 1, 5) // [0, 0.25, 0.5, 0.75, 1]
 */
export function linspace(start: number, end: number, steps: number, options?: TensorOptions): Tensor {
  return evenly('linspace', start, end, steps, options, (x) => x)
}

/**
 * base to the power of each number of linspace(start, end, steps); base is 10 by default. PyTorch: `torch.logspace`.
 * @throws INVALID_ARGUMENT if `steps` is negative
 * @example logspace(0, 3, 4, { base: 2 }) // [1, 2, 4, 8]
 */
export function logspace(start: number, end: number, steps: number, options?: TensorOptions & { readonly base?: number }): Tensor {
  if (options !== undefined) checkOptions('logspace', options, [...OPTIONS, 'base'], REMEDY)
  const { base = 10, ...others } = options ?? {}
  return evenly('logspace', start, end, steps, others, (x) => base ** x)
}

function evenly(
  op: string,
  start: number,
  end: number,
  steps: number,
  options: TensorOptions | undefined,
  f: (x: number) => number,
): Tensor {
  if (!Number.isFinite(start) || !Number.isFinite(end)) throw invalidArgument(op, 'finite ends', `${start} and ${end}`)
  if (!Number.isSafeInteger(steps) || steps < 0)
    throw invalidArgument(op, 'a number of steps ≥ 0', argumentText(steps), 'Pass start, end and steps.')
  const dtype = dtypeOf(op, options, 'float32')
  for (const each of [start, end]) checkHolds(op, dtype, f(each))
  checkRoom(op, dtype, steps)
  const [out, array] = onHost(dtype, [steps])
  const step = steps > 1 ? (end - start) / (steps - 1) : 0
  // From the nearer end, as PyTorch: then the last number is the end itself.
  for (let i = 0; i < steps; i++) array[i] = elementOf(dtype, f(i < steps / 2 ? start + i * step : end - (steps - 1 - i) * step))
  return finish(op, out, options)
}

/** The options' generator, else the scope's or the thread's. @throws INVALID_ARGUMENT */
export function generatorOf(op: string, options: Pick<RandomOptions, 'generator'> | undefined): Generator {
  const generator: unknown = options?.generator
  if (generator === undefined) return currentGenerator()
  if (typeof (generator as Partial<Generator> | null)?.uniform === 'function') return generator as Generator
  throw invalidArgument(op, 'a Generator as generator', argumentText(generator), 'Write { generator: new Generator(7) }.')
}

function random(op: string, shape: Shape, options: RandomOptions | undefined, draw: 'uniform' | 'normal'): Tensor {
  checkShape(op, shape)
  const dtype = dtypeOf(op, options, 'float32', RANDOM_OPTIONS)
  if (!isFloating(dtype)) throw dtypeMismatch(op, 'float32 or float64', dtype, 'Use randint() for integers.')
  checkRoom(op, dtype, numelOf(shape))
  const generator = generatorOf(op, options)
  const out = Tensor.uninitialized(dtype, shape.slice(), CPU)
  drawReals(out, draw, generator)
  return finish(op, out, options)
}

/**
 * Random numbers, uniform in [0, 1); float32 unless `dtype` is another. PyTorch: `torch.rand`.
 * @throws DTYPE_MISMATCH if the dtype is int32 or bool
 * @example rand([2, 3]) // shape [2, 3]
 */
export function rand(shape: Shape, options?: RandomOptions): Tensor {
  return random('rand', shape, options, 'uniform')
}

/**
 * Random numbers, standard normal; float32 unless `dtype` is another. PyTorch: `torch.randn`.
 * @throws DTYPE_MISMATCH if the dtype is int32 or bool
 * @example randn([2, 3], { generator: new Generator(7) }) // shape [2, 3]
 */
export function randn(shape: Shape, options?: RandomOptions): Tensor {
  return random('randn', shape, options, 'normal')
}

/**
 * Random numbers, uniform in [0, 1), with the shape of x, and its dtype unless `dtype` is another. PyTorch: `torch.rand_like`.
 * @throws DTYPE_MISMATCH if the dtype is int32 or bool
 * @example randLike(zeros([2, 3])) // shape [2, 3]
 */
export function randLike(x: Tensor, options?: RandomOptions): Tensor {
  checkTensor('randLike', 'the model', x)
  return rand(x.shape, { dtype: x.dtype, ...options, device: options?.device ?? x.device })
}

/**
 * Random numbers, standard normal, with the shape of x, and its dtype unless `dtype` is another. PyTorch: `torch.randn_like`.
 * @throws DTYPE_MISMATCH if the dtype is int32 or bool
 * @example randnLike(zeros([2, 3], { dtype: 'float64' })).dtype // 'float64'
 */
export function randnLike(x: Tensor, options?: RandomOptions): Tensor {
  checkTensor('randnLike', 'the model', x)
  return randn(x.shape, { dtype: x.dtype, ...options, device: options?.device ?? x.device })
}

/**
 * Random integers from low to high − 1; int32 unless `dtype` is another. PyTorch: `torch.randint`.
 * @throws INVALID_ARGUMENT if low is not below high, or int32 cannot hold the numbers
 * @example randint(0, 10, [2, 3]) // shape [2, 3]
 */
export function randint(low: number, high: number, shape: Shape, options?: RandomOptions): Tensor {
  if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high) || low >= high) {
    throw invalidArgument('randint', 'integers low < high', `${low} and ${high}`, `The range is ${shapeText([low, high])} without its end.`)
  }
  checkShape('randint', shape)
  const dtype = dtypeOf('randint', options, 'int32', RANDOM_OPTIONS)
  if (dtype === 'int32' && (low < -INT32_SPAN || high > INT32_SPAN)) {
    throw invalidArgument('randint', 'low … high−1 within 32 bits', `${low} and ${high}`, "Pass { dtype: 'float64' }.")
  }
  checkRoom('randint', dtype, numelOf(shape))
  const generator = generatorOf('randint', options)
  const out = Tensor.uninitialized(dtype, shape.slice(), CPU)
  drawIntegers(out, low, high, generator)
  return finish('randint', out, options)
}

/** Bytes of a tensor's elements (a view's own, not its storage's). */
export function byteSize(x: Tensor): number {
  return byteLength(x.dtype, x.numel)
}
