/**
 * Element-wise kernels over dense runs: one loop of four (two) lanes, then the rest one by one with the same vector code, so that a
 * value's bits never depend on its place. Pointers are bytes; a step is 0 (one repeated element) or 1. Above: `wasm/elementwise.ts`.
 */
import { cos1, exp4, log4, sigmoid4, sin1, tanh4 } from './math'

// Which function a shared loop inlines. They are compile-time constants: after inlining no branch on them is left.
const ADD = 0
const SUB = 1
const MUL = 2
const DIV = 3
const MAX = 4
const MIN = 5

const NEG = 0
const ABS = 1
const SQRT = 2
const RELU = 3
const EXP = 4
const LOG = 5
const TANH = 6
const SIGMOID = 7

// @ts-ignore: decorator
@inline function unaryF32(op: i32, x: v128): v128 {
  if (op == NEG) return f32x4.neg(x)
  if (op == ABS) return f32x4.abs(x)
  if (op == SQRT) return f32x4.sqrt(x)
  if (op == RELU) return f32x4.max(x, f32x4.splat(0))
  if (op == EXP) return exp4(x)
  if (op == LOG) return log4(x)
  if (op == TANH) return tanh4(x)
  return sigmoid4(x)
}

// @ts-ignore: decorator
@inline function unaryLoopF32(op: i32, n: i32, x: usize, out: usize): void {
  const end = x + (<usize>n << 2)
  const endOfVectors = x + (<usize>(n & ~3) << 2)
  while (x < endOfVectors) {
    v128.store(out, unaryF32(op, v128.load(x)))
    x += 16
    out += 16
  }
  while (x < end) {
    f32.store(out, f32x4.extract_lane(unaryF32(op, v128.load32_splat(x)), 0))
    x += 4
    out += 4
  }
}

export function neg_f32(n: i32, x: usize, out: usize): void {
  unaryLoopF32(NEG, n, x, out)
}
export function abs_f32(n: i32, x: usize, out: usize): void {
  unaryLoopF32(ABS, n, x, out)
}
export function sqrt_f32(n: i32, x: usize, out: usize): void {
  unaryLoopF32(SQRT, n, x, out)
}
export function relu_f32(n: i32, x: usize, out: usize): void {
  unaryLoopF32(RELU, n, x, out)
}
export function exp_f32(n: i32, x: usize, out: usize): void {
  unaryLoopF32(EXP, n, x, out)
}
export function log_f32(n: i32, x: usize, out: usize): void {
  unaryLoopF32(LOG, n, x, out)
}
export function tanh_f32(n: i32, x: usize, out: usize): void {
  unaryLoopF32(TANH, n, x, out)
}
export function sigmoid_f32(n: i32, x: usize, out: usize): void {
  unaryLoopF32(SIGMOID, n, x, out)
}

/** Of other dtypes: what has an instruction. */
// @ts-ignore: decorator
@inline function unary<T>(op: i32, x: v128): v128 {
  if (op == NEG) return v128.neg<T>(x)
  if (op == ABS) return v128.abs<T>(x)
  if (isFloat<T>()) {
    if (op == SQRT) return v128.sqrt<T>(x)
    return v128.max<T>(x, v128.splat<T>(0))
  }
  return i32x4.max_s(x, i32x4.splat(0))
}

// @ts-ignore: decorator
@inline function unaryLoop<T>(op: i32, n: i32, x: usize, out: usize): void {
  const lanes = 16 / sizeof<T>()
  const whole = <usize>(n & ~(<i32>lanes - 1)) * sizeof<T>()
  const all = <usize>n * sizeof<T>()
  let i: usize = 0
  for (; i < whole; i += 16) v128.store(out + i, unary<T>(op, v128.load(x + i)))
  for (; i < all; i += sizeof<T>()) store<T>(out + i, v128.extract_lane<T>(unary<T>(op, v128.splat<T>(load<T>(x + i))), 0))
}

