/** Rows of the table of derivatives (`derivatives.ts`): functions of one tensor beyond the first ones. g is the gradient, y the result. */
import { Tensor } from '@postgrad/tensor'
import type { MathOps } from '@postgrad/tensor/internal'
import { type Formula, formula, ofTensor, type UnaryRows } from '../graph/formula.js'

/** 0 wherever it is differentiable. */
const flat = (): { readonly a: Formula<[]> } => ({ a: formula([], (g) => Tensor.empty(g.dtype, g.shape, g.storage.memory)) })

export const math: UnaryRows<MathOps<Tensor>> = {
  floor: flat(),
  ceil: flat(),
  round: flat(),
  trunc: flat(),
  // −g y²
  reciprocal: { a: formula(['result'], (g, s, ops) => ops.neg(ops.mul(g, ops.mul(s.result, s.result)))) },
  // −g y³ / 2
  rsqrt: { a: formula(['result'], (g, s, ops) => ops.mul(ops.mul(g, -0.5), ops.mul(s.result, ops.mul(s.result, s.result)))) },
  // 2 g a
  square: { a: formula(['a'], (g, s, ops) => ops.mul(g, ops.mul(s.a, 2))) },
  // g / (a + 1)
  log1p: { a: formula(['a'], (g, s, ops) => ops.div(g, ops.add(s.a, 1))) },
  // g (y + 1)
  expm1: { a: formula(['result'], (g, s, ops) => ops.mul(g, ops.add(s.result, 1))) },
  // g / (a ln 2)
  log2: { a: formula(['a'], (g, s, ops) => ops.div(g, ops.mul(s.a, Math.LN2))) },
  log10: { a: formula(['a'], (g, s, ops) => ops.div(g, ops.mul(s.a, Math.LN10))) },
  // g y ln 2
  exp2: { a: formula(['result'], (g, s, ops) => ops.mul(ops.mul(g, s.result), Math.LN2)) },
  // g (1 + y²)
  tan: { a: formula(['result'], (g, s, ops) => ops.mul(g, ops.add(ops.mul(s.result, s.result), 1))) },
  sinh: { a: ofTensor(['a'], (g, s, ops) => ops.mul(g, ops.cosh(s.a))) },
  cosh: { a: ofTensor(['a'], (g, s, ops) => ops.mul(g, ops.sinh(s.a))) },
  // g / √(1 − a²)
  asin: { a: formula(['a'], (g, s, ops) => ops.mul(g, ops.rsqrt(ops.sub(1, ops.mul(s.a, s.a))))) },
  acos: { a: formula(['a'], (g, s, ops) => ops.neg(ops.mul(g, ops.rsqrt(ops.sub(1, ops.mul(s.a, s.a)))))) },
  // g / (1 + a²)
  atan: { a: formula(['a'], (g, s, ops) => ops.div(g, ops.add(ops.mul(s.a, s.a), 1))) },
  // g · 2/√π · exp(−a²)
  erf: { a: formula(['a'], (g, s, ops) => ops.mul(ops.mul(g, 2 / Math.sqrt(Math.PI)), ops.exp(ops.neg(ops.mul(s.a, s.a))))) },
}
