/**
 * Strided calls of kernels.wasm, for the element-wise kernels of this folder: it merges dimensions that lie evenly for all operands, stages operands
 * outside of the memory with their gaps, gathers operands with other inner steps than 0 and 1 into scratch, and runs the kernel over blocks of
 * rows. Calls that are too small or too wide are walked row by row (`table/walk.ts`).
 */
import type { DType, TypedArray } from '../../../values/dtype.js'
import { contiguousStrides, isContiguous, numelOf, type Shape } from '../../../values/shape.js'
import type { Operand } from '../../table/operands.js'
import { eachPlace, stridesOver } from '../../table/walk.js'
import { align, copyRun, type KernelExports, type WasmInstance } from './instance.js'
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
export const SCRATCH_MAX = 2 ** 26
/** The share of the heap that such copies may take: tensors have the rest. */
const SCRATCH_SHARE = 1 / 4
/** Elements of one call of a kernel, so that it ends within the time between two pauses; a multiple of 8. */
export const SLICE = 131_072
/** The work of an element, in multiplications, for the question whether threads share a call; elements of a unit. */
const SHARED_WORK_PER_ELEMENT = 2
const UNIT = 32_768
/** An operand's span may be so many times the elements that are used of it, or staging would copy mostly gaps. */
export const SPAN_FACTOR_MAX = 8

/** Of a block [rows, n]: addresses, bytes between rows, and steps of the inputs (0 or 1 element), then of the output. */
export type BlockKernel = (rows: number, n: number, pointers: Numbers, rowBytes: Numbers, steps: Numbers) => void
type Numbers = readonly number[]

export interface StridedOptions {
  /** The kernel adds to its output. */
  readonly readsOutput?: true
  /** It takes the first operand with no inner step but 1. */
  readonly denseFirst?: true
}

/**
 * Runs `kernel` over blocks that cover the last operand, the output. Returns false, having done nothing, where a walk is better: an output whose inner
 * elements do not lie side by side, or that lies outside and is not dense; spans full of gaps; too much to stage.
 */
export function runStrided(
  instance: WasmInstance,
  operands: readonly Operand[],
  kernel: BlockKernel,
  { readsOutput, denseFirst }: StridedOptions,
): boolean {
  const outIndex = operands.length - 1
  const out = operands[outIndex]!
  const { dims, strides } = collapse(out.shape, operands)
  const last = dims.length - 1
  const n = numelOf(dims)
  if (n === 0) return true
  if (strides[outIndex]![last] !== 1) return false

  const pointers: number[] = []
  const spans: number[] = []
  const gathered: boolean[] = []
  const sizes: number[] = []
  let bytes = 0
  for (let k = 0; k <= outIndex; k++) {
    const own = strides[k]!
    const host = operands[k]!.storage.host!
    const pointer = instance.direct(host, operands[k]!.offset)
    const span = pointer < 0 ? spanOf(dims, own) : 0
    if (k === outIndex ? pointer < 0 && !isContiguous(dims, own) : span > SPAN_FACTOR_MAX * n) return false
    const gather = k < outIndex && (own[last]! > 1 || (own[last] === 0 && k === 0 && denseFirst === true))
    pointers.push(pointer)
    spans.push(span)
    gathered.push(gather)
    sizes.push(host.BYTES_PER_ELEMENT)
    bytes += align((span + (gather ? n : 0)) * sizes[k]!) + 16
  }
  if (bytes > scratchMax(instance)) return false

  instance.begin(bytes)
  const rowBytes: number[] = []
  const steps: number[] = []
  for (let k = 0; k <= outIndex; k++) {
    const size = sizes[k]!
    if (pointers[k]! < 0) {
      pointers[k] = instance.take(spans[k]! * size)
      if (k < outIndex || readsOutput) stage(instance, spans[k]!, operands[k]!, pointers[k]!)
    }
    if (gathered[k]!) {
      const to = instance.take(n * size)
      const dense = contiguousStrides(dims)
      moveBlocks(instance.kernels, size, dims, pointers[k]!, strides[k]!, to, dense)
      pointers[k] = to
      strides[k] = dense
    }
    rowBytes.push(last === 0 ? 0 : strides[k]![last - 1]! * size)
    steps.push(strides[k]![last]!)
  }
  const rows = last === 0 ? 1 : dims[last - 1]!
  const places = operands.map(() => 0)
  const at = pointers.slice()
  const block = (r: number, c: number, height: number, width: number): void => {
    for (let k = 0; k <= outIndex; k++) at[k] = pointers[k]! + r * rowBytes[k]! + (places[k]! + c * steps[k]!) * sizes[k]!
    kernel(height, width, at, rowBytes, steps)
  }
  const height = Math.max(1, Math.floor(UNIT / dims[last]!))
  if (
    last === 1 &&
    height < rows &&
    !readsOutput &&
    instance.shares(n * SHARED_WORK_PER_ELEMENT) &&
    isApart(dims, pointers, strides, sizes, spans)
  ) {
    const unit = (i: number): void => {
      const count = Math.min(height, rows - i * height)
      block(i * height, 0, count, dims[1]!)
      workedElements(count * dims[1]!)
    }
    instance.share(Math.ceil(rows / height), height * dims[1]! * SHARED_WORK_PER_ELEMENT, unit)
    return true
  }
  eachPlace(dims, strides, places, () => inSlices(rows, dims[last]!, block), Math.max(last - 1, 0))
  if (spans[outIndex]! > 0) unstage(instance, n, pointers[outIndex]!, out)
  return true
}

