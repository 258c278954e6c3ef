/**
 * The golden values of operations (golden/*.json, written by the scripts of the same names in scripts/golden): their format, and how a result
 * is compared. Used by `ops.suite.ts`, which runs them on a device, and autograd's test of the gradients.
 */
import { readdirSync, readFileSync } from 'node:fs'
import '../install.js'
import { rawOperations } from '../ops/define/define.js'
import { derivative } from '../ops/define/derivative.suite.js'
import { nllLossBackward } from '../ops/parts/classes.js'
import { sumToShape } from '../ops/parts/dims.js'
import { allocate, type DType, type TypedArray } from '../values/dtype.js'
import { upload } from './create.js'
import { currentDevice } from './device.js'
import { Tensor } from './tensor.js'

export { derivative } from '../ops/define/derivative.suite.js'
export { gpujsDevice } from './gpujs-device.suite.js'
export { residentDevice } from './resident-device.suite.js'
export { unfusedDevice } from './unfused-device.suite.js'

export type Json = number | string | null | boolean | readonly Json[] | { readonly [key: string]: Json }

export interface GoldenTensor {
  readonly t: DType
  readonly shape: readonly number[]
  /** Empty where `made` or `sums` replace it. */
  readonly data: readonly (number | string)[]
  /** A large input: seed, lowest and highest value, from which `elementsOf` makes it as common.py does. */
  readonly made?: readonly [seed: number, low: number, high: number]
  /** A large result: of each run of elements the sum, every element times its weight. */
  readonly sums?: readonly (number | string)[]
  /** With `made`: elements that have another value. With `sums`: the elements that are not finite, which count as 0 in the sums. */
  readonly at?: readonly (readonly [place: number, value: number | string])[]
  readonly via?: readonly (readonly [string, ...Json[]])[]
}

export interface GoldenCase {
  readonly label: string
  readonly op: string
  readonly args: readonly Json[]
  readonly out?: GoldenTensor
  /** Results of an operation that gives several, by name or place. */
  readonly parts?: Readonly<Record<string, GoldenTensor>>
  /** The result of a question, such as `equal`. */
  readonly value?: boolean
  /** Special values (`specials.test.ts`): zeros must have their sign and small numbers their digits. */
  readonly strict?: boolean
  /** In place: the first argument's base after the write. */
  readonly base?: GoldenTensor
  /** Of each tensor among the arguments, in order: the gradient of the sum of all results times `goldenWeights`. */
  readonly grads?: readonly (GoldenTensor | null)[]
  /** The gradients of the sum of all `grads` times `goldenWeights`. */
  readonly seconds?: readonly (GoldenTensor | null)[]
  /** PyTorch raises an error, in these words. */
  readonly refused?: string
}

export interface Tolerance {
  /** Relative to the larger of 1 and the expected value. */
  readonly float32: number
  readonly float64: number
}

const GOLDEN = new URL('../../golden/', import.meta.url)

/** The cases of all families: every file there is one. */
export function goldenCases(): readonly GoldenCase[] {
  return readdirSync(GOLDEN).flatMap((file) => (JSON.parse(readFileSync(new URL(file, GOLDEN), 'utf8')) as { cases: GoldenCase[] }).cases)
}

/** The same by operation, without the strict ones. */
export function goldenCasesByOp(): ReadonlyMap<string, readonly GoldenCase[]> {
  const byOp = new Map<string, GoldenCase[]>()
  for (const c of goldenCases()) if (!c.strict) byOp.set(c.op, [...(byOp.get(c.op) ?? []), c])
  return byOp
}

/** The weights of each result before it is summed for a gradient (`weights` in common.py). */
export function goldenWeights(x: Tensor): Tensor {
  const data = allocate(x.dtype, x.numel)
  for (let i = 0; i < data.length; i++) data[i] = (((i * 7) % 11) - 5.5) / 4
  return upload(Tensor.over(x.dtype, x.shape, data), x.storage.memory)
}

const DERIVATIVES = ['relu', 'tanh', 'sigmoid', 'leakyRelu', 'elu', 'silu', 'gelu', 'softplus', 'softmax', 'logSoftmax', 'prod', 'cumprod']

/** Operations over kernels by name, and what derivatives are made of. */
export const CALLS = {
  ...rawOperations,
  nllLossBackward,
  sumToShape,
  ...Object.fromEntries(DERIVATIVES.map((op) => [`${op}Backward`, derivative(op, rawOperations)])),
} as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>

