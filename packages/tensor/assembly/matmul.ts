/**
 * Matrix products: float32 in tiles of 4 × 8, float64 in tiles of 4 × 4. Above: `wasm/matmul.ts`, which stages the operands.
 *
 * out[i, j] is the plain sum over p = 0, 1, …, k - 1 in that order, each product and each sum rounded (KERNELS.md, rule DOT): blocking
 * over k continues from what stands in `out`, so packed, unpacked and the naive loop give the same bits.
 *
 * Note on speed: the micro-kernel is inlined and its k loop is not unrolled; unrolled it runs at two thirds of the speed, called at
 * four fifths. Strides count elements; they reach packing alone, so transposed operands cost nothing.
 */

/** Rows of a block of A, its depth, and columns of a block of B: A's block stays in the second-level cache, a panel of B in the first. */
const MC: i32 = 64
const KC: i32 = 256
const NC: i32 = 512

/** Bytes of scratch that `sgemm` needs when it packs: one block of A, one of B, one tile. */
export function sgemm_scratch(): i32 {
  return (MC * KC + KC * NC + 32) << 2
}

/** tile [4, 8] (+)= a [4, k] · b [k, 8]: row pointers of a with `aStep` bytes to the next column, b with `bStep` bytes to its next row. */
// @ts-ignore: decorator
@inline function micro(
  k: i32,
  a0: usize,
  a1: usize,
  a2: usize,
  a3: usize,
  aStep: usize,
  b: usize,
  bStep: usize,
  out: usize,
  outRow: usize,
  first: bool,
): void {
  const o1 = out + outRow
  const o2 = o1 + outRow
  const o3 = o2 + outRow
  let c00 = f32x4.splat(0)
  let c01 = f32x4.splat(0)
  let c10 = f32x4.splat(0)
  let c11 = f32x4.splat(0)
  let c20 = f32x4.splat(0)
  let c21 = f32x4.splat(0)
  let c30 = f32x4.splat(0)
  let c31 = f32x4.splat(0)
  if (!first) {
    c00 = v128.load(out)
    c01 = v128.load(out, 16)
    c10 = v128.load(o1)
    c11 = v128.load(o1, 16)
    c20 = v128.load(o2)
    c21 = v128.load(o2, 16)
    c30 = v128.load(o3)
    c31 = v128.load(o3, 16)
  }
  for (let p = 0; p < k; p++) {
    const b0 = v128.load(b)
    const b1 = v128.load(b, 16)
    const x0 = v128.load32_splat(a0)
    c00 = f32x4.add(c00, f32x4.mul(x0, b0))
    c01 = f32x4.add(c01, f32x4.mul(x0, b1))
    const x1 = v128.load32_splat(a1)
    c10 = f32x4.add(c10, f32x4.mul(x1, b0))
    c11 = f32x4.add(c11, f32x4.mul(x1, b1))
    const x2 = v128.load32_splat(a2)
    c20 = f32x4.add(c20, f32x4.mul(x2, b0))
    c21 = f32x4.add(c21, f32x4.mul(x2, b1))
    const x3 = v128.load32_splat(a3)
    c30 = f32x4.add(c30, f32x4.mul(x3, b0))
    c31 = f32x4.add(c31, f32x4.mul(x3, b1))
    a0 += aStep
    a1 += aStep
    a2 += aStep
    a3 += aStep
    b += bStep
  }
  v128.store(out, c00)
  v128.store(out, c01, 16)
  v128.store(o1, c10)
  v128.store(o1, c11, 16)
  v128.store(o2, c20)
  v128.store(o2, c21, 16)
  v128.store(o3, c30)
  v128.store(o3, c31, 16)
}

/** One tile at the lower or right edge: `rows` ≤ 4, `cols` ≤ 8, through the scratch tile. Missing rows of a repeat its first. */
function edge(
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
  if (!first) {
    for (let i = 0; i < rows; i++) memory.copy(tile + (i << 5), out + <usize>i * outRow, cols << 2)
  }
  micro(k, a, rows > 1 ? a + aRow : a, rows > 2 ? a + 2 * aRow : a, rows > 3 ? a + 3 * aRow : a, aStep, b, bStep, tile, 32, first)
  for (let i = 0; i < rows; i++) memory.copy(out + <usize>i * outRow, tile + (i << 5), cols << 2)
}

