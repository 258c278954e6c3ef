/**
 * The table of operands made of kernels over arrays of this process: one adapter for each family takes an operand's array, offset and strides apart, and
 * chooses between a kernel's dense and its strided form. Above: `operands.ts`, the waist; below: `table.ts`, what these kernels take.
 */
import { DTYPES, type DType, type TypedArray } from '../../values/dtype.js'
import { broadcastStrides, numelOf, type Shape } from '../../values/shape.js'
import type { Backend } from './backend.js'
import { avgPool, channelNorm, channelNormBackward, conv, layerNorm, layerNormBackward, maxPool } from './neural-over-arrays.js'
import type { Forms, KernelMap, Operand, UserKernels } from './operands.js'
import { FAMILY_OF, type Family } from './ops.js'
import {
  type ArrayBackend,
  type ArrayForms,
  type ArrayUserKernels,
  type BackendName,
  isUnsupported,
  KERNEL_OPS,
  type KernelOp,
} from './table.js'

type A = TypedArray
type Adapters = { readonly [F in Family]: (kernel: ArrayForms<A>[F]) => Forms[F] }

/** A backend over arrays as one of operands. */
export function overArrays(arrays: ArrayBackend): Backend {
  const { name, label, userKernels } = arrays
  const cell = (op: KernelOp, dtype: DType): object => {
    const entry = arrays.kernels[op][dtype]
    return isUnsupported(entry) ? entry : kernelOver(op, entry)
  }
  return {
    name: name as BackendName,
    label,
    kernels: Object.fromEntries(
      KERNEL_OPS.map((op) => [op, Object.fromEntries(DTYPES.map((dtype) => [dtype, cell(op, dtype)]))]),
    ) as unknown as Backend['kernels'],
    userKernels: userKernelsOverArrays(userKernels),
    ready: () => Promise.resolve(),
    variantOf: (op, dtype, shape) => arrays.variantOf(op, dtype, shape),
  }
}

/** A kernel over arrays as one of operands. */
export function kernelOver(op: KernelOp, kernel: object): KernelMap[KernelOp] {
  return (ADAPTERS[FAMILY_OF[op]] as (kernel: object) => KernelMap[KernelOp])(kernel)
}

/** Users' kernels over arrays as those of operands. */
export function userKernelsOverArrays(kernels: ArrayUserKernels): UserKernels {
  type Real = Float32Array | Float64Array
  /** Dense, for the time of the call: a kernel may ask how long its input is. */
  const elements = ({ storage, offset, numel }: Operand): Real => {
    const host = storage.host as Real
    return offset === 0 && host.length === numel ? host : host.subarray(offset, offset + numel)
  }
  return {
    variant: kernels.variant,
    run(kernel, constants, args, out) {
      const each = args.map((arg) => (typeof arg === 'number' ? arg : elements(arg)))
      kernels.run(kernel, out.numel, constants, each, out.storage.host as Real, out.offset)
    },
  }
}

// --- element-wise

/** 1 when x runs densely over out, 0 when its one element is repeated, −1 when it takes strides. */
function stepOver(x: Operand, out: Operand): number {
  if (x.isContiguous && x.numel === out.numel) return 1
  return x.numel === 1 ? 0 : -1
}

function stridesOver(x: Operand, out: Operand): Shape {
  return broadcastStrides(x.shape, x.strides, out.shape)
}

const unary: Adapters['unary'] = (kernel) => (x, out, p0, p1) => {
  if (x.isContiguous) kernel.flat(x.numel, x.storage.host!, x.offset, out.storage.host!, out.offset, p0, p1)
  else kernel.strided(x.shape, x.storage.host!, x.offset, x.strides, out.storage.host!, out.offset, p0, p1)
}

const binary: Adapters['binary'] = (kernel) => (a, b, out) => {
  // As `stepOver`, written out: small tensors come here more than anywhere else.
  const n = out.numel
  const aStep = a.isContiguous && a.numel === n ? 1 : a.numel === 1 ? 0 : -1
  const bStep = b.isContiguous && b.numel === n ? 1 : b.numel === 1 ? 0 : -1
  const x = a.storage.host!
  const y = b.storage.host!
  const z = out.storage.host!
  if (aStep >= 0 && bStep >= 0 && out.isContiguous) kernel.flat(n, x, a.offset, aStep, y, b.offset, bStep, z, out.offset)
  else kernel.strided(out.shape, x, a.offset, stridesOver(a, out), y, b.offset, stridesOver(b, out), z, out.offset, out.strides)
}

