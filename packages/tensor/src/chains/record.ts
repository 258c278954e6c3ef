/**
 * Records steps of chains, for the raw element-wise operations: in a function that `compile` made, or where an operand is the pending result of another step.
 * The operation itself computes all others.
 */
import { CPU } from '../heap/memory.js'
import { outsideOfScopes, Storage } from '../heap/storage.js'
import type { Form } from '../kernels/table/chain.js'
import { isUnsupported, type KernelOp } from '../kernels/table/table.js'
import { computing } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { allocate, type DType } from '../values/dtype.js'
import { broadcastStrides, contiguousStrides, numelOf, type Shape } from '../values/shape.js'
import { type Layout, Source, Step, settleAll } from './step.js'

/** Whether this thread has compiled a function: before that nothing here is called. */
export let records = false
/** How many compiled functions are running. */
let depth = 0

/** From so many elements of the result on an operation is recorded: its caller asks. Below, a chain saves less than it costs to record. */
export let chainsFrom = 32_768
/** Steps of one pass. A longer chain is cut: results in the middle are computed first. */
const STEPS_MAX = 64

/** Runs `fn`, which is synchronous, with chains of as few elements as that: for tests with small tensors. */
export function withChainsFrom<T>(elements: number, fn: () => T): T {
  const before = chainsFrom
  chainsFrom = elements
  try {
    return fn()
  } finally {
    chainsFrom = before
  }
}

/** Runs `fn`, whose element-wise operations become steps, until it returns (a promise, too). */
export function recording<T>(fn: () => T): T {
  records = true
  depth++
  try {
    return fn()
  } finally {
    depth--
  }
}

/** Whether a compiled function is running, which has called the one that asks. */
export function isRecording(): boolean {
  return depth > 0
}

/** The step of a pending storage; null: its elements are there. */
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

/** The sources of this thread's steps by the storage that they were. */
const sources = new WeakMap<Storage, WeakRef<Source>>()

function sourceOf(storage: Storage): Source {
  const before = sources.get(storage)?.deref()
  if (before !== undefined && before.users > 0 && isAsBefore(before.storage, storage)) return before
  const source = new Source(storage.lend())
  sources.set(storage, new WeakRef(source))
  return source
}

/** Whether nothing was written since: a write to lent elements gives the storage, or the reader, others. */
function isAsBefore(reader: Storage, storage: Storage): boolean {
  if (reader.isClosed) return false
  const [was, is] = [reader.host!, storage.host!]
  return was.buffer === is.buffer && was.byteOffset === is.byteOffset
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

  // First everything that may say no: what is pending stays so.
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
  // A view of a pending result computes it: before the result itself is an operand.
  for (const [i, { storage }] of operands.entries()) if (layouts[i] !== null) storage.pending?.settle()
  let size = sizeWith(operands, layouts)
  if (size > STEPS_MAX) {
    settleAll(operands.flatMap(({ storage }, i) => (layouts[i] === null && storage.pending !== null ? [stepOf(storage)!] : [])))
    size = 1
  }
  const places = operands.map(({ storage }, i) => {
    const layout = layouts[i]!
    if (layout === null) return stepOf(storage) ?? sourceOf(storage)
    if (layout.period !== 1) return sourceOf(storage)
    layouts[i] = SINGLE
    return new Source(singleOf(storage, layout.offset))
  })
  const step = new Step({ form, op, dtype, made, p0, p1 }, n, device, places, layouts, size)
  return new Tensor(step.storage!, shape, contiguousStrides(shape), 0, n, true)
}

const SINGLE: Layout = { offset: 0, period: 1, run: 1 }

/** A copy of one element, often of a number. */
function singleOf({ dtype, host }: Storage, offset: number): Storage {
  const array = allocate(dtype, 1)
  array[0] = host![offset]!
  let made: Storage | null = null
  outsideOfScopes(() => {
    made = new Storage(dtype, array)
  })
  return made!
}

/** How many steps a step of these operands takes at most; counted where the sum of theirs is too large, since operands may have steps in common. */
function sizeWith(operands: readonly Tensor[], layouts: readonly (Layout | null)[]): number {
  let sum = 1
  for (const [i, { storage }] of operands.entries()) if (layouts[i] === null) sum += stepOf(storage)?.size ?? 0
  if (sum <= STEPS_MAX) return sum
  const seen = new Set<Step>()
  for (const [i, { storage }] of operands.entries()) if (layouts[i] === null) stepOf(storage)?.countInto(seen)
  return 1 + seen.size
}

/**
 * How x, which broadcasts to `shape`, lies over its `n` elements: dense, one element, or a dense part that is repeated as a whole, by its elements, or both. Null: in
 * another way.
 */
function layoutOf(x: Tensor, shape: Shape, n: number): Layout | null {
  const { offset } = x
  if (x.isContiguous && x.numel === n) return { offset, period: n, run: 1 }
  if (x.numel === 1) return { offset, period: 1, run: 1 }
  const strides = broadcastStrides(x.shape, x.strides, shape)
  let d = shape.length - 1
  const skipOnes = () => {
    while (d >= 0 && shape[d] === 1) d--
  }
  let [period, run] = [1, 1]
  for (skipOnes(); d >= 0 && strides[d] === 0; skipOnes()) run *= shape[d--]!
  for (; d >= 0 && strides[d] === period; skipOnes()) period *= shape[d--]!
  for (; d >= 0 && strides[d] === 0; skipOnes()) d--
  return d >= 0 ? null : period === 1 ? { offset, period: 1, run: 1 } : { offset, period, run }
}
