/**
 * What convolutions need beside the matrix product: the columns of an image (im2col), their way back (col2im), and loops over whole planes for
 * depthwise convolutions, whose products would have one row. Above: `wasm/conv.ts`. Pointers are bytes, everything else counts elements.
 */

/** Of output positions 0 … ow − 1 those that read inside of a row of w, at ox · stride + first: from `low` (inclusive) … */
// @ts-ignore: decorator
@inline function low(first: i32, stride: i32, ow: i32): i32 {
  return first >= 0 ? 0 : min(ow, (stride - 1 - first) / stride)
}

/** … to `high` (exclusive). */
// @ts-ignore: decorator
@inline function high(first: i32, stride: i32, w: i32, ow: i32): i32 {
  const left = w - 1 - first
  return left < 0 ? 0 : min(ow, left / stride + 1)
}

/** Rows oy0 … oy1 − 1 of y as columns: col[(c, ky, kx), (oy, ox)] = x[c, iy, ix], 0 outside; col is dense. */
// @ts-ignore: decorator
@inline function im2col<T>(
  c: i32, h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32,
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
          if (iy < 0 || iy >= h) {
            col = zeros<T>(col, ow)
            continue
          }
          let at = x + <usize>((ci * h + iy) * w + first + from * sw) * size
          col = zeros<T>(col, from)
          let left = to - from
          // Rows are short: a loop in place beats a call of memory.copy.
          if (sw == 1) {
            for (; left >= <i32>(16 / size); left -= <i32>(16 / size)) {
              v128.store(col, v128.load(at))
              col += 16
              at += 16
            }
          }
          for (; left > 0; left--) {
            store<T>(col, load<T>(at))
            col += size
            at += <usize>sw * size
          }
          col = zeros<T>(col, ow - to)
        }
      }
    }
  }
}

/** Writes n zeros and returns the end. */
// @ts-ignore: decorator
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

export function im2col_f32(
  c: i32, h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32,
  oy0: i32, oy1: i32, ow: i32, x: usize, col: usize,
): void {
  im2col<f32>(c, h, w, kh, kw, sh, sw, ph, pw, dh, dw, oy0, oy1, ow, x, col)
}

export function im2col_f64(
  c: i32, h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32,
  oy0: i32, oy1: i32, ow: i32, x: usize, col: usize,
): void {
  im2col<f64>(c, h, w, kh, kw, sh, sw, ph, pw, dh, dw, oy0, oy1, ow, x, col)
}

/** x[c, iy, ix] += col[(c, ky, kx), (oy, ox)], in ascending order of col's rows and columns; col is dense. */
// @ts-ignore: decorator
@inline function col2im<T>(
  c: i32, h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32,
  oy0: i32, oy1: i32, ow: i32, x: usize, col: usize,
): void {
  const size = sizeof<T>()
  for (let ci = 0; ci < c; ci++) {
    for (let ky = 0; ky < kh; ky++) {
      for (let kx = 0; kx < kw; kx++) {
        const first = kx * dw - pw
        const from = low(first, sw, ow)
        const to = high(first, sw, w, ow)
        for (let oy = oy0; oy < oy1; oy++) {
          const iy = oy * sh - ph + ky * dh
          if (iy >= 0 && iy < h && from < to) {
            const at = x + <usize>((ci * h + iy) * w + first + from * sw) * size
            addRow<T>(to - from, <T>1, col + <usize>from * size, 1, at, sw)
          }
          col += <usize>ow * size
        }
      }
    }
  }
}

export function col2im_f32(
  c: i32, h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32,
  oy0: i32, oy1: i32, ow: i32, x: usize, col: usize,
): void {
  col2im<f32>(c, h, w, kh, kw, sh, sw, ph, pw, dh, dw, oy0, oy1, ow, x, col)
}

export function col2im_f64(
  c: i32, h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32,
  oy0: i32, oy1: i32, ow: i32, x: usize, col: usize,
): void {
  col2im<f64>(c, h, w, kh, kw, sh, sw, ph, pw, dh, dw, oy0, oy1, ow, x, col)
}

/** out += a · x, product and sum rounded each. */
// @ts-ignore: decorator
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

/** One plane of a depthwise convolution: out [oh, ow] = x [h, w] with weight [kh, kw]. */
export function depthwise_f32(
  h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32, oh: i32, ow: i32, x: usize, weight: usize, out: usize,
): void {
  memory.fill(out, 0, <usize>(oh * ow) << 2)
  for (let oy = 0; oy < oh; oy++) {
    for (let ky = 0; ky < kh; ky++) {
      const iy = oy * sh - ph + ky * dh
      if (iy < 0 || iy >= h) continue
      for (let kx = 0; kx < kw; kx++) {
        const first = kx * dw - pw
        const from = low(first, sw, ow)
        const n = high(first, sw, w, ow) - from
        const at = x + (<usize>(iy * w + first + from * sw) << 2)
        addRow<f32>(n, f32.load(weight + (<usize>(ky * kw + kx) << 2)), at, sw, out + (<usize>(oy * ow + from) << 2), 1)
      }
    }
  }
}

/** Its adjoint in x: adds to out [h, w] what grad [oh, ow] gives. */
export function depthwise_input_f32(
  h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32, oh: i32, ow: i32, grad: usize, weight: usize, out: usize,
): void {
  for (let oy = 0; oy < oh; oy++) {
    for (let ky = 0; ky < kh; ky++) {
      const iy = oy * sh - ph + ky * dh
      if (iy < 0 || iy >= h) continue
      for (let kx = 0; kx < kw; kx++) {
        const first = kx * dw - pw
        const from = low(first, sw, ow)
        const n = high(first, sw, w, ow) - from
        const at = out + (<usize>(iy * w + first + from * sw) << 2)
        addRow<f32>(n, f32.load(weight + (<usize>(ky * kw + kx) << 2)), grad + (<usize>(oy * ow + from) << 2), 1, at, sw)
      }
    }
  }
}

/** Its adjoint in the weight: adds to out [kh, kw]. A row is summed in double, in order. */
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

/** out += x */
export function accumulate_f32(n: i32, x: usize, out: usize): void {
  addRow<f32>(n, 1, x, 1, out, 1)
}

export function accumulate_f64(n: i32, x: usize, out: usize): void {
  addRow<f64>(n, 1, x, 1, out, 1)
}