const where: Adapters['where'] = (kernel) => (cond, a, b, out) => {
  const [c, x, y, z] = [cond.storage.host as Uint8Array, a.storage.host!, b.storage.host!, out.storage.host!]
  const [cStep, aStep, bStep] = [stepOver(cond, out), stepOver(a, out), stepOver(b, out)]
  if (cStep >= 0 && aStep >= 0 && bStep >= 0) {
    kernel.flat(out.numel, c, cond.offset, cStep, x, a.offset, aStep, y, b.offset, bStep, z, out.offset)
  } else {
    const [cs, as, bs] = [stridesOver(cond, out), stridesOver(a, out), stridesOver(b, out)]
    kernel.strided(out.shape, c, cond.offset, cs, x, a.offset, as, y, b.offset, bs, z, out.offset)
  }
}

const axpy: Adapters['axpy'] = (kernel) => (alpha, x, out) => {
  const step = out.isContiguous ? stepOver(x, out) : -1
  if (step >= 0) kernel.flat(out.numel, alpha, x.storage.host!, x.offset, step, out.storage.host!, out.offset)
  else kernel.strided(out.shape, alpha, x.storage.host!, x.offset, stridesOver(x, out), out.storage.host!, out.offset, out.strides)
}

const copy: Adapters['copy'] = (kernel) => (x, out) => {
  if (out.isContiguous && stepOver(x, out) === 1) kernel.flat(out.numel, x.storage.host!, x.offset, out.storage.host!, out.offset)
  else kernel.strided(out.shape, x.storage.host!, x.offset, stridesOver(x, out), out.storage.host!, out.offset, out.strides)
}

const fill: Adapters['fill'] = (kernel) => (value, out) => {
  if (out.isContiguous) kernel.flat(out.numel, value, out.storage.host!, out.offset)
  else {
    // Elements that share their place get the same value: it is written once.
    const places = out.shape.map((n, d) => (out.strides[d] === 0 ? Math.min(n, 1) : n))
    kernel.strided(places, value, out.storage.host!, out.offset, out.strides)
  }
}

const grad: Adapters['grad'] = (kernel) => (g, x, out, p0, p1) => {
  const step = g.isContiguous ? 1 : 0
  kernel.flat(out.numel, g.storage.host!, g.offset, step, x.storage.host!, x.offset, out.storage.host!, out.offset, p0, p1)
}

// --- rows

const rows: Adapters['reduce'] = (kernel) => (x, out, outer, k, inner) =>
  kernel.run(outer, k, inner, x.storage.host!, x.offset, out.storage.host!, out.offset)

const variance: Adapters['variance'] = (kernel) => (x, out, outer, k, inner, correction, root) =>
  kernel.run(outer, k, inner, x.storage.host!, x.offset, out.storage.host!, out.offset, correction, root)

const argsort: Adapters['argsort'] = (kernel) => (x, out, outer, k, inner, descending) =>
  kernel.run(outer, k, inner, x.storage.host!, x.offset, int32(out), out.offset, descending)

const gradRows: Adapters['gradRows'] = (kernel) => (g, x, out, outer, k, inner) =>
  kernel.run(outer, k, inner, g.storage.host!, g.offset, x.storage.host!, x.offset, out.storage.host!, out.offset)

// --- products

