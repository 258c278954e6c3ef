/**
 * Records steps of chains, for the raw element-wise operations: in a function that `compile` made, or where an operand is the pending result of another step.
 * The operation itself computes all others.
 */
import { CPU } from '../heap/memory.js'
import type { Storage } from '../heap/storage.js'
import type { Form } from '../kernels/table/chain.js'
import { isUnsupported, type KernelOp } from '../kernels/table/table.js'
import { computing } from '../tensor/device.js'
import { startRecording } from '../tensor/settling.js'
import { Tensor } from '../tensor/tensor.js'
import { byteLength, type DType } from '../values/dtype.js'
import { broadcastStrides, contiguousStrides, numelOf, type Shape } from '../values/shape.js'
import { heldOf, Source, STEPS_MAX, Step, settleAll } from './step.js'

/** Whether this thread has compiled a function: before that nothing here is called. */
export { records } from '../tensor/settling.js'

/** How many compiled functions are running. */
let depth = 0

/** Operations on fewer elements are not recorded; the caller of `recorded` compares. Measured: of so many, a chain of three costs as much as its operations. */
export let chainsFrom = 131_072
/** Runs `fn`, which is synchronous, and in which operations on that many elements are recorded: for tests with small tensors. */
export function withChainsFrom<T>(elements: number, fn: () => T): T {
  const before = chainsFrom
  chainsFrom = elements
  try {
    return fn()
  } finally {
    chainsFrom = before
  }
}

/** Runs `fn`. Until it returns, be it a promise, its element-wise operations become steps. */
export function recording<T>(fn: () => T): T {
  startRecording()
  depth++
  try {
    return fn()
  } finally {
    depth--
  }
}

/** Whether a compiled function is running. */
export function isRecording(): boolean {
  return depth > 0
}

/** The step that will compute the elements of a storage; null: it has them. */
export function stepOf(storage: Storage): Step | null {
  return storage.pending as Step | null
}

/** Whether the elements of x are not computed yet. */
export function isPending({ storage }: Tensor): boolean {
  return storage.pending !== null
}

/** Computes what is pending of these tensors, together where it can. */
export function settle(tensors: Iterable<Tensor | null | undefined>): void {
  const steps: Step[] = []
  for (const x of tensors) if (x?.storage.pending != null) steps.push(stepOf(x.storage)!)
  settleAll(steps)
}

/** The last source that was made of each storage. */
const sources = new WeakMap<Storage, WeakRef<Source>>()

/** A source of more bytes is a fork, or nothing. */
const COPIED_BYTES_MAX = 16 * 1024

function isForkable(storage: Storage, length: number): boolean {
  return storage.lease !== null && !storage.isSmallPart(length)
}

/** Whether a step can hold `length` elements of it. A user may write to the array of a managed storage (`fromTypedArray`) at any time, so a step holds no such array. */
function isHoldable(storage: Storage, length: number): boolean {
  return isForkable(storage, length) || byteLength(storage.dtype, length) <= COPIED_BYTES_MAX
}

/** A source of these elements: an earlier one that still has them, or a new one. A chain compares single numbers by value itself (`Source.key`). */
function sourceOf(storage: Storage, offset: number, length: number): Source {
  if (length === 1) return new Source(heldOf(storage, offset, length))
  const before = sources.get(storage)?.deref()
  if (before !== undefined && !before.storage.isClosed && hasElements(before.storage, storage, offset, length)) return before
  const source = new Source(heldOf(storage, offset, length))
  sources.set(storage, new WeakRef(source))
  return source
}

/** Whether `held` still has these elements of `storage`: a fork lies where they lie, since a write gives the storage another block; a copy has the same bytes. */
function hasElements(held: Storage, storage: Storage, offset: number, length: number): boolean {
  if (held.length !== length) return false
  const [was, is] = [held.host!, storage.host!]
  const begin = is.byteOffset + offset * is.BYTES_PER_ELEMENT
  if (was.buffer === is.buffer && was.byteOffset === begin) return true
  const { byteLength: bytes } = was
  return bytes <= COPIED_BYTES_MAX && Buffer.from(was.buffer, was.byteOffset, bytes).equals(Buffer.from(is.buffer, begin, bytes))
}