/** Panels of 8 columns, each [k, 8]; columns beyond `cols` are zero. */
function packB(k: i32, cols: i32, b: usize, bRow: i32, bCol: i32, to: usize): void {
  const rowBytes = <usize>bRow << 2
  const colBytes = <usize>bCol << 2
  for (let j = 0; j < cols; j += 8) {
    const width = min(8, cols - j)
    let from = b + <usize>j * colBytes
    if (width == 8 && bCol == 1) {
      for (let p = 0; p < k; p++) {
        v128.store(to, v128.load(from))
        v128.store(to, v128.load(from, 16), 16)
        to += 32
        from += rowBytes
      }
    } else if (width == 8 && bRow == 1) {
      // A transposed operand: blocks of 4 × 4 are turned in registers.
      let p = 0
      for (; p < (k & ~3); p += 4) {
        transpose4(from, colBytes, to)
        transpose4(from + 4 * colBytes, colBytes, to + 16)
        from += 16
        to += 128
      }
      for (; p < k; p++) {
        for (let c: usize = 0; c < 8; c++) f32.store(to + (c << 2), f32.load(from + c * colBytes))
        from += 4
        to += 32
      }
    } else {
      for (let p = 0; p < k; p++) {
        for (let c = 0; c < 8; c++) f32.store(to + (<usize>c << 2), c < width ? f32.load(from + <usize>c * colBytes) : 0)
        to += 32
        from += rowBytes
      }
    }
  }
}

/** Four runs of four floats, `step` bytes apart, become four rows of 32 bytes' distance. */
// @ts-ignore: decorator
@inline function transpose4(from: usize, step: usize, to: usize): void {
  const r0 = v128.load(from)
  const r1 = v128.load(from + step)
  const r2 = v128.load(from + 2 * step)
  const r3 = v128.load(from + 3 * step)
  const t0 = v128.shuffle<f32>(r0, r1, 0, 4, 1, 5)
  const t1 = v128.shuffle<f32>(r0, r1, 2, 6, 3, 7)
  const t2 = v128.shuffle<f32>(r2, r3, 0, 4, 1, 5)
  const t3 = v128.shuffle<f32>(r2, r3, 2, 6, 3, 7)
  v128.store(to, v128.shuffle<f32>(t0, t2, 0, 1, 4, 5))
  v128.store(to, v128.shuffle<f32>(t0, t2, 2, 3, 6, 7), 32)
  v128.store(to, v128.shuffle<f32>(t1, t3, 0, 1, 4, 5), 64)
  v128.store(to, v128.shuffle<f32>(t1, t3, 2, 3, 6, 7), 96)
}

/** Panels of 4 rows, each [k, 4]; rows beyond `rows` are zero. */
function packA(rows: i32, k: i32, a: usize, aRow: i32, aCol: i32, to: usize): void {
  const rowBytes = <usize>aRow << 2
  const colBytes = <usize>aCol << 2
  for (let i = 0; i < rows; i += 4) {
    const height = min(4, rows - i)
    let from = a + <usize>i * rowBytes
    for (let p = 0; p < k; p++) {
      f32.store(to, f32.load(from))
      f32.store(to, height > 1 ? f32.load(from + rowBytes) : 0, 4)
      f32.store(to, height > 2 ? f32.load(from + 2 * rowBytes) : 0, 8)
      f32.store(to, height > 3 ? f32.load(from + 3 * rowBytes) : 0, 12)
      from += colBytes
      to += 16
    }
  }
}

/** out [m, n] dense = a [m, k] · b [k, n], b's columns adjacent, nothing packed but the ragged last panel of b. k ≥ 1. */
export function sgemm_unpacked(m: i32, n: i32, k: i32, a: usize, aRow: i32, aCol: i32, b: usize, bRow: i32, out: usize, scratch: usize): void {
  const outRow = <usize>n << 2
  const aRowBytes = <usize>aRow << 2
  const aStep = <usize>aCol << 2
  const bStep = <usize>bRow << 2
  const fullN = n & ~7
  const tile = scratch
  const panel = scratch + 128
  if (fullN < n) packB(k, n - fullN, b + (<usize>fullN << 2), bRow, 1, panel)
  for (let i = 0; i < m; i += 4) {
    const rows = min(4, m - i)
    const ai = a + <usize>i * aRowBytes
    const oi = out + <usize>i * outRow
    if (rows == 4) {
      const a1 = ai + aRowBytes
      const a2 = a1 + aRowBytes
      const a3 = a2 + aRowBytes
      for (let j = 0; j < fullN; j += 8) {
        micro(k, ai, a1, a2, a3, aStep, b + (<usize>j << 2), bStep, oi + (<usize>j << 2), outRow, true)
      }
    } else {
      for (let j = 0; j < fullN; j += 8) {
        edge(rows, 8, k, ai, aRowBytes, aStep, b + (<usize>j << 2), bStep, oi + (<usize>j << 2), outRow, true, tile)
      }
    }
    if (fullN < n) edge(rows, n - fullN, k, ai, aRowBytes, aStep, panel, 32, oi + (<usize>fullN << 2), outRow, true, tile)
  }
}