const matmul: Adapters['matmul'] =
  (kernel) =>
  (a, b, out, turned = false) => {
    const aDims = a.shape.length
    const bDims = b.shape.length
    const m = aDims === 1 ? 1 : a.shape[aDims - 2]!
    const k = a.shape[aDims - 1]!
    const n = bDims === 1 ? 1 : b.shape[bDims - (turned ? 2 : 1)]!
    const aRow = aDims === 1 ? 0 : a.strides[aDims - 2]!
    const aCol = a.strides[aDims - 1]!
    const bRow = bDims === 1 ? b.strides[0]! : b.strides[bDims - (turned ? 1 : 2)]!
    const bCol = bDims === 1 ? 0 : b.strides[bDims - (turned ? 2 : 1)]!
    const x = a.storage.host!
    const y = b.storage.host!
    const z = out.storage.host!
    if (aDims <= 2 && bDims <= 2) {
      kernel.run(1, m, n, k, x, a.offset, 0, aRow, aCol, y, b.offset, 0, bRow, bCol, z, out.offset)
      return
    }
    const aBatchShape = a.shape.slice(0, Math.max(aDims - 2, 0))
    const bBatchShape = b.shape.slice(0, Math.max(bDims - 2, 0))
    const batchShape = out.shape.slice(0, Math.max(aBatchShape.length, bBatchShape.length))
    const batch = numelOf(batchShape)
    const aStrides = broadcastStrides(aBatchShape, a.strides.slice(0, aBatchShape.length), batchShape)
    const bStrides = broadcastStrides(bBatchShape, b.strides.slice(0, bBatchShape.length), batchShape)
    const aBatch = mergedStride(batchShape, aStrides)
    const bBatch = mergedStride(batchShape, bStrides)
    // Of a batch with one row the stride of rows says nothing.
    const rowStep = m === 1 && aBatch !== null && aBatch > 0 ? aBatch : aRow
    if (bBatch === 0 && aDims > 1 && aBatch === m * rowStep) {
      // One matrix b for all batches, and the rows of a follow each other through them: a single product of batch · m rows.
      kernel.run(1, batch * m, n, k, x, a.offset, 0, rowStep, aCol, y, b.offset, 0, bRow, bCol, z, out.offset)
    } else if (aBatch !== null && bBatch !== null) {
      kernel.run(batch, m, n, k, x, a.offset, aBatch, aRow, aCol, y, b.offset, bBatch, bRow, bCol, z, out.offset)
    } else {
      const index = new Array<number>(batchShape.length).fill(0)
      let ao = a.offset
      let bo = b.offset
      for (let t = 0; t < batch; t++) {
        kernel.run(1, m, n, k, x, ao, 0, aRow, aCol, y, bo, 0, bRow, bCol, z, out.offset + t * m * n)
        for (let d = batchShape.length - 1; d >= 0; d--) {
          ao += aStrides[d]!
          bo += bStrides[d]!
          if (++index[d]! < batchShape[d]!) break
          ao -= aStrides[d]! * batchShape[d]!
          bo -= bStrides[d]! * batchShape[d]!
          index[d] = 0
        }
      }
    }
  }

/** The one stride that walks all batch dimensions in row-major order, or null if there is none. */
function mergedStride(shape: Shape, strides: Shape): number | null {
  let merged = 0
  let next = -1
  for (let d = shape.length - 1; d >= 0; d--) {
    if (shape[d] === 1) continue
    if (next < 0) merged = strides[d]!
    else if (strides[d] !== next) return null
    next = strides[d]! * shape[d]!
  }
  return merged
}

// --- indices and classes

const int32 = (x: Operand): Int32Array => x.storage.host as Int32Array

const indexed: Adapters['index'] = (kernel) => (x, index, out, outer, rows, n, inner) =>
  kernel.run(outer, rows, n, inner, x.storage.host!, x.offset, int32(index), index.offset, out.storage.host!, out.offset)

const nll: Adapters['nll'] = (kernel) => (x, target, out) =>
  kernel.run(target.numel, x.shape[1]!, x.storage.host!, x.offset, int32(target), target.offset, out.storage.host!, out.offset)

const nllBackward: Adapters['nllBackward'] = (kernel) => (g, target, out) => {
  const step = g.numel === 1 ? 0 : 1
  const [n, classes] = out.shape as readonly [number, number]
  kernel.run(n, classes, g.storage.host!, g.offset, step, int32(target), target.offset, out.storage.host!, out.offset)
}

const ADAPTERS: Adapters = {
  ...{ unary, binary, compare: binary as Adapters['compare'], grad, where, axpy, copy, fill },
  ...{ reduce: rows, place: rows as Adapters['place'], scan: rows, softmax: rows, variance, argsort, gradRows, productBackward: gradRows },
  ...{ matmul, nll, nllBackward, index: indexed },
  ...{ conv, maxPool, avgPool, layerNorm, layerNormBackward, channelNorm, channelNormBackward },
}
