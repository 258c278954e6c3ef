/**
 * Elements at indices along the middle axis of dense operands, for `wasm/indices/indexed.ts`: `rows` is the extent that the indices point into, n how many there are.
 * Movement is by bits. Sums are added in the order of the index, each rounded to the dtype.
 */
import { copyRun } from './move'

/** out [outer, n, inner] = x [outer, rows, inner] at index [n]. @exports index_select: 8 32 64 */
@inline function indexSelect<T>(outer: i32, rows: i32, n: i32, inner: i32, x: usize, index: usize, out: usize): void {
  const row = <usize>inner * sizeof<T>()
  for (let o = 0; o < outer; o++) {
    if (inner == 1) {
      for (let i: usize = 0; i < <usize>n; i++) store<T>(out + i * sizeof<T>(), load<T>(x + <usize>load<u32>(index + (i << 2)) * sizeof<T>()))
      out += <usize>n * sizeof<T>()
    } else {
      for (let i = 0; i < n; i++) {
        copyRun<T>(x + <usize>load<u32>(index + (<usize>i << 2)) * row, out, row)
        out += row
      }
    }
    x += <usize>rows * row
  }
}

/** out = x [outer, rows, inner] at index; index and out [outer, n, inner]. @exports gather: 8 32 64 */
@inline function gather<T>(outer: i32, rows: i32, n: i32, inner: i32, x: usize, index: usize, out: usize): void {
  const row = <usize>inner * sizeof<T>()
  for (let o = 0; o < outer; o++) {
    if (inner == 1) {
      for (let i: usize = 0; i < <usize>n; i++) store<T>(out + i * sizeof<T>(), load<T>(x + <usize>load<u32>(index + (i << 2)) * sizeof<T>()))
      index += <usize>n << 2
      out += <usize>n * sizeof<T>()
    } else {
      for (let i = 0; i < n; i++) {
        for (let from = x; from < x + row; from += sizeof<T>()) {
          store<T>(out, load<T>(from + <usize>load<u32>(index) * row))
          index += 4
          out += sizeof<T>()
        }
      }
    }
    x += <usize>rows * row
  }
}

/** out [outer, rows, inner] at index = x; x and index [outer, n, inner]. The last of several writes to one place stays. @exports scatter: 8 32 64 */
@inline function scatter<T>(outer: i32, rows: i32, n: i32, inner: i32, x: usize, index: usize, out: usize): void {
  const row = <usize>inner * sizeof<T>()
  if (n == 1 && inner == 1) {
    // One element of each row, as oneHot writes them.
    for (let i: usize = 0; i < <usize>outer; i++) {
      store<T>(out + <usize>load<u32>(index + (i << 2)) * sizeof<T>(), load<T>(x + i * sizeof<T>()))
      out += <usize>rows * sizeof<T>()
    }
    return
  }
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < n; i++) {
      for (let to = out; to < out + row; to += sizeof<T>()) {
        store<T>(to + <usize>load<u32>(index) * row, load<T>(x))
        index += 4
        x += sizeof<T>()
      }
    }
    out += <usize>rows * row
  }
}

/** The same with += in place of =. @exports scatter_add: f32 f64 i32 */
@inline function scatterAdd<T>(outer: i32, rows: i32, n: i32, inner: i32, x: usize, index: usize, out: usize): void {
  const row = <usize>inner * sizeof<T>()
  for (let o = 0; o < outer; o++) {
    if (inner == 1) {
      for (let i: usize = 0; i < <usize>n; i++) {
        const at = out + <usize>load<u32>(index + (i << 2)) * sizeof<T>()
        store<T>(at, load<T>(at) + load<T>(x + i * sizeof<T>()))
      }
      index += <usize>n << 2
      x += <usize>n * sizeof<T>()
    } else {
      for (let i = 0; i < n; i++) {
        for (let to = out; to < out + row; to += sizeof<T>()) {
          const at = to + <usize>load<u32>(index) * row
          store<T>(at, load<T>(at) + load<T>(x))
          index += 4
          x += sizeof<T>()
        }
      }
    }
    out += <usize>rows * row
  }
}

/** out [outer, rows, inner] at index [n] += x [outer, n, inner]. @exports index_add: f32 f64 i32 */
@inline function indexAdd<T>(outer: i32, rows: i32, n: i32, inner: i32, x: usize, index: usize, out: usize): void {
  const row = <usize>inner * sizeof<T>()
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < n; i++) {
      const to = out + <usize>load<u32>(index + (<usize>i << 2)) * row
      let j: usize = 0
      for (; j < (row & ~15); j += 16) v128.store(to + j, v128.add<T>(v128.load(to + j), v128.load(x + j)))
      for (; j < row; j += sizeof<T>()) store<T>(to + j, load<T>(to + j) + load<T>(x + j))
      x += row
    }
    out += <usize>rows * row
  }
}

/** The place of the first of n indices that is not in 0 … extent − 1; n if all are. */
export function first_outside(n: i32, index: usize, extent: i32): i32 {
  const bound = i32x4.splat(extent)
  let i = 0
  for (; i < (n & ~15); i += 16) {
    const at = index + (<usize>i << 2)
    // Without a sign, a negative index is a large one.
    const low = v128.and(i32x4.lt_u(v128.load(at), bound), i32x4.lt_u(v128.load(at, 16), bound))
    const high = v128.and(i32x4.lt_u(v128.load(at, 32), bound), i32x4.lt_u(v128.load(at, 48), bound))
    if (!i32x4.all_true(v128.and(low, high))) break
  }
  while (i < n && load<u32>(index + (<usize>i << 2)) < <u32>extent) i++
  return i
}
