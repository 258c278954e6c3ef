/** The oracle along the middle axis of [outer, k, inner]: each row becomes a list of numbers, and a function of lists gives the result. Part of `oracle.suite.ts`. */
import type { Argsort, GradRows, Operand, Rows, Variance } from '../table/operands.js'
import { unsupported } from '../table/table.js'

type List = readonly number[]

/** Calls `f` for each row, with what reads one of an operand and what writes one, and the place of its single result. */
function each(
  outer: number,
  k: number,
  inner: number,
  f: (read: (x: Operand) => List, write: (out: Operand, values: List) => void, single: number) => void,
): void {
  for (let row = 0; row < outer * inner; row++) {
    const at = (j: number): number => (Math.floor(row / inner) * k + j) * inner + (row % inner)
    const places = Array.from({ length: k }, (_, j) => at(j))
    f(
      (x) => places.map((place) => x.storage.host![x.offset + place]!),
      (out, values) => {
        for (const [j, place] of places.entries()) put(out, place, values[j]!)
      },
      row,
    )
  }
}

function put(out: Operand, place: number, value: number): void {
  out.storage.host![out.offset + place] = value
}

/** Rule SUM: along rows that lie in one piece eight totals side by side, otherwise one after the other. */
function fold(values: List, inner: number, join: (total: number, value: number) => number, start: number): number {
  const whole = inner === 1 ? values.length - (values.length % 8) : 0
  const [a, b, c, d, e, f, g, h] = Array.from({ length: 8 }, (_, lane) =>
    values.slice(0, whole).reduce((total, value, i) => (i % 8 === lane ? join(total, value) : total), start),
  ) as [number, number, number, number, number, number, number, number]
  return values.slice(whole).reduce(join, join(join(join(a, c), join(e, g)), join(join(b, d), join(f, h))))
}

const sum = (values: List, inner: number): number => fold(values, inner, plus, 0)

/** Rule SUM of float32: eight elements of a total, or of a column, are first added in float32, in pairs. */
function sumF32(values: List, inner: number): number {
  const lanes = inner === 1 ? 8 : 1
  const whole = values.length - (values.length % (8 * lanes))
  const inPairs = (list: List): number =>
    list.length === 1 ? list[0]! : Math.fround(inPairs(list.slice(0, list.length / 2)) + inPairs(list.slice(list.length / 2)))
  const sums = Array.from({ length: whole / 8 }, (_, i) => {
    const first = Math.floor(i / lanes) * 8 * lanes + (i % lanes)
    return inPairs(Array.from({ length: 8 }, (_, j) => values[first + j * lanes]!))
  })
  return sum([...sums, ...values.slice(whole)], inner)
}

const plain = (values: List): number => values.reduce((total, value) => total + value, 0)
const product = (values: List): number => values.reduce((total, value) => total * value, 1)

/** The first NaN, otherwise the first of the greatest or least. */
function best(values: List, extreme: (...values: number[]) => number): number {
  const nan = values.findIndex(Number.isNaN)
  return nan >= 0 ? nan : values.indexOf(extreme(...values))
}

const reduce =
  (f: (values: List, inner: number) => number): Rows =>
  (x, out, outer, k, inner) =>
    each(outer, k, inner, (read, _, single) => put(out, single, f(read(x), inner)))

const scan =
  (f: (total: number, value: number) => number, start: number, reverse = false): Rows =>
  (x, out, outer, k, inner) =>
    each(outer, k, inner, (read, write) => {
      let total = start
      const values = reverse ? read(x).toReversed() : read(x)
      const totals = values.map((value) => (total = f(total, value)))
      write(out, reverse ? totals.reverse() : totals)
    })

const variance: Variance = (x, out, outer, k, inner, correction, root) =>
  each(outer, k, inner, (read, _, single) => {
    const values = read(x)
    const mean = sum(values, inner) / k
    const squares = values.map((value) => (value - mean) * (value - mean))
    const found = sum(squares, inner) / Math.max(0, k - correction)
    put(out, single, root ? Math.sqrt(found) : found)
  })

/** NaN is the greatest. */
const before = (a: number, b: number): boolean => a < b || (!Number.isNaN(a) && Number.isNaN(b))

