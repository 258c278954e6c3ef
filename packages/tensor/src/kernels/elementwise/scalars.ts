/** Functions of numbers that JavaScript does not have, or not as PyTorch, for the rows of this folder. Neighbour: `erf.ts`. */

/** PyTorch multiplies for the exponent 2, and takes roots for ±0.5 (of −∞: NaN). */
export function power(x: number, exponent: number): number {
  if (exponent === 2) return x * x
  if (exponent === 0.5) return Math.sqrt(x)
  if (exponent === -0.5) return 1 / Math.sqrt(x)
  return cPower(x, exponent)
}

/** C's pow: unlike JavaScript's, 1 to any power is 1, and (−1) to ±∞ is 1. */
export function cPower(x: number, exponent: number): number {
  if (x === 1 || (x === -1 && (exponent === Number.POSITIVE_INFINITY || exponent === Number.NEGATIVE_INFINITY))) return 1
  // biome-ignore lint/style/useExponentiationOperator: the call reads as the definition.
  return Math.pow(x, exponent)
}

export function roundHalfEven(x: number): number {
  const up = Math.round(x)
  return up - x === 0.5 && up % 2 !== 0 ? up - 1 : up
}

/** With the sign of b, as Python's. */
export function remainder(a: number, b: number): number {
  const rest = a % b
  return rest !== 0 && b < 0 !== rest < 0 ? rest + b : rest
}

/** By the remainder, which is exact, and not by rounding the quotient (PyTorch's `div_floor_floating`). */
export function floorDivide(a: number, b: number): number {
  if (b === 0) return a / b
  const rest = a % b
  const quotient = (a - rest) / b - (rest !== 0 && b < 0 !== rest < 0 ? 1 : 0)
  if (quotient === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0
  const down = Math.floor(quotient)
  return quotient - down > 0.5 ? down + 1 : down
}

/** By squaring, modulo 2^32; exponent an integer ≥ 0. */
export function intPower(x: number, exponent: number): number {
  let base = x
  let result = 1
  for (let e = exponent; e > 0; e = Math.floor(e / 2)) {
    if (e % 2 === 1) result = Math.imul(result, base)
    base = Math.imul(base, base)
  }
  return result
}

/**
 * The text by which gpu.js finds `r`: what is left of va after vb, exactly, with the sign of va. Long division in base 2: doublings and the
 * differences of numbers less than twice apart do not round.
 */
export const REST = `const big = 3.4028234663852886e38;
    const divisor = Math.abs(vb);
    let r = Math.abs(va);
    if (!(r <= big) || !(divisor > 0)) { r = 0 / 0; }
    if (r >= divisor) {
      let t = divisor;
      while (t + t <= r) { t = t + t; }
      while (t >= divisor) {
        if (r >= t) { r = r - t; }
        t = t * 0.5;
      }
    }
    if (va < 0 || 1 / va < 0) { r = -r; }`
