/** Sorting rows by index with the engine's sort. */
import type { Argsort } from '../table/operands.js'
import { each } from './cells.js'

/** NaN is the greatest, as in PyTorch. */
function ascending(a: number, b: number): number {
  if (a < b) return -1
  if (a > b) return 1
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b))
}

const argsort = (): Argsort => (x, out, outer, k, m, inner, descending) => {
  const [xs, to] = [x.storage.host!, out.storage.host!]
  const order = new Int32Array(k)
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const from = o * k * inner + i
      for (let j = 0; j < k; j++) order[j] = j
      const at = x.offset + from
      // Equals keep their order in both directions: the sort is stable.
      if (descending) order.sort((p, q) => ascending(xs[at + q * inner]!, xs[at + p * inner]!))
      else order.sort((p, q) => ascending(xs[at + p * inner]!, xs[at + q * inner]!))
      for (let j = 0; j < m; j++) to[out.offset + (o * m + j) * inner + i] = order[j]!
    }
  }
}

export const cells = { argsort: each(argsort) }
