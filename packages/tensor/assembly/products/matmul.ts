/**
 * Matrix products in tiles of four rows and 32 bytes of columns: 4 × 8 in float32, 4 × 4 in float64. `wasm/products/products.ts` decides what is packed, and runs over
 * the blocks. Pointers, panels and steps count bytes.
 *
 * out[i, j] is the plain sum over p = 0, 1, …, k - 1 in that order, each product and each sum rounded (KERNELS.md, rule DOT): blocking
 * over k continues from the value in `out`, so packed, unpacked, the products with vectors and the naive loop give the same bits.
 */
import { copyRow, micro, WIDTH } from '../parts/tile'
import { turn2, turn4 } from '../parts/turn'

/**
 * out [m, n] (+)= a [m, k] · b [k, n]. Four rows of a begin at each multiple of `aPanel`, lie `aRow` apart, and step by `aStep`; a panel of WIDTH
 * columns of b begins at each multiple of `bPanel` and steps by `bStep`, but the last, if it is ragged, is at `bTail`: WIDTH columns of which
 * those beyond n are anything, `WIDTH` apart. `byPanels`: all rows for one panel of b, then the next; else all panels for four rows. Tiles at
 * the edges go through `tile`, 128 bytes of scratch. `first`: out's contents do not count.
 * @exports gemm: f32 f64
 */
@inline function tiles<T>(
  m: i32,
  n: i32,
  k: i32,
  a: usize,
  aPanel: usize,
  aRow: usize,
  aStep: usize,
  b: usize,
  bPanel: usize,
  bStep: usize,
  bTail: usize,
  out: usize,
  outRow: usize,
  first: bool,
  byPanels: bool,
  tile: usize,
): void {
  const width = <i32>(WIDTH / sizeof<T>())
  const down = (m + 3) >> 2
  const across = (n + width - 1) / width
  const outer = byPanels ? across : down
  const inner = byPanels ? down : across
  const outPanel = 4 * outRow
  // How far everything moves with each step of the inner loop.
  const aInner = byPanels ? aPanel : 0
  const bInner = byPanels ? 0 : bPanel
  const outInner = byPanels ? outPanel : WIDTH
  for (let o = 0; o < outer; o++) {
    let ai = byPanels ? a : a + <usize>o * aPanel
    let bj = byPanels ? b + <usize>o * bPanel : b
    let oij = byPanels ? out + <usize>o * WIDTH : out + <usize>o * outPanel
    for (let q = 0; q < inner; q++) {
      const rows = m - ((byPanels ? q : o) << 2)
      const cols = n - (byPanels ? o : q) * width
      if (rows >= 4 && cols >= width) micro<T>(1, k, ai, ai + aRow, ai + 2 * aRow, ai + 3 * aRow, aStep, 0, bj, bStep, oij, outRow, first)
      else {
        const isRagged = cols < width
        edge<T>(min(4, rows), min(width, cols), k, ai, aRow, aStep, isRagged ? bTail : bj, isRagged ? WIDTH : bStep, oij, outRow, first, tile)
      }
      ai += aInner
      bj += bInner
      oij += outInner
    }
  }
}

/** One tile at the lower or right edge, through the scratch tile. Missing rows of a repeat its first. */
function edge<T>(
  rows: i32,
  cols: i32,
  k: i32,
  a: usize,
  aRow: usize,
  aStep: usize,
  b: usize,
  bStep: usize,
  out: usize,
  outRow: usize,
  first: bool,
  tile: usize,
): void {
  const bytes = <usize>cols * sizeof<T>()
  if (!first) for (let r = 0; r < rows; r++) copyRow(tile + <usize>r * WIDTH, out + <usize>r * outRow, bytes)
  const a1 = rows > 1 ? a + aRow : a
  const a2 = rows > 2 ? a + 2 * aRow : a
  const a3 = rows > 3 ? a + 3 * aRow : a
  micro<T>(1, k, a, a1, a2, a3, aStep, 0, b, bStep, tile, WIDTH, first)
  for (let r = 0; r < rows; r++) copyRow(out + <usize>r * outRow, tile + <usize>r * WIDTH, bytes)
}

