/**
 * Kernels that walk rows: sums, maxima, softmax. Inputs are dense [rows, k]; pointers are bytes. For `wasm/rows.ts`.
 *
 * Order of summation of a row (KERNELS.md, rule SUM): element i goes to double accumulator i mod 8 while whole groups of 8 last; the
 * accumulators a0 … a7 are joined as ((a0 + a2) + (a4 + a6)) + ((a1 + a3) + (a5 + a7)); the rest is added one by one; the total is rounded once.
 */
import { exp4, log4 } from './math'
import { pair, term, upperPair } from './pairs'

/** Σ x, or with `squares` Σ (x − mean)². */
@inline function sumRow(squares: bool, k: i32, x: usize, mean: f64): f64 {
  const m = f64x2.splat(mean)
  let s0 = f64x2.splat(0)
  let s1 = f64x2.splat(0)
  let s2 = f64x2.splat(0)
  let s3 = f64x2.splat(0)
  const end = x + (<usize>k << 2)
  const endOfGroups = x + (<usize>(k & ~7) << 2)
  for (; x < endOfGroups; x += 32) {
    s0 = f64x2.add(s0, term(squares, pair(x), m))
    s1 = f64x2.add(s1, term(squares, pair(x + 8), m))
    s2 = f64x2.add(s2, term(squares, pair(x + 16), m))
    s3 = f64x2.add(s3, term(squares, pair(x + 24), m))
  }
  const s = f64x2.add(f64x2.add(s0, s1), f64x2.add(s2, s3))
  let total = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1)
  for (; x < end; x += 4) total += f64x2.extract_lane(term(squares, f64x2.splat(<f64>f32.load(x)), m), 0)
  return total
}

/** out [rows] in float32. */
export function sum_rows_f32(rows: i32, k: i32, x: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    f32.store(out, <f32>sumRow(false, k, x, 0))
    x += <usize>k << 2
    out += 4
  }
}

/** Adds a piece of a long row, n a multiple of 8, to its eight accumulators; `wasm/rows.ts` joins them. */
export function sum_groups_f32(n: i32, x: usize, accumulators: usize): void {
  let s0 = v128.load(accumulators)
  let s1 = v128.load(accumulators, 16)
  let s2 = v128.load(accumulators, 32)
  let s3 = v128.load(accumulators, 48)
  for (const end = x + (<usize>n << 2); x < end; x += 32) {
    s0 = f64x2.add(s0, pair(x))
    s1 = f64x2.add(s1, pair(x + 8))
    s2 = f64x2.add(s2, pair(x + 16))
    s3 = f64x2.add(s3, pair(x + 24))
  }
  v128.store(accumulators, s0)
  v128.store(accumulators, s1, 16)
  v128.store(accumulators, s2, 32)
  v128.store(accumulators, s3, 48)
}

/** Adds x [rows, n] to `sums` [n] doubles, row after row. */
export function add_rows_f32(rows: i32, n: i32, x: usize, sums: usize): void {
  for (let r = 0; r < rows; r++) {
    let p = sums
    let i = 0
    for (; i < (n & ~1); i += 2) {
      v128.store(p, f64x2.add(v128.load(p), pair(x)))
      p += 16
      x += 8
    }
    if (i < n) {
      f64.store(p, f64.load(p) + <f64>f32.load(x))
      x += 4
    }
  }
}

const enum Extreme { amax_rows, amin_rows }

@inline function extreme<T>(op: Extreme, a: T, b: T): T {
  return op == Extreme.amax_rows ? max<T>(a, b) : min<T>(a, b)
}

/** NaN if any is NaN. */
@inline function extremeRow(op: Extreme, k: i32, x: usize): f32 {
  let m = f32x4.splat(op == Extreme.amax_rows ? -Infinity : Infinity)
  const end = x + (<usize>k << 2)
  const endOfVectors = x + (<usize>(k & ~3) << 2)
  for (; x < endOfVectors; x += 16) m = op == Extreme.amax_rows ? f32x4.max(m, v128.load(x)) : f32x4.min(m, v128.load(x))
  for (; x < end; x += 4) m = op == Extreme.amax_rows ? f32x4.max(m, v128.load32_splat(x)) : f32x4.min(m, v128.load32_splat(x))
  return extreme<f32>(
    op,
    extreme<f32>(op, f32x4.extract_lane(m, 0), f32x4.extract_lane(m, 1)),
    extreme<f32>(op, f32x4.extract_lane(m, 2), f32x4.extract_lane(m, 3)),
  )
}

/** @exports f32 */
@inline function extremeRows(op: Extreme, rows: i32, k: i32, x: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    f32.store(out, extremeRow(op, k, x))
    x += <usize>k << 2
    out += 4
  }
}

/** Two passes over each row, in double; out [rows] in float32; with `root` the square roots. */
export function variance_rows_f32(rows: i32, k: i32, x: usize, out: usize, divisor: f64, root: bool): void {
  for (let r = 0; r < rows; r++) {
    const found = sumRow(true, k, x, sumRow(false, k, x, 0) / <f64>k) / divisor
    f32.store(out, <f32>(root ? sqrt(found) : found))
    x += <usize>k << 2
    out += 4
  }
}

/** Writes exp(x - m) to out and returns the sum: four double accumulators, then the rest. */
@inline function expRow(k: i32, x: usize, m: v128, out: usize): f64 {
  let s0 = f64x2.splat(0)
  let s1 = f64x2.splat(0)
  const whole = <usize>(k & ~3) << 2
  const all = <usize>k << 2
  let i: usize = 0
  for (; i < whole; i += 16) {
    const e = exp4(f32x4.sub(v128.load(x + i), m))
    v128.store(out + i, e)
    s0 = f64x2.add(s0, f64x2.promote_low_f32x4(e))
    s1 = f64x2.add(s1, upperPair(e))
  }
  const s = f64x2.add(s0, s1)
  let total = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1)
  for (; i < all; i += 4) {
    const e = f32x4.extract_lane(exp4(f32x4.sub(v128.load32_splat(x + i), m)), 0)
    f32.store(out + i, e)
    total += <f64>e
  }
  return total
}

const enum Softmax { softmax_rows, log_softmax_rows }

@inline function softmax(op: Softmax, x: v128, m: v128, sum: v128): v128 {
  return op == Softmax.softmax_rows ? f32x4.div(x, sum) : f32x4.sub(f32x4.sub(x, m), sum)
}

/**
 * exp(x - max) / (sum of exp(x - max)), or (x - max) - log(sum of exp(x - max)); `out` holds the exponentials on the way, so in the second it must not be x.
 * @exports f32
 */
@inline function softmaxRows(op: Softmax, rows: i32, k: i32, x: usize, out: usize): void {
  const whole = <usize>(k & ~3) << 2
  const all = <usize>k << 2
  for (let r = 0; r < rows; r++) {
    const m = f32x4.splat(extremeRow(Extreme.amax_rows, k, x))
    const total = f32x4.splat(<f32>expRow(k, x, m, out))
    const sum = op == Softmax.softmax_rows ? total : log4(total)
    const from = op == Softmax.softmax_rows ? out : x
    let i: usize = 0
    for (; i < whole; i += 16) v128.store(out + i, softmax(op, v128.load(from + i), m, sum))
    for (; i < all; i += 4) f32.store(out + i, f32x4.extract_lane(softmax(op, v128.load32_splat(from + i), m, sum), 0))
    x += all
    out += all
  }
}
