/**
 * Sums, products and variances of dense [rows, k], along rows or down columns. Pointers are bytes. For `wasm/rows/rows.ts` and `wasm/rows/statistics.ts`.
 *
 * Order along a row of floats (KERNELS.md, rule SUM): element i goes to double accumulator i mod 8 while whole groups of 8 last; the
 * accumulators a0 … a7 are joined as ((a0 + a2) + (a4 + a6)) + ((a1 + a3) + (a5 + a7)); the rest is added one by one; the total is rounded once. Products
 * and variances take the same order. Down columns: element after element. A sum of float32 first adds eight elements of an accumulator, or of a column, in
 * float32 (`eight`), since to convert each one to double costs more than to add it.
 */
import { doubles, term, upperPair } from '../parts/pairs'

const enum Rows { sum_rows, prod_rows }
const enum Groups { sum_groups, prod_groups }
const enum Columns { sum_columns, prod_columns }
const enum Moments { total_columns, square_columns }

/** a + b, or with `products` a · b, of two doubles; of an integer T, of four. */
@inline function fold<T>(products: bool, a: v128, b: v128): v128 {
  if (isFloat<T>()) return products ? f64x2.mul(a, b) : f64x2.add(a, b)
  return products ? i32x4.mul(a, b) : i32x4.add(a, b)
}

/** Four sums of eight float32 elements, `step` bytes apart: neighbours first, then pairs, then fours. */
@inline function eight(x: usize, step: usize): v128 {
  const x4 = x + 4 * step
  const a = f32x4.add(v128.load(x), v128.load(x + step))
  const b = f32x4.add(v128.load(x + 2 * step), v128.load(x + 3 * step))
  const c = f32x4.add(v128.load(x4), v128.load(x4 + step))
  const d = f32x4.add(v128.load(x4 + 2 * step), v128.load(x4 + 3 * step))
  return f32x4.add(f32x4.add(a, b), f32x4.add(c, d))
}

/** Σ x, Π x, or with `squares` Σ (x − mean)². `inFloat32`: eight elements of an accumulator at a time are added in float32. */
@inline function foldRow<T>(products: bool, squares: bool, inFloat32: bool, k: i32, x: usize, mean: f64): f64 {
  const m = f64x2.splat(mean)
  const two = 2 * sizeof<T>()
  let s0 = f64x2.splat(products ? 1 : 0)
  let s1 = s0
  let s2 = s0
  let s3 = s0
  const end = x + <usize>k * sizeof<T>()
  const endOfGroups = x + <usize>(k & ~7) * sizeof<T>()
  if (inFloat32) {
    for (const endOfEights = x + (<usize>(k & ~63) << 2); x < endOfEights; x += 256) {
      const low = eight(x, 32)
      const high = eight(x + 16, 32)
      s0 = f64x2.add(s0, f64x2.promote_low_f32x4(low))
      s1 = f64x2.add(s1, upperPair(low))
      s2 = f64x2.add(s2, f64x2.promote_low_f32x4(high))
      s3 = f64x2.add(s3, upperPair(high))
    }
  }
  for (; x < endOfGroups; x += 4 * two) {
    s0 = fold<f64>(products, s0, term(squares, doubles<T>(x), m))
    s1 = fold<f64>(products, s1, term(squares, doubles<T>(x + two), m))
    s2 = fold<f64>(products, s2, term(squares, doubles<T>(x + 2 * two), m))
    s3 = fold<f64>(products, s3, term(squares, doubles<T>(x + 3 * two), m))
  }
  const s = fold<f64>(products, fold<f64>(products, s0, s1), fold<f64>(products, s2, s3))
  const low = f64x2.extract_lane(s, 0)
  const high = f64x2.extract_lane(s, 1)
  let total = products ? low * high : low + high
  for (; x < end; x += sizeof<T>()) {
    const v = f64x2.extract_lane(term(squares, f64x2.splat(<f64>load<T>(x)), m), 0)
    total = products ? total * v : total + v
  }
  return total
}

