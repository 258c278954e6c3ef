/**
 * NaN, infinities, zeros of both signs, denormals and the ends of the range: PyTorch's results (golden/specials.json), and the table of all
 * differences in KERNELS.md. A difference without a row fails here, and so does a row without a difference.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { device, type Tensor, withDevice } from '../index.js'
import type { DType } from '../values/dtype.js'
import { CALLS, decode, type GoldenCase, type GoldenTensor, goldenCases, gpujsDevice } from './golden.suite.js'

const TOLERANCE: Readonly<Record<DType, number>> = { float32: 2e-6, float64: 1e-13, int32: 0, bool: 0 }
/** Denormals have few digits: below this the error is absolute. */
const LEAST: Readonly<Record<DType, number>> = { float32: 1e-38, float64: 1e-307, int32: 1, bool: 1 }

function same(got: number, want: number, dtype: DType): boolean {
  if (Number.isNaN(want)) return Number.isNaN(got)
  if (want === 0 || !Number.isFinite(want)) return Object.is(got, want)
  return Math.abs(got - want) <= TOLERANCE[dtype] * Math.max(LEAST[dtype], Math.abs(want))
}

interface Difference {
  readonly op: string
  readonly dtype: DType
  /** The arguments of one element of the result. */
  readonly of: readonly number[]
  readonly torch: number
  readonly here: number
}

/** Element `i` of the result of a case is made of these elements. */
function argumentsOf(c: GoldenCase, i: number): readonly number[] {
  const [a, b] = c.args as unknown as readonly [GoldenTensor, GoldenTensor | number | undefined]
  const numbers = c.args.flatMap((arg) =>
    typeof arg === 'number' ? [arg] : typeof arg === 'object' && 'number' in arg! ? [Number(arg.number)] : [],
  )
  if (typeof b === 'object' && 't' in b && a.shape.length === 2 && a.shape[1] === 1) {
    const n = b.data.length
    return [Number(a.data[Math.floor(i / n)]), Number(b.data[i % n])]
  }
  if (a.shape.length !== 2) return [Number(a.data[i]), ...numbers]
  const columns = a.shape[1]!
  const row = Math.floor(i / (c.out!.data.length / a.shape[0]!)) * columns
  return a.data.slice(row, row + columns).map(Number)
}

const strict = goldenCases().filter((c) => c.strict)

function differencesOn(spec: Spec): { differences: Difference[]; compared: number } {
  const differences: Difference[] = []
  let compared = 0
  for (const c of strict) {
    let out: Tensor
    try {
      out = withDevice(DEVICES[spec], () => CALLS[c.op]!(...c.args.map((arg) => decode(arg, [])))) as Tensor
    } catch (error) {
      // The kernel suite holds a device to what it supports.
      if (isPostgradError(error, 'KERNEL_UNSUPPORTED')) continue
      throw error
    }
    const dtype = (c.args[0] as unknown as GoldenTensor).t
    expect([c.op, out.dtype, out.shape]).toEqual([c.op, c.out!.t, c.out!.shape])
    const data = out.dataSync()
    for (const [i, value] of c.out!.data.entries()) {
      compared++
      const torch = Number(value)
      if (!same(data[i]!, torch, out.dtype)) differences.push({ op: c.op, dtype, of: argumentsOf(c, i), torch, here: data[i]! })
    }
  }
  return { differences, compared }
}

interface Row {
  readonly text: string
  readonly covers: (d: Difference, spec: Spec) => boolean
}

/** Texts in the column of arguments that are rules. */
const RULES: Readonly<Record<string, (of: readonly number[], dtype: DType) => boolean>> = {
  'a / b beyond the range': ([a, b], dtype) =>
    Number.isFinite(a!) && b !== 0 && !Number.isFinite(dtype === 'float32' ? Math.fround(a! / b!) : a! / b!),
}

/** The rows of the table under "Differs from PyTorch": operation, dtype, arguments, PyTorch, here, where. */
function rows(): Row[] {
  const text = readFileSync(new URL('../../KERNELS.md', import.meta.url), 'utf8')
  const table = text.slice(text.indexOf('## Differs from PyTorch\n')).split('\n## ')[0]!
  const lines = table.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) => {
    const [ops, dtypes, of, torch, here, where] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()) as [string, string, string, string, string, string]
    const numbers = of.split(',').map(Number)
    const value = (cell: string, got: number, dtype: DType): boolean =>
      cell === 'exact' || same(got, Number(cell.replace('∞', 'Infinity')), dtype)
    return {
      text: line,
      covers: (d, spec) =>
        ops.split(', ').includes(d.op) &&
        (dtypes === 'both' || dtypes === d.dtype) &&
        (RULES[of]?.(d.of, d.dtype) ?? (numbers.length === d.of.length && numbers.every((v, i) => same(d.of[i]!, v, d.dtype)))) &&
        value(torch, d.torch, d.dtype) &&
        value(here, d.here, d.dtype) &&
        (where === 'all' || where.split(', ').includes(spec)),
    }
  })
}

const DEVICES = { js: device('js'), wasm: device('wasm'), gpujs: gpujsDevice() }
type Spec = keyof typeof DEVICES
const SPECS = Object.keys(DEVICES) as Spec[]

describe('special values', () => {
  const table = rows()
  test.each(SPECS)('on %s: as PyTorch, but for the rows of the table', (spec) => {
    const { differences, compared } = differencesOn(spec)
    expect(compared).toBeGreaterThan(spec === 'gpujs' ? 2500 : 5000)
    expect(differences.filter((d) => !table.some((row) => row.covers(d, spec)))).toEqual([])
  })

  test('every row of the table is a difference', () => {
    expect(table.length).toBeGreaterThan(10)
    const all = SPECS.flatMap((spec) => differencesOn(spec).differences.map((d) => ({ d, spec })))
    expect(table.filter((row) => !all.some(({ d, spec }) => row.covers(d, spec))).map(({ text }) => text)).toEqual([])
  })
})