/** Whether the output lies in the memory and shares no byte with an input: threads may share it. In place, a unit would read what it writes. */
function isApart(dims: Shape, pointers: Numbers, strides: readonly Shape[], sizes: Numbers, staged: Numbers): boolean {
  const last = pointers.length - 1
  if (staged[last]! > 0) return false
  const ends = pointers.map((pointer, k) => pointer + spanOf(dims, strides[k]!) * sizes[k]!)
  return pointers.every((pointer, k) => k === last || pointer >= ends[last]! || ends[k]! <= pointers[last]!)
}

/** Cuts [rows, cols] into blocks of at most SLICE elements. */
function inSlices(rows: number, cols: number, f: (row: number, col: number, rows: number, cols: number) => void): void {
  const width = Math.min(cols, SLICE)
  const height = Math.max(1, Math.floor(SLICE / width))
  for (let r = 0; r < rows; r += height) {
    for (let c = 0; c < cols; c += width) {
      const [h, w] = [Math.min(height, rows - r), Math.min(width, cols - c)]
      f(r, c, h, w)
      workedElements(h * w)
    }
  }
}

/** An operand's elements, or an array of one's own. */
export interface Elements extends Pick<Operand, 'offset' | 'dtype'> {
  readonly storage: Pick<Operand['storage'], 'host'>
}

/** Copies `n` elements of x, from element `from` on, to an address; `unstage`: back. */
export function stage(instance: WasmInstance, n: number, { storage, offset, dtype }: Elements, to: number, from = 0): void {
  const memory = viewOf(instance, dtype)
  copyRun(n, storage.host!, offset + from, memory, to / memory.BYTES_PER_ELEMENT)
}
export function unstage(instance: WasmInstance, n: number, from: number, { storage, offset, dtype }: Elements, to = 0): void {
  const memory = viewOf(instance, dtype)
  copyRun(n, memory, from / memory.BYTES_PER_ELEMENT, storage.host!, offset + to)
}

/** Bytes of scratch that the operands of one call may take. */
export function scratchMax(instance: WasmInstance): number {
  return Math.min(SCRATCH_MAX, instance.u8.length * SCRATCH_SHARE)
}

