/** The oracle of fused kernels: steps of optimizers with each operation rounded, recurrent steps and attention in double precision. Part of `oracle.suite.ts`. */
import type {
  Attention,
  AttentionBackward,
  GruCell,
  GruCellBackward,
  LstmCell,
  LstmCellBackward,
  Operand,
  Rows,
  Step,
  SumApart,
} from '../table/operands.js'
import { unsupported } from '../table/table.js'
import { rows } from './rows.suite.js'

/** Element i of a dense operand. */
const at = (x: Operand, i: number): number => x.storage.host![x.offset + i]!
function put(x: Operand, i: number, value: number): void {
  x.storage.host![x.offset + i] = value
}

type Round = (x: number) => number
/** A step for one element: from the direction g, by states and numbers of its own, to the term that the rate multiplies. */
type Rule = (round: Round, g: number, states: States, own: readonly number[]) => number
interface States {
  has(k: number): boolean
  read(k: number): number
  write(k: number, value: number): number
}

const decayed = (round: Round, average: number, x: number, rate: number, gain: number): number =>
  round(round(average * round(rate)) + round(round(gain) * x))
const rootPlus = (round: Round, x: number, eps: number): number => round(round(Math.sqrt(x)) + round(eps))

const RULES = {
  sgdStep: (round, g, states, [momentum = 0, gain = 0, isFirst, nesterov]) => {
    if (!states.has(0)) return g
    const v = states.write(0, isFirst === 1 ? g : decayed(round, states.read(0), g, momentum, gain))
    return nesterov === 1 ? round(g + round(round(momentum) * v)) : v
  },
  adamStep: (round, g, states, [beta1 = 0, gain1 = 0, beta2 = 0, gain2 = 0, eps = 0]) => {
    const m = states.write(0, decayed(round, states.read(0), g, beta1, gain1))
    const v = states.write(1, decayed(round, states.read(1), round(g * g), beta2, gain2))
    const largest = states.has(2) ? states.write(2, Math.max(states.read(2), v)) : v
    return round(m / rootPlus(round, largest, eps))
  },
  nadamStep: (round, g, states, [beta1 = 0, gain1 = 0, beta2 = 0, gain2 = 0, eps = 0, ahead = 0, share = 0]) => {
    const m = states.write(0, decayed(round, states.read(0), g, beta1, gain1))
    const v = states.write(1, decayed(round, states.read(1), round(g * g), beta2, gain2))
    return round(round(round(m * round(ahead)) + round(round(share) * g)) / rootPlus(round, v, eps))
  },
  adamaxStep: (round, g, states, [beta1 = 0, gain1 = 0, beta2 = 0, eps = 0]) => {
    const m = states.write(0, decayed(round, states.read(0), g, beta1, gain1))
    return round(m / states.write(1, Math.max(round(states.read(1) * round(beta2)), round(Math.abs(g) + round(eps)))))
  },
  rmspropStep: (round, g, states, [alpha = 0, gain = 0, eps = 0, momentum = 0]) => {
    let v = states.write(0, decayed(round, states.read(0), round(g * g), alpha, gain))
    if (states.has(1)) {
      const mean = states.write(1, decayed(round, states.read(1), g, alpha, gain))
      v = round(v - round(mean * mean))
    }
    const quotient = round(g / rootPlus(round, v, eps))
    return states.has(2) ? states.write(2, round(round(states.read(2) * round(momentum)) + quotient)) : quotient
  },
  adagradStep: (round, g, states, [eps = 0]) => round(g / rootPlus(round, states.write(0, round(states.read(0) + round(g * g))), eps)),
  adadeltaStep: (round, g, states, [rho = 0, gain = 0, eps = 0]) => {
    const v = states.write(0, decayed(round, states.read(0), round(g * g), rho, gain))
    const root = (x: number): number => round(Math.sqrt(round(x + round(eps))))
    const delta = round(round(root(states.read(1)) / root(v)) * g)
    states.write(1, decayed(round, states.read(1), round(delta * delta), rho, gain))
    return delta
  },
} satisfies Readonly<Record<string, Rule>>

const step =
  (rule: Rule, round: Round): Step =>
  (grad, first, second, third, p, [rate, factor, weightDecay, maximize, ...own]) => {
    const all = [first, second, third]
    for (let i = 0; i < p.numel; i++) {
      const states: States = {
        has: (k) => all[k] !== null,
        read: (k) => at(all[k]!, i),
        write: (k, value) => {
          put(all[k]!, i, value)
          return value
        },
      }
      const x = factor === 1 ? at(p, i) : round(at(p, i) * round(factor))
      const g = maximize === 1 ? -at(grad, i) : at(grad, i)
      const direction = weightDecay === 0 ? g : round(g + round(round(weightDecay) * x))
      put(p, i, round(x + round(round(rate) * rule(round, direction, states, own))))
    }
  }

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))

