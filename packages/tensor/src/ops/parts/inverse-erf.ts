/**
 * The inverse of the error function out of operations: the rational approximations of algorithm AS 241 (Wichura, 1988, `PPND16`) for quantiles of the normal
 * distribution, error below three units in the last place in float32 and in float64. No Newton step: near ±1 the rounding of erf itself would spoil it.
 */
import { to } from '../../raw/copy.js'
import type { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { rawOperations } from '../define/define.js'

// Highest degree first, for Horner's rule. For |x| ≤ 0.85, of 0.180625 − x²/4.
const A = [
  2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987, 13731.69376550946, 1971.5909503065513, 133.14166789178438,
  3.3871328727963665,
]
const B = [
  5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597, 5394.196021424751, 687.1870074920579, 42.31333070160091, 1,
]
// Beyond, of r − 1.6 with r = √−log((1 − |x|) / 2), up to r = 5.
const C = [
  0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684, 3.6478483247632045, 5.769497221460691,
  4.630337846156546, 1.4234371107496835,
]
const D = [
  1.0507500716444169e-9, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008, 0.6897673349851, 1.6763848301838038,
  2.053191626637759, 1,
]
// Of r − 5, which only float64 reaches.
const E = [
  2.0103343992922881e-7, 2.7115555687434876e-5, 0.0012426609473880784, 0.026532189526576124, 0.29656057182850487, 1.7848265399172913,
  5.463784911164114, 6.657904643501103,
]
const F = [
  2.0442631033899397e-15, 1.421511758316446e-7, 1.8463183175100548e-5, 0.0007868691311456133, 0.014875361290850615, 0.1369298809227358,
  0.599832206555888, 1,
]

export function inverseErf(x: Tensor): Tensor {
  const { abs, eq, le, log, mul, neg, sign, sqrt, sub, where } = rawOperations
  if (!isFloating(x.dtype)) return inverseErf(to(x, 'float32'))
  const size = abs(x)
  const central = mul(x, ratio(A, B, sub(0.180625, mul(mul(x, x), 0.25)), 8))
  const r = sqrt(neg(log(mul(sub(1, size), 0.5))))
  const near = ratio(C, D, sub(r, 1.6), 2)
  const far = x.dtype === 'float64' ? where(le(r, 5), near, ratio(E, F, sub(r, 5), 2)) : near
  // At the ends the ratio is ∞ / ∞.
  const tail = mul(sign(x), where(eq(size, 1), Number.POSITIVE_INFINITY, far))
  return where(le(size, 0.85), central, tail)
}

/** P(r) / Q(r) / √square. */
function ratio(p: readonly number[], q: readonly number[], r: Tensor, square: number): Tensor {
  return rawOperations.div(horner(p, r), rawOperations.mul(horner(q, r), Math.sqrt(square)))
}

function horner(coefficients: readonly number[], r: Tensor): Tensor {
  const { add_, mul, mul_ } = rawOperations
  const y = mul(r, coefficients[0]!)
  for (const c of coefficients.slice(1, -1)) mul_(add_(y, c), r)
  return add_(y, coefficients.at(-1)!)
}
