/**
 * Numbers of half precision. The library has no dtype for them: they exist only on their way between ranks, with 16 bits each. `half-hooks.ts` sends them. IEEE 754 binary16
 * (PyTorch's float16) and bfloat16, the upper half of a float32; rounded to the nearest, to even in the middle.
 *
 *     float16    s eeeee mmmmmmmmmm      largest 65504, smallest 2⁻²⁴, 11 bits
 *     bfloat16   s eeeeeeee mmmmmmm      as far as float32, 8 bits
 */

/** How one kind of them is written: from and to the bits of float32. */
export interface HalfFormat {
  encode(bits: Uint32Array, halves: Uint16Array): void
  decode(halves: Uint16Array, bits: Uint32Array): void
}

/** From so many on, as bits of float32, nothing but infinity is near: 65520. */
const FLOAT16_INFINITE = 0x477ff000
/** 2⁻¹⁴, from which on float16 has all of its bits. */
const FLOAT16_NORMAL = 0x38800000
/** 2⁻²⁵: half of the smallest. */
const FLOAT16_ZERO = 0x33000000
/** The difference of the exponents' biases, at the place of a float32's exponent. */
const REBIAS = (127 - 15) << 23

const encodeFloat16 = (bits: number): number => {
  const sign = (bits >>> 16) & 0x8000
  const abs = bits & 0x7fffffff
  if (abs >= FLOAT16_INFINITE) return sign | (abs > 0x7f800000 ? 0x7e00 : 0x7c00)
  if (abs >= FLOAT16_NORMAL) return sign | ((abs + 0xfff + ((abs >>> 13) & 1) - REBIAS) >>> 13)
  if (abs <= FLOAT16_ZERO) return sign
  // Of these there are whole multiples of 2⁻²⁴.
  const mantissa = (abs & 0x7fffff) | 0x800000
  const shift = 126 - (abs >>> 23)
  const whole = mantissa >>> shift
  const rest = mantissa & ((1 << shift) - 1)
  const middle = 1 << (shift - 1)
  return sign | (whole + (rest > middle || (rest === middle && (whole & 1) === 1) ? 1 : 0))
}

const decodeFloat16 = (half: number): number => {
  const sign = (half & 0x8000) << 16
  const exponent = half & 0x7c00
  const mantissa = half & 0x3ff
  if (exponent === 0x7c00) return sign | 0x7f800000 | (mantissa << 13)
  if (exponent !== 0) return sign | (((half & 0x7fff) << 13) + REBIAS)
  if (mantissa === 0) return sign
  const zeros = Math.clz32(mantissa) - 21
  return sign | ((113 - zeros) << 23) | ((mantissa << (13 + zeros)) & 0x7fffff)
}

// Loops of their own: one that is given how to write a number takes three times as long.

export const FLOAT16: HalfFormat = {
  encode(bits, halves) {
    for (let i = 0; i < bits.length; i++) halves[i] = encodeFloat16(bits[i]!)
  },
  decode(halves, bits) {
    for (let i = 0; i < bits.length; i++) bits[i] = decodeFloat16(halves[i]!)
  },
}

export const BFLOAT16: HalfFormat = {
  encode(bits, halves) {
    for (let i = 0; i < bits.length; i++) {
      const x = bits[i]!
      // A NaN whose bits are all in the lower half must stay one.
      halves[i] = (x & 0x7fffffff) > 0x7f800000 ? (x >>> 16) | 0x40 : (x + 0x7fff + ((x >>> 16) & 1)) >>> 16
    }
  },
  decode(halves, bits) {
    for (let i = 0; i < bits.length; i++) bits[i] = halves[i]! << 16
  },
}
