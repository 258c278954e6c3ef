/** Comparisons and `where` of the wasm backend: as the arithmetic of `elementwise.ts`, with bytes as results or as conditions. */
import type { ArrayOf, TypedArray } from '../../values/dtype.js'
import type { SimdDType } from '../elementwise/definition.js'
import type { BinaryKernel, Dims, WhereKernel } from '../table/table.js'
import { CHUNK, elementsOf, runBinary, stridedBinary, VIEWS } from './elementwise.js'
import { type BinaryExport, copyRun, type LazyInstance, SIMD_FROM } from './instance.js'
import { by, bySize, loopsOf, type OwnCells } from './own.js'
import { workedElements } from './pause.js'
import { runStrided, SLICE, viewOf } from './strided.js'

type Where = (
  rows: number,
  n: number,
  cond: number,
  condRow: number,
  a: number,
  aRow: number,
  aStep: number,
  b: number,
  bRow: number,
  bStep: number,
  out: number,
) => void
declare module './instance.js' {
  interface KernelExports {
    readonly where_32: Where
    readonly where_64: Where
  }
}

/** `swapped`: the export takes b before a. `loops` is what runs below SIMD_FROM, and where strides make a walk better. */
export function compareKernel<D extends SimdDType>(
  lazy: LazyInstance,
  dtype: D,
  name: BinaryExport,
  swapped: boolean,
  loops: BinaryKernel<ArrayOf[D], Uint8Array>,
): BinaryKernel<ArrayOf[D], Uint8Array> {
  const view = VIEWS[dtype]
  return {
    flat(n, a, ao, as, b, bo, bs, out, oo) {
      if (n < SIMD_FROM) loops.flat(n, a, ao, as, b, bo, bs, out, oo)
      else if (!swapped) runBinary(lazy, name, view, 'u8', n, a, ao, as, b, bo, bs, out, oo)
      else runBinary(lazy, name, view, 'u8', n, b, bo, bs, a, ao, as, out, oo)
    },
    strided(shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides) {
      const ran =
        elementsOf(shape) >= SIMD_FROM &&
        (swapped
          ? stridedBinary(lazy, name, shape, b, bo, bStrides, a, ao, aStrides, out, oo, outStrides)
          : stridedBinary(lazy, name, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides))
      if (!ran) loops.strided(shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides)
    },
  }
}

function whereKernel<D extends SimdDType>(lazy: LazyInstance, dtype: D, loops: WhereKernel<ArrayOf[D]>): WhereKernel<ArrayOf[D]> {
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
    if (condAt < 0) copyRun(count, cond, co + i, instance.u8, stagedCond)
    if (stageA) copyRun(count, a, ao + i, memory, at)
    if (stageB) copyRun(count, b, bo + i, memory, at + CHUNK)
    const aPointer = aAt < 0 ? staged : aAt + i * bytes
    const bPointer = bAt < 0 ? stagedB : bAt + i * bytes
    kernel(1, count, condAt < 0 ? stagedCond : condAt + i, 0, aPointer, 0, as, bPointer, 0, bs, outAt < 0 ? stagedOut : outAt + i * bytes)
    if (outAt < 0) copyRun(count, memory, at + 2 * CHUNK, out, oo + i)
    workedElements(count)
  }
}

export function cells(instance: LazyInstance): OwnCells {
  const where = loopsOf('where')
  return {
    where: by(bySize, {
      float32: whereKernel(instance, 'float32', where.float32),
      float64: whereKernel(instance, 'float64', where.float64),
      int32: whereKernel(instance, 'int32', where.int32),
    }),
  }
}
