/**
 * The tests that every backend must pass: PyTorch's results (golden/*.json, written by the scripts of the same names in scripts/golden) for
 * all operations, over broadcasting, views, empty and 0-d tensors, promotion and special values. A backend's test calls it.
 */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import type { KernelOp } from '../kernels/table/table.js'
import { type Device, withDevice } from '../tensor/device.js'
import { CALLS, compare, decode, type GoldenCase, goldenCasesByOp, type Tolerance } from '../tensor/golden.suite.js'
import { isTensor, type Tensor } from '../tensor/tensor.js'
import type { DType } from '../values/dtype.js'

export interface OpsSuiteOptions {
  readonly tolerance: Tolerance
  /** Whether a case may end in KERNEL_UNSUPPORTED where the device's table says so, for any dtype but float32. Otherwise it fails. */
  readonly mayRefuse?: boolean
  /** Operations that may end in READ_NOT_SYNCHRONOUS, because what they give depends on elements. */
  readonly readEarly?: readonly string[]
}

export function opsSuite(name: string, makeDevice: () => Device | Promise<Device>, options: OpsSuiteOptions): void {
  describe(`operations on ${name}`, () => {
    for (const [op, cases] of goldenCasesByOp()) {
      test(`${op}: ${cases.length} cases as PyTorch computes them`, async () => {
        const device = await makeDevice()
        await device.ready()
        expect(await goldenFailures(device, cases, options)).toEqual([])
      })
    }
  })
}

/** Differences, a line per case. */
export async function goldenFailures(device: Device, cases: readonly GoldenCase[], options: OpsSuiteOptions): Promise<string[]> {
  const failures: string[] = []
  for (const c of cases) {
    try {
      const failure = await withDevice(device, () => check(c, options.tolerance))
      if (failure !== null) failures.push(`${c.label}: ${failure}`)
    } catch (error) {
      if (options.readEarly?.includes(c.op) && isPostgradError(error, 'READ_NOT_SYNCHRONOUS')) continue
      if (options.mayRefuse && isRefusal(device, c, error)) continue
      failures.push(`${c.label}: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
  return failures
}

/** A case in float32 from end to end must not fail for another dtype in between. */
function isRefusal(device: Device, c: GoldenCase, error: unknown): boolean {
  if (!isPostgradError(error) || error.code !== 'KERNEL_UNSUPPORTED') return false
  const { op, dtype } = error.values as { op: KernelOp; dtype: DType }
  const isOther = /"t":"(?!float32)/.test(JSON.stringify(c.args)) || /"t":"(?!float32|bool)/.test(JSON.stringify([c.out, c.parts]))
  return dtype !== 'float32' && isOther && !device.kernelFor(op, dtype).supported
}

async function check(c: GoldenCase, tolerance: Tolerance): Promise<string | null> {
  const bases: Tensor[] = []
  const args = c.args.map((a) => decode(a, bases))
  const before = await Promise.all(bases.map((base) => base.data()))
  const versions = bases.map((base) => base.storage.version)
  if (c.refused !== undefined) return await checkRefused(c, () => CALLS[c.op]!(...args))
  const out = CALLS[c.op]!(...args)
  const failure = await compareResult(out, c, tolerance)
  if (failure !== null) return failure
  if (c.base) {
    if (out !== args[0]) return 'an in-place operation returns its first argument'
    if (bases[0]!.storage.version !== versions[0]! + 1) return 'the version was not raised once'
    return compare(await bases[0]!.data(), bases[0]!, c.base, tolerance)
  }
  for (const [i, base] of bases.entries()) {
    const changed = (await base.data()).some((v, j) => !Object.is(v, before[i]![j]))
    if (changed || base.storage.version !== versions[i]) return `input ${i} was written to`
  }
  return null
}

async function checkRefused(c: GoldenCase, call: () => unknown): Promise<string | null> {
  try {
    const out = call()
    // A device that computes late reports it at the next read.
    if (isTensor(out) && !out.device.synchronous) await out.data()
  } catch (error) {
    if (!isPostgradError(error) || error.code === 'KERNEL_UNSUPPORTED') throw error
    return error.remedy ? null : `${error.code} without a remedy`
  }
  return `PyTorch refuses it: ${c.refused}`
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
