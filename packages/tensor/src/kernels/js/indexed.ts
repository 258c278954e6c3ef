/** Movement by indices, reversed rows, triangles, and sums at indices of the js backend, for each dtype. Neighbour: `movement.ts`, copies and fills. */
import type { TypedArray } from '../../values/dtype.js'
import type { FirstOutside, Indexed, Rows, Triangle } from '../table/operands.js'
import { each, INDICES, REAL_OR_INT } from './cells.js'
import { BULK_FROM } from './movement.js'

/** A row of `inner` elements at a time. */
const indexSelect = (): Indexed => (x, index, out, outer, rows, n, inner) => {
  const [xs, at, to] = [x.storage.host!, index.storage.host!, out.storage.host!]
  const io = index.offset
  for (let o = 0; o < outer; o++) {
    const from = x.offset + o * rows * inner
    const first = out.offset + o * n * inner
    if (inner === 1) for (let i = 0; i < n; i++) to[first + i] = xs[from + at[io + i]!]!
    else for (let i = 0; i < n; i++) copyRow(inner, xs, from + at[io + i]! * inner, to, first + i * inner)
  }
}

function copyRow(n: number, x: TypedArray, from: number, out: TypedArray, to: number): void {
  if (n >= BULK_FROM) out.set(x.subarray(from, from + n), to)
  else for (let j = 0; j < n; j++) out[to + j] = x[from + j]!
}

const gather = (): Indexed => (x, index, out, outer, rows, n, inner) => {
  const [xs, at, to] = [x.storage.host!, index.storage.host!, out.storage.host!]
  const [io, oo] = [index.offset, out.offset]
  let k = 0
  for (let o = 0; o < outer; o++) {
    const from = x.offset + o * rows * inner
    for (let i = 0; i < n; i++) for (let j = 0; j < inner; j++, k++) to[oo + k] = xs[from + at[io + k]! * inner + j]!
  }
}

const scatter = (): Indexed => (x, index, out, outer, rows, n, inner) => {
  const [xs, at, to] = [x.storage.host!, index.storage.host!, out.storage.host!]
  const [xo, io] = [x.offset, index.offset]
  let k = 0
  for (let o = 0; o < outer; o++) {
    const first = out.offset + o * rows * inner
    for (let i = 0; i < n; i++) for (let j = 0; j < inner; j++, k++) to[first + at[io + k]! * inner + j] = xs[xo + k]!
  }
}

const indexAdd = (): Indexed => (x, index, out, outer, rows, n, inner) => {
  const [xs, at, to] = [x.storage.host!, index.storage.host!, out.storage.host!]
  let from = x.offset
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < n; i++, from += inner) {
      const first = out.offset + (o * rows + at[index.offset + i]!) * inner
      for (let j = 0; j < inner; j++) to[first + j] = to[first + j]! + xs[from + j]!
    }
  }
}

const scatterAdd = (): Indexed => (x, index, out, outer, rows, n, inner) => {
  const [xs, at, to] = [x.storage.host!, index.storage.host!, out.storage.host!]
  const [xo, io] = [x.offset, index.offset]
  let k = 0
  for (let o = 0; o < outer; o++) {
    const first = out.offset + o * rows * inner
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < inner; j++, k++) {
        const place = first + at[io + k]! * inner + j
        to[place] = to[place]! + xs[xo + k]!
      }
    }
  }
}

const flip = (): Rows => (x, out, outer, k, inner) => {
  const [xs, to] = [x.storage.host!, out.storage.host!]
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < k; i++) copyRow(inner, xs, x.offset + (o * k + k - 1 - i) * inner, to, out.offset + (o * k + i) * inner)
  }
}

const triangle = (upper: boolean) => (): Triangle => (x, out, outer, rows, columns, diagonal) => {
  const [xs, to] = [x.storage.host!, out.storage.host!]
  let i = 0
  for (let o = 0; o < outer; o++) {
    for (let row = 0; row < rows; row++) {
      // The first element on the other side.
      const at = row + diagonal + (upper ? 0 : 1)
      for (let column = 0; column < columns; column++, i++) to[out.offset + i] = column < at === upper ? 0 : xs[x.offset + i]!
    }
  }
}

const firstOutside: FirstOutside = (x, out, extent) => {
  const at = x.storage.host as Int32Array
  let i = 0
  // Without a sign, a negative index is a large one.
  while (i < x.numel && at[x.offset + i]! >>> 0 < extent) i++
  out.storage.host![out.offset] = i
}

/** Nothing is computed. */
export const moves = {
  firstOutside: { float32: INDICES, float64: INDICES, int32: firstOutside, bool: INDICES },
  flip: each(flip),
  tril: each(triangle(false)),
  triu: each(triangle(true)),
  indexSelect: each(indexSelect),
  gather: each(gather),
  scatter: each(scatter),
}

export const cells = {
  ...moves,
  indexAdd: { ...each(indexAdd), bool: REAL_OR_INT },
  scatterAdd: { ...each(scatterAdd), bool: REAL_OR_INT },
}
