/**
 * Steps of recurrent layers over float32 rows, after the product with h on the way there, and before the product with the weight on the way back; for
 * `wasm/recurrent.ts`. The formulas are those of `nn/src/recurrent`, each operation rounded as there. Runs are dense; `gates` and others of several parts hold
 * them side by side in a row, `made` one part after the other, each of `rows` rows. A call goes through the rows from `from` to `to`.
 */
import { sigmoid4, tanh4 } from './parts/math'

/** 16 bytes from `p`, or (`whole` false) its one element in all lanes. */
@inline function get(whole: bool, p: usize): v128 {
  return whole ? v128.load(p) : v128.load32_splat(p)
}

@inline function put(whole: bool, p: usize, x: v128): void {
  if (whole) v128.store(p, x)
  else f32.store(p, f32x4.extract_lane(x, 0))
}

/** y (1 − y), the slope of the sigmoid whose result is y, times g; then the same of tanh. */
@inline function throughSigmoid(g: v128, y: v128): v128 {
  return f32x4.mul(g, f32x4.mul(y, f32x4.sub(f32x4.splat(1), y)))
}

@inline function throughTanh(g: v128, y: v128): v128 {
  return f32x4.mul(g, f32x4.sub(f32x4.splat(1), f32x4.mul(y, y)))
}

@inline function lstmAt(whole: bool, row: usize, part: usize, product: usize, inputs: usize, c: usize, made: usize, nextC: usize, nextH: usize): void {
  const i = sigmoid4(f32x4.add(get(whole, product), get(whole, inputs)))
  const f = sigmoid4(f32x4.add(get(whole, product + row), get(whole, inputs + row)))
  const g = tanh4(f32x4.add(get(whole, product + 2 * row), get(whole, inputs + 2 * row)))
  const o = sigmoid4(f32x4.add(get(whole, product + 3 * row), get(whole, inputs + 3 * row)))
  const next = f32x4.add(f32x4.mul(f, get(whole, c)), f32x4.mul(i, g))
  const squashed = tanh4(next)
  put(whole, made, i)
  put(whole, made + part, f)
  put(whole, made + 2 * part, g)
  put(whole, made + 3 * part, o)
  put(whole, made + 4 * part, squashed)
  put(whole, nextC, next)
  put(whole, nextH, f32x4.mul(o, squashed))
}

/** product and inputs [rows, 4 width], c, nextC and nextH [rows, width], made [5, rows, width]: i, f, g, o, tanh(c'). */
export function lstm_cell_f32(rows: i32, width: i32, from: i32, to: i32, product: usize, inputs: usize, c: usize, made: usize, nextC: usize, nextH: usize): void {
  const row = <usize>width << 2
  const part = <usize>rows * row
  const whole = <usize>(width & ~3) << 2
  const end = <usize>to * row
  for (let r = <usize>from * row; r < end; r += row) {
    const at = r << 2
    let j: usize = 0
    for (; j < whole; j += 16) lstmAt(true, row, part, product + at + j, inputs + at + j, c + r + j, made + r + j, nextC + r + j, nextH + r + j)
    for (; j < row; j += 4) lstmAt(false, row, part, product + at + j, inputs + at + j, c + r + j, made + r + j, nextC + r + j, nextH + r + j)
  }
}

@inline function lstmBackwardAt(whole: bool, row: usize, part: usize, grad: usize, dh: usize, made: usize, c: usize, dc: usize, dGates: usize): void {
  const i = get(whole, made)
  const f = get(whole, made + part)
  const g = get(whole, made + 2 * part)
  const o = get(whole, made + 3 * part)
  const squashed = get(whole, made + 4 * part)
  const d = f32x4.add(get(whole, dh), get(whole, grad))
  put(whole, dGates + 3 * row, throughSigmoid(f32x4.mul(d, squashed), o))
  const forC = f32x4.add(get(whole, dc), throughTanh(f32x4.mul(d, o), squashed))
  put(whole, dGates, throughSigmoid(f32x4.mul(forC, g), i))
  put(whole, dGates + row, throughSigmoid(f32x4.mul(forC, get(whole, c)), f))
  put(whole, dGates + 2 * row, throughTanh(f32x4.mul(forC, i), g))
  put(whole, dc, f32x4.mul(forC, f))
}

