/**
 * Convolutions as matrix products whose columns (im2col) are never written, for `wasm/products/direct.ts`. The image is copied once, with its padding, so that a place
 * that a window reads is at an offset that depends on the window's element alone: a table has it for each (channel, ky, kx). Each row of the copy is parted
 * into as many phases as the stride has steps: columns that neighbouring windows read are neighbours there, whatever the stride.
 *
 * Tiles are as large as those of `matmul.ts`, and so is the order of summation (KERNELS.md, rules DOT and CONV). Pointers, rows, planes and offsets count bytes.
 */
import { copyRow, micro, WIDTH } from '../parts/tile'
import { storeTurned2, storeTurned4, turn2, turn4 } from '../parts/turn'

/**
 * Planes [c, rows, phases, length] of an image [c, h, w]: the element of row y, phase f and column i is x[c, y - top, i · phases + f - left], 0 outside.
 * @exports planes: f32 f64
 */
@inline function planes<T>(
  c: i32, h: i32, w: i32, top: i32, left: i32, rows: i32, phases: i32, length: i32, x: usize, to: usize,
): void {
  const lanes = <i32>(16 / sizeof<T>())
  const row = <usize>w * sizeof<T>()
  for (let ci = 0; ci < c; ci++) {
    for (let y = 0; y < rows; y++) {
      const isInside = y >= top && y - top < h
      const from = x + <usize>(isInside ? y - top : 0) * row
      for (let f = 0; f < phases; f++) {
        // Column i reads from + i * phases, which is inside from `low` to `high`.
        const first = f - left
        const low = isInside ? min(length, first >= 0 ? 0 : (phases - 1 - first) / phases) : length
        const high = isInside ? max(low, min(length, first >= w ? 0 : (w - 1 - first) / phases + 1)) : length
        let i = 0
        for (; i < low; i++) store<T>(to + <usize>i * sizeof<T>(), 0)
        let at = from + <usize>(first + low * phases) * sizeof<T>()
        if (phases == 1) {
          for (; i + lanes <= high; i += lanes) {
            v128.store(to + <usize>i * sizeof<T>(), v128.load(at))
            at += 16
          }
        }
        for (; i < high; i++) {
          store<T>(to + <usize>i * sizeof<T>(), load<T>(at))
          at += <usize>phases * sizeof<T>()
        }
        for (; i < length; i++) store<T>(to + <usize>i * sizeof<T>(), 0)
        to += <usize>length * sizeof<T>()
      }
    }
    x += <usize>h * row
  }
}

/**
 * Four places × WIDTH bytes of output channels (+)= the elements at the k offsets from each place · b [k, WIDTH], turned, as out has them: channels `plane` apart.
 * `bias`: the address of as many biases, which are added to the sums, or 0.
 */
@inline function gathered<T>(
  k: i32, a0: usize, a1: usize, a2: usize, a3: usize, offsets: usize, b: usize, out: usize, plane: usize, bias: usize, first: bool, tile: usize,
): void {
  let c00 = v128.splat<T>(0)
  let c01 = v128.splat<T>(0)
  let c10 = v128.splat<T>(0)
  let c11 = v128.splat<T>(0)
  let c20 = v128.splat<T>(0)
  let c21 = v128.splat<T>(0)
  let c30 = v128.splat<T>(0)
  let c31 = v128.splat<T>(0)
  if (!first) {
    if (sizeof<T>() == 4) {
      turn4(out, plane, tile, WIDTH)
      turn4(out + 4 * plane, plane, tile + 16, WIDTH)
    } else {
      for (let place: usize = 0; place < 4; place += 2) {
        turn2(out + place * 8, plane, tile + place * WIDTH, WIDTH)
        turn2(out + 2 * plane + place * 8, plane, tile + place * WIDTH + 16, WIDTH)
      }
    }
    c00 = v128.load(tile)
    c01 = v128.load(tile, 16)
    c10 = v128.load(tile, 32)
    c11 = v128.load(tile, 48)
    c20 = v128.load(tile, 64)
    c21 = v128.load(tile, 80)
    c30 = v128.load(tile, 96)
    c31 = v128.load(tile, 112)
  }
  for (let p = 0; p < k; p++) {
    const at = <usize>load<u32>(offsets)
    const b0 = v128.load(b)
    const b1 = v128.load(b, 16)
    const x0 = v128.load_splat<T>(a0 + at)
    c00 = v128.add<T>(c00, v128.mul<T>(x0, b0))
    c01 = v128.add<T>(c01, v128.mul<T>(x0, b1))
    const x1 = v128.load_splat<T>(a1 + at)
    c10 = v128.add<T>(c10, v128.mul<T>(x1, b0))
    c11 = v128.add<T>(c11, v128.mul<T>(x1, b1))
    const x2 = v128.load_splat<T>(a2 + at)
    c20 = v128.add<T>(c20, v128.mul<T>(x2, b0))
    c21 = v128.add<T>(c21, v128.mul<T>(x2, b1))
    const x3 = v128.load_splat<T>(a3 + at)
    c30 = v128.add<T>(c30, v128.mul<T>(x3, b0))
    c31 = v128.add<T>(c31, v128.mul<T>(x3, b1))
    offsets += 4
    b += WIDTH
  }
  if (bias != 0) {
    const y0 = v128.load(bias)
    const y1 = v128.load(bias, 16)
    c00 = v128.add<T>(c00, y0)
    c01 = v128.add<T>(c01, y1)
    c10 = v128.add<T>(c10, y0)
    c11 = v128.add<T>(c11, y1)
    c20 = v128.add<T>(c20, y0)
    c21 = v128.add<T>(c21, y1)
    c30 = v128.add<T>(c30, y0)
    c31 = v128.add<T>(c31, y1)
  }
  if (sizeof<T>() == 4) {
    storeTurned4(c00, c10, c20, c30, out, plane)
    storeTurned4(c01, c11, c21, c31, out + 4 * plane, plane)
  } else {
    storeTurned2(c00, c10, out, plane)
    storeTurned2(c20, c30, out + 16, plane)
    storeTurned2(c01, c11, out + 2 * plane, plane)
    storeTurned2(c21, c31, out + 2 * plane + 16, plane)
  }
}

