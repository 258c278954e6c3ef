/**
 * Extremes of dense [rows, k] and their places, along rows or down columns; of bool, whether any or all are 1. Pointers are bytes. NaN wins, and −0 is less
 * than 0. For `wasm/rows/extremes.ts`.
 */

const enum Rows { amax_rows, amin_rows }
const enum Columns { amax_columns, amin_columns }
const enum PlacesOfRows { argmax_rows, argmin_rows }
const enum PlacesOfColumns { argmax_columns, argmin_columns }
const enum Quantifier { some_rows, every_rows }

/** The end of T's range that any element beats, or equals. */
@inline function worst<T>(least: bool): T {
  if (isFloat<T>()) return least ? <T>Infinity : <T>-Infinity
  return least ? <T>i32.MAX_VALUE : <T>i32.MIN_VALUE
}

/** The better of each lane, in one instruction: of floats, a where they are equal or one is NaN. */
@inline function better<T>(least: bool, a: v128, b: v128): v128 {
  if (isFloat<T>()) return least ? v128.pmin<T>(a, b) : v128.pmax<T>(a, b)
  return least ? v128.min<T>(a, b) : v128.max<T>(a, b)
}

@inline function better1<T>(least: bool, a: T, b: T): T {
  return least ? min<T>(a, b) : max<T>(a, b)
}

@inline function isNaN4<T>(x: v128): v128 {
  return v128.ne<T>(x, x)
}

@inline function betterLane<T>(least: bool, m: v128): T {
  const low = better1<T>(least, v128.extract_lane<T>(m, 0), v128.extract_lane<T>(m, 1))
  if (sizeof<T>() == 8) return low
  return better1<T>(least, low, better1<T>(least, v128.extract_lane<T>(m, 2), v128.extract_lane<T>(m, 3)))
}

@inline function extremeRow<T>(least: bool, k: i32, x: usize): T {
  return bestOfRow<T>(least, true, k, x)
}

/** The greatest number of a row, for sums that are NaN if the row holds one: which zero it is, and whether it is NaN then, is left open. */
@inline export function greatestOfRow(k: i32, x: usize): f32 {
  return bestOfRow<f32>(false, false, k, x)
}

/** Four accumulators, since each waits for its last result; with `exact` NaNs are counted aside, and 0 differs from −0. */
@inline function bestOfRow<T>(least: bool, exact: bool, k: i32, x: usize): T {
  const from = x
  const end = x + <usize>k * sizeof<T>()
  const endOfGroups = x + ((<usize>k * sizeof<T>()) & ~63)
  const endOfVectors = x + ((<usize>k * sizeof<T>()) & ~15)
  let m0 = v128.splat<T>(worst<T>(least))
  let m1 = m0
  let m2 = m0
  let m3 = m0
  let nan = i32x4.splat(0)
  for (; x < endOfGroups; x += 64) {
    const a = v128.load(x)
    const b = v128.load(x, 16)
    const c = v128.load(x, 32)
    const d = v128.load(x, 48)
    m0 = better<T>(least, m0, a)
    m1 = better<T>(least, m1, b)
    m2 = better<T>(least, m2, c)
    m3 = better<T>(least, m3, d)
    if (exact && isFloat<T>()) {
      nan = v128.or(nan, v128.or(v128.or(isNaN4<T>(a), isNaN4<T>(b)), v128.or(isNaN4<T>(c), isNaN4<T>(d))))
    }
  }
  for (; x < endOfVectors; x += 16) {
    const a = v128.load(x)
    m0 = better<T>(least, m0, a)
    if (exact && isFloat<T>()) nan = v128.or(nan, isNaN4<T>(a))
  }
  let m = betterLane<T>(least, better<T>(least, better<T>(least, m0, m1), better<T>(least, m2, m3)))
  for (; x < end; x += sizeof<T>()) m = better1<T>(least, m, load<T>(x))
  if (exact && isFloat<T>()) {
    if (v128.any_true(nan)) return <T>NaN
    if (m == 0) return zeroOf<T>(least, from, end)
  }
  return m
}

/** The extreme where it is a zero: 0 wins over −0 as the greatest, −0 as the least. */
function zeroOf<T>(least: bool, x: usize, end: usize): T {
  const sought: T = least ? <T>-0.0 : <T>0
  const bits = v128.splat<T>(sought)
  const endOfVectors = x + ((end - x) & ~15)
  for (; x < endOfVectors; x += 16) {
    const same = sizeof<T>() == 4 ? i32x4.eq(v128.load(x), bits) : i64x2.eq(v128.load(x), bits)
    if (v128.any_true(same)) return sought
  }
  for (; x < end; x += sizeof<T>()) {
    const v = load<T>(x)
    if (v == 0 && (<T>1 / v < 0) == least) return sought
  }
  return least ? <T>0 : <T>-0.0
}