/** Panels of WIDTH columns, each [k, WIDTH], one after the other; columns beyond `cols` are zero. @exports pack_b: f32 f64 */
@inline function packB<T>(k: i32, cols: i32, b: usize, bRow: usize, bCol: usize, to: usize): void {
  const width = <i32>(WIDTH / sizeof<T>())
  for (let j = 0; j < cols; j += width) {
    const have = min(width, cols - j)
    let from = b + <usize>j * bCol
    if (have == width && bCol == sizeof<T>()) {
      for (let p = 0; p < k; p++) {
        v128.store(to, v128.load(from))
        v128.store(to, v128.load(from, 16), 16)
        to += WIDTH
        from += bRow
      }
    } else if (have == width && bRow == sizeof<T>()) {
      // A transposed operand: blocks of 4 × 4 (2 × 2) are turned in registers.
      const step = <i32>(16 / sizeof<T>())
      let p = 0
      for (; p <= k - step; p += step) {
        if (sizeof<T>() == 4) {
          turn4(from, bCol, to, WIDTH)
          turn4(from + 4 * bCol, bCol, to + 16, WIDTH)
        } else {
          turn2(from, bCol, to, WIDTH)
          turn2(from + 2 * bCol, bCol, to + 16, WIDTH)
        }
        from += 16
        to += <usize>step * WIDTH
      }
      for (; p < k; p++) {
        for (let c: usize = 0; c < WIDTH / sizeof<T>(); c++) store<T>(to + c * sizeof<T>(), load<T>(from + c * bCol))
        from += sizeof<T>()
        to += WIDTH
      }
    } else {
      for (let p = 0; p < k; p++) {
        for (let c = 0; c < width; c++) store<T>(to + <usize>c * sizeof<T>(), c < have ? load<T>(from + <usize>c * bCol) : 0)
        to += WIDTH
        from += bRow
      }
    }
  }
}

/** Panels of 4 rows, each [k, 4]; rows beyond `rows` are zero. @exports pack_a: f32 f64 */
@inline function packA<T>(rows: i32, k: i32, a: usize, aRow: usize, aCol: usize, to: usize): void {
  for (let i = 0; i < rows; i += 4) {
    const height = min(4, rows - i)
    let from = a + <usize>i * aRow
    let p = 0
    if (height == 4 && aRow == sizeof<T>()) {
      for (; p < k; p++) {
        v128.store(to, v128.load(from))
        if (sizeof<T>() == 8) v128.store(to, v128.load(from, 16), 16)
        from += aCol
        to += 4 * sizeof<T>()
      }
      continue
    }
    if (height == 4 && aCol == 4 && sizeof<T>() == 4) {
      for (; p <= k - 4; p += 4) {
        turn4(from, aRow, to, 16)
        from += 16
        to += 64
      }
    }
    for (; p < k; p++) {
      store<T>(to, load<T>(from))
      store<T>(to + sizeof<T>(), height > 1 ? load<T>(from + aRow) : 0)
      store<T>(to + 2 * sizeof<T>(), height > 2 ? load<T>(from + 2 * aRow) : 0)
      store<T>(to + 3 * sizeof<T>(), height > 3 ? load<T>(from + 3 * aRow) : 0)
      from += aCol
      to += 4 * sizeof<T>()
    }
  }
}

/** out [m, n] = a [m, 1] · b [1, n] with any strides: a product without a sum, but for that from 0. @exports column_by_row: f32 f64 */
@inline function columnByRow<T>(m: i32, n: i32, a: usize, aRow: usize, b: usize, bCol: usize, out: usize, outRow: usize): void {
  const all = <usize>n * sizeof<T>()
  const whole = bCol == sizeof<T>() ? all & ~15 : 0
  const zero = v128.splat<T>(0)
  for (let i = 0; i < m; i++) {
    const x = load<T>(a)
    const splat = v128.splat<T>(x)
    let j: usize = 0
    for (; j < whole; j += 16) v128.store(out + j, v128.add<T>(v128.mul<T>(splat, v128.load(b + j)), zero))
    for (let at = b + j; j < all; j += sizeof<T>(), at += bCol) store<T>(out + j, x * load<T>(at) + <T>0)
    a += aRow
    out += outRow
  }
}

