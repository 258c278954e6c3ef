/**
 * Strided calls of kernels.wasm: dimensions that lie evenly for all operands are merged, what lies outside of the memory is staged with its gaps,
 * operands with other inner steps than 0 and 1 are gathered into scratch, and the kernel runs over blocks of rows. Above: the element-wise
 * kernels of this folder. Independent of `js/walk.ts`, which walks what is too small or too wide for this.
 */
import type { TypedArray } from '../../values/dtype.js'
import type { Dims } from '../table/table.js'
import { align, copyRun, type KernelExports, SINGLE_BELOW, type WasmInstance } from './instance.js'
import { workedElements } from './pause.js'

type Move = (rows: number, cols: number, x: number, xRow: number, xCol: number, out: number, outRow: number, outCol: number) => void
declare module './instance.js' {
  interface KernelExports {
    readonly move_8: Move
    readonly move_32: Move
    readonly move_64: Move
  }
}

/** Scratch for the operands of one call; what needs more is walked. */
const SCRATCH_MAX = 2 ** 26
/** Elements of one call of a kernel, so that it ends within the time between two pauses; a multiple of 8. */
export const SLICE = 131_072
/** An operand's span may be so many times the elements that are used of it, or staging would copy mostly gaps. */
const SPAN_FACTOR_MAX = 8

/** One operand of a strided call, from the caller's view to what the kernel gets. */
export interface StridedOperand {
  readonly array: TypedArray
  readonly offset: number
  readonly strides: Dims
  /** 'one': the kernel takes no inner step but 1. */
  readonly steps?: 'one'
}

/** Of a block [rows, n]: addresses, bytes between rows, and steps of the inputs (0 or 1 element), then of the output. */
export type BlockKernel = (
  rows: number,
  n: number,
  pointers: readonly number[],
  rowBytes: readonly number[],
  steps: readonly number[],
) => void

/**
 * Runs `kernel` over blocks that cover `shape`, the last operand being the output. Returns false, having done nothing, where a walk is better:
 * an output whose inner elements do not lie side by side, or that lies outside and is not dense; spans full of gaps; too much to stage.
 */
export function runStrided(
  instance: WasmInstance,
  shape: Dims,
  operands: readonly StridedOperand[],
  readsOutput: boolean,
  kernel: BlockKernel,
): boolean {
  const { dims, strides } = collapse(shape, operands)
  const last = dims.length - 1
  const outIndex = operands.length - 1
  let n = 1
  for (const extent of dims) n *= extent
  if (n === 0) return true
  if (strides[outIndex]![last] !== 1) return false

  const pointers: number[] = []
  const spans: number[] = []
  const gathered: boolean[] = []
  let bytes = 0
  for (let k = 0; k <= outIndex; k++) {
    const { array, offset } = operands[k]!
    const own = strides[k]!
    const pointer = array.length < SINGLE_BELOW ? -1 : instance.direct(array, offset)
    let span = 0
    if (pointer < 0) {
      span = 1
      for (let d = 0; d <= last; d++) span += (dims[d]! - 1) * own[d]!
      if (k === outIndex ? span !== n || !isDense(dims, own) : span > SPAN_FACTOR_MAX * n) return false
    }
    const gather = k < outIndex && (own[last]! > 1 || (own[last] === 0 && operands[k]!.steps === 'one'))
    pointers.push(pointer)
    spans.push(span)
    gathered.push(gather)
    bytes += align((span + (gather ? n : 0)) * array.BYTES_PER_ELEMENT) + 16
  }
  if (bytes > SCRATCH_MAX) return false

  instance.begin(bytes)
  const rowBytes: number[] = []
  const steps: number[] = []
  for (let k = 0; k <= outIndex; k++) {
    const { array, offset } = operands[k]!
    const size = array.BYTES_PER_ELEMENT
    if (pointers[k]! < 0) {
      pointers[k] = instance.take(spans[k]! * size)
      if (k < outIndex || readsOutput) copyRun(spans[k]!, array, offset, viewOf(instance, array), pointers[k]! / array.BYTES_PER_ELEMENT)
    }
    if (gathered[k]!) {
      const to = instance.take(n * size)
      const dense = denseOf(dims)
      moveBlocks(instance.kernels, size, dims, pointers[k]!, strides[k]!, to, dense)
      pointers[k] = to
      strides[k] = dense
    }
    rowBytes.push(last === 0 ? 0 : strides[k]![last - 1]! * size)
    steps.push(strides[k]![last]!)
  }
  const out = operands[outIndex]!
  const staged = spans[outIndex]! > 0
  const sizes = operands.map(({ array }) => array.BYTES_PER_ELEMENT)
  const at = pointers.slice()
  eachBlock(dims, sizes, strides, pointers, (rows, inner) => {
    if (rows * inner <= SLICE) {
      kernel(rows, inner, pointers, rowBytes, steps)
      workedElements(rows * inner)
      return
    }
    const width = Math.min(inner, SLICE)
    const height = Math.max(1, Math.floor(SLICE / width))
    for (let r = 0; r < rows; r += height) {
      for (let c = 0; c < inner; c += width) {
        for (let k = 0; k <= outIndex; k++) at[k] = pointers[k]! + r * rowBytes[k]! + c * steps[k]! * sizes[k]!
        const [h, w] = [Math.min(height, rows - r), Math.min(width, inner - c)]
        kernel(h, w, at, rowBytes, steps)
        workedElements(h * w)
      }
    }
  })
  if (staged) copyRun(n, viewOf(instance, out.array), pointers[outIndex]! / out.array.BYTES_PER_ELEMENT, out.array, out.offset)
  return true
}