/** out [rows]. @exports f32 f64 i32 */
@inline function extremeRows<T>(op: Rows, rows: i32, k: i32, x: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    store<T>(out, extremeRow<T>(op == Rows.amin_rows, k, x))
    x += <usize>k * sizeof<T>()
    out += sizeof<T>()
  }
}

/** The first of the best, or the first NaN. out [rows] int32. @exports f32 f64 i32 */
@inline function placesOfRows<T>(op: PlacesOfRows, rows: i32, k: i32, x: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    i32.store(out, placeRow<T>(op == PlacesOfRows.argmin_rows, k, x))
    x += <usize>k * sizeof<T>()
    out += 4
  }
}

@inline function placeRow<T>(least: bool, k: i32, x: usize): i32 {
  const best = extremeRow<T>(least, k, x)
  const sought = v128.splat<T>(best)
  const isNumber = best == best
  const lanes = <i32>(16 / sizeof<T>())
  let i = 0
  for (; i + lanes <= k; i += lanes) {
    const v = v128.load(x + <usize>i * sizeof<T>())
    if (v128.any_true(isNumber ? v128.eq<T>(v, sought) : isNaN4<T>(v))) break
  }
  for (; i < k; i++) {
    const v = load<T>(x + <usize>i * sizeof<T>())
    if (isNumber ? v == best : v != v) break
  }
  return i
}

/** Joins x [rows, n], rows `row` bytes apart, to the extremes `held` [n], row after row. @exports f32 f64 i32 u8 */
@inline function extremeColumns<T>(op: Columns, rows: i32, n: i32, x: usize, row: i32, held: usize): void {
  const least = op == Columns.amin_columns
  const whole = (<usize>n * sizeof<T>()) & ~15
  const all = <usize>n * sizeof<T>()
  for (let r = 0; r < rows; r++) {
    let i: usize = 0
    for (; i < whole; i += 16) {
      const v = v128.load(x + i)
      const h = v128.load(held + i)
      v128.store(held + i, least ? v128.min<T>(h, v) : v128.max<T>(h, v))
    }
    for (; i < all; i += sizeof<T>()) store<T>(held + i, better1<T>(least, load<T>(held + i), load<T>(x + i)))
    x += row
  }
}

/** The same for `places` [n] int32 of the best; x begins with row `first` of its fibres. Row 0 is taken as it is. @exports f32 i32 */
@inline function placesOfColumns<T>(
  op: PlacesOfColumns, first: i32, rows: i32, n: i32, x: usize, row: i32, held: usize, places: usize,
): void {
  const least = op == PlacesOfColumns.argmin_columns
  const whole = <usize>(n & ~3) << 2
  const all = <usize>n << 2
  for (let r = 0; r < rows; r++) {
    const place = i32x4.splat(first + r)
    let i: usize = 0
    for (; i < whole; i += 16) {
      const v = v128.load(x + i)
      const h = v128.load(held + i)
      const takes = first + r == 0 ? i32x4.splat(-1) : beats<T>(least, v, h)
      v128.store(held + i, v128.bitselect(v, h, takes))
      v128.store(places + i, v128.bitselect(place, v128.load(places + i), takes))
    }
    for (; i < all; i += 4) {
      const v = load<T>(x + i)
      const takes = first + r == 0 ? i32x4.splat(-1) : beats<T>(least, v128.splat<T>(v), v128.load32_splat(held + i))
      if (!i32x4.extract_lane(takes, 0)) continue
      store<T>(held + i, v)
      i32.store(places + i, first + r)
    }
    x += row
  }
}

/** Whether v takes the place of what is held: NaN does, and nothing takes its place. */
@inline function beats<T>(least: bool, v: v128, held: v128): v128 {
  const is = least ? v128.lt<T>(v, held) : v128.gt<T>(v, held)
  return isFloat<T>() ? v128.or(is, v128.andnot(isNaN4<T>(v), isNaN4<T>(held))) : is
}

/** The extremes of bytes 0 or 1; a row ends where it is decided. @exports u8 */
@inline function quantifierRows<T>(op: Quantifier, rows: i32, k: i32, x: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    store<T>(out, <T>quantifierRow(op == Quantifier.every_rows, k, x))
    x += k
    out += 1
  }
}

@inline function quantifierRow(every: bool, k: i32, x: usize): bool {
  const end = x + <usize>k
  const endOfGroups = x + <usize>(k & ~63)
  for (; x < endOfGroups; x += 64) {
    const a = v128.load(x)
    const b = v128.load(x, 16)
    const c = v128.load(x, 32)
    const d = v128.load(x, 48)
    if (every) {
      if (!i8x16.all_true(v128.and(v128.and(a, b), v128.and(c, d)))) return false
    } else if (v128.any_true(v128.or(v128.or(a, b), v128.or(c, d)))) return true
  }
  for (; x < end; x++) if (load<u8>(x) != <u8>every) return !every
  return every
}