/** out [n] = a [k] · b [k, n], b's columns adjacent: eight rows of b at once, added to `out`. @exports gemv_rows: f32 f64 */
@inline function vectorByRows<T>(n: i32, k: i32, a: usize, aStep: usize, b: usize, bRow: usize, out: usize): void {
  const lanes = 16 / sizeof<T>()
  const all = <usize>n * sizeof<T>()
  const whole = <usize>(n & ~(<i32>lanes - 1)) * sizeof<T>()
  memory.fill(out, 0, all)
  for (let p = 0; p < k; ) {
    if (p + 8 <= k) {
      const x0 = v128.load_splat<T>(a)
      const x1 = v128.load_splat<T>(a + aStep)
      const x2 = v128.load_splat<T>(a + 2 * aStep)
      const x3 = v128.load_splat<T>(a + 3 * aStep)
      const x4 = v128.load_splat<T>(a + 4 * aStep)
      const x5 = v128.load_splat<T>(a + 5 * aStep)
      const x6 = v128.load_splat<T>(a + 6 * aStep)
      const x7 = v128.load_splat<T>(a + 7 * aStep)
      const b1 = b + bRow
      const b2 = b1 + bRow
      const b3 = b2 + bRow
      const b4 = b3 + bRow
      const b5 = b4 + bRow
      const b6 = b5 + bRow
      const b7 = b6 + bRow
      let j: usize = 0
      for (; j < whole; j += 16) {
        let c = v128.add<T>(v128.load(out + j), v128.mul<T>(x0, v128.load(b + j)))
        c = v128.add<T>(c, v128.mul<T>(x1, v128.load(b1 + j)))
        c = v128.add<T>(c, v128.mul<T>(x2, v128.load(b2 + j)))
        c = v128.add<T>(c, v128.mul<T>(x3, v128.load(b3 + j)))
        c = v128.add<T>(c, v128.mul<T>(x4, v128.load(b4 + j)))
        c = v128.add<T>(c, v128.mul<T>(x5, v128.load(b5 + j)))
        c = v128.add<T>(c, v128.mul<T>(x6, v128.load(b6 + j)))
        v128.store(out + j, v128.add<T>(c, v128.mul<T>(x7, v128.load(b7 + j))))
      }
      for (; j < all; j += sizeof<T>()) {
        let c = load<T>(out + j)
        for (let q: usize = 0; q < 8; q++) c += load<T>(a + q * aStep) * load<T>(b + q * bRow + j)
        store<T>(out + j, c)
      }
      p += 8
      a += 8 * aStep
      b += 8 * bRow
    } else {
      const x = v128.load_splat<T>(a)
      let j: usize = 0
      for (; j < whole; j += 16) v128.store(out + j, v128.add<T>(v128.load(out + j), v128.mul<T>(x, v128.load(b + j))))
      for (; j < all; j += sizeof<T>()) store<T>(out + j, load<T>(out + j) + load<T>(a) * load<T>(b + j))
      p++
      a += aStep
      b += bRow
    }
  }
}

/** Eight dot products at once, of columns of b that lie `bCol` apart. */
@inline function dots8<T>(k: i32, a: usize, aStep: usize, b: usize, bRow: usize, bCol: usize, out: usize): void {
  let s0: T = 0
  let s1: T = 0
  let s2: T = 0
  let s3: T = 0
  let s4: T = 0
  let s5: T = 0
  let s6: T = 0
  let s7: T = 0
  for (let p = 0; p < k; p++) {
    const x = load<T>(a)
    let q = b
    s0 += x * load<T>(q)
    q += bCol
    s1 += x * load<T>(q)
    q += bCol
    s2 += x * load<T>(q)
    q += bCol
    s3 += x * load<T>(q)
    q += bCol
    s4 += x * load<T>(q)
    q += bCol
    s5 += x * load<T>(q)
    q += bCol
    s6 += x * load<T>(q)
    q += bCol
    s7 += x * load<T>(q)
    a += aStep
    b += bRow
  }
  store<T>(out, s0)
  store<T>(out, s1, sizeof<T>())
  store<T>(out, s2, 2 * sizeof<T>())
  store<T>(out, s3, 3 * sizeof<T>())
  store<T>(out, s4, 4 * sizeof<T>())
  store<T>(out, s5, 5 * sizeof<T>())
  store<T>(out, s6, 6 * sizeof<T>())
  store<T>(out, s7, 7 * sizeof<T>())
}

