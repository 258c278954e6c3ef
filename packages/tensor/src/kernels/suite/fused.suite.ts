/** Fused kernels: steps of optimizers, steps of recurrent layers, attention. Of several outputs each in turn is compared. */
import type { Attention, AttentionBackward, Operand, Step, StepNumbers } from '../table/operands.js'
import type { OpsOf } from '../table/ops.js'
import { type Any, type Cell, maxAbs } from './cell.suite.js'
import { dense, elementsOf, operandOf } from './layouts.suite.js'

type Numbers = readonly number[]

/** Which states each step has, and the numbers of its own. */
const STEPS: Readonly<Record<OpsOf<'step'>, readonly { readonly states: Numbers; readonly own: Numbers }[]>> = {
  sgdStep: [
    { states: [], own: [] },
    { states: [0], own: [0.9, 1, 0, 0] },
    { states: [0], own: [0.9, 0.7, 1, 0] },
    { states: [0], own: [0.9, 1, 0, 1] },
  ],
  adamStep: [
    { states: [0, 1], own: [0.9, 0.1, 0.999, 0.001, 1e-8] },
    { states: [0, 1, 2], own: [0.9, 0.1, 0.999, 0.001, 1e-8] },
  ],
  nadamStep: [{ states: [0, 1], own: [0.9, 0.1, 0.999, 0.001, 1e-8, 0.7, 0.3] }],
  adamaxStep: [{ states: [0, 1], own: [0.9, 0.1, 0.999, 1e-8] }],
  rmspropStep: [
    { states: [0], own: [0.99, 0.01, 1e-8, 0] },
    { states: [0, 1], own: [0.99, 0.01, 1e-8, 0] },
    { states: [0, 2], own: [0.99, 0.01, 1e-8, 0.9] },
    { states: [0, 1, 2], own: [0.99, 0.01, 1e-8, 0.9] },
  ],
  adagradStep: [{ states: [0], own: [1e-10] }],
  adadeltaStep: [{ states: [0, 1], own: [0.9, 0.1, 1e-6] }],
}

/** The settings of every step: rate, factor of the parameter, weightDecay, maximize. */
const COMMON: readonly (readonly [number, number, number, number])[] = [
  [-0.1, 1, 0, 0],
  [-0.1, 1, 0.01, 1],
  [-0.1, 0.99, 0, 1],
]

export function step(cell: Cell): void {
  // The last is more than is staged at once.
  for (const n of cell.sizes([0, 1, 4, 7, 33, 97, 2051], () => cell.extent(4500, 0))) {
    for (const { states, own } of STEPS[cell.op as OpsOf<'step'>]) {
      for (const common of COMMON) {
        const numbers: StepNumbers = [...common, ...own]
        const grad = cell.values(n + 3)
        const all = [0, 1, 2, 3].map((k) => (k === 3 || states.includes(k) ? cell.values(n + 6) : null))
        for (const [output, values] of all.entries()) {
          if (values === null) continue
          const what = `[${n}], states ${states}, ${numbers}, output ${output}`
          cell.compare<Step>(what, values, 1, 0, (k, o) => {
            const [first, second, third, p] = all.map((x, i) => x && operandOf(i === output ? o : x.slice(), i, [n])) as Operand[]
            k(operandOf(grad, 2, [n]), first!, second!, third!, p!, numbers)
          })
        }
      }
    }
  }
}

/** The operands of each step of a layer, by their extents in units of [rows, width], and which of them the kernel writes, from which on. */
const CELLS = {
  lstmCell: { parts: [4, 4, 1, 5, 1, 1], outputs: 3 },
  lstmCellBackward: { parts: [1, 1, 5, 1, 1, 4], outputs: 4 },
  gruCell: { parts: [3, 3, 0, 1, 4, 1], outputs: 4 },
  gruCellBackward: { parts: [1, 1, 4, 1, 3, 3, 1], outputs: 4 },
} as const

export function cellOf(cell: Cell): void {
  const { parts, outputs } = CELLS[cell.op as keyof typeof CELLS]
  const own: readonly (readonly [number, number])[] = [
    [0, 3],
    [1, 1],
    [2, 5],
    [3, 8],
    [5, 37],
    [40, 350],
  ]
  const draw = (): (typeof own)[number] => {
    const [rows, width] = cell.extents(2, 1200, 0) as [number, number]
    return [rows, Math.max(1, width)]
  }
  for (const [rows, width] of cell.sizes(own, draw)) {
    if (rows === 40 && !cell.shapes.some((shape) => elementsOf(shape) >= 5000)) continue
    // `made` is [parts, rows, width], and a bias [width]: what counts is how many elements there are, and the shape of the last operands.
    const shapes = parts.map((n) => (n === 0 ? [width] : n === 1 ? [rows, width] : [rows, n * width]))
    const plain = shapes.map((shape) => cell.values(elementsOf(shape) + 9, cell.dtype, false))
    for (const first of cell.variants(plain[0]!)) {
      for (let output = outputs; output < parts.length; output++) {
        const values = plain.with(0, first)
        cell.compare<(...operands: readonly Operand[]) => void>(`[${rows}, ${width}], output ${output}`, values[output]!, 4, 100, (k, o) =>
          k(...shapes.map((shape, i) => operandOf(i === output ? o : values[i]!.slice(), i + 1, shape))),
        )
      }
    }
  }
}

