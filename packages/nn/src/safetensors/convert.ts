/** Converts a file's elements to dtypes of ours. F32, F64, I32 and BOOL are kept; narrower ones are widened exactly; 64 bits must fit. */
import { PostgradError } from '@postgrad/base'
import type { DType, TypedArray } from '@postgrad/tensor'
import { invalid, type SafetensorsDType } from './header.js'

/** The first `count` elements, little endian in `bytes`, as an array of the dtype; it may lie in `bytes`. `name` is for errors. */
type Decoder = (bytes: ArrayBuffer, count: number, name: string) => TypedArray

export interface Conversion {
  readonly dtype: DType
  /** Whether a file's bytes are the array's. */
  readonly native: boolean
  readonly decode: Decoder
}

const kept =
  (View: { new (bytes: ArrayBuffer, offset: number, count: number): TypedArray }): Decoder =>
  (bytes, count) =>
    new View(bytes, 0, count)

const widened =
  (View: { new (bytes: ArrayBuffer, offset: number, count: number): Uint8Array | Int8Array | Int16Array | Uint16Array }): Decoder =>
  (bytes, count) =>
    new Int32Array(new View(bytes, 0, count))

export const CONVERSIONS: Readonly<Record<SafetensorsDType, Conversion>> = {
  F32: { dtype: 'float32', native: true, decode: kept(Float32Array) },
  F64: { dtype: 'float64', native: true, decode: kept(Float64Array) },
  I32: { dtype: 'int32', native: true, decode: kept(Int32Array) },
  BOOL: { dtype: 'bool', native: true, decode: decodeBool },
  F16: { dtype: 'float32', native: false, decode: decodeHalf },
  BF16: { dtype: 'float32', native: false, decode: decodeBrain },
  U8: { dtype: 'int32', native: false, decode: widened(Uint8Array) },
  I8: { dtype: 'int32', native: false, decode: widened(Int8Array) },
  U16: { dtype: 'int32', native: false, decode: widened(Uint16Array) },
  I16: { dtype: 'int32', native: false, decode: widened(Int16Array) },
  U32: { dtype: 'int32', native: false, decode: decodeUnsigned },
  I64: { dtype: 'int32', native: false, decode: long(true) },
  U64: { dtype: 'int32', native: false, decode: long(false) },
}

/** Names of dtypes in a file, by falling alignment: the order in which the reference implementation writes tensors. */
export const FILE_DTYPES = { float64: 'F64', float32: 'F32', int32: 'I32', bool: 'BOOL' } as const satisfies Record<DType, SafetensorsDType>

function decodeBool(bytes: ArrayBuffer, count: number, name: string): TypedArray {
  const from = new Uint8Array(bytes, 0, count)
  for (const value of from) if (value > 1) throw invalid(`0 or 1 in '${name}', BOOL`, `${value}`, { name })
  return from
}

/**
 * A half has 1 bit of sign, 5 of exponent, 10 of fraction. Shifted to where a float32 has them, it is the number times 2⁻¹¹², subnormal ones too;
 * only an exponent of ones, infinity and NaN, must be made one again.
 */
function decodeHalf(bytes: ArrayBuffer, count: number): TypedArray {
  const from = new Uint16Array(bytes, 0, count)
  const bits = new Uint32Array(count)
  const floats = new Float32Array(bits.buffer)
  for (let i = 0; i < count; i++) {
    const half = from[i]!
    bits[i] = (half & 0x7fff) << 13
    if ((half & 0x7c00) === 0x7c00) bits[i]! |= 0x7f800000
    else floats[i]! *= 2 ** 112
    bits[i]! |= (half & 0x8000) << 16
  }
  return floats
}

/** The upper half of a float32. */
function decodeBrain(bytes: ArrayBuffer, count: number): TypedArray {
  const from = new Uint16Array(bytes, 0, count)
  const bits = new Uint32Array(count)
  for (let i = 0; i < count; i++) bits[i] = from[i]! << 16
  return new Float32Array(bits.buffer)
}

function decodeUnsigned(bytes: ArrayBuffer, count: number, name: string): TypedArray {
  const from = new Int32Array(bytes, 0, count)
  for (let i = 0; i < count; i++) if (from[i]! < 0) throw outOfRange(name, 'U32', from[i]! >>> 0)
  return from
}

/** 64 bits fit when the upper half is the sign of the lower one. */
function long(signed: boolean): Decoder {
  return (bytes, count, name) => {
    const halves = new Int32Array(bytes, 0, 2 * count)
    const out = new Int32Array(count)
    for (let i = 0; i < count; i++) {
      const low = halves[2 * i]!
      const fits = signed ? halves[2 * i + 1] === low >> 31 : halves[2 * i + 1] === 0 && low >= 0
      if (!fits) throw outOfRange(name, signed ? 'I64' : 'U64', (signed ? new BigInt64Array(bytes) : new BigUint64Array(bytes))[i]!)
      out[i] = low
    }
    return out
  }
}

function outOfRange(name: string, dtype: SafetensorsDType, value: number | bigint): PostgradError {
  return new PostgradError('SAFETENSORS_RANGE', {
    op: 'safetensors',
    expected: `${dtype} '${name}' to fit into int32`,
    got: String(value),
    remedy: 'Integers of 64 bits are not supported: convert the tensor before it is saved, or leave it out by { names }.',
    values: { name, value: String(value) },
  })
}