/** The same for integers, which wrap around in any order. */
@inline function foldInts(products: bool, k: i32, x: usize): i32 {
  let s0 = i32x4.splat(products ? 1 : 0)
  let s1 = s0
  let s2 = s0
  let s3 = s0
  const end = x + (<usize>k << 2)
  const endOfGroups = x + (<usize>(k & ~15) << 2)
  for (; x < endOfGroups; x += 64) {
    s0 = fold<i32>(products, s0, v128.load(x))
    s1 = fold<i32>(products, s1, v128.load(x, 16))
    s2 = fold<i32>(products, s2, v128.load(x, 32))
    s3 = fold<i32>(products, s3, v128.load(x, 48))
  }
  const s = fold<i32>(products, fold<i32>(products, s0, s1), fold<i32>(products, s2, s3))
  const half = fold<i32>(products, s, v128.shuffle<i32>(s, s, 2, 3, 2, 3))
  let total = i32x4.extract_lane(fold<i32>(products, half, v128.shuffle<i32>(half, half, 1, 1, 1, 1)), 0)
  for (; x < end; x += 4) total = products ? total * i32.load(x) : total + i32.load(x)
  return total
}

/** out [rows] in x's dtype. @exports f32 f64 i32 */
@inline function foldRows<T>(op: Rows, rows: i32, k: i32, x: usize, out: usize): void {
  const products = op == Rows.prod_rows
  const inFloat32 = isFloat<T>() && sizeof<T>() == 4 && !products
  if (isFloat<T>() && k < 8) {
    // No whole group: one by one from the start, with the same bits.
    for (const end = out + <usize>rows * sizeof<T>(); out < end; out += sizeof<T>()) {
      let total: f64 = products ? 1 : 0
      for (const next = x + <usize>k * sizeof<T>(); x < next; x += sizeof<T>()) total = products ? total * <f64>load<T>(x) : total + <f64>load<T>(x)
      store<T>(out, <T>total)
    }
    return
  }
  for (let r = 0; r < rows; r++) {
    store<T>(out, isFloat<T>() ? <T>foldRow<T>(products, false, inFloat32, k, x, 0) : <T>foldInts(products, k, x))
    x += <usize>k * sizeof<T>()
    out += sizeof<T>()
  }
}

/**
 * Folds a piece of a long row, n a multiple of 8, into its eight accumulators; `wasm/rows/rows.ts` joins them. All pieces but the last are multiples of 64.
 * @exports f32 f64
 */
@inline function foldGroups<T>(op: Groups, n: i32, x: usize, accumulators: usize): void {
  const products = op == Groups.prod_groups
  const two = 2 * sizeof<T>()
  let s0 = v128.load(accumulators)
  let s1 = v128.load(accumulators, 16)
  let s2 = v128.load(accumulators, 32)
  let s3 = v128.load(accumulators, 48)
  const end = x + <usize>n * sizeof<T>()
  if (sizeof<T>() == 4 && !products) {
    for (const endOfEights = x + (<usize>(n & ~63) << 2); x < endOfEights; x += 256) {
      const low = eight(x, 32)
      const high = eight(x + 16, 32)
      s0 = f64x2.add(s0, f64x2.promote_low_f32x4(low))
      s1 = f64x2.add(s1, upperPair(low))
      s2 = f64x2.add(s2, f64x2.promote_low_f32x4(high))
      s3 = f64x2.add(s3, upperPair(high))
    }
  }
  for (; x < end; x += 4 * two) {
    s0 = fold<f64>(products, s0, doubles<T>(x))
    s1 = fold<f64>(products, s1, doubles<T>(x + two))
    s2 = fold<f64>(products, s2, doubles<T>(x + 2 * two))
    s3 = fold<f64>(products, s3, doubles<T>(x + 3 * two))
  }
  v128.store(accumulators, s0)
  v128.store(accumulators, s1, 16)
  v128.store(accumulators, s2, 32)
  v128.store(accumulators, s3, 48)
}

/**
 * Folds x [rows, n], rows `row` bytes apart, into `totals` [n], row after row: doubles, or of integers int32. Four rows at a time, so that a total is loaded
 * and stored once for them; eight where they are added in float32, so all calls for a column but the last have a multiple of eight rows.
 * @exports f32 f64 i32
 */
@inline function foldColumns<T>(op: Columns, rows: i32, n: i32, x: usize, row: i32, totals: usize): void {
  const products = op == Columns.prod_columns
  let r = 0
  if (isFloat<T>() && sizeof<T>() == 4 && !products) {
    for (; r + 8 <= rows; r += 8) {
      addEightRows(n, x, row, totals)
      x += 8 * row
    }
  }
  for (; r + 4 <= rows; r += 4) {
    foldRowsInto<T>(products, true, n, x, row, totals)
    x += 4 * row
  }
  for (; r < rows; r++) {
    foldRowsInto<T>(products, false, n, x, row, totals)
    x += row
  }
}