/**
 * The pending result of a kernel of `dtype`, in `shape`, to which the operands broadcast; `made` is the dtype of the result. Null, having recorded nothing: the
 * operation computes it, or says what is wrong.
 */
export function recorded(
  form: Form,
  op: KernelOp,
  dtype: DType,
  made: DType,
  shape: Shape,
  operands: readonly Tensor[],
  p0 = 0,
  p1 = 0,
): Tensor | null {
  const n = numelOf(shape)
  let wanted = depth > 0
  for (const { storage } of operands) {
    if (storage.isClosed || storage.memory !== CPU) return null
    if (storage.pending !== null) wanted = true
  }
  if (!wanted) return null
  const device = computing(CPU)
  if (isUnsupported(device.implementation.kernels[op][dtype])) return null

  // The reasons to record nothing come first: then nothing pending is computed for nothing.
  const layouts: (Layout | null)[] = []
  for (const x of operands) {
    const step = stepOf(x.storage)
    const isWhole = x.isContiguous && x.offset === 0 && x.numel === n && x.storage.length === n
    if (step !== null && isWhole && step.device === device) {
      layouts.push(null)
      continue
    }
    const layout = layoutOf(x, shape, n)
    if (layout === null) return null
    layouts.push(layout)
  }
  if (!areHoldable(operands, layouts)) return null
  // A view of a pending result computes it: before the result itself is an operand.
  for (const [i, { storage }] of operands.entries()) if (layouts[i] !== null) storage.pending?.settle()
  let size = sizeWith(operands, layouts)
  if (size > STEPS_MAX) {
    settleAll(operands.flatMap(({ storage }, i) => (layouts[i] === null && storage.pending !== null ? [stepOf(storage)!] : [])))
    size = 1
  }
  // The results that were computed now may be managed.
  if (!areHoldable(operands, layouts)) return null
  const places = operands.map(({ storage, offset }, i) => stepOf(storage) ?? sourceOf(storage, offset, layouts[i]?.period ?? n))
  const runs = layouts.map((layout) => layout?.run ?? 1)
  const step = new Step({ form, op, dtype, made, p0, p1 }, n, device, places, runs, size)
  return new Tensor(step.storage!, shape, contiguousStrides(shape), 0, n, true)
}

function areHoldable(operands: readonly Tensor[], layouts: readonly (Layout | null)[]): boolean {
  return operands.every(({ storage }, i) => storage.pending !== null || isHoldable(storage, layouts[i]?.period ?? storage.length))
}

/** How many steps compute a step of these operands, at most. Operands may have steps in common, so where the sum of theirs is too large, the steps are counted. */
function sizeWith(operands: readonly Tensor[], layouts: readonly (Layout | null)[]): number {
  let sum = 1
  for (const [i, { storage }] of operands.entries()) if (layouts[i] === null) sum += stepOf(storage)?.size ?? 0
  if (sum <= STEPS_MAX) return sum
  const seen = new Set<Step>()
  for (const [i, { storage }] of operands.entries()) if (layouts[i] === null) stepOf(storage)?.countInto(seen)
  return 1 + seen.size
}

/** How the elements of an operand, from its offset on, lie over those of a step: see `ChainSource`. */
interface Layout {
  readonly period: number
  readonly run: number
}

const SINGLE: Layout = { period: 1, run: 1 }

/**
 * How x, which broadcasts to `shape`, lies over its `n` elements: dense, one element, or a dense part that is repeated as a whole, by its elements, or both. Null: in
 * another way.
 */
function layoutOf(x: Tensor, shape: Shape, n: number): Layout | null {
  if (x.isContiguous && x.numel === n) return { period: n, run: 1 }
  if (x.numel === 1) return SINGLE
  const strides = broadcastStrides(x.shape, x.strides, shape)
  let d = shape.length - 1
  const skipOnes = () => {
    while (d >= 0 && shape[d] === 1) d--
  }
  let [period, run] = [1, 1]
  for (skipOnes(); d >= 0 && strides[d] === 0; skipOnes()) run *= shape[d--]!
  for (; d >= 0 && strides[d] === period; skipOnes()) period *= shape[d--]!
  for (; d >= 0 && strides[d] === 0; skipOnes()) d--
  return d >= 0 ? null : period === 1 ? SINGLE : { period, run }
}
