/**
 * Parts of sorts, for `wasm/indices/sort.ts`. Each element becomes a pair: a key that is ordered as an integer, and its place. Pairs of four-byte keys are one u64, the
 * key in the upper half; pairs of eight-byte keys are two, first the key. The sorts are stable. Pointers and steps are bytes.
 *
 * Keys: -0 is 0, and every NaN is the greatest. `flip` is all ones for a descending order: then a smaller key is a greater element.
 */

/** The key of the element at x, of at most four bytes. */
@inline function key32<T>(x: usize, flip: u32): u32 {
  if (sizeof<T>() == 1) return <u32>load<u8>(x) ^ flip
  if (isInteger<T>()) return load<u32>(x) ^ 0x80000000 ^ flip
  const v = load<f32>(x) + 0
  const bits = reinterpret<u32>(v)
  return (v != v ? 0xffffffff : bits ^ (<u32>(<i32>bits >> 31) | 0x80000000)) ^ flip
}

@inline function key64(x: usize, flip: u64): u64 {
  const v = load<f64>(x) + 0
  const bits = reinterpret<u64>(v)
  return (v != v ? 0xffffffffffffffff : bits ^ (<u64>(<i64>bits >> 63) | 0x8000000000000000)) ^ flip
}

/** The keys of four elements of four bytes each. */
@inline function keys4<T>(x: usize, flip: v128): v128 {
  const top = i32x4.splat(0x80000000)
  if (isInteger<T>()) return v128.xor(v128.xor(v128.load(x), top), flip)
  const v = f32x4.add(v128.load(x), f32x4.splat(0))
  const keys = v128.xor(v, v128.or(i32x4.shr_s(v, 31), top))
  return v128.xor(v128.or(keys, f32x4.ne(v, v)), flip)
}

/** The bytes of a pair whose elements are of type T, or whose keys are. */
@inline function pairBytes<T>(): usize {
  return sizeof<T>() == 8 ? 16 : 8
}

/** Pairs of elements first … first + n − 1; x is where the first of them lies. @exports sort_keys: u8 i32 f32 f64 */
@inline function makePairs<T>(n: i32, x: usize, step: i32, first: i32, descending: bool, pairs: usize): void {
  const flip: u64 = descending ? 0xffffffffffffffff : 0
  let i = 0
  if (sizeof<T>() == 4 && step == 4) {
    const flips = i64x2.splat(flip)
    let places = i32x4.add(i32x4.splat(first), i32x4(0, 1, 2, 3))
    for (; i < (n & ~3); i += 4) {
      const keys = keys4<T>(x, flips)
      v128.store(pairs, v128.shuffle<i32>(places, keys, 0, 4, 1, 5))
      v128.store(pairs, v128.shuffle<i32>(places, keys, 2, 6, 3, 7), 16)
      places = i32x4.add(places, i32x4.splat(4))
      x += 16
      pairs += 32
    }
  }
  for (; i < n; i++) {
    storePair<T>(pairs, x, first + i, flip)
    x += step
    pairs += pairBytes<T>()
  }
}

@inline function storePair<T>(pair: usize, x: usize, place: i32, flip: u64): void {
  if (sizeof<T>() == 8) {
    store<u64>(pair, key64(x, flip))
    store<u64>(pair, place, 8)
  } else store<u64>(pair, (<u64>key32<T>(x, <u32>flip) << 32) | <u64>place)
}

/** Adds to `counts` [bytes of a key, 256], from the lowest byte on, how often each value of each byte occurs. @exports sort_counts: 32 64 */
@inline function countBytes<K>(n: i32, pairs: usize, counts: usize): void {
  for (let i = 0; i < n; i++) {
    const key = load<K>(pairs, sizeof<K>() == 4 ? 4 : 0)
    for (let digit: usize = 0; digit < sizeof<K>(); digit++) {
      const at = counts + (digit << 10) + (<usize>((key >> <K>(digit << 3)) & 255) << 2)
      store<i32>(at, load<i32>(at) + 1)
    }
    pairs += pairBytes<K>()
  }
}

