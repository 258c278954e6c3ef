/** Comparisons and `where` of the wasm backend: as the arithmetic of `elementwise.ts`, with bytes as results or as conditions. */
import type { ArrayOf, TypedArray } from '../../values/dtype.js'
import type { BinaryKernel, CompareOp, Dims, WhereKernel } from '../table/table.js'
import { CHUNK, elementsOf, runBinary, SIMD_FROM, type SimdDType, stridedBinary, VIEWS } from './elementwise.js'
import type { BinaryExport, LazyInstance } from './instance.js'
import { workedElements } from './pause.js'
import { runStrided, SLICE, viewOf } from './strided.js'

const SUFFIX = { float32: 'f32', float64: 'f64', int32: 'i32' } as const
/** a > b is b < a, NaN or not. */
const SWAPPED = { eq: null, ne: null, lt: null, le: null, gt: 'lt', ge: 'le' } as const satisfies Record<CompareOp, 'lt' | 'le' | null>

/** `loops` is what runs below SIMD_FROM, and where strides make a walk better. */
export function compareKernel<D extends SimdDType>(
  lazy: LazyInstance,
  dtype: D,
  op: CompareOp,
  loops: BinaryKernel<ArrayOf[D], Uint8Array>,
): BinaryKernel<ArrayOf[D], Uint8Array> {
  const swapped = SWAPPED[op]
  const name = `${swapped ?? op}_${SUFFIX[dtype]}` as BinaryExport
  const view = VIEWS[dtype]
  return {
    flat(n, a, ao, as, b, bo, bs, out, oo) {
      if (n < SIMD_FROM) loops.flat(n, a, ao, as, b, bo, bs, out, oo)
      else if (swapped === null) runBinary(lazy, name, view, 'u8', n, a, ao, as, b, bo, bs, out, oo)
      else runBinary(lazy, name, view, 'u8', n, b, bo, bs, a, ao, as, out, oo)
    },
    strided(shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides) {
      const ran =
        elementsOf(shape) >= SIMD_FROM &&
        (swapped === null
          ? stridedBinary(lazy, name, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides)
          : stridedBinary(lazy, name, shape, b, bo, bStrides, a, ao, aStrides, out, oo, outStrides))
      if (!ran) loops.strided(shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides)
    },
  }
}

export function whereKernel<D extends SimdDType>(lazy: LazyInstance, dtype: D, loops: WhereKernel<ArrayOf[D]>): WhereKernel<ArrayOf[D]> {
  const name = dtype === 'float64' ? 'where_64' : 'where_32'
  return {
    flat(n, cond, co, cs, a, ao, as, b, bo, bs, out, oo) {
      // One condition for all is a copy or a fill: too rare for a kernel.
      if (n < SIMD_FROM || cs === 0) loops.flat(n, cond, co, cs, a, ao, as, b, bo, bs, out, oo)
      else runWhere(lazy, name, n, cond, co, a, ao, as, b, bo, bs, out, oo)
    },
    strided(shape: Dims, cond, co, cStrides, a, ao, aStrides, b, bo, bStrides, out, oo) {
      if (elementsOf(shape) >= SIMD_FROM) {
        const instance = lazy.get()
        const kernel = instance.kernels[name]
        let step = 1
        const outStrides = new Array<number>(shape.length)
        for (let d = shape.length - 1; d >= 0; d--) {
          outStrides[d] = step
          step *= shape[d]!
        }
        const operands = [
          { array: cond, offset: co, strides: cStrides, steps: 'one' as const },
          { array: a, offset: ao, strides: aStrides },
          { array: b, offset: bo, strides: bStrides },
          { array: out, offset: oo, strides: outStrides },
        ]
        const ran = runStrided(instance, shape, operands, false, (rows, n, p, row, steps) => {
          kernel(rows, n, p[0]!, row[0]!, p[1]!, row[1]!, steps[1]!, p[2]!, row[2]!, steps[2]!, p[3]!)
        })
        if (ran) return
      }
      loops.strided(shape, cond, co, cStrides, a, ao, aStrides, b, bo, bStrides, out, oo)
    },
  }
}

/** At least SIMD_FROM elements. */
function runWhere(
  lazy: LazyInstance,
  name: 'where_32' | 'where_64',
  n: number,
  cond: Uint8Array,
  co: number,
  a: TypedArray,
  ao: number,
  as: number,
  b: TypedArray,
  bo: number,
  bs: number,
  out: TypedArray,
  oo: number,
): void {
  const instance = lazy.get()
  const kernel = instance.kernels[name]
  const bytes = out.BYTES_PER_ELEMENT
  const staged = instance.begin((3 * bytes + 1) * CHUNK)
  const stagedB = staged + CHUNK * bytes
  const stagedOut = stagedB + CHUNK * bytes
  const stagedCond = stagedOut + CHUNK * bytes
  const memory = viewOf(instance, out)
  const at = staged / bytes
  const condAt = instance.direct(cond, co)
  const aAt = as === 0 ? -1 : instance.direct(a, ao)
  const bAt = bs === 0 ? -1 : instance.direct(b, bo)
  const outAt = instance.direct(out, oo)
  if (as === 0) memory[at] = a[ao]!
  if (bs === 0) memory[at + CHUNK] = b[bo]!
  const stageA = as !== 0 && aAt < 0
  const stageB = bs !== 0 && bAt < 0
  const chunk = stageA || stageB || condAt < 0 || outAt < 0 ? CHUNK : SLICE
  for (let i = 0; i < n; i += chunk) {
    const count = Math.min(chunk, n - i)
    if (condAt < 0) instance.u8.set(cond.subarray(co + i, co + i + count), stagedCond)
    if (stageA) memory.set(a.subarray(ao + i, ao + i + count), at)
    if (stageB) memory.set(b.subarray(bo + i, bo + i + count), at + CHUNK)
    const aPointer = aAt < 0 ? staged : aAt + i * bytes
    const bPointer = bAt < 0 ? stagedB : bAt + i * bytes
    kernel(1, count, condAt < 0 ? stagedCond : condAt + i, 0, aPointer, 0, as, bPointer, 0, bs, outAt < 0 ? stagedOut : outAt + i * bytes)
    if (outAt < 0) out.set(memory.subarray(at + 2 * CHUNK, at + 2 * CHUNK + count), oo + i)
    workedElements(count)
  }
}