/** out = x by bits, any strides on both sides. Returns false as `runStrided`. */
export function moveStrided(instance: WasmInstance, x: Operand, out: Operand): boolean {
  const { dims, strides } = collapse(out.shape, [x, out])
  const [xStrides, outStrides] = strides as [number[], number[]]
  const n = numelOf(dims)
  if (n === 0) return true
  const span = spanOf(dims, xStrides)
  const size = out.storage.host!.BYTES_PER_ELEMENT
  let from = instance.direct(x.storage.host!, x.offset)
  let to = instance.direct(out.storage.host!, out.offset)
  const stagedOut = to < 0
  if (stagedOut && !isContiguous(dims, outStrides)) return false
  if (from < 0 && span > SPAN_FACTOR_MAX * n) return false
  const bytes = align(from < 0 ? span * size : 0) + align(stagedOut ? n * size : 0)
  if (bytes > scratchMax(instance)) return false
  instance.begin(bytes)
  if (from < 0) {
    from = instance.take(span * size)
    stage(instance, span, x, from)
  }
  if (stagedOut) to = instance.take(n * size)
  moveBlocks(instance.kernels, size, dims, from, xStrides, to, outStrides)
  if (stagedOut) unstage(instance, n, to, out)
  return true
}

/** Moves [rows, cols] blocks of the last dimension and the outer one in which x lies closest, so that a transpose is read along its runs. */
function moveBlocks(kernels: KernelExports, size: number, dims: Shape, from: number, xStrides: Shape, to: number, outStrides: Shape): void {
  const last = dims.length - 1
  const move = size === 4 ? kernels.move_32 : size === 8 ? kernels.move_64 : kernels.move_8
  let near = last - 1
  for (let d = last - 2; d >= 0; d--) if (xStrides[d]! < xStrides[near]!) near = d
  const [x, out] = [swapped(xStrides, near, last - 1), swapped(outStrides, near, last - 1)]
  const [xRow, outRow] = last === 0 ? [0, 0] : [x[last - 1]! * size, out[last - 1]! * size]
  const [xCol, outCol] = [x[last]! * size, out[last]! * size]
  const at = [0, 0]
  const block = (r: number, c: number, height: number, width: number): void => {
    const [source, target] = [from + at[0]! * size + r * xRow + c * xCol, to + at[1]! * size + r * outRow + c * outCol]
    move(height, width, source, xRow, xCol, target, outRow, outCol)
  }
  eachPlace(swapped(dims, near, last - 1), [x, out], at, () => inSlices(dims[near] ?? 1, dims[last]!, block), Math.max(last - 1, 0))
}

function swapped(list: Shape, i: number, j: number): Shape {
  return i === j ? list : list.with(i, list[j]!).with(j, list[i]!)
}

/** Without dimensions of one element, and neighbours merged where every operand's strides allow it. At least one dimension is left. */
function collapse(shape: Shape, operands: readonly Operand[]): { dims: number[]; strides: Shape[] } {
  const given = stridesOver(shape, operands)
  const dims: number[] = []
  const strides: number[][] = operands.map(() => [])
  for (let d = 0; d < shape.length; d++) {
    const extent = shape[d]!
    if (extent === 1) continue
    const top = dims.length - 1
    let merges = top >= 0
    for (let k = 0; merges && k < operands.length; k++) merges = strides[k]![top] === given[k]![d]! * extent
    if (merges) dims[top]! *= extent
    else dims.push(extent)
    for (let k = 0; k < operands.length; k++) {
      if (merges) strides[k]![top] = given[k]![d]!
      else strides[k]!.push(given[k]![d]!)
    }
  }
  if (dims.length === 0) {
    dims.push(1)
    for (const own of strides) own.push(1)
  }
  return { dims, strides }
}

/** How many elements lie between the first and the last, with both. */
function spanOf(dims: Shape, strides: Shape): number {
  let span = 1
  for (let d = 0; d < dims.length; d++) span += (dims[d]! - 1) * strides[d]!
  return span
}

/** The instance's view of elements of this dtype. */
export function viewOf(instance: WasmInstance, dtype: DType): TypedArray {
  if (dtype === 'float32') return instance.f32
  if (dtype === 'float64') return instance.f64
  return dtype === 'int32' ? instance.i32 : instance.u8
}
