/**
 * Arithmetic of two operands: one loop of four (two) lanes, then the rest one by one with the same vector code, so that a value's bits never depend on
 * its place. Pointers are bytes; a step is 0 (one repeated element) or 1. For `wasm/elementwise.ts`.
 */

/** Which function a shared loop inlines, as in the other files: a compile-time constant, so after inlining no branch on it is left. */
const enum Op { add, sub, mul, div, maximum, minimum }

@inline function binary<T>(op: Op, a: v128, b: v128): v128 {
  if (op == Op.add) return v128.add<T>(a, b)
  if (op == Op.sub) return v128.sub<T>(a, b)
  if (op == Op.mul) return v128.mul<T>(a, b)
  if (op == Op.maximum) return v128.max<T>(a, b)
  if (isFloat<T>() && op == Op.div) return v128.div<T>(a, b)
  return v128.min<T>(a, b)
}

/**
 * out[r, i] = op(a[r, i], b[r, i]): rows `…Row` bytes apart, steps 0 (one element for the whole row) or 1. A single row is the dense case.
 * @exports add sub mul maximum minimum: f32 f64 i32
 * @exports div: f32 f64
 */
@inline function binaryRows<T>(
  op: Op, rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32,
): void {
  const lanes = 16 / sizeof<T>()
  const whole = <usize>(n & ~(<i32>lanes - 1)) * sizeof<T>()
  const all = <usize>n * sizeof<T>()
  for (let r = 0; r < rows; r++) {
    let i: usize = 0
    if (aStep && bStep) {
      // Four vectors share what a round of a loop costs.
      for (const fours = whole & ~63; i < fours; i += 64) {
        const left = a + i
        const right = b + i
        const to = out + i
        v128.store(to, binary<T>(op, v128.load(left), v128.load(right)))
        v128.store(to, binary<T>(op, v128.load(left, 16), v128.load(right, 16)), 16)
        v128.store(to, binary<T>(op, v128.load(left, 32), v128.load(right, 32)), 32)
        v128.store(to, binary<T>(op, v128.load(left, 48), v128.load(right, 48)), 48)
      }
      for (; i < whole; i += 16) v128.store(out + i, binary<T>(op, v128.load(a + i), v128.load(b + i)))
    } else if (aStep) {
      const y = v128.splat<T>(load<T>(b))
      for (; i < whole; i += 16) v128.store(out + i, binary<T>(op, v128.load(a + i), y))
    } else {
      const x = v128.splat<T>(load<T>(a))
      if (bStep) for (; i < whole; i += 16) v128.store(out + i, binary<T>(op, x, v128.load(b + i)))
      else {
        const z = binary<T>(op, x, v128.splat<T>(load<T>(b)))
        for (; i < whole; i += 16) v128.store(out + i, z)
      }
    }
    for (; i < all; i += sizeof<T>()) {
      const x = v128.splat<T>(load<T>(a + (aStep ? i : 0)))
      const y = v128.splat<T>(load<T>(b + (bStep ? i : 0)))
      store<T>(out + i, v128.extract_lane<T>(binary<T>(op, x, y), 0))
    }
    a += aRow
    b += bRow
    out += outRow
  }
}

/**
 * out += alpha · x, in rows as above; both operations round.
 * @exports axpy: f32 f64
 */
@inline function axpyRows<T>(rows: i32, n: i32, alpha: T, x: usize, xRow: i32, xStep: i32, out: usize, outRow: i32): void {
  const lanes = 16 / sizeof<T>()
  const whole = <usize>(n & ~(<i32>lanes - 1)) * sizeof<T>()
  const all = <usize>n * sizeof<T>()
  const factor = v128.splat<T>(alpha)
  for (let r = 0; r < rows; r++) {
    let i: usize = 0
    if (xStep) {
      for (; i < whole; i += 16) v128.store(out + i, v128.add<T>(v128.load(out + i), v128.mul<T>(factor, v128.load(x + i))))
    } else {
      const y = v128.mul<T>(factor, v128.splat<T>(load<T>(x)))
      for (; i < whole; i += 16) v128.store(out + i, v128.add<T>(v128.load(out + i), y))
    }
    for (; i < all; i += sizeof<T>()) store<T>(out + i, load<T>(out + i) + alpha * load<T>(x + (xStep ? i : 0)))
    x += xRow
    out += outRow
  }
}
