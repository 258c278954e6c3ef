/**
 * A chain of element-wise steps, as data: every result has the same number of elements, and element i of a result depends on the elements i of its operands alone.
 * A backend that understands it computes the chain in one pass over memory; it may cut the elements as it likes. The bits of each step are those of its kernel.
 */
import type { DType } from '../../values/dtype.js'
import type { KernelOp } from './ops.js'

/** The families whose kernels are steps of chains, as their kernels are called: a choice has a condition and two values, a conversion copies to another dtype. */
export type Form = 'unary' | 'binary' | 'compare' | 'grad' | 'choice' | 'conversion'

/**
 * How a dense source lies over the elements of the chain: element i is element ⌊i / run⌋ mod period of the source, from its offset on. A period of all elements
 * is a source of the chain's size, and a period of 1 is one element for all.
 */
export interface ChainSource {
  readonly dtype: DType
  readonly period: number
  readonly run: number
}

/** One step: the kernel of an op and a dtype. */
export interface ChainStep {
  readonly form: Form
  readonly op: KernelOp
  /** The dtype that selects the kernel. */
  readonly dtype: DType
  /** The dtype of the result: bool of comparisons, else that of the kernel. */
  readonly made: DType
  /** Numbers of operands: sources come first, then the results of steps, in their order. A step reads earlier ones alone. */
  readonly operands: readonly number[]
  /** The parameters of the kernel; 0 for a kernel that has none. */
  readonly p0: number
  readonly p1: number
}

/** The whole chain. */
export interface ChainProgram {
  /** How many elements each result has. */
  readonly n: number
  readonly sources: readonly ChainSource[]
  readonly steps: readonly ChainStep[]
  /** The numbers of the steps whose results are wanted. */
  readonly outputs: readonly number[]
}

/** A step's kernel on dense elements at addresses; the step of an operand is 0 where it is one element for all. */
export type DirectKernel = (
  n: number,
  a: number,
  aStep: number,
  b: number,
  bStep: number,
  c: number,
  cStep: number,
  out: number,
  p0: number,
  p1: number,
) => void

/** Steps that are computed together, in registers. */
export interface Lanes {
  /** The dtypes of what is read; a single is one element for all. */
  readonly inputs: readonly { readonly dtype: DType; readonly isSingle: boolean }[]
  /** Their operands are numbers of inputs, then of these steps. */
  readonly steps: readonly ChainStep[]
  /** Numbers of those steps whose results are written. */
  readonly outputs: readonly number[]
}

/** Computes `n` elements; `at` are the addresses of the inputs, then of the outputs. */
export type LanesKernel = (n: number, at: readonly number[]) => void

/** Kernels that compute at addresses of one memory, with the bits of the table's cells. */
export interface DirectKernels {
  readonly buffer: ArrayBufferLike
  /** How many threads share the cells of large tensors. */
  readonly threads: number
  /** Null: only the cell computes the step. */
  of(step: ChainStep): DirectKernel | null
  /** Whether the step, of operands of these dtypes, may be one of `lanes`. */
  isOfLanes(step: ChainStep, from: readonly DType[]): boolean
  lanes(lanes: Lanes): LanesKernel
  /** Writes `n` elements of so many `bytes` at `from` to `to`, each `run` times. The elements may lie at the end of their runs. */
  fillRuns(bytes: number, n: number, run: number, from: number, to: number): void
  /** Counts so many elements of one step, between two blocks. */
  worked(elements: number): void
}
