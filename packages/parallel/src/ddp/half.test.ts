import { expect, test } from '@jest/globals'
import { BFLOAT16, FLOAT16, type HalfFormat } from './half.js'

const bits = new Uint32Array(1)
const float = new Float32Array(bits.buffer)
const halves = new Uint16Array(1)
const encode = (format: HalfFormat, x: number): number => {
  float[0] = x
  format.encode(bits, halves)
  return halves[0]!
}
const decode = (format: HalfFormat, half: number): number => {
  halves[0] = half
  format.decode(halves, bits)
  return float[0]!
}

/** By the definition: the value of 16 bits, from its parts. */
function numberOf(half: number, exponentBits: number): number {
  const mantissaBits = 15 - exponentBits
  const sign = half >>> 15 === 1 ? -1 : 1
  const exponent = (half >>> mantissaBits) & (2 ** exponentBits - 1)
  const mantissa = half & (2 ** mantissaBits - 1)
  const bias = 2 ** (exponentBits - 1) - 1
  if (exponent === 2 ** exponentBits - 1) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  if (exponent === 0) return sign * mantissa * 2 ** (1 - bias - mantissaBits)
  return sign * (2 ** mantissaBits + mantissa) * 2 ** (exponent - bias - mantissaBits)
}

test.each([
  ['float16', FLOAT16, 5],
  ['bfloat16', BFLOAT16, 8],
] as const)('DDP-54 all 65536 values of %s, and what lies between them', (_, format, exponentBits) => {
  const wrong: string[] = []
  const check = (what: string, got: number, want: number): void => {
    if (!Object.is(got, want)) wrong.push(`${what}: ${got}, not ${want}`)
  }
  for (let half = 0; half < 65536; half++) {
    const value = numberOf(half, exponentBits)
    check(`the value of ${half}`, decode(format, half), value)
    if (Number.isNaN(value)) check(`NaN ${half}`, decode(format, encode(format, value)), Number.NaN)
    else check(`${value}`, encode(format, value), half)
    const next = numberOf(half + 1, exponentBits)
    // Infinity is as far away as a next value would be.
    const step = Math.abs(value) - Math.abs(numberOf(half - 1, exponentBits))
    const above = Number.isFinite(next) ? next : value + Math.sign(value) * step
    if ((half & 0x7fff) === 0 || !Number.isFinite(value) || Number.isNaN(next)) continue
    const middle = (value + above) / 2
    check(`the middle above ${value}`, encode(format, middle), half + (half & 1))
    if (!Number.isFinite(Math.fround(middle * 1.0001))) continue
    check(`beyond the middle above ${value}`, encode(format, middle + (above - value) / 64), half + 1)
    check(`before the middle above ${value}`, encode(format, middle - (above - value) / 64), half)
  }
  expect(wrong.slice(0, 5)).toEqual([])
})
