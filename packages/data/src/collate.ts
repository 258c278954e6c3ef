/**
 * Makes a batch of its samples, the DataLoader's default: the same structure, where tensors have one more dimension, in front, and numbers are tensors.
 * PyTorch: `default_collate`.
 */
import { stack } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { isTensor, type Tensor, tensor } from '@postgrad/tensor'
import { sameShape, shapeText } from '@postgrad/tensor/internal'

type SampleArray = Float32Array | Float64Array | Int32Array | Int16Array | Int8Array | Uint8Array | Uint16Array | Uint8ClampedArray

/** The type of a batch that `defaultCollate` makes of samples of type T. */
export type Collated<T> = T extends Tensor | number | bigint | boolean | SampleArray
  ? Tensor
  : T extends string
    ? string[]
    : T extends readonly unknown[]
      ? { -readonly [K in keyof T]: Collated<T[K]> }
      : T extends object
        ? { -readonly [K in keyof T]: Collated<T[K]> }
        : never

/**
 * Makes one batch of B samples. The kind of the samples decides the result. PyTorch: `default_collate`.
 * - Tensors of one shape S and one dtype become a tensor of shape [B, …S]. So do typed arrays; their integers become int32.
 * - Numbers become a float32 tensor of shape [B], bigints an int32 tensor, booleans a bool tensor. For labels use bigints, or 0-d int32 tensors: a JavaScript number
 *   does not say whether it is an integer.
 * - Strings become an array of strings.
 * - Arrays of one length, and plain objects with the same keys, become one array or object, whose entries are batches.
 * @throws COLLATE_MISMATCH if the list is empty, or the samples do not fit together; COLLATE_UNSUPPORTED if a value has another type. Both name the place in the
 * sample
 * @example
 * const [images, labels] = defaultCollate([[ones([2]), 3n], [zeros([2]), 5n]])
 * images // [[1, 1], [0, 0]]
 * labels.dtype // 'int32'
 */
export function defaultCollate<T>(samples: readonly T[]): Collated<T> {
  if (samples.length === 0) {
    throw new PostgradError('COLLATE_MISMATCH', {
      op: 'defaultCollate',
      expected: 'at least one sample',
      got: 'none',
      remedy: 'A batch sampler must give at least one index.',
    })
  }
  return collate(samples, '') as Collated<T>
}

function collate(samples: readonly unknown[], path: string): unknown {
  const kind = kindOf(samples[0])
  samples.forEach((sample, i) => {
    if (kindOf(sample) !== kind) throw mismatch(i, path, kindOf(sample), kind)
  })
  switch (kind) {
    case 'tensor':
      return stacked(samples as readonly Tensor[], path)
    case 'number':
    case 'boolean':
      return tensor(samples as readonly (number | boolean)[])
    case 'bigint':
      return tensor(
        (samples as readonly bigint[]).map((one, i) => int32Of(one, i, path)),
        { dtype: 'int32' },
      )
    case 'string':
      return [...samples]
    case 'array':
      return collateArrays(samples as readonly (readonly unknown[])[], path)
    case 'object':
      return collateObjects(samples as readonly Readonly<Record<string, unknown>>[], path)
    default:
      if (ARRAYS.has(kind)) return stacked((samples as readonly SampleArray[]).map(tensorOf), path)
      throw new PostgradError('COLLATE_UNSUPPORTED', {
        op: 'defaultCollate',
        expected: `tensors, typed arrays, numbers, bigints, booleans, strings, arrays or plain objects${at(path)}`,
        got: kind,
        remedy: 'Pass { collate } to make the batch yourself.',
        values: { path, kind },
      })
  }
}

/** Typed arrays that a tensor can hold. A Uint8Array holds bytes, so that it becomes int32 and not bool. */
const ARRAYS = new Set(
  ['Float32', 'Float64', 'Int32', 'Int16', 'Int8', 'Uint8', 'Uint16', 'Uint8Clamped'].map((name) => `${name}Array`) as readonly string[],
)

function tensorOf(array: SampleArray): Tensor {
  const isFloat = /Float/.test(kindOf(array))
  return tensor(isFloat ? (array as Float32Array) : Int32Array.from(array))
}

/** By tag: what comes from another realm (jest's, a worker's) fails `instanceof`. */
function kindOf(value: unknown): string {
  if (typeof value !== 'object') return typeof value
  if (value === null) return 'null'
  if (isTensor(value)) return 'tensor'
  if (Array.isArray(value)) return 'array'
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return 'object'
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1)
  return tag === 'Object' ? ((prototype as { constructor?: { name?: string } }).constructor?.name ?? 'an object') : tag
}

function stacked(tensors: readonly Tensor[], path: string): Tensor {
  const first = tensors[0] as Tensor
  tensors.forEach((one, i) => {
    if (one.dtype !== first.dtype || !sameShape(one.shape, first.shape)) throw mismatch(i, path, describe(one), describe(first))
  })
  return stack(tensors)
}

function collateArrays(samples: readonly (readonly unknown[])[], path: string): unknown[] {
  const { length } = samples[0] as readonly unknown[]
  samples.forEach((sample, i) => {
    if (sample.length !== length) throw mismatch(i, path, `an array of length ${sample.length}`, `one of length ${length}`)
  })
  return Array.from({ length }, (_, at) =>
    collate(
      samples.map((sample) => sample[at]),
      `${path}[${at}]`,
    ),
  )
}

function collateObjects(samples: readonly Readonly<Record<string, unknown>>[], path: string): Record<string, unknown> {
  const keys = Object.keys(samples[0] as object)
  samples.forEach((sample, i) => {
    const own = Object.keys(sample)
    if (own.length !== keys.length || keys.some((key) => !Object.hasOwn(sample, key))) {
      throw mismatch(i, path, `the keys ${own.join(', ')}`, `the keys ${keys.join(', ')}`)
    }
  })
  return Object.fromEntries(
    keys.map((key) => [
      key,
      collate(
        samples.map((sample) => sample[key]),
        `${path}.${key}`,
      ),
    ]),
  )
}

function int32Of(value: bigint, sample: number, path: string): number {
  if (BigInt.asIntN(32, value) === value) return Number(value)
  throw refused(sample, path, `${value}n`, `a bigint within 32 bits${at(path)}`)
}

const describe = (x: Tensor): string => `a tensor of shape ${shapeText(x.shape)} and dtype ${x.dtype}`
const at = (path: string): string => (path === '' ? '' : ` at sample${path}`)

function mismatch(sample: number, path: string, got: string, expected: string): PostgradError {
  return refused(sample, path, got, `${expected}${at(path)}, as in sample 0 of the batch`)
}

function refused(sample: number, path: string, got: string, expected: string): PostgradError {
  return new PostgradError('COLLATE_MISMATCH', {
    op: 'defaultCollate',
    expected,
    got: `${got} in sample ${sample}`,
    remedy: 'Pad or convert in the dataset, or pass { collate } to make the batch yourself.',
    values: { sample, path },
  })
}
