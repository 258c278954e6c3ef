/** The matrices of a product, for all backends: dimensions, transposes as strides, and batches, which broadcast. Backends multiply two matrices. */
import type { TypedArray } from '../../values/dtype.js'
import { broadcastStrides, numelOf, type Shape } from '../../values/shape.js'
import type { Matmul, Operand } from './operands.js'
import { eachPlace } from './walk.js'

/** A matrix among the elements of `host`, of any strides. */
export interface Factor {
  readonly host: TypedArray
  readonly at: number
  readonly row: number
  readonly col: number
}

/** out [m, n], dense from `at` on = a [m, k] · b [k, n]. None of the three is 0. */
export type Product = (m: number, n: number, k: number, a: Factor, b: Factor, out: TypedArray, at: number) => void

/** `count` such products, of which the matrices a, b and out begin so many elements apart. Returns false, having done nothing, where single products are better. */
export type Products = (count: number, aStep: number, bStep: number, ...one: Parameters<Product>) => boolean

export function matmulOf(product: Product, products: Products = () => false): Matmul {
  return (a, b, out, turned = false) => {
    const aDims = a.shape.length
    const bDims = b.shape.length
    const bCols = turned ? bDims - 2 : bDims - 1
    const m = aDims === 1 ? 1 : a.shape[aDims - 2]!
    const k = a.shape[aDims - 1]!
    const n = bDims === 1 ? 1 : b.shape[bCols]!
    const z = out.storage.host!
    if (out.numel === 0) return
    if (k === 0) {
      z.fill(0, out.offset, out.offset + out.numel)
      return
    }
    const x = { host: a.storage.host!, at: a.offset, row: aDims === 1 ? 0 : a.strides[aDims - 2]!, col: a.strides[aDims - 1]! }
    const y = {
      host: b.storage.host!,
      at: b.offset,
      row: bDims === 1 ? b.strides[0]! : b.strides[turned ? bDims - 1 : bDims - 2]!,
      col: bDims === 1 ? 0 : b.strides[bCols]!,
    }
    if (aDims <= 2 && bDims <= 2) product(m, n, k, x, y, z, out.offset)
    else inBatches(product, products, m, n, k, a, x, b, y, out)
  }
}

function inBatches(
  product: Product,
  products: Products,
  m: number,
  n: number,
  k: number,
  a: Operand,
  x: Factor,
  b: Operand,
  y: Factor,
  out: Operand,
): void {
  const [aBatches, bBatches] = [a.shape.slice(0, -2), b.shape.slice(0, -2)]
  const batches = out.shape.slice(0, Math.max(aBatches.length, bBatches.length))
  const aStrides = broadcastStrides(aBatches, a.strides.slice(0, aBatches.length), batches)
  const bStrides = broadcastStrides(bBatches, b.strides.slice(0, bBatches.length), batches)
  const aStep = mergedStride(batches, aStrides)
  // Of a batch with one row the stride of rows says nothing.
  const row = m === 1 && aStep !== null && aStep > 0 ? aStep : x.row
  const host = out.storage.host!
  const bStep = mergedStride(batches, bStrides)
  if (bStep === 0 && a.shape.length > 1 && aStep === m * row) {
    // One matrix b for all batches, and the rows of a follow each other through them: a single product of all rows.
    product(numelOf(batches) * m, n, k, { ...x, row }, y, host, out.offset)
    return
  }
  if (aStep !== null && bStep !== null) {
    const count = numelOf(batches)
    if (products(count, aStep, bStep, m, n, k, x, y, host, out.offset)) return
    for (let t = 0; t < count; t++) {
      product(m, n, k, moved(x, x.at + t * aStep), moved(y, y.at + t * bStep), host, out.offset + t * m * n)
    }
    return
  }
  const at = [x.at, y.at, out.offset]
  eachPlace(batches, [aStrides, bStrides, out.strides], at, () => product(m, n, k, moved(x, at[0]!), moved(y, at[1]!), host, at[2]!))
}

const moved = ({ host, row, col }: Factor, at: number): Factor => ({ host, at, row, col })

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
