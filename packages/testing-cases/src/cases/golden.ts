/** PyTorch's numbers for the cases, as `scripts/golden/dist.py` wrote them, and the tolerance of results. */
import { readFileSync } from 'node:fs'
import type { Plain, Plains } from './case.js'

export interface Golden {
  readonly inputs: Plains
  readonly results: Plains
}

/** By the names of the cases. Read again each time: tests only, once per file. */
export function readGolden(): Readonly<Record<string, Golden>> {
  const file = new URL('../../golden/dist.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { cases: Record<string, Golden> }).cases
}

/**
 * Relative to the largest number of a tensor. Products and additions of single elements are PyTorch's to the bit; sums and matrix products may be
 * added up in another order, over at most 9 terms here.
 */
const TOLERANCE: Readonly<Record<string, number>> = { float32: 5e-7, float64: 1e-15 }

/** Differences of `got` from PyTorch's `want`, one line each. Keys, dtypes and shapes must be the same. */
export function differences(got: Plains, want: Plains): string[] {
  const problems: string[] = []
  for (const name of new Set([...Object.keys(got), ...Object.keys(want)])) {
    const [a, b] = [got[name], want[name]]
    if (a === undefined || b === undefined) problems.push(`${name}: ${a === undefined ? 'missing' : 'PyTorch has none'}`)
    else problems.push(...differencesOf(name, a, b))
  }
  return problems
}

function differencesOf(name: string, got: Plain, want: Plain): string[] {
  if (got.dtype !== want.dtype || String(got.shape) !== String(want.shape) || got.data.length !== want.data.length) {
    return [`${name}: ${got.dtype} [${got.shape}], PyTorch has ${want.dtype} [${want.shape}]`]
  }
  const scale = Math.max(...want.data.map(Math.abs), Number.MIN_VALUE)
  const tolerance = scale * TOLERANCE[want.dtype]!
  return want.data.flatMap((value, i) => {
    const expected = want.dtype === 'float32' ? Math.fround(value) : value
    return Math.abs(got.data[i]! - expected) <= tolerance ? [] : [`${name}[${i}]: ${got.data[i]}, PyTorch has ${expected}`]
  })
}