/** An element's place is the number of those before it: equals keep their order. */
const argsort: Argsort = (x, out, outer, k, m, inner, descending) =>
  each(outer, k, inner, (read, _, single) => {
    const values = read(x)
    const precedes = (i: number, j: number): boolean => (descending ? before(values[j]!, values[i]!) : before(values[i]!, values[j]!))
    const order = values.map(() => 0)
    values.forEach((_, i) => {
      order[values.filter((_, j) => precedes(j, i) || (j < i && !precedes(i, j))).length] = i
    })
    const [o, i] = [Math.floor(single / inner), single % inner]
    for (const [j, place] of order.slice(0, m).entries()) put(out, (o * m + j) * inner + i, place)
  })

const flip: Rows = (x, out, outer, k, inner) => each(outer, k, inner, (read, write) => write(out, read(x).toReversed()))

const softmax =
  (logarithm: boolean): Rows =>
  (x, out, outer, k, inner) =>
    each(outer, k, inner, (read, write) => {
      const values = read(x)
      const max = values[best(values, Math.max)]!
      const total = plain(values.map((value) => Math.exp(value - max)))
      write(
        out,
        values.map((value) => (logarithm ? value - max - Math.log(total) : Math.exp(value - max) / total)),
      )
    })

/** `f` gives a row's gradient from that of its result, and from the result or the argument. */
const gradients =
  (f: (grad: List, x: List) => List): GradRows =>
  (grad, x, out, outer, k, inner) =>
    each(outer, k, inner, (read, write) => write(out, f(read(grad), read(x))))

const prodBackward: GradRows = (grad, x, out, outer, k, inner) =>
  each(outer, k, inner, (read, write, single) => {
    const values = read(x)
    const g = grad.storage.host![grad.offset + single]!
    write(
      out,
      values.map((_, i) => product(values.slice(0, i)) * (g * product(values.slice(i + 1).reverse()))),
    )
  })

/** The sum over j ≥ i of grad j times x 0 … j without x i. */
function cumprodGradient(grad: List, x: List): List {
  return x.map((_, i) => {
    let others = product(x.slice(0, i))
    let total = 0
    for (let j = i; j < x.length; j++) {
      if (j > i) others *= x[j]!
      total += others * grad[j]!
    }
    return total
  })
}

const { max, min, imul } = Math
const NONE = unsupported('PyTorch has no such cell, or raw operations convert before')
const real = <K>(kernel: K, int32: K | typeof NONE = NONE) => ({ float32: kernel, float64: kernel, int32, bool: NONE })
const everywhere = <K>(kernel: K) => ({ float32: kernel, float64: kernel, int32: kernel, bool: kernel })
const plus = (a: number, b: number): number => a + b
const plusInt = (a: number, b: number): number => (a + b) | 0
const times = (a: number, b: number): number => a * b

export const rows = {
  sum: {
    ...real(
      reduce(sum),
      reduce((values) => values.reduce(plusInt, 0)),
    ),
    float32: reduce(sumF32),
  },
  prod: real(
    reduce((values, inner) => fold(values, inner, times, 1)),
    reduce((values) => values.reduce(imul, 1)),
  ),
  amax: everywhere(reduce((values) => max(...values))),
  amin: everywhere(reduce((values) => min(...values))),
  argmax: everywhere(reduce((values) => best(values, max))),
  argmin: everywhere(reduce((values) => best(values, min))),
  argsort: everywhere(argsort),
  flip: everywhere(flip),
  variance: real(variance),
  cumsum: real(scan(plus, 0), scan(plusInt, 0)),
  cumprod: real(scan(times, 1), scan(imul, 1)),
  reverseCumsum: real(scan(plus, 0, true), scan(plusInt, 0, true)),
  softmax: real(softmax(false)),
  logSoftmax: real(softmax(true)),
  softmaxBackward: real(gradients((grad, y) => y.map((v, i) => v * (grad[i]! - plain(grad.map((g, j) => g * y[j]!)))))),
  logSoftmaxBackward: real(gradients((grad, y) => y.map((v, i) => grad[i]! - Math.exp(v) * plain(grad)))),
  prodBackward: real(prodBackward),
  cumprodBackward: real(gradients(cumprodGradient)),
}