/** out [m, n] dense = a [m, k] · b [k, n], any strides, in blocks that are packed first. `scratch`: `sgemm_scratch()` bytes. k ≥ 1. */
export function sgemm_packed(
  m: i32,
  n: i32,
  k: i32,
  a: usize,
  aRow: i32,
  aCol: i32,
  b: usize,
  bRow: i32,
  bCol: i32,
  out: usize,
  scratch: usize,
): void {
  const packedA = scratch
  const packedB = packedA + (<usize>(MC * KC) << 2)
  const tile = packedB + (<usize>(KC * NC) << 2)
  const outRow = <usize>n << 2
  for (let jc = 0; jc < n; jc += NC) {
    const nc = min(NC, n - jc)
    for (let pc = 0; pc < k; pc += KC) {
      const kc = min(KC, k - pc)
      const first = pc == 0
      packB(kc, nc, b + ((<usize>pc * bRow + <usize>jc * bCol) << 2), bRow, bCol, packedB)
      for (let ic = 0; ic < m; ic += MC) {
        const mc = min(MC, m - ic)
        packA(mc, kc, a + ((<usize>ic * aRow + <usize>pc * aCol) << 2), aRow, aCol, packedA)
        for (let j = 0; j < nc; j += 8) {
          const bj = packedB + ((<usize>j * kc) << 2)
          const cols = min(8, nc - j)
          for (let i = 0; i < mc; i += 4) {
            const ai = packedA + ((<usize>i * kc) << 2)
            const oij = out + <usize>(ic + i) * outRow + (<usize>(jc + j) << 2)
            if (cols == 8 && mc - i >= 4) micro(kc, ai, ai + 4, ai + 8, ai + 12, 16, bj, 32, oij, outRow, first)
            else edge(min(4, mc - i), cols, kc, ai, 4, 16, bj, 32, oij, outRow, first, tile)
          }
        }
      }
    }
  }
}

/** out [m, n] dense = a [m, k] (any strides) · b [k, n] (columns adjacent), float64, in tiles of 4 × 4. k ≥ 1. */
export function dgemm(m: i32, n: i32, k: i32, a: usize, aRow: i32, aCol: i32, b: usize, bRow: i32, out: usize): void {
  const aRowBytes = <usize>aRow << 3
  const aStep = <usize>aCol << 3
  const bStep = <usize>bRow << 3
  const outRow = <usize>n << 3
  const fullM = m & ~3
  const fullN = n & ~3
  for (let i = 0; i < fullM; i += 4) {
    const ai = a + <usize>i * aRowBytes
    for (let j = 0; j < fullN; j += 4) {
      let a0 = ai
      let a1 = a0 + aRowBytes
      let a2 = a1 + aRowBytes
      let a3 = a2 + aRowBytes
      let bp = b + (<usize>j << 3)
      let c00 = f64x2.splat(0)
      let c01 = f64x2.splat(0)
      let c10 = f64x2.splat(0)
      let c11 = f64x2.splat(0)
      let c20 = f64x2.splat(0)
      let c21 = f64x2.splat(0)
      let c30 = f64x2.splat(0)
      let c31 = f64x2.splat(0)
      for (let p = 0; p < k; p++) {
        const b0 = v128.load(bp)
        const b1 = v128.load(bp, 16)
        const x0 = v128.load64_splat(a0)
        c00 = f64x2.add(c00, f64x2.mul(x0, b0))
        c01 = f64x2.add(c01, f64x2.mul(x0, b1))
        const x1 = v128.load64_splat(a1)
        c10 = f64x2.add(c10, f64x2.mul(x1, b0))
        c11 = f64x2.add(c11, f64x2.mul(x1, b1))
        const x2 = v128.load64_splat(a2)
        c20 = f64x2.add(c20, f64x2.mul(x2, b0))
        c21 = f64x2.add(c21, f64x2.mul(x2, b1))
        const x3 = v128.load64_splat(a3)
        c30 = f64x2.add(c30, f64x2.mul(x3, b0))
        c31 = f64x2.add(c31, f64x2.mul(x3, b1))
        a0 += aStep
        a1 += aStep
        a2 += aStep
        a3 += aStep
        bp += bStep
      }
      let o = out + <usize>i * outRow + (<usize>j << 3)
      v128.store(o, c00)
      v128.store(o, c01, 16)
      o += outRow
      v128.store(o, c10)
      v128.store(o, c11, 16)
      o += outRow
      v128.store(o, c20)
      v128.store(o, c21, 16)
      o += outRow
      v128.store(o, c30)
      v128.store(o, c31, 16)
    }
  }
  if (fullN < n) dots(0, fullM, fullN, n, k, a, aRowBytes, aStep, b, bStep, out, outRow)
  if (fullM < m) dots(fullM, m, 0, n, k, a, aRowBytes, aStep, b, bStep, out, outRow)
}

/** The elements outside of whole tiles, one by one. */
function dots(
  i0: i32,
  i1: i32,
  j0: i32,
  j1: i32,
  k: i32,
  a: usize,
  aRowBytes: usize,
  aStep: usize,
  b: usize,
  bStep: usize,
  out: usize,
  outRow: usize,
): void {
  for (let i = i0; i < i1; i++) {
    for (let j = j0; j < j1; j++) {
      let ap = a + <usize>i * aRowBytes
      let bp = b + (<usize>j << 3)
      let sum: f64 = 0
      for (let p = 0; p < k; p++) {
        sum += f64.load(ap) * f64.load(bp)
        ap += aStep
        bp += bStep
      }
      f64.store(out + <usize>i * outRow + (<usize>j << 3), sum)
    }
  }
}
