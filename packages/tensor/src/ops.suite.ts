/**
 * What every backend must hold: PyTorch's results (golden/*.json, written by the scripts of the same names in scripts/golden) for all
 * operations, over broadcasting, views, empty and 0-d tensors, promotion and special values. The test of a backend is a call of this.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { type Device, withDevice } from './device.js'
import { allocate, type DType, type TypedArray } from './dtype.js'
import * as raw from './raw/index.js'
import { operations } from './raw/operations.js'
import { isTensor, Tensor } from './tensor.js'

type Json = number | string | null | boolean | readonly Json[] | { readonly [key: string]: Json }

interface GoldenTensor {
  readonly t: DType
  readonly shape: readonly number[]
  readonly data: readonly (number | string)[]
  readonly via?: readonly (readonly [string, ...Json[]])[]
}

interface GoldenCase {
  readonly label: string
  readonly op: string
  readonly args: readonly Json[]
  readonly out?: GoldenTensor
  /** Results of an operation that gives several, by name or place. */
  readonly parts?: Readonly<Record<string, GoldenTensor>>
  /** The result of a question, such as `equal`. */
  readonly value?: boolean
  /** In place: the first argument's base after the write. */
  readonly base?: GoldenTensor
}

export interface Tolerance {
  /** Relative to the larger of 1 and the expected value. */
  readonly float32: number
  readonly float64: number
}

export interface OpsSuiteOptions {
  readonly tolerance: Tolerance
  /** Says why a case does not hold on this device (a documented limit), or null to run it. */
  readonly skip?: (op: string, label: string, dtypes: readonly DType[]) => string | null
}

const GOLDEN = new URL('../golden/', import.meta.url)

/** The cases of all families: every file there is one. */
export function goldenCases(): readonly GoldenCase[] {
  return readdirSync(GOLDEN).flatMap((file) => (JSON.parse(readFileSync(new URL(file, GOLDEN), 'utf8')) as { cases: GoldenCase[] }).cases)
}

/** Raw operations and composites over them, by name. */
const CALLS = { ...operations, ...raw } as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>

export function opsSuite(name: string, makeDevice: () => Device | Promise<Device>, options: OpsSuiteOptions): void {
  describe(`operations on ${name}`, () => {
    const byOp = new Map<string, GoldenCase[]>()
    for (const c of goldenCases()) byOp.set(c.op, [...(byOp.get(c.op) ?? []), c])

    for (const [op, cases] of byOp) {
      test(`${op}: ${cases.length} cases as PyTorch computes them`, async () => {
        const device = await makeDevice()
        await device.ready()
        expect(await goldenFailures(device, cases, options)).toEqual([])
      })
    }
  })
}

/** What differs, one line per case. */
export async function goldenFailures(device: Device, cases: readonly GoldenCase[], options: OpsSuiteOptions): Promise<string[]> {
  const failures: string[] = []
  for (const c of cases) {
    if (options.skip?.(c.op, c.label, dtypesOf(c)) != null) continue
    try {
      const failure = await withDevice(device, () => check(c, options.tolerance))
      if (failure !== null) failures.push(`${c.label}: ${failure}`)
    } catch (error) {
      failures.push(`${c.label}: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
  return failures
}

/** The dtypes of all tensors of a case. */
function dtypesOf(c: GoldenCase): DType[] {
  const out: DType[] = [...(c.out ? [c.out.t] : []), ...Object.values(c.parts ?? {}).map((part) => part.t)]
  const visit = (json: Json): void => {
    if (Array.isArray(json)) for (const item of json) visit(item)
    else if (typeof json === 'object' && json !== null) {
      if ('t' in json) out.push((json as unknown as GoldenTensor).t)
      else for (const item of Object.values(json)) visit(item)
    }
  }
  visit(c.args)
  return out
}

async function check(c: GoldenCase, tolerance: Tolerance): Promise<string | null> {
  const bases: Tensor[] = []
  const args = c.args.map((a) => decode(a, bases))
  const before = bases.map((base) => base.storage.array.slice())
  const versions = bases.map((base) => base.storage.version)
  const out = CALLS[c.op]!(...args)
  const failure = await compareResult(out, c, tolerance)
  if (failure !== null) return failure
  if (c.base) {
    if (out !== args[0]) return 'an in-place operation returns its first argument'
    if (bases[0]!.storage.version !== versions[0]! + 1) return 'the version was not raised once'
    return compare(await bases[0]!.data(), bases[0]!, c.base, tolerance)
  }
  for (const [i, base] of bases.entries()) {
    const changed = base.storage.array.some((v, j) => !Object.is(v, before[i]![j]))
    if (changed || base.storage.version !== versions[i]) return `input ${i} was written to`
  }
  return null
}

async function compareResult(out: unknown, c: GoldenCase, tolerance: Tolerance): Promise<string | null> {
  if (c.value !== undefined) return out === c.value ? null : `expected ${c.value}, got ${out}`
  if (c.out !== undefined) return isTensor(out) ? compare(await out.data(), out, c.out, tolerance) : `expected a tensor, got ${typeof out}`
  for (const [name, want] of Object.entries(c.parts ?? {})) {
    const part = (out as Readonly<Record<string, Tensor>>)[name]!
    const failure = compare(await part.data(), part, want, tolerance)
    if (failure !== null) return `${name}: ${failure}`
  }
  return null
}

function decode(json: Json, bases: Tensor[]): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json ?? undefined
  const object = json as { readonly [key: string]: Json }
  if ('list' in object) return (object.list as readonly Json[]).map((item) => decode(item, bases))
  if ('number' in object) return Number(object.number)
  if (!('t' in object)) return object // options
  const golden = json as unknown as GoldenTensor
  const base = Tensor.over(golden.t, golden.shape, decodeData(golden))
  bases.push(base)
  let x = base
  for (const [method, ...args] of golden.via ?? []) {
    x = CALLS[method]!(x, ...args) as Tensor
  }
  return x
}

function decodeData(golden: GoldenTensor): TypedArray {
  const array = allocate(golden.t, golden.data.length)
  for (const [i, v] of golden.data.entries()) array[i] = Number(v)
  return array
}

function compare(data: TypedArray, x: Tensor, golden: GoldenTensor, tolerance: Tolerance): string | null {
  if (x.dtype !== golden.t) return `expected ${golden.t}, got ${x.dtype}`
  if (JSON.stringify(x.shape) !== JSON.stringify(golden.shape)) return `expected [${golden.shape}], got [${x.shape}]`
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