export function neg_f64(n: i32, x: usize, out: usize): void {
  unaryLoop<f64>(NEG, n, x, out)
}
export function abs_f64(n: i32, x: usize, out: usize): void {
  unaryLoop<f64>(ABS, n, x, out)
}
export function sqrt_f64(n: i32, x: usize, out: usize): void {
  unaryLoop<f64>(SQRT, n, x, out)
}
export function relu_f64(n: i32, x: usize, out: usize): void {
  unaryLoop<f64>(RELU, n, x, out)
}
export function neg_i32(n: i32, x: usize, out: usize): void {
  unaryLoop<i32>(NEG, n, x, out)
}
export function abs_i32(n: i32, x: usize, out: usize): void {
  unaryLoop<i32>(ABS, n, x, out)
}
export function relu_i32(n: i32, x: usize, out: usize): void {
  unaryLoop<i32>(RELU, n, x, out)
}

export function sin_f32(n: i32, x: usize, out: usize): void {
  for (const end = x + (<usize>n << 2); x < end; x += 4, out += 4) f32.store(out, sin1(f32.load(x)))
}
export function cos_f32(n: i32, x: usize, out: usize): void {
  for (const end = x + (<usize>n << 2); x < end; x += 4, out += 4) f32.store(out, cos1(f32.load(x)))
}

// @ts-ignore: decorator
@inline function binary<T>(op: i32, a: v128, b: v128): v128 {
  if (op == ADD) return v128.add<T>(a, b)
  if (op == SUB) return v128.sub<T>(a, b)
  if (op == MUL) return v128.mul<T>(a, b)
  if (isFloat<T>()) {
    if (op == DIV) return v128.div<T>(a, b)
    if (op == MAX) return v128.max<T>(a, b)
    return v128.min<T>(a, b)
  }
  if (op == MAX) return i32x4.max_s(a, b)
  return i32x4.min_s(a, b)
}

/**
 * out[r, i] = op(a[r, i], b[r, i]): rows `…Row` bytes apart, steps 0 (one element for the whole row) or 1. A single row is the dense case.
 */
// @ts-ignore: decorator
@inline function binaryRows<T>(
  op: i32, rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32,
): void {
  const lanes = 16 / sizeof<T>()
  const whole = <usize>(n & ~(<i32>lanes - 1)) * sizeof<T>()
  const all = <usize>n * sizeof<T>()
  for (let r = 0; r < rows; r++) {
    let i: usize = 0
    if (aStep && bStep) {
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

export function add_f32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f32>(ADD, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function sub_f32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f32>(SUB, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function mul_f32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f32>(MUL, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function div_f32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f32>(DIV, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function maximum_f32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f32>(MAX, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function minimum_f32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f32>(MIN, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function add_f64(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f64>(ADD, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function sub_f64(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f64>(SUB, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function mul_f64(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f64>(MUL, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function div_f64(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f64>(DIV, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function maximum_f64(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f64>(MAX, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function minimum_f64(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<f64>(MIN, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function add_i32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<i32>(ADD, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function sub_i32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<i32>(SUB, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function mul_i32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<i32>(MUL, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function maximum_i32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<i32>(MAX, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}
export function minimum_i32(rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  binaryRows<i32>(MIN, rows, n, a, aRow, aStep, b, bRow, bStep, out, outRow)
}

/** out += alpha · x, in rows as above; both operations round. */
// @ts-ignore: decorator
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

export function axpy_f32(rows: i32, n: i32, alpha: f32, x: usize, xRow: i32, xStep: i32, out: usize, outRow: i32): void {
  axpyRows<f32>(rows, n, alpha, x, xRow, xStep, out, outRow)
}
export function axpy_f64(rows: i32, n: i32, alpha: f64, x: usize, xRow: i32, xStep: i32, out: usize, outRow: i32): void {
  axpyRows<f64>(rows, n, alpha, x, xRow, xStep, out, outRow)
}
