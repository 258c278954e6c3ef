/**
 * The cheap element-wise ops of float32 as instructions on four lanes, for chains (`module.ts`). They are those of `assembly/elementwise.ts`, `assembly/exact.ts` and
 * `assembly/activations.ts`, so their bits are those of the exports.
 */
import type { ChainOp, ChainStep, Form } from '../../table/chain.js'

/**
 * A formula in the order of a stack: `a`, `b` and `c` are the operands, `p0` and `p1` the parameters, `0` and `1` numbers in all lanes, the rest instructions. A bool
 * is a mask of four lanes. `x y mask select` is x where the mask is set, else y.
 */
const FORMULAS = {
  unary: {
    neg: 'a neg',
    abs: 'a abs',
    sqrt: 'a sqrt',
    relu: 'a 0 pmax 0 add',
    sign: 'a 0 gt 1 and a 0 lt 1 and sub',
    clamp: 'a p0 max p1 min',
    floor: 'a floor',
    ceil: 'a ceil',
    round: 'a nearest',
    trunc: 'a trunc',
    reciprocal: '1 a div',
    rsqrt: '1 a sqrt div',
    leakyRelu: 'a a p0 mul a 0 gt select',
  },
  binary: {
    add: 'a b add',
    sub: 'a b sub',
    mul: 'a b mul',
    div: 'a b div',
    maximum: 'a b max',
    minimum: 'a b min',
  },
  compare: { eq: 'a b eq', ne: 'a b ne', lt: 'a b lt', le: 'a b le', gt: 'b a lt', ge: 'b a le' },
  grad: {
    reluBackward: 'a b 0 le andnot',
    tanhBackward: 'a 1 b b mul sub mul',
    sigmoidBackward: 'a b 1 b sub mul mul',
    leakyReluBackward: 'a a p0 mul b 0 gt select',
  },
  where: { where: 'b c a select' },
  copy: {},
} as const satisfies Readonly<Record<Form, Readonly<Partial<Record<ChainOp, string>>>>>

/** Null: the step has none. `from` are the dtypes of its operands. */
export function formulaOf({ form, op, dtype, made, p0 }: ChainStep, from: readonly string[]): string | null {
  if (form === 'copy') {
    if (from[0] === 'float32') return made === 'float32' ? 'a' : made === 'bool' ? 'a 0 ne' : null
    return from[0] === 'bool' && made === 'float32' ? 'a 1 and' : null
  }
  if (dtype !== 'float32') return null
  if (op === 'pow') return p0 === 2 ? 'a a mul' : null
  return (FORMULAS[form] as Readonly<Partial<Record<ChainOp, string>>>)[op] ?? null
}