/**
 * out[channel, place] (+)= Σ over p of image[place + offset p] · b[p, channel], for m channels, whose planes lie `plane` apart, and rows × cols places: side by
 * side in out, in the image `imageRow` from row to row. b is packed in panels [k, WIDTH]; `offsets` are k words. `bias`: the biases of whole panels, or 0.
 * `first`: out's contents do not count. Scratch: 256 bytes at `tile`; for a last panel of fewer channels, WIDTH for each place and three more at `part`.
 * @exports direct: f32 f64
 */
@inline function places<T>(
  m: i32, k: i32, b: usize, offsets: usize, image: usize, imageRow: usize, rows: i32, cols: i32,
  out: usize, plane: usize, bias: usize, first: bool, tile: usize, part: usize,
): void {
  const width = <i32>(WIDTH / sizeof<T>())
  const count = rows * cols
  const jump = imageRow - <usize>cols * sizeof<T>()
  const bytes = <usize>count * sizeof<T>()
  for (let i = 0; i < m; i += width) {
    const isPart = m - i < width
    // Room for whole tiles.
    const step = isPart ? <usize>((count + 3) & ~3) * sizeof<T>() : plane
    let to = isPart ? part : out
    if (isPart && !first) for (let c = 0; c < m - i; c++) memory.copy(part + <usize>c * step, out + <usize>c * plane, bytes)
    let next = image
    let column = 0
    for (let q = 0; q < count; q += 4) {
      const have = count - q
      const a0 = next
      next += sizeof<T>()
      if (++column == cols) {
        column = 0
        next += jump
      }
      const a1 = have > 1 ? next : a0
      next += sizeof<T>()
      if (++column == cols) {
        column = 0
        next += jump
      }
      const a2 = have > 2 ? next : a0
      next += sizeof<T>()
      if (++column == cols) {
        column = 0
        next += jump
      }
      const a3 = have > 3 ? next : a0
      next += sizeof<T>()
      if (++column == cols) {
        column = 0
        next += jump
      }
      if (have >= 4 || isPart) gathered<T>(k, a0, a1, a2, a3, offsets, b, to, step, bias, first, tile)
      else cut<T>(have, k, a0, a1, a2, a3, offsets, b, to, step, bias, first, tile)
      to += 4 * sizeof<T>()
    }
    if (isPart) for (let c = 0; c < m - i; c++) memory.copy(out + <usize>c * plane, part + <usize>c * step, bytes)
    b += <usize>k * WIDTH
    if (bias != 0) bias += WIDTH
    out += <usize>width * plane
  }
}

/** The last tile, of fewer than four places, through the second half of the scratch tile, which has room for four. */
function cut<T>(
  have: i32, k: i32, a0: usize, a1: usize, a2: usize, a3: usize, offsets: usize, b: usize, out: usize, plane: usize, bias: usize, first: bool, tile: usize,
): void {
  const half = tile + 128
  const row = 4 * sizeof<T>()
  const bytes = <usize>have * sizeof<T>()
  if (!first) for (let c: usize = 0; c < WIDTH / sizeof<T>(); c++) copyRow(half + c * row, out + c * plane, bytes)
  gathered<T>(k, a0, a1, a2, a3, offsets, b, half, row, bias, first, tile)
  for (let c: usize = 0; c < WIDTH / sizeof<T>(); c++) copyRow(out + c * plane, half + c * row, bytes)
}

