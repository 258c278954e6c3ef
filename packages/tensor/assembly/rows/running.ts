/**
 * Running sums and products along rows of dense float32 [rows, k], and the derivatives of products. Pointers are bytes. All arithmetic is double, element after
 * element, so each result waits for the last one: four rows go side by side. For `wasm/rows/running.ts`.
 */

const enum Running { cumsum_rows, cumprod_rows, reverse_cumsum_rows }
const enum Pieces { cumsum_piece, cumprod_piece, reverse_cumsum_piece }
const enum Backward { prod_backward_rows, cumprod_backward_rows }

@inline function join(products: bool, total: f64, x: usize): f64 {
  const v = <f64>f32.load(x)
  return products ? total * v : total + v
}

/**
 * One row, or four that are `row` bytes apart; with `reverse` from the end. The totals begin at `t0`. Returns that of the first row.
 */
@inline function runRows(products: bool, reverse: bool, rows: i32, k: i32, row: usize, x: usize, out: usize, t0: f64): f64 {
  let t1 = t0
  let t2 = t0
  let t3 = t0
  let i: usize = reverse ? (<usize>k << 2) - 4 : 0
  for (let left = k; left > 0; left--) {
    t0 = join(products, t0, x + i)
    if (rows == 4) {
      t1 = join(products, t1, x + row + i)
      t2 = join(products, t2, x + 2 * row + i)
      t3 = join(products, t3, x + 3 * row + i)
      f32.store(out + row + i, <f32>t1)
      f32.store(out + 2 * row + i, <f32>t2)
      f32.store(out + 3 * row + i, <f32>t3)
    }
    f32.store(out + i, <f32>t0)
    i += reverse ? -4 : 4
  }
  return t0
}

/** out [rows, k], which may be x. @exports f32 */
@inline function running(op: Running, rows: i32, k: i32, x: usize, out: usize): void {
  const products = op == Running.cumprod_rows
  const reverse = op == Running.reverse_cumsum_rows
  const start: f64 = products ? 1 : 0
  const all = <usize>k << 2
  let r = 0
  for (; r + 4 <= rows; r += 4) {
    runRows(products, reverse, 4, k, all, x, out, start)
    x += 4 * all
    out += 4 * all
  }
  for (; r < rows; r++) {
    runRows(products, reverse, 1, k, all, x, out, start)
    x += all
    out += all
  }
}

/** A piece of a long row: its total so far, a double, is at `total`. @exports f32 */
@inline function runningPiece(op: Pieces, n: i32, x: usize, out: usize, total: usize): void {
  f64.store(total, runRows(op == Pieces.cumprod_piece, op == Pieces.reverse_cumsum_piece, 1, n, 0, x, out, f64.load(total)))
}

/**
 * The derivative of each row's product, or of its running products, by each factor: the product of the others, never a quotient, so that factors may be 0.
 * A product's: g [rows] times those to the right, times those to the left. Running products': the sum over j ≥ i of g j · x (i+1) … x j, by Horner's rule from
 * the right, times those to the left; g is [rows, k]. `left` is scratch of [4, k] doubles.
 * @exports f32
 */
@inline function productsBackward(op: Backward, rows: i32, k: i32, g: usize, x: usize, out: usize, left: usize): void {
  const runs = op == Backward.cumprod_backward_rows
  const all = <usize>k << 2
  const gRow = runs ? all : 4
  let r = 0
  for (; r + 4 <= rows; r += 4) {
    othersOfRows(runs, 4, k, g, gRow, x, out, left)
    g += 4 * gRow
    x += 4 * all
    out += 4 * all
  }
  for (; r < rows; r++) {
    othersOfRows(runs, 1, k, g, gRow, x, out, left)
    g += gRow
    x += all
    out += all
  }
}

/** The gradient of factor i is the product to its left times this number. `p`: g times the factors to the right; or, of running products, the sum over j > i, to which this adds j = i. */
@inline function fromRight(runs: bool, p: f64, g: usize): f64 {
  return runs ? <f64>f32.load(g) + p : p
}

@inline function othersOfRows(runs: bool, rows: i32, k: i32, g: usize, gRow: usize, x: usize, out: usize, left: usize): void {
  const row = <usize>k << 2
  let p0: f64 = 1
  let p1: f64 = 1
  let p2: f64 = 1
  let p3: f64 = 1
  for (let i: usize = 0, to = left; i < row; i += 4, to += rows << 3) {
    f64.store(to, p0)
    p0 *= <f64>f32.load(x + i)
    if (rows == 4) {
      f64.store(to, p1, 8)
      f64.store(to, p2, 16)
      f64.store(to, p3, 24)
      p1 *= <f64>f32.load(x + row + i)
      p2 *= <f64>f32.load(x + 2 * row + i)
      p3 *= <f64>f32.load(x + 3 * row + i)
    }
  }
  p0 = runs ? 0 : <f64>f32.load(g)
  if (rows == 4) {
    p1 = runs ? 0 : <f64>f32.load(g + gRow)
    p2 = runs ? 0 : <f64>f32.load(g + 2 * gRow)
    p3 = runs ? 0 : <f64>f32.load(g + 3 * gRow)
  }
  for (let i = row, from = left + <usize>k * (rows << 3); i > 0; ) {
    i -= 4
    from -= rows << 3
    p0 = fromRight(runs, p0, g + i)
    f32.store(out + i, <f32>(f64.load(from) * p0))
    p0 *= <f64>f32.load(x + i)
    if (rows == 4) {
      p1 = fromRight(runs, p1, g + gRow + i)
      p2 = fromRight(runs, p2, g + 2 * gRow + i)
      p3 = fromRight(runs, p3, g + 3 * gRow + i)
      f32.store(out + row + i, <f32>(f64.load(from, 8) * p1))
      f32.store(out + 2 * row + i, <f32>(f64.load(from, 16) * p2))
      f32.store(out + 3 * row + i, <f32>(f64.load(from, 24) * p3))
      p1 *= <f64>f32.load(x + row + i)
      p2 *= <f64>f32.load(x + 2 * row + i)
      p3 *= <f64>f32.load(x + 3 * row + i)
    }
  }
}