/** c + a[p] · (element p of each of four columns), for p = 0 … 3 in this order; the columns are runs at `b`, `bCol` apart. */
@inline function four(c: v128, x0: v128, x1: v128, x2: v128, x3: v128, b: usize, bCol: usize): v128 {
  const r0 = v128.load(b)
  const r1 = v128.load(b + bCol)
  const r2 = v128.load(b + 2 * bCol)
  const r3 = v128.load(b + 3 * bCol)
  const t0 = v128.shuffle<f32>(r0, r1, 0, 4, 1, 5)
  const t1 = v128.shuffle<f32>(r0, r1, 2, 6, 3, 7)
  const t2 = v128.shuffle<f32>(r2, r3, 0, 4, 1, 5)
  const t3 = v128.shuffle<f32>(r2, r3, 2, 6, 3, 7)
  c = f32x4.add(c, f32x4.mul(x0, v128.shuffle<f32>(t0, t2, 0, 1, 4, 5)))
  c = f32x4.add(c, f32x4.mul(x1, v128.shuffle<f32>(t0, t2, 2, 3, 6, 7)))
  c = f32x4.add(c, f32x4.mul(x2, v128.shuffle<f32>(t1, t3, 0, 1, 4, 5)))
  return f32x4.add(c, f32x4.mul(x3, v128.shuffle<f32>(t1, t3, 2, 3, 6, 7)))
}

/** out [n] = a [k] · b [k, n] with any strides: column by column, several at once. @exports gemv_columns: f32 f64 */
@inline function vectorByColumns<T>(n: i32, k: i32, a: usize, aStep: usize, b: usize, bRow: usize, bCol: usize, out: usize): void {
  let j = 0
  if (sizeof<T>() == 4 && bRow == 4) {
    for (; j <= n - 16; j += 16) {
      let c0 = f32x4.splat(0)
      let c1 = f32x4.splat(0)
      let c2 = f32x4.splat(0)
      let c3 = f32x4.splat(0)
      let ap = a
      let bp = b
      let p = 0
      for (; p <= k - 4; p += 4) {
        const x0 = v128.load32_splat(ap)
        const x1 = v128.load32_splat(ap + aStep)
        const x2 = v128.load32_splat(ap + 2 * aStep)
        const x3 = v128.load32_splat(ap + 3 * aStep)
        c0 = four(c0, x0, x1, x2, x3, bp, bCol)
        c1 = four(c1, x0, x1, x2, x3, bp + 4 * bCol, bCol)
        c2 = four(c2, x0, x1, x2, x3, bp + 8 * bCol, bCol)
        c3 = four(c3, x0, x1, x2, x3, bp + 12 * bCol, bCol)
        ap += 4 * aStep
        bp += 16
      }
      v128.store(out, c0)
      v128.store(out, c1, 16)
      v128.store(out, c2, 32)
      v128.store(out, c3, 48)
      for (; p < k; p++) {
        for (let q: usize = 0; q < 16; q++) f32.store(out + (q << 2), f32.load(out + (q << 2)) + f32.load(ap) * f32.load(bp + q * bCol))
        ap += aStep
        bp += 4
      }
      b += 16 * bCol
      out += 64
    }
  }
  for (; j <= n - 8; j += 8) {
    dots8<T>(k, a, aStep, b, bRow, bCol, out)
    b += 8 * bCol
    out += 8 * sizeof<T>()
  }
  for (; j < n; j++) {
    let s: T = 0
    let ap = a
    let bp = b
    for (let p = 0; p < k; p++) {
      s += load<T>(ap) * load<T>(bp)
      ap += aStep
      bp += bRow
    }
    store<T>(out, s)
    b += bCol
    out += sizeof<T>()
  }
}