interface Attended {
  /** [A, B, L, S, E, V] */
  readonly size: readonly [number, number, number, number, number, number]
  readonly mask?: 'bool' | 'float32'
  readonly isCausal?: true
}

const ATTENDED: readonly Attended[] = [
  { size: [1, 1, 1, 1, 1, 1] },
  { size: [0, 1, 2, 2, 3, 3] },
  { size: [2, 3, 4, 5, 3, 2], mask: 'bool' },
  { size: [1, 2, 9, 17, 8, 16], mask: 'float32' },
  { size: [2, 1, 6, 6, 4, 4], isCausal: true },
  { size: [1, 1, 70, 90, 4, 5], isCausal: true },
  { size: [1, 1, 90, 33, 4, 5], isCausal: true },
]
/** Several blocks of queries. */
const LARGE: readonly Attended[] = [{ size: [1, 1, 400, 500, 2, 3], mask: 'bool' }, { size: [1, 2, 30, 30, 3, 2] }]

function drawnAttended(cell: Cell): Attended {
  const [a, b] = [cell.extent(3), cell.extent(3)]
  const [l, s] = cell.extents(2, 4000) as [number, number]
  const [e, w] = cell.extents(2, Math.max(1, Math.floor(40_000 / (a * b * l * s)))) as [number, number]
  const size = [a, b, l, s, Math.min(e, 40), Math.min(w, 40)] as const
  if (cell.random() < 0.3) return { size, isCausal: true }
  const mask = cell.one([undefined, 'bool', 'float32'] as const)
  return mask === undefined ? { size } : { size, mask }
}

/** Rows of all matrices side by side, as heads lie: [A, B, rows, width] with the strides of [A, rows, B, width]. */
const heads = (array: Any, offset: number, [a, b, rows, width]: Numbers): Operand =>
  operandOf(array, offset, [a!, b!, rows!, width!], [rows! * b! * width!, width!, b! * width!, 1])

export function attention(cell: Cell): void {
  const isForward = cell.op === 'attention'
  const large = cell.shapes.some((shape) => elementsOf(shape) >= 5000) ? LARGE : []
  for (const [i, { size, mask, isCausal = false }] of cell.sizes([...ATTENDED, ...large], () => drawnAttended(cell)).entries()) {
    const [a, b, l, s, e, w] = size
    const shapes = { q: [a, b, l, e], k: [a, b, s, e], v: [a, b, s, w], out: [a, b, l, w] }
    const values = (shape: Numbers) => cell.values(elementsOf(shape) + 5, cell.dtype, false)
    const [q, k, v, grad] = [values(shapes.q), values(shapes.k), values(shapes.v), values(shapes.out)]
    // Rows of a mask are shared by all heads of a matrix; each row keeps its first key, but the third, which may see none.
    const maskValues = mask === undefined ? null : cell.values(a * l * s + 3, mask, false)
    for (let row = 0; mask === 'bool' && row < a * l; row++) maskValues![1 + row * s] = 1
    if (mask === 'bool' && a! * l! > 2) maskValues!.fill(0, 1 + 2 * s!, 1 + 3 * s!)
    const masks = maskValues === null ? null : operandOf(maskValues, 1, [a, b, l, s], [l * s, 0, s, 1])
    const layout =
      cell.sizes([i % 2], () => cell.below(2))[0] === 0
        ? heads
        : (x: Any, at: number, shape: Numbers) => operandOf(x, at, shape, dense(shape))
    const scale = 0.05
    const what = `[${size}]${mask ? `, mask ${mask}` : ''}${isCausal ? ', causal' : ''}`
    const strange = isForward ? cell.variants(v).map((x) => [x, grad] as const) : cell.variants(grad, true).map((x) => [v, x] as const)
    // A NaN times a share of 0 is NaN in a block, and nothing where the block does not see the key (rule ATTENTION).
    for (const [value, g] of isCausal ? [[v, grad] as const] : strange) {
      const inputs = [layout(q, 1, shapes.q), layout(k, 2, shapes.k), layout(value, 3, shapes.v)] as const
      const most = (maxAbs(q) + 1) * (maxAbs(k) + 1) * (maxAbs(value) + 1)
      if (isForward) {
        cell.compare<Attention>(what, cell.rubbish(cell.dtype, elementsOf(shapes.out) + 6), e * s, maxAbs(value), (kernel, o) =>
          kernel(...inputs, masks, operandOf(o, 3, shapes.out), scale, isCausal),
        )
        continue
      }
      for (const output of ['q', 'k', 'v'] as const) {
        for (const isAlone of [false, true]) {
          const shape = shapes[output]
          cell.compare<AttentionBackward>(
            `${what}, gradient of ${output}`,
            cell.rubbish(cell.dtype, elementsOf(shape) + 6),
            l * s,
            most * maxAbs(g),
            (kernel, o) => {
              const out = (name: 'q' | 'k' | 'v') =>
                name === output
                  ? operandOf(o, 3, shape)
                  : isAlone
                    ? null
                    : operandOf(cell.rubbish(cell.dtype, elementsOf(shapes[name]) + 4), 2, shapes[name])
              kernel(layout(g, 2, shapes.out), ...inputs, masks, out('q'), out('k'), out('v'), scale, isCausal)
            },
          )
        }
      }
    }
  }
}