/** Adds eight rows of float32 to `totals`, in float32 on the way. */
@inline function addEightRows(n: i32, x: usize, row: i32, totals: usize): void {
  let i = 0
  for (; i + 4 <= n; i += 4) {
    const sum = eight(x, row)
    v128.store(totals, f64x2.add(v128.load(totals), f64x2.promote_low_f32x4(sum)))
    v128.store(totals, f64x2.add(v128.load(totals, 16), upperPair(sum)), 16)
    x += 16
    totals += 32
  }
  for (; i < n; i++) {
    const a = f32.load(x) + f32.load(x + row)
    const b = f32.load(x + 2 * row) + f32.load(x + 3 * row)
    const c = f32.load(x + 4 * row) + f32.load(x + 5 * row)
    const d = f32.load(x + 6 * row) + f32.load(x + 7 * row)
    f64.store(totals, f64.load(totals) + <f64>((a + b) + (c + d)))
    x += 4
    totals += 8
  }
}

/** As many elements as a vector of totals holds: two, or four integers. */
@inline function terms<T>(x: usize): v128 {
  return isFloat<T>() ? doubles<T>(x) : v128.load(x)
}

@inline function foldRowsInto<T>(products: bool, four: bool, n: i32, x: usize, row: i32, totals: usize): void {
  const lanes = isFloat<T>() ? 2 : 4
  let i = 0
  for (; i + lanes <= n; i += lanes) {
    let t = fold<T>(products, v128.load(totals), terms<T>(x))
    if (four) {
      t = fold<T>(products, t, terms<T>(x + row))
      t = fold<T>(products, t, terms<T>(x + 2 * row))
      t = fold<T>(products, t, terms<T>(x + 3 * row))
    }
    v128.store(totals, t)
    totals += 16
    x += lanes * sizeof<T>()
  }
  for (; i < n; i++) {
    foldOne<T>(products, x, totals)
    if (four) {
      foldOne<T>(products, x + row, totals)
      foldOne<T>(products, x + 2 * row, totals)
      foldOne<T>(products, x + 3 * row, totals)
    }
    totals += isFloat<T>() ? 8 : 4
    x += sizeof<T>()
  }
}

@inline function foldOne<T>(products: bool, x: usize, total: usize): void {
  if (isFloat<T>()) {
    const v = <f64>load<T>(x)
    f64.store(total, products ? f64.load(total) * v : f64.load(total) + v)
  } else {
    const v = load<i32>(x)
    i32.store(total, products ? i32.load(total) * v : i32.load(total) + v)
  }
}

/** Two passes over each row, in double; out [rows] in x's dtype; with `root` the square roots. @exports variance_rows: f32 f64 */
@inline function varianceRows<T>(rows: i32, k: i32, x: usize, out: usize, divisor: f64, root: bool): void {
  for (let r = 0; r < rows; r++) {
    const found = foldRow<T>(false, true, false, k, x, foldRow<T>(false, false, false, k, x, 0) / <f64>k) / divisor
    store<T>(out, <T>(root ? sqrt(found) : found))
    x += <usize>k * sizeof<T>()
    out += sizeof<T>()
  }
}

/** Adds x, or (x − mean)², of x [rows, n], rows `row` bytes apart, to `sums` [n] doubles, row after row. @exports f32 f64 */
@inline function momentColumns<T>(op: Moments, rows: i32, n: i32, x: usize, row: i32, means: usize, sums: usize): void {
  const squares = op == Moments.square_columns
  for (let r = 0; r < rows; r++) {
    let i = 0
    for (; i + 2 <= n; i += 2) {
      const at = <usize>i << 3
      v128.store(sums + at, f64x2.add(v128.load(sums + at), term(squares, doubles<T>(x + <usize>i * sizeof<T>()), v128.load(means + at))))
    }
    if (i < n) {
      const at = <usize>i << 3
      const v = term(squares, f64x2.splat(<f64>load<T>(x + <usize>i * sizeof<T>())), v128.load64_splat(means + at))
      f64.store(sums + at, f64.load(sums + at) + f64x2.extract_lane(v, 0))
    }
    x += row
  }
}

/** Folds pieces of n elements, a multiple of 64, each `step` bytes after the last, into the eight accumulators of a sum, as one long row. @exports sum_pieces: f32 f64 */
@inline function sumPieces<T>(pieces: i32, n: i32, x: usize, step: i32, accumulators: usize): void {
  for (let piece = 0; piece < pieces; piece++, x += <usize>step) foldGroups<T>(Groups.sum_groups, n, x, accumulators)
}