/** An argument: null is undefined (but null within lists), tensors come through their views. Their bases are added to `bases`. */
export function decode(json: Json, bases: Tensor[]): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json ?? undefined
  const object = json as { readonly [key: string]: Json }
  if ('list' in object) return (object.list as readonly Json[]).map((item) => (item === null ? null : decode(item, bases)))
  if ('number' in object) return Number(object.number)
  // Options, of which some may be tensors.
  if (!('t' in object)) return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, decode(value, bases)]))
  const golden = json as unknown as GoldenTensor
  const base = upload(Tensor.over(golden.t, golden.shape, decodeData(golden)), currentDevice().home)
  bases.push(base)
  let x = base
  for (const [method, ...args] of golden.via ?? []) {
    x = CALLS[method]!(x, ...args) as Tensor
  }
  return x
}

function decodeData(golden: GoldenTensor): TypedArray {
  if (golden.made !== undefined) return madeData(golden, golden.made)
  const array = allocate(golden.t, golden.data.length)
  for (const [i, v] of golden.data.entries()) array[i] = Number(v)
  return array
}

const { floor, imul, max, sqrt } = Math

/** The elements of `Made` in common.py. */
function madeData({ t, shape, at }: GoldenTensor, [seed, low, high]: readonly [number, number, number]): TypedArray {
  const array = allocate(t, sizeOf(shape))
  const isWhole = t === 'int32' || t === 'bool'
  for (let i = 0; i < array.length; i++) {
    let x = (imul(i, 0x9e3779b1) + seed) | 0
    x = imul(x ^ (x >>> 16), 0x85ebca6b)
    x = imul(x ^ (x >>> 13), 0xc2b2ae35)
    const value = low + (high - low) * (((x ^ (x >>> 16)) >>> 12) / 2 ** 20)
    array[i] = isWhole ? floor(value) : value
  }
  for (const [place, value] of at ?? []) array[place] = Number(value)
  return array
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((n, extent) => n * extent, 1)

/** How `data` differs from a golden tensor of sums; null if it does not. */
function compareSums(data: TypedArray, { t, sums, at }: GoldenTensor, tolerance: Tolerance): string | null {
  const strange = new Map(at)
  const run = Math.ceil(data.length / sums!.length)
  for (const [k, want] of sums!.entries()) {
    let [sum, squares, largest] = [0, 0, 1]
    for (let i = k * run; i < Math.min(data.length, (k + 1) * run); i++) {
      const [value, weight] = [data[i]!, ((i * 7) % 11) + 6]
      const expected = strange.get(i)
      if (expected === undefined ? !Number.isFinite(value) : !Object.is(value, Number(expected))) {
        return `element ${i}: expected ${expected ?? 'a finite number'}, got ${value}`
      }
      if (expected !== undefined) continue
      sum += value * weight
      squares += weight ** 2
      largest = max(largest, Math.abs(value))
    }
    // Errors of single elements have any sign.
    const slack = t === 'int32' || t === 'bool' ? 0 : tolerance[t] * sqrt(squares) * largest
    if (!(Math.abs(sum - Number(want)) <= slack)) return `the sum of elements ${k * run} and ${run - 1} more: expected ${want}, got ${sum}`
  }
  return null
}

/** How `data`, the elements of `x`, differ from the golden ones; null if they do not. */
export function compare(data: TypedArray, x: Tensor, golden: GoldenTensor, tolerance: Tolerance): string | null {
  if (x.dtype !== golden.t) return `expected ${golden.t}, got ${x.dtype}`
  if (JSON.stringify(x.shape) !== JSON.stringify(golden.shape)) return `expected [${golden.shape}], got [${x.shape}]`
  if (golden.sums !== undefined) return compareSums(data, golden, tolerance)
  const expected = decodeData(golden)
  if (data.length !== expected.length) return `expected ${expected.length} elements, got ${data.length}`
  for (const [i, want] of expected.entries()) {
    const got = data[i]!
    const exact = golden.t === 'int32' || golden.t === 'bool' || !Number.isFinite(want)
    const slack = exact ? 0 : tolerance[golden.t as 'float32' | 'float64'] * Math.max(1, Math.abs(want))
    const same = Number.isNaN(want) ? Number.isNaN(got) : exact ? got === want : Math.abs(got - want) <= slack
    if (!same) return `element ${i}: expected ${want}, got ${got}`
  }
  return null
}