/** Turns the counts [256] of one byte of n keys into where each value begins. Returns 0 if all keys have one value: then there is nothing to sort. */
export function sort_starts(n: i32, counts: usize): i32 {
  let begin = 0
  for (let at = counts; at < counts + 1024; at += 4) {
    const count = load<i32>(at)
    if (count == n) return 0
    store<i32>(at, begin)
    begin += count
  }
  return 1
}

/** Moves n pairs to the places that their byte `digit` has in `starts`, and counts these on. @exports sort_pass: 32 64 */
@inline function moveByDigit<K>(n: i32, digit: i32, from: usize, to: usize, starts: usize): void {
  const shift = <K>(digit << 3)
  for (let i = 0; i < n; i++) {
    const at = starts + (<usize>((load<K>(from, sizeof<K>() == 4 ? 4 : 0) >> shift) & 255) << 2)
    const place = load<u32>(at)
    store<u32>(at, place + 1)
    const pair = to + <usize>place * pairBytes<K>()
    if (sizeof<K>() == 8) v128.store(pair, v128.load(from))
    else store<u64>(pair, load<u64>(from))
    from += pairBytes<K>()
  }
}

/** Sorts a few pairs by insertion. @exports sort_few: 32 64 */
@inline function insert<K>(n: i32, pairs: usize): void {
  const size = pairBytes<K>()
  for (let i = 1; i < n; i++) {
    const from = pairs + <usize>i * size
    const key = load<u64>(from)
    const place = load<u64>(from + size - 8)
    let to = from
    // A pair of four-byte keys is greater than its equals that come before it, by its place.
    for (; to > pairs && load<u64>(to - size) > key; to -= size) {
      store<u64>(to, load<u64>(to - size))
      if (sizeof<K>() == 8) store<u64>(to, load<u64>(to - 8), 8)
    }
    store<u64>(to, key)
    if (sizeof<K>() == 8) store<u64>(to, place, 8)
  }
}

/** The places of n pairs. @exports sort_places: 32 64 */
@inline function writePlaces<K>(n: i32, pairs: usize, out: usize, step: i32): void {
  for (let i = 0; i < n; i++) {
    store<u32>(out, load<u32>(pairs, sizeof<K>() == 8 ? 8 : 0))
    pairs += pairBytes<K>()
    out += step
  }
}

/**
 * Appends the elements with smaller keys than the pair at `bound` has, of n elements as in `sort_keys`, while fewer than `room` pairs are there. `state` is how
 * many pairs there are, and then how many elements were looked at.
 * @exports sort_better: u8 i32 f32 f64
 */
@inline function appendBetter<T>(
  n: i32, x: usize, step: i32, first: i32, descending: bool, bound: usize, room: i32, pairs: usize, state: usize,
): void {
  const flip: u64 = descending ? 0xffffffffffffffff : 0
  const flips = i64x2.splat(flip)
  const least = sizeof<T>() == 8 ? load<u64>(bound) : <u64>load<u32>(bound, 4)
  const bounds = i32x4.splat(<i32>least)
  let found = load<i32>(state)
  let i = 0
  while (i < n && found < room) {
    if (sizeof<T>() == 4 && step == 4 && i + 16 <= n) {
      const at = x + (<usize>i << 2)
      const low = v128.or(i32x4.lt_u(keys4<T>(at, flips), bounds), i32x4.lt_u(keys4<T>(at + 16, flips), bounds))
      const high = v128.or(i32x4.lt_u(keys4<T>(at + 32, flips), bounds), i32x4.lt_u(keys4<T>(at + 48, flips), bounds))
      if (!v128.any_true(v128.or(low, high))) {
        i += 16
        continue
      }
    }
    for (const end = min(i + 16, n); i < end && found < room; i++) {
      const at = x + <usize>i * step
      const key = sizeof<T>() == 8 ? key64(at, flip) : <u64>key32<T>(at, <u32>flip)
      if (key < least) {
        storePair<T>(pairs + <usize>found * pairBytes<T>(), at, first + i, flip)
        found++
      }
    }
  }
  store<i32>(state, found)
  store<i32>(state, i, 4)
}
