/**
 * What every backend must hold: PyTorch's results (golden/ops.json, written by scripts/golden/ops.py) for all raw operations, over
 * broadcasting, views, empty and 0-d tensors, promotion and special values. The test of a backend is a call of this.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { type Device, withDevice } from './device.js'
import { allocate, type DType, type TypedArray } from './dtype.js'
import * as raw from './raw/index.js'
import { Tensor } from './tensor.js'

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
  readonly out: GoldenTensor
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

export function goldenCases(): readonly GoldenCase[] {
  const text = readFileSync(new URL('../golden/ops.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { cases: GoldenCase[] }).cases
}

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
  const out: DType[] = [c.out.t]
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
  const out = (raw as unknown as Record<string, (...args: unknown[]) => Tensor>)[c.op]!(...args)
  const failure = compare(await out.data(), out, c.out, tolerance)
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

function decode(json: Json, bases: Tensor[]): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json ?? undefined
  const object = json as { readonly [key: string]: Json }
  if ('list' in object) return (object.list as readonly Json[]).map((item) => decode(item, bases))
  if ('number' in object) return Number(object.number)
  const golden = json as unknown as GoldenTensor
  const base = Tensor.over(golden.t, golden.shape, decodeData(golden))
  bases.push(base)
  let x = base
  for (const [method, ...args] of golden.via ?? []) {
    x = (raw as unknown as Record<string, (...args: unknown[]) => Tensor>)[method]!(x, ...args)
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