/** grad, dh, c and dc [rows, width], dGates [rows, 4 width]; dc is read and written. */
export function lstm_cell_backward_f32(rows: i32, width: i32, from: i32, to: i32, grad: usize, dh: usize, made: usize, c: usize, dc: usize, dGates: usize): void {
  const row = <usize>width << 2
  const part = <usize>rows * row
  const whole = <usize>(width & ~3) << 2
  const end = <usize>to * row
  for (let r = <usize>from * row; r < end; r += row) {
    let j: usize = 0
    for (; j < whole; j += 16) lstmBackwardAt(true, row, part, grad + r + j, dh + r + j, made + r + j, c + r + j, dc + r + j, dGates + (r << 2) + j)
    for (; j < row; j += 4) lstmBackwardAt(false, row, part, grad + r + j, dh + r + j, made + r + j, c + r + j, dc + r + j, dGates + (r << 2) + j)
  }
}

@inline function gruAt(whole: bool, row: usize, part: usize, product: usize, inputs: usize, bias: usize, h: usize, made: usize, nextH: usize): void {
  const r = sigmoid4(f32x4.add(get(whole, inputs), get(whole, product)))
  const z = sigmoid4(f32x4.add(get(whole, inputs + row), get(whole, product + row)))
  const q = f32x4.add(get(whole, product + 2 * row), get(whole, bias))
  const n = tanh4(f32x4.add(f32x4.mul(r, q), get(whole, inputs + 2 * row)))
  put(whole, made, r)
  put(whole, made + part, z)
  put(whole, made + 2 * part, q)
  put(whole, made + 3 * part, n)
  put(whole, nextH, f32x4.add(f32x4.mul(f32x4.sub(get(whole, h), n), z), n))
}

/** product and inputs [rows, 3 width], bias [width], h and nextH [rows, width], made [4, rows, width]: r, z, q, n. */
export function gru_cell_f32(rows: i32, width: i32, from: i32, to: i32, product: usize, inputs: usize, bias: usize, h: usize, made: usize, nextH: usize): void {
  const row = <usize>width << 2
  const part = <usize>rows * row
  const whole = <usize>(width & ~3) << 2
  const end = <usize>to * row
  for (let r = <usize>from * row; r < end; r += row) {
    const at = 3 * r
    let j: usize = 0
    for (; j < whole; j += 16) gruAt(true, row, part, product + at + j, inputs + at + j, bias + j, h + r + j, made + r + j, nextH + r + j)
    for (; j < row; j += 4) gruAt(false, row, part, product + at + j, inputs + at + j, bias + j, h + r + j, made + r + j, nextH + r + j)
  }
}

@inline function gruBackwardAt(
  whole: bool, row: usize, part: usize, grad: usize, dh: usize, made: usize, h: usize, dInputs: usize, dProduct: usize, direct: usize,
): void {
  const r = get(whole, made)
  const z = get(whole, made + part)
  const q = get(whole, made + 2 * part)
  const n = get(whole, made + 3 * part)
  const d = f32x4.add(get(whole, dh), get(whole, grad))
  const past = f32x4.mul(d, z)
  const dz = throughSigmoid(f32x4.mul(d, f32x4.sub(get(whole, h), n)), z)
  const dn = throughTanh(f32x4.sub(d, past), n)
  const dr = throughSigmoid(f32x4.mul(dn, q), r)
  put(whole, dInputs, dr)
  put(whole, dProduct, dr)
  put(whole, dInputs + row, dz)
  put(whole, dProduct + row, dz)
  put(whole, dInputs + 2 * row, dn)
  put(whole, dProduct + 2 * row, f32x4.mul(dn, r))
  put(whole, direct, past)
}

/** grad, dh, h and direct [rows, width], dInputs and dProduct [rows, 3 width]. */
export function gru_cell_backward_f32(
  rows: i32, width: i32, from: i32, to: i32, grad: usize, dh: usize, made: usize, h: usize, dInputs: usize, dProduct: usize, direct: usize,
): void {
  const row = <usize>width << 2
  const part = <usize>rows * row
  const whole = <usize>(width & ~3) << 2
  const end = <usize>to * row
  for (let r = <usize>from * row; r < end; r += row) {
    const at = 3 * r
    let j: usize = 0
    for (; j < whole; j += 16) {
      gruBackwardAt(true, row, part, grad + r + j, dh + r + j, made + r + j, h + r + j, dInputs + at + j, dProduct + at + j, direct + r + j)
    }
    for (; j < row; j += 4) {
      gruBackwardAt(false, row, part, grad + r + j, dh + r + j, made + r + j, h + r + j, dInputs + at + j, dProduct + at + j, direct + r + j)
    }
  }
}
