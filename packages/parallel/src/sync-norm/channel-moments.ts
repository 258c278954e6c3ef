/**
 * The arithmetic of a SyncBatchNorm's forward: one rank's moments of each channel, the merged moments of all ranks, and the normalised values. All of it is in float64
 * except the values, so float32 ones lose as much as in a plain batch norm. Moments merge without the cancellation that sums of squares have (Chan, Golub and LeVeque,
 * "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979). `sync-batch-norm.ts` calls it.
 */
import { tensor } from '@postgrad/tensor'
import { elementsOf, raw, type Tensor } from '@postgrad/tensor/internal'
import type { Statistics } from './sync-norm-nodes.js'

/** How many values a channel of x [N, C, …] has, and of each channel their mean and the sum of their squared distances from it: [1 + 2 C]. */
export function rowOf(x: Tensor): Float64Array {
  const { values, outer, c, inner } = channelsOf(x)
  const row = new Float64Array(1 + 2 * c)
  const count = outer * inner
  if (count === 0) return row
  row[0] = count
  for (let channel = 0; channel < c; channel++) {
    const first = channel * inner
    let sum = 0
    for (let o = 0, from = first; o < outer; o++, from += c * inner) for (let i = 0; i < inner; i++) sum += values[from + i]!
    const mean = sum / count
    let squares = 0
    for (let o = 0, from = first; o < outer; o++, from += c * inner)
      for (let i = 0; i < inner; i++) squares += (values[from + i]! - mean) ** 2
    row[1 + channel] = mean
    row[1 + c + channel] = squares
  }
  return row
}

/** The rows of all ranks as one, of all values. */
export function merged(rows: readonly Float64Array[]): {
  readonly count: number
  readonly mean: Float64Array
  readonly squares: Float64Array
} {
  const c = (rows[0]!.length - 1) / 2
  const count = rows.reduce((sum, row) => sum + row[0]!, 0)
  const mean = new Float64Array(c)
  const squares = new Float64Array(c)
  for (const row of rows) for (let i = 0; i < c; i++) mean[i]! += (row[0]! * row[1 + i]!) / count
  for (const row of rows) for (let i = 0; i < c; i++) squares[i]! += row[1 + c + i]! + row[0]! * (row[1 + i]! - mean[i]!) ** 2
  return { count, mean, squares }
}

/** (x − mean) / σ · weight + bias, rounded once. */
export function normalized(x: Tensor, weight: Tensor | null, bias: Tensor | null, { mean, rstd }: Statistics): Tensor {
  const along = (values: Tensor): Tensor => raw.reshape(raw.to(values, 'float64'), [-1, ...new Array<number>(x.ndim - 2).fill(1)])
  const scale = weight === null ? tensor(rstd) : raw.mul(tensor(rstd), raw.to(weight, 'float64'))
  const out = raw.mul_(raw.sub(raw.to(x, 'float64'), along(tensor(mean))), along(scale))
  return raw.to(raw.add_(out, bias === null ? 0 : along(bias)), x.dtype)
}

/** x [N, C, …] as numbers [outer, c, inner]. */
function channelsOf(x: Tensor) {
  const [outer, c] = x.shape as readonly [number, number]
  return { values: elementsOf(x), outer, c, inner: x.shape.slice(2).reduce((product, extent) => product * extent, 1) }
}
