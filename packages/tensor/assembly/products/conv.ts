/**
 * The parts of convolutions other than matrix products, for `wasm/products/conv.ts`: an image's columns (im2col), their way back (col2im), and loops over
 * whole planes for depthwise convolutions, whose products would have one row. Pointers are bytes, everything else counts elements.
 */

/** Of output positions 0 … ow − 1 those that read inside of a row of w, at ox · stride + first: from `low` (inclusive) … */
@inline function low(first: i32, stride: i32, ow: i32): i32 {
  return first >= 0 ? 0 : min(ow, (stride - 1 - first) / stride)
}

/** … to `high` (exclusive). */
@inline function high(first: i32, stride: i32, w: i32, ow: i32): i32 {
  const left = w - 1 - first
  return left < 0 ? 0 : min(ow, left / stride + 1)
}

const enum Columns { im2col, col2im }

/**
 * Rows oy0 … oy1 − 1 of y as columns, col[(c, ky, kx), (oy, ox)] = x[c, iy, ix], 0 outside; or their way back, x[c, iy, ix] += col[(c, ky, kx), (oy, ox)], in
 * ascending order of col's rows and columns. col is dense.
 * @exports f32 f64
 */
@inline function columns<T>(
  op: Columns, c: i32, h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32,
  oy0: i32, oy1: i32, ow: i32, x: usize, col: usize,
): void {
  const size = sizeof<T>()
  for (let ci = 0; ci < c; ci++) {
    for (let ky = 0; ky < kh; ky++) {
      for (let kx = 0; kx < kw; kx++) {
        const first = kx * dw - pw
        const from = low(first, sw, ow)
        const to = max(from, high(first, sw, w, ow))
        for (let oy = oy0; oy < oy1; oy++) {
          const iy = oy * sh - ph + ky * dh
          const at = x + <usize>((ci * h + iy) * w + first + from * sw) * size
          if (iy < 0 || iy >= h) col = op == Columns.im2col ? zeros<T>(col, ow) : col + <usize>ow * size
          else if (op == Columns.im2col) {
            col = zeros<T>(col, from)
            col = takeRow<T>(to - from, at, sw, col)
            col = zeros<T>(col, ow - to)
          } else {
            addRow<T>(to - from, <T>1, col + <usize>from * size, 1, at, sw)
            col += <usize>ow * size
          }
        }
      }
    }
  }
}

/** Copies n elements, `step` apart, and returns the end. Rows are short: a loop in place beats a call of memory.copy. */
@inline function takeRow<T>(n: i32, x: usize, step: i32, to: usize): usize {
  const lanes = <i32>(16 / sizeof<T>())
  if (step == 1) {
    for (; n >= lanes; n -= lanes) {
      v128.store(to, v128.load(x))
      to += 16
      x += 16
    }
  }
  for (; n > 0; n--) {
    store<T>(to, load<T>(x))
    to += sizeof<T>()
    x += <usize>step * sizeof<T>()
  }
  return to
}

/** Writes n zeros and returns the end. */
@inline function zeros<T>(to: usize, n: i32): usize {
  for (; n >= <i32>(16 / sizeof<T>()); n -= <i32>(16 / sizeof<T>())) {
    v128.store(to, v128.splat<T>(0))
    to += 16
  }
  for (; n > 0; n--) {
    store<T>(to, 0)
    to += sizeof<T>()
  }
  return to
}

/** out += a · x, product and sum rounded each. */
@inline function addRow<T>(n: i32, a: T, x: usize, xStep: i32, out: usize, outStep: i32): void {
  const size = sizeof<T>()
  let i = 0
  if (sizeof<T>() == 4 && xStep == 1 && outStep == 1) {
    const factor = f32x4.splat(<f32>a)
    for (; i < (n & ~3); i += 4) {
      v128.store(out, f32x4.add(v128.load(out), f32x4.mul(factor, v128.load(x))))
      x += 16
      out += 16
    }
  }
  for (; i < n; i++) {
    store<T>(out, <T>(load<T>(out) + <T>(a * load<T>(x))))
    x += <usize>xStep * size
    out += <usize>outStep * size
  }
}

const enum Depthwise { depthwise, depthwise_input }

/**
 * One plane of a depthwise convolution: out [oh, ow] = x [h, w] with weight [kh, kw]. Its adjoint in x adds to out [h, w] what x [oh, ow], the gradient, gives.
 * @exports f32
 */
@inline function depthwise(
  op: Depthwise, h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32, oh: i32, ow: i32,
  x: usize, weight: usize, out: usize,
): void {
  const isForward = op == Depthwise.depthwise
  const image = isForward ? x : out
  const plane = isForward ? out : x
  if (isForward) memory.fill(out, 0, <usize>(oh * ow) << 2)
  for (let oy = 0; oy < oh; oy++) {
    for (let ky = 0; ky < kh; ky++) {
      const iy = oy * sh - ph + ky * dh
      if (iy < 0 || iy >= h) continue
      for (let kx = 0; kx < kw; kx++) {
        const first = kx * dw - pw
        const from = low(first, sw, ow)
        const n = high(first, sw, w, ow) - from
        const factor = f32.load(weight + (<usize>(ky * kw + kx) << 2))
        const inImage = image + (<usize>(iy * w + first + from * sw) << 2)
        const inPlane = plane + (<usize>(oy * ow + from) << 2)
        if (isForward) addRow<f32>(n, factor, inImage, sw, inPlane, 1)
        else addRow<f32>(n, factor, inPlane, 1, inImage, sw)
      }
    }
  }
}

/** The adjoint in the weight adds to out [kh, kw]. A row is summed in double, in order. */
export function depthwise_weight_f32(
  h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32, oh: i32, ow: i32, x: usize, grad: usize, out: usize,
): void {
  for (let ky = 0; ky < kh; ky++) {
    for (let kx = 0; kx < kw; kx++) {
      const first = kx * dw - pw
      const from = low(first, sw, ow)
      const n = high(first, sw, w, ow) - from
      let total: f64 = 0
      for (let oy = 0; oy < oh; oy++) {
        const iy = oy * sh - ph + ky * dh
        if (iy < 0 || iy >= h) continue
        let at = x + (<usize>(iy * w + first + from * sw) << 2)
        let g = grad + (<usize>(oy * ow + from) << 2)
        for (let i = 0; i < n; i++) {
          total += <f64>f32.load(at) * <f64>f32.load(g)
          at += <usize>sw << 2
          g += 4
        }
      }
      const to = out + (<usize>(ky * kw + kx) << 2)
      f32.store(to, f32.load(to) + <f32>total)
    }
  }
}

/** out += x. @exports accumulate: f32 f64 */
@inline function accumulate<T>(n: i32, x: usize, out: usize): void {
  addRow<T>(n, 1, x, 1, out, 1)
}