/** `vectors` of neighbouring places of one channel, 4 or 1; of 0 a single place. As `lines`. */
@inline function line<T>(vectors: i32, k: i32, w: usize, offsets: usize, image: usize, out: usize, bias: usize, first: bool): void {
  if (vectors == 0) {
    let sum = first ? <T>0 : load<T>(out)
    for (let p: usize = 0; p < <usize>k; p++) sum += load<T>(image + <usize>load<u32>(offsets + (p << 2))) * load<T>(w + p * sizeof<T>())
    store<T>(out, bias != 0 ? sum + load<T>(bias) : sum)
    return
  }
  let s0 = v128.splat<T>(0)
  let s1 = s0
  let s2 = s0
  let s3 = s0
  if (!first) {
    s0 = v128.load(out)
    if (vectors == 4) {
      s1 = v128.load(out, 16)
      s2 = v128.load(out, 32)
      s3 = v128.load(out, 48)
    }
  }
  for (let p = 0; p < k; p++) {
    const at = image + <usize>load<u32>(offsets)
    const factor = v128.load_splat<T>(w)
    s0 = v128.add<T>(s0, v128.mul<T>(v128.load(at), factor))
    if (vectors == 4) {
      s1 = v128.add<T>(s1, v128.mul<T>(v128.load(at, 16), factor))
      s2 = v128.add<T>(s2, v128.mul<T>(v128.load(at, 32), factor))
      s3 = v128.add<T>(s3, v128.mul<T>(v128.load(at, 48), factor))
    }
    offsets += 4
    w += sizeof<T>()
  }
  if (bias != 0) {
    const y = v128.load_splat<T>(bias)
    s0 = v128.add<T>(s0, y)
    s1 = v128.add<T>(s1, y)
    s2 = v128.add<T>(s2, y)
    s3 = v128.add<T>(s3, y)
  }
  v128.store(out, s0)
  if (vectors == 4) {
    v128.store(out, s1, 16)
    v128.store(out, s2, 32)
    v128.store(out, s3, 48)
  }
}

/**
 * The same as `direct` for few channels, of which a tile would hold too many: lanes are neighbouring places, channels go one by one. `w` are the weights [m, k],
 * rows `wRow` apart; `bias` has m elements, or is 0.
 * @exports lines: f32 f64
 */
@inline function linesOf<T>(
  m: i32, k: i32, w: usize, wRow: usize, offsets: usize, image: usize, imageRow: usize, rows: i32, cols: i32,
  out: usize, plane: usize, bias: usize, first: bool,
): void {
  const lanes = <i32>(16 / sizeof<T>())
  for (let c = 0; c < m; c++) {
    let from = image
    let to = out
    for (let y = 0; y < rows; y++) {
      let x = 0
      for (; x + 4 * lanes <= cols; x += 4 * lanes) {
        line<T>(4, k, w, offsets, from + <usize>x * sizeof<T>(), to, bias, first)
        to += 64
      }
      for (; x + lanes <= cols; x += lanes) {
        line<T>(1, k, w, offsets, from + <usize>x * sizeof<T>(), to, bias, first)
        to += 16
      }
      for (; x < cols; x++) {
        line<T>(0, k, w, offsets, from + <usize>x * sizeof<T>(), to, bias, first)
        to += sizeof<T>()
      }
      from += imageRow
    }
    w += wRow
    out += plane
    if (bias != 0) bias += sizeof<T>()
  }
}

/**
 * out [k, n] (+)= Σ over rows × cols places of image[place + offset of k] · b[place, n], for one panel of at most WIDTH bytes of columns. `tile`: 128 bytes of
 * scratch. @exports direct_weight: f32 f64
 */
@inline function windowSums<T>(
  k: i32, n: i32, offsets: usize, image: usize, imageRow: usize, rows: i32, cols: i32, b: usize, out: usize, outRow: usize, first: bool, tile: usize,
): void {
  const jump = imageRow - <usize>cols * sizeof<T>()
  const bytes = <usize>n * sizeof<T>()
  for (let i = 0; i < k; i += 4) {
    const have = min(4, k - i)
    const a0 = image + load<u32>(offsets)
    const a1 = have > 1 ? image + load<u32>(offsets, 4) : a0
    const a2 = have > 2 ? image + load<u32>(offsets, 8) : a0
    const a3 = have > 3 ? image + load<u32>(offsets, 12) : a0
    if (have == 4 && bytes == WIDTH) micro<T>(rows, cols, a0, a1, a2, a3, sizeof<T>(), jump, b, WIDTH, out, outRow, first)
    else {
      if (!first) for (let r: usize = 0; r < <usize>have; r++) copyRow(tile + r * WIDTH, out + r * outRow, bytes)
      micro<T>(rows, cols, a0, a1, a2, a3, sizeof<T>(), jump, b, WIDTH, tile, WIDTH, first)
      for (let r: usize = 0; r < <usize>have; r++) copyRow(out + r * outRow, tile + r * WIDTH, bytes)
    }
    offsets += 16
    out += 4 * outRow
  }
}
