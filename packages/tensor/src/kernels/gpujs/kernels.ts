/**
 * What the kernels of this folder share: each brings its operands into dense float32 arrays, launches sources of `sources.ts` through the
 * compiler and copies the results out (gpu.js cannot write into a caller's buffer). Gathering strided operands, converting bool and int32
 * operands to float32 and copying results are data movement, which the host does.
 */
import { PostgradError } from '@postgrad/base'
import type { TypedArray } from '../../values/dtype.js'
import type { Row2 } from '../elementwise/loops.js'
import { gathered } from '../js/movement.js'
import { denseStrides, walk2 } from '../js/walk.js'
import { type Dims, unsupported } from '../table/table.js'
import type { Argument, Constants, KernelCompiler } from './compiler.js'

type F32 = Float32Array

/** Integers up to here are exact in float32, and so are indices in kernels. */
export const INDEX_MAX = 2 ** 24

/** @throws KERNEL_UNSUPPORTED when an operand has more elements than a kernel can index */
export function checkIndexable(op: string, label: string, elements: number): void {
  if (elements > INDEX_MAX) {
    throw new PostgradError('KERNEL_UNSUPPORTED', {
      op,
      message: `device '${label}' has no kernel for ${elements} elements: gpu.js computes indices in float32, which is exact up to ${INDEX_MAX}`,
      remedy: "Split the operands with narrow(), or run it on another device: withDevice('wasm', fn).",
      values: { device: label, op, elements },
    })
  }
}

/** `n` elements (one, for step 0) as float32, without a copy where that is possible. */
export function dense(x: TypedArray, offset: number, n: number): F32 {
  if (x.constructor !== Float32Array) return Float32Array.from(x.subarray(offset, offset + n))
  return offset === 0 && x.length === n ? (x as F32) : (x.subarray(offset, offset + n) as F32)
}

export function elementsOf(shape: Dims): number {
  let n = 1
  for (let d = 0; d < shape.length; d++) n *= shape[d]!
  return n
}

/** A dense float32 copy of a strided operand. */
export function gather(shape: Dims, x: TypedArray, offset: number, strides: Dims): F32 {
  if (x.constructor === Float32Array) return gathered(shape, x as F32, offset, strides)
  const out = new Float32Array(elementsOf(shape))
  walk2(convert, shape, x, offset, strides, out, 0, denseStrides(shape))
  return out
}

const convert: Row2<TypedArray, TypedArray> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = x[xo + i * xs]!
}

export function scatter(shape: Dims, from: F32, out: TypedArray, offset: number, strides: Dims): void {
  walk2(convert, shape, from as TypedArray, 0, denseStrides(shape), out, offset, strides)
}

export class GpuKernels {
  readonly compiler: KernelCompiler

  constructor(compiler: KernelCompiler) {
    this.compiler = compiler
  }

  /** One thread per element. @throws KERNEL_UNSUPPORTED for too many elements, KERNEL_MODE */
  launch(op: string, key: string, source: () => string, threads: number, constants: Constants, args: readonly Argument[]): F32 {
    for (let i = 0; i < args.length; i++) {
      const arg = args[i]!
      if (typeof arg !== 'number') checkIndexable(op, 'gpujs', arg.length)
    }
    checkIndexable(op, 'gpujs', threads)
    return this.compiler.run(key, source, [threads], constants, args) as F32
  }
}

export const FLOAT64 = unsupported('gpu.js returns float32 alone, which would drop half of the digits')
export const INT32 = unsupported('gpu.js computes in float32, in which integers are exact only up to 2^24')
const BOOL = unsupported('the operation has no meaning on bool; raw operations convert first')
const REAL = unsupported('the operation is defined on real numbers; raw operations convert to float32 first')

/** The cells of an op: float32 is the one type that gpu.js computes in. Bool, whose 0 and 1 are exact there, may have a kernel as well. */
export const float = <K>(float32: K) => ({ float32, float64: FLOAT64, int32: INT32, bool: BOOL })
export const real = <K>(float32: K) => ({ float32, float64: FLOAT64, int32: REAL, bool: REAL })