/** Calls `f` for each element of h, with its place there, and functions to the places of part k side by side in a row, and one after the other. */
function eachOfRows(
  h: Operand,
  f: (i: number, beside: (k: number, parts: number) => number, after: (k: number) => number, j: number) => void,
) {
  const [rows, width] = h.shape as readonly [number, number]
  for (let row = 0; row < rows; row++) {
    for (let j = 0; j < width; j++) {
      f(
        row * width + j,
        (k, parts) => (row * parts + k) * width + j,
        (k) => (k * rows + row) * width + j,
        j,
      )
    }
  }
}

const lstmCell: LstmCell = (product, inputs, c, made, nextC, nextH) =>
  eachOfRows(nextH, (i, beside, after) => {
    const gate = (k: number) => at(product, beside(k, 4)) + at(inputs, beside(k, 4))
    const [input, forget, g, o] = [sigmoid(gate(0)), sigmoid(gate(1)), Math.tanh(gate(2)), sigmoid(gate(3))]
    const next = forget * at(c, i) + input * g
    for (const [k, value] of [input, forget, g, o, Math.tanh(next)].entries()) put(made, after(k), value)
    put(nextC, i, next)
    put(nextH, i, o * Math.tanh(next))
  })

const lstmCellBackward: LstmCellBackward = (gradOut, dh, made, c, dc, dGates) =>
  eachOfRows(dc, (i, beside, after) => {
    const [input, forget, g, o, squashed] = [0, 1, 2, 3, 4].map((k) => at(made, after(k))) as [number, number, number, number, number]
    const d = at(gradOut, i) + at(dh, i)
    const forC = at(dc, i) + d * o * (1 - squashed ** 2)
    put(dGates, beside(0, 4), forC * g * input * (1 - input))
    put(dGates, beside(1, 4), forC * at(c, i) * forget * (1 - forget))
    put(dGates, beside(2, 4), forC * input * (1 - g ** 2))
    put(dGates, beside(3, 4), d * squashed * o * (1 - o))
    put(dc, i, forC * forget)
  })

const gruCell: GruCell = (product, inputs, bias, h, made, nextH) =>
  eachOfRows(nextH, (i, beside, after, j) => {
    const [u, x] = [(k: number) => at(product, beside(k, 3)), (k: number) => at(inputs, beside(k, 3))]
    const [r, z, q] = [sigmoid(x(0) + u(0)), sigmoid(x(1) + u(1)), u(2) + at(bias, j)]
    const n = Math.tanh(x(2) + r * q)
    for (const [k, value] of [r, z, q, n].entries()) put(made, after(k), value)
    put(nextH, i, n + z * (at(h, i) - n))
  })

const gruCellBackward: GruCellBackward = (gradOut, dh, made, h, dInputs, dProduct, direct) =>
  eachOfRows(direct, (i, beside, after) => {
    const [r, z, q, n] = [0, 1, 2, 3].map((k) => at(made, after(k))) as [number, number, number, number]
    const d = at(gradOut, i) + at(dh, i)
    const dn = (d - d * z) * (1 - n ** 2)
    const [dr, dz] = [dn * q * r * (1 - r), d * (at(h, i) - n) * z * (1 - z)]
    for (const [k, value] of [dr, dz, dn].entries()) put(dInputs, beside(k, 3), value)
    for (const [k, value] of [dr, dz, dn * r].entries()) put(dProduct, beside(k, 3), value)
    put(direct, i, d * z)
  })

/** Row `row` of matrix [a, b] of an operand with adjacent elements in its rows. */
function rowOf(x: Operand, a: number, b: number, row: number): number[] {
  const from = x.offset + a * x.strides[0]! + b * x.strides[1]! + row * x.strides[2]!
  return Array.from({ length: x.shape[3]! }, (_, j) => x.storage.host![from + j]!)
}

const dot = (x: readonly number[], y: readonly number[]): number => x.reduce((sum, value, i) => sum + value * y[i]!, 0)

/** The shares of one query. */
function sharesOf(
  query: readonly number[],
  keys: readonly number[][],
  mask: Operand | null,
  places: readonly number[],
  scale: number,
  isCausal: boolean,
) {
  const [a, b, row] = places as readonly [number, number, number]
  const masks = mask === null ? null : rowOf(mask, a, b, row)
  const scores = keys.map((key, j) => {
    if (isUnseen(mask, masks, row, j, isCausal)) return Number.NEGATIVE_INFINITY
    return scale * dot(query, key) + (mask?.dtype === 'float32' ? masks![j]! : 0)
  })
  const largest = Math.max(...scores)
  const exponentials = scores.map((score) => Math.exp(score - largest))
  const total = exponentials.reduce((sum, x) => sum + x, 0)
  return exponentials.map((x) => x / total)
}