/** out = x by bits, any strides on both sides. Returns false as `runStrided`. */
export function moveStrided(instance: WasmInstance, shape: Dims, x: StridedOperand, out: StridedOperand): boolean {
  const { dims, strides } = collapse(shape, [x, out])
  const [xStrides, outStrides] = strides as [number[], number[]]
  let n = 1
  let span = 1
  for (let d = 0; d < dims.length; d++) {
    n *= dims[d]!
    span += (dims[d]! - 1) * xStrides[d]!
  }
  if (n === 0) return true
  const size = out.array.BYTES_PER_ELEMENT
  let from = x.array.length < SINGLE_BELOW ? -1 : instance.direct(x.array, x.offset)
  let to = out.array.length < SINGLE_BELOW ? -1 : instance.direct(out.array, out.offset)
  const stageX = from < 0
  const stagedOut = to < 0
  if (stagedOut && !isDense(dims, outStrides)) return false
  if (stageX && span > SPAN_FACTOR_MAX * n) return false
  const bytes = align(stageX ? span * size : 0) + align(stagedOut ? n * size : 0)
  if (bytes > SCRATCH_MAX) return false
  instance.begin(bytes)
  if (stageX) {
    from = instance.take(span * size)
    copyRun(span, x.array, x.offset, viewOf(instance, x.array), from / x.array.BYTES_PER_ELEMENT)
  }
  if (stagedOut) to = instance.take(n * size)
  moveBlocks(instance.kernels, size, dims, from, xStrides, to, outStrides)
  if (stagedOut) copyRun(n, viewOf(instance, out.array), to / out.array.BYTES_PER_ELEMENT, out.array, out.offset)
  return true
}

