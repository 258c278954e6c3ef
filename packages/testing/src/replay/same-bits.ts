/**
 * Whether two results are the same to the last bit: tensors, sparse tensors, typed arrays, numbers, and lists, maps and objects of them. A difference
 * has its place, the first element in row-major order, both values in decimal and as bits.
 */
import { PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import type { SparseTensor, Tensor } from '@postgrad/tensor'

/** The first place where two results differ. */
export interface BitDifference {
  /** Where the difference is, such as `t1` or `worker0.weights[2]`. '' if the results as a whole differ. */
  readonly path: string
  /** The index of the first element that differs, in its tensor or array. Null if something else differs, such as a shape or a key. */
  readonly index: readonly number[] | null
  /** The value of `got` there, as text: a number as `0.1 (0x3dcccccd)`. */
  readonly got: string
  /** The value of `expected` there, as text. */
  readonly expected: string
  /** How many elements of that tensor or array differ. */
  readonly elements: number
}

/**
 * Checks that `got` has the same bits as `expected`: the same keys, dtypes and shapes, and the same bits in every element. 0 and −0 differ. Two NaNs with the same bits
 * are equal. `seed` is for the error's message.
 * @throws BITS_DIFFER with the first difference in `values`; BITS_UNCOMPARABLE if a part has no bits to compare, such as a function
 * @example expectSameBits({ w: tensor([1, 2]) }, { w: tensor([1, 2]) }) // fails with BITS_DIFFER if a bit differs
 */
export function expectSameBits(got: unknown, expected: unknown, { seed }: { readonly seed?: number } = {}): void {
  const difference = bitDifference(got, expected)
  if (difference === null) return
  throw new PostgradError('BITS_DIFFER', {
    op: 'expectSameBits',
    message: differenceText(difference, seed),
    values: { ...difference, ...(seed === undefined ? {} : { seed }) },
  })
}

export function differenceText({ path, index, got, expected, elements }: BitDifference, seed?: number): string {
  const where = `${path === '' ? 'the result' : path}${index === null ? '' : ` at [${index.join(', ')}]`}`
  const more = elements > 1 ? `\n  ${elements} elements of it differ` : ''
  const again = seed === undefined ? '' : `\n  seed ${seed}: simulate with { seed: ${seed} } and the same options runs it again`
  return `${where} differs\n  expected ${expected}\n  got      ${got}${more}${again}\n`
}

/**
 * Returns the first difference between the bits of two values, and null if there is none. Values are tensors, typed arrays, numbers, and lists, objects and maps.
 * @throws BITS_UNCOMPARABLE if no bits differ, but a part has no bits to compare, such as a function, or a map with tensors as keys
 * @example
 * bitDifference(tensor([1, 2]), tensor([1, 2])) // null
 * bitDifference({ w: tensor([0]) }, { w: tensor([-0]) })?.path // 'w'
 */
export function bitDifference(got: unknown, expected: unknown): BitDifference | null {
  const without: PostgradError[] = []
  const difference = compare(got, expected, '', without)
  if (difference === null && without.length > 0) throw without[0]
  return difference
}

/** The same, but what has no bits is taken for equal to what is of its kind. */
export function differenceOfKnown(got: unknown, expected: unknown): BitDifference | null {
  return compare(got, expected, '', [])
}

/** A short text that two results share exactly when `differenceOfKnown` finds none, in any thread. */
export function bitDigest(value: unknown): string {
  return builtin<typeof import('node:crypto')>('node:crypto').createHash('sha256').update(textOfBits(value, '')).digest('base64url')
}

function textOfBits(value: unknown, path: string): string {
  const kind = kindOf(value)
  const keyed = (entries: readonly (readonly [string, unknown])[]) =>
    `${kind} {${entries.map(([key, item]) => `${JSON.stringify(key)}: ${textOfBits(item, `${path}.${key}`)}`).sort()}}`
  switch (kind) {
    case 'a tensor': {
      const tensor = value as Tensor
      const parts = tensor.isSparse
        ? [(tensor as SparseTensor).indices(), (tensor as SparseTensor).values()]
        : [tensor.detach().dataSync() as TypedArray]
      return `${textOf(tensor)} ${parts.map((part) => textOfBits(part, path))}`
    }
    case 'a typed array':
      return `${Object.prototype.toString.call(value)} ${Buffer.from(bytesOf(value as TypedArray)).toString('base64')}`
    case 'a number':
      return numberText(value as number)
    case 'a list':
      return keyed(entriesOfList(value as unknown[]))
    case 'a map':
      return keyed(entriesOfMap(value as Map<unknown, unknown>))
    case 'an object':
      return keyed(Object.entries(value as object))
    default:
      return hasBits(kind) ? `${kind} ${JSON.stringify(String(value))}` : kind
  }
}

/** @param without gets an error for each place that has no bits to compare */
function compare(got: unknown, expected: unknown, path: string, without: PostgradError[]): BitDifference | null {
  const [a, b] = [kindOf(got), kindOf(expected)]
  if (a !== b) return element(path, a, b)
  if (!hasBits(a)) {
    without.push(uncomparable(path, `a ${a.slice(NO_BITS.length)}`))
    return null
  }
  switch (a) {
    case 'a tensor':
      return compareTensors(got as Tensor, expected as Tensor, path)
    case 'a typed array':
      return compareArrays(got as TypedArray, expected as TypedArray, [(expected as TypedArray).length], path)
    case 'a number':
      return Object.is(got, expected) ? null : element(path, numberText(got as number), numberText(expected as number))
    case 'a list':
      return compareKeyed(entriesOfList(got as unknown[]), entriesOfList(expected as unknown[]), (key) => `${path}[${key}]`)
    case 'a map':
      for (const key of (expected as Map<unknown, unknown>).keys())
        if (!isName(key)) without.push(uncomparable(path, `a map whose keys are ${typeof key}s, which differ from run to run`))
      return compareKeyed(entriesOfMap(got as Map<unknown, unknown>), entriesOfMap(expected as Map<unknown, unknown>), dotted)
    case 'an object':
      return compareKeyed(Object.entries(got as object), Object.entries(expected as object), dotted)
    default:
      return got === expected ? null : element(path, String(got), String(expected))
  }

  function dotted(key: string): string {
    return path === '' ? key : `${path}.${key}`
  }

  function compareKeyed(
    got: readonly (readonly [string, unknown])[],
    expected: readonly (readonly [string, unknown])[],
    place: (key: string) => string,
  ): BitDifference | null {
    const there = new Map(got)
    const wanted = new Set(expected.map(([key]) => key))
    const extra = got.filter(([key]) => !wanted.has(key)).map(([key]) => key)
    const missing = [...wanted].filter((key) => !there.has(key))
    if (extra.length + missing.length > 0)
      return element(path, `keys ${got.map(([key]) => key).join(', ')}`, `keys ${[...wanted].join(', ')}`)
    for (const [key, value] of expected) {
      const difference = compare(there.get(key), value, place(key), without)
      if (difference !== null) return difference
    }
    return null
  }
}

type TypedArray = Float32Array | Float64Array | Int32Array | Uint8Array

/** In words; NO_BITS and the class, if it has no bits. */
function kindOf(value: unknown): string {
  if (typeof value === 'number') return 'a number'
  if (value === null) return 'null'
  if (typeof value === 'function' || typeof value === 'symbol') return `${NO_BITS}${typeof value}`
  if (typeof value !== 'object') return typeof value
  // A DataView has no elements.
  if (ArrayBuffer.isView(value) && 'BYTES_PER_ELEMENT' in value) return 'a typed array'
  if (Array.isArray(value)) return 'a list'
  // By what it has: a test may hold tensors of another copy of the library.
  if ('dtype' in value && 'isSparse' in value) return 'a tensor'
  const tag = Object.prototype.toString.call(value).slice(8, -1)
  return tag === 'Map' ? 'a map' : tag === 'Object' ? 'an object' : `${NO_BITS}${tag}`
}

const NO_BITS = 'a value without bits: '
const hasBits = (kind: string): boolean => !kind.startsWith(NO_BITS)

const entriesOfList = (list: readonly unknown[]) => Array.from(list, (value, i) => [String(i), value] as const)

/** By name; keys without one, such as tensors, are only counted. */
function entriesOfMap(map: ReadonlyMap<unknown, unknown>): (readonly [string, unknown])[] {
  const named: (readonly [string, unknown])[] = []
  for (const [key, value] of map) {
    // The text '1' is another key than the number.
    if (isName(key)) named.push([typeof key === 'string' && NUMBER.test(key) ? JSON.stringify(key) : String(key), value])
  }
  if (named.length < map.size) named.push([`${map.size - named.length} without a name`, undefined])
  return named
}

const NUMBER = /^["\d-]|^NaN$|^Infinity$/
const isName = (key: unknown): key is string | number => typeof key === 'string' || typeof key === 'number'

function compareTensors(got: Tensor, expected: Tensor, path: string): BitDifference | null {
  const [a, b] = [textOf(got), textOf(expected)]
  if (a !== b) return element(path, a, b)
  if (expected.isSparse) {
    const [x, y] = [got as SparseTensor, expected as SparseTensor]
    const place = (part: string) => `${path}${path === '' ? '' : '.'}${part}`
    return compareTensors(x.indices(), y.indices(), place('indices()')) ?? compareTensors(x.values(), y.values(), place('values()'))
  }
  return compareArrays(got.detach().dataSync(), expected.detach().dataSync(), expected.shape, path)
}

function textOf({ dtype, shape, isSparse }: Tensor): string {
  return `a ${isSparse ? 'sparse ' : ''}tensor of ${dtype} [${shape.join(', ')}]`
}

function compareArrays(got: TypedArray, expected: TypedArray, shape: readonly number[], path: string): BitDifference | null {
  const [a, b] = [got, expected].map((array) => `a ${Object.prototype.toString.call(array).slice(8, -1)} of ${array.length}`)
  if (a !== b) return element(path, a!, b!)
  const [x, y] = [bytesOf(got), bytesOf(expected)]
  const size = expected.BYTES_PER_ELEMENT
  let first = -1
  let elements = 0
  for (let i = 0; i < expected.length; i++) {
    for (let at = i * size; at < (i + 1) * size; at++) {
      if (x[at] === y[at]) continue
      if (first < 0) first = i
      elements++
      break
    }
  }
  if (first < 0) return null
  return { path, index: indexOf(first, shape), got: elementText(got, first), expected: elementText(expected, first), elements }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) => new Uint8Array(buffer, byteOffset, byteLength)

function indexOf(at: number, shape: readonly number[]): number[] {
  const index: number[] = []
  let rest = at
  for (const size of [...shape].reverse()) {
    index.unshift(rest % size)
    rest = Math.floor(rest / size)
  }
  return index
}

function elementText(array: TypedArray, at: number): string {
  const size = array.BYTES_PER_ELEMENT
  // Little-endian, as all machines are that run WebAssembly.
  const bytes = [...bytesOf(array).subarray(at * size, (at + 1) * size)].reverse()
  return `${decimal(array[at]!)} (0x${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')})`
}

function numberText(value: number): string {
  return elementText(Float64Array.of(value), 0)
}

const decimal = (value: number) => (Object.is(value, -0) ? '-0' : String(value))

function element(path: string, got: string, expected: string): BitDifference {
  return { path, index: null, got, expected, elements: 1 }
}

function uncomparable(path: string, got: string): PostgradError {
  return new PostgradError('BITS_UNCOMPARABLE', {
    op: 'expectSameBits',
    expected: `tensors, typed arrays, numbers, text, or lists, objects and maps with text keys that contain these${path === '' ? '' : ` at ${path}`}`,
    got,
    remedy: 'Give gradients names: { weights: ctx.gradients().get(weights) }.',
  })
}