const isUnseen = (mask: Operand | null, masks: readonly number[] | null, row: number, key: number, isCausal: boolean): boolean =>
  (isCausal && key > row) || (mask?.dtype === 'bool' && masks![key] === 0)

/** Calls `f` for each query, with its place, its shares, and rows of the other operands. */
function eachQuery(
  [q, k, v]: readonly [Operand, Operand, Operand],
  mask: Operand | null,
  scale: number,
  isCausal: boolean,
  f: (a: number, b: number, row: number, shares: number[], keys: number[][], values: number[][]) => void,
): void {
  const [as, bs, queries] = q.shape as readonly [number, number, number]
  for (let a = 0; a < as; a++) {
    for (let b = 0; b < bs; b++) {
      const rows = (x: Operand) => Array.from({ length: x.shape[2]! }, (_, row) => rowOf(x, a, b, row))
      const [keys, values] = [rows(k), rows(v)]
      for (let row = 0; row < queries; row++)
        f(a, b, row, sharesOf(rowOf(q, a, b, row), keys, mask, [a, b, row], scale, isCausal), keys, values)
    }
  }
}

/** The place of an element in a dense operand of four dimensions. */
const placeOf = ({ shape }: Operand, a: number, b: number, row: number, column: number): number =>
  ((a * shape[1]! + b) * shape[2]! + row) * shape[3]! + column

const attention: Attention = (q, k, v, mask, out, scale, isCausal) =>
  eachQuery([q, k, v], mask, scale, isCausal, (a, b, row, shares, _, values) => {
    for (let c = 0; c < v.shape[3]!; c++)
      put(
        out,
        placeOf(out, a, b, row, c),
        dot(
          shares,
          values.map((value) => value[c]!),
        ),
      )
  })

const attentionBackward: AttentionBackward = (grad, q, k, v, mask, dq, dk, dv, scale, isCausal) => {
  const sums = [dq, dk, dv].map((x) => x && new Float64Array(x.numel))
  const add = (which: 0 | 1 | 2, x: Operand | null, place: readonly [number, number, number, number], value: number) => {
    if (x !== null) sums[which]![placeOf(x, ...place)]! += value
  }
  eachQuery([q, k, v], mask, scale, isCausal, (a, b, row, shares, keys, values) => {
    const g = rowOf(grad, a, b, row)
    const slopes = values.map((value) => dot(g, value))
    const mean = dot(slopes, shares)
    const query = rowOf(q, a, b, row)
    const masks = mask === null ? null : rowOf(mask, a, b, row)
    for (const [j, share] of shares.entries()) {
      const forScore = isUnseen(mask, masks, row, j, isCausal) ? 0 : share * (slopes[j]! - mean) * scale
      for (let c = 0; c < query.length; c++) {
        add(0, dq, [a, b, row, c], forScore * keys[j]![c]!)
        add(1, dk, [a, b, j, c], forScore * query[c]!)
      }
      for (let c = 0; c < g.length; c++) add(2, dv, [a, b, j, c], share * g[c]!)
    }
  })
  for (const [i, x] of [dq, dk, dv].entries()) if (x !== null) for (const [place, value] of sums[i]!.entries()) put(x, place, value)
}

/** The sum of a copy whose rows are dense. */
const apart =
  (sum: Rows): SumApart =>
  (x, out, parts, outer, part) => {
    const host = x.storage.host!.slice(0, x.numel)
    for (let i = 0; i < x.numel; i++) {
      const [p, o] = [Math.floor(i / (outer * part)), Math.floor(i / part) % outer]
      host[(o * parts + p) * part + (i % part)] = at(x, i)
    }
    sum({ ...x, storage: { ...x.storage, host } as Operand['storage'], offset: 0 }, out, outer, parts * part, 1)
  }

const NONE = unsupported('the operations that it is made of run instead')
const float = <K>(float32: K) => ({ float32, float64: NONE, int32: NONE, bool: NONE })
const real = (rule: Rule) => ({ float32: step(rule, Math.fround), float64: step(rule, (x) => x), int32: NONE, bool: NONE })

export const fused = {
  sgdStep: real(RULES.sgdStep),
  adamStep: real(RULES.adamStep),
  nadamStep: real(RULES.nadamStep),
  adamaxStep: real(RULES.adamaxStep),
  rmspropStep: real(RULES.rmspropStep),
  adagradStep: real(RULES.adagradStep),
  adadeltaStep: real(RULES.adadeltaStep),
  lstmCell: float(lstmCell),
  lstmCellBackward: float(lstmCellBackward),
  gruCell: float(gruCell),
  gruCellBackward: float(gruCellBackward),
  sumApart: { float32: apart(rows.sum.float32), float64: apart(rows.sum.float64), int32: NONE, bool: NONE },
  attention: float(attention),
  attentionBackward: float(attentionBackward),
}