/** Moves [rows, cols] blocks of the last dimension and the outer one in which x lies closest, so that a transpose is read along its runs. */
function moveBlocks(kernels: KernelExports, size: number, dims: Dims, from: number, xStrides: Dims, to: number, outStrides: Dims): void {
  const last = dims.length - 1
  const move = size === 4 ? kernels.move_32 : size === 8 ? kernels.move_64 : kernels.move_8
  const col = [dims[last]!, xStrides[last]! * size, outStrides[last]! * size] as const
  const block = (rows: number, from: number, xRow: number, to: number, outRow: number) => {
    const width = Math.min(col[0], SLICE)
    const height = Math.max(1, Math.floor(SLICE / width))
    for (let r = 0; r < rows; r += height) {
      for (let c = 0; c < col[0]; c += width) {
        const [h, w] = [Math.min(height, rows - r), Math.min(width, col[0] - c)]
        move(h, w, from + r * xRow + c * col[1], xRow, col[1], to + r * outRow + c * col[2], outRow, col[2])
        workedElements(h * w)
      }
    }
  }
  if (last === 0) {
    block(1, from, 0, to, 0)
    return
  }
  let near = last - 1
  for (let d = last - 2; d >= 0; d--) if (xStrides[d]! < xStrides[near]!) near = d
  const row = [dims[near]!, xStrides[near]! * size, outStrides[near]! * size] as const
  const index = new Array<number>(dims.length).fill(0)
  for (;;) {
    block(row[0], from, row[1], to, row[2])
    let d = last - 1
    for (; d >= 0; d--) {
      if (d === near) continue
      from += xStrides[d]! * size
      to += outStrides[d]! * size
      if (++index[d]! < dims[d]!) break
      from -= xStrides[d]! * size * dims[d]!
      to -= outStrides[d]! * size * dims[d]!
      index[d] = 0
    }
    if (d < 0) return
  }
}

/** Calls `block` for each combination of the outer dimensions, with `pointers` moved to it. */
function eachBlock(
  dims: Dims,
  sizes: readonly number[],
  strides: readonly Dims[],
  pointers: number[],
  block: (rows: number, n: number) => void,
): void {
  const last = dims.length - 1
  const rows = last === 0 ? 1 : dims[last - 1]!
  const outer = dims.length - 2
  if (outer <= 0) {
    block(rows, dims[last]!)
    return
  }
  const start = pointers.slice()
  const index = new Array<number>(outer).fill(0)
  for (;;) {
    block(rows, dims[last]!)
    let d = outer - 1
    for (; d >= 0; d--) {
      const extent = dims[d]!
      const ends = ++index[d]! === extent
      for (let k = 0; k < pointers.length; k++) {
        const bytes = strides[k]![d]! * sizes[k]!
        pointers[k]! += ends ? -bytes * (extent - 1) : bytes
      }
      if (!ends) break
      index[d] = 0
    }
    if (d < 0) break
  }
  for (let k = 0; k < pointers.length; k++) pointers[k] = start[k]!
}

/** Without dimensions of one element, and neighbours merged where every operand's strides allow it. At least one dimension is left. */
function collapse(shape: Dims, operands: readonly StridedOperand[]): { dims: number[]; strides: number[][] } {
  const dims: number[] = []
  const strides: number[][] = operands.map(() => [])
  for (let d = 0; d < shape.length; d++) {
    const extent = shape[d]!
    if (extent === 1) continue
    const top = dims.length - 1
    let merges = top >= 0
    for (let k = 0; merges && k < operands.length; k++) merges = strides[k]![top] === operands[k]!.strides[d]! * extent
    if (merges) dims[top]! *= extent
    else dims.push(extent)
    for (let k = 0; k < operands.length; k++) {
      if (merges) strides[k]![top] = operands[k]!.strides[d]!
      else strides[k]!.push(operands[k]!.strides[d]!)
    }
  }
  if (dims.length === 0) {
    dims.push(1)
    for (const own of strides) own.push(1)
  }
  return { dims, strides }
}

function denseOf(dims: Dims): number[] {
  const out = new Array<number>(dims.length)
  let step = 1
  for (let d = dims.length - 1; d >= 0; d--) {
    out[d] = step
    step *= dims[d]!
  }
  return out
}

function isDense(dims: Dims, strides: Dims): boolean {
  let step = 1
  for (let d = dims.length - 1; d >= 0; d--) {
    if (strides[d] !== step) return false
    step *= dims[d]!
  }
  return true
}

/** The instance's view whose elements are x's. */
export function viewOf(instance: WasmInstance, x: TypedArray): TypedArray {
  const size = x.BYTES_PER_ELEMENT
  if (size === 1) return instance.u8
  if (size === 8) return instance.f64
  return x.constructor === Int32Array ? instance.i32 : instance.f32
}
