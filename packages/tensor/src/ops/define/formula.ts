/**
 * The derivative of an operation: a row of formulas, and the values of the forward pass for them. A formula computes with the `ops` it is given: the raw
 * operations normally, the recorded ones under createGraph. g is the gradient of the result. Autograd records by these rows. PyTorch: `tools/autograd/derivatives.yaml`.
 */
import type { Ops } from '../../raw/operations.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { DType } from '../../values/dtype.js'
import type { Shape } from '../../values/shape.js'

/** A formula's view of the forward pass. a and b are null where the gradient does not need them, b a number if it was one. */
export interface Saved<Attrs> {
  readonly a: Tensor | number
  readonly b: Tensor | number
  /** The argument that has no gradient of its own: a condition. */
  readonly index: Tensor
  readonly result: Tensor
  /** Always known, nothing is saved for these. */
  readonly shapeA: Shape
  readonly shapeB: Shape
  readonly dtypeA: DType
  /** The arguments that are not tensors, in order. */
  readonly attrs: Attrs
}

export type Readable = 'a' | 'b' | 'index' | 'result'
type Free = 'shapeA' | 'shapeB' | 'dtypeA' | 'attrs'

/** The gradient of one argument, and what it reads. */
export interface Formula<Attrs> {
  readonly reads: readonly Readable[]
  readonly grad: (g: Tensor, s: Saved<Attrs>, ops: Ops) => Tensor
}

/** The compiler sees to it that a formula reads nothing but what it says. */
export function formula<R extends Readable, Attrs>(
  reads: readonly R[],
  grad: (g: Tensor, s: Pick<Saved<Attrs>, R | Free>, ops: Ops) => Tensor,
): Formula<Attrs> {
  return { reads, grad }
}

/** The gradient where a is always a tensor. */
export type OfTensor<R extends Readable, Attrs> = (g: Tensor, s: Pick<Saved<Attrs> & { readonly a: Tensor }, R | Free>, ops: Ops) => Tensor

/** The same where a is always a tensor. */
export function ofTensor<R extends Readable, Attrs>(reads: readonly R[], grad: OfTensor<R, Attrs>): Formula<Attrs> {
  return { reads, grad: grad as Formula<Attrs>['grad'] }
}

/** Two tensors (or numbers) a and b; a tensor before them is the `index`. */
export interface BinaryRow {
  readonly a: Formula<unknown>
  readonly b: Formula<unknown>
}

/** A tensor x and, as the `index`, a tensor that has no gradient, before at most one attribute: the gradient of x. */
export interface LookupRow<Attrs> {
  readonly x: Formula<Attrs>
}

/** A list of tensors: the gradient of the i-th, from the shapes of all. */
export interface ListRow {
  readonly each: (g: Tensor, i: number, shapes: readonly Shape[], dim: number, ops: Ops) => Tensor
}

export type Grads = readonly (Tensor | null)[]

/** In `ManyRow.reads`: the i-th result (a plain i is the i-th tensor among the arguments). */
export const result = (i = 0): number => RESULTS + i
export const RESULTS = 16

/** The same for a formula of several tensors; tensors are counted among themselves. */
export interface ManySaved<Attrs extends readonly unknown[]> {
  /** Tensor i, which `reads` names; null if it was left out. */
  arg(i: number): Tensor | null
  /** The same where it cannot have been left out. */
  tensor(i: number): Tensor
  /** Result i, which `reads` names. */
  result(i: number): Tensor
  /** Whether the gradient of tensor i is wanted. */
  needs(i: number): boolean
  /** The shape of tensor i, always known; of one that was left out, []. */
  shape(i: number): Shape
  readonly attrs: Attrs
}

/** Several tensors, of which some may be left out. One formula gives the gradients of all, because kernels often compute several of them at once. */
export interface ManyRow<Attrs extends readonly unknown[]> {
  /** One entry per tensor: what its gradient reads; null if it has none (indices, running statistics). At most 15 tensors. */
  readonly reads: readonly (readonly number[] | null)[]
  /** The places of the tensors among the arguments; default: they come first. */
  readonly at?: readonly number[]
  /** How many of the results, from the first on, have a gradient; default all that are floating point. */
  readonly differentiable?: number
  /** One kernel computes all gradients: they are never asked for apart, which would run it twice. */
  readonly isFused?: true
  /**
   * From the gradients of the results (null where none arrived, but not all) to those of the tensors: new tensors or views on g, null where
   * `needs` says no.
   */
  readonly grads: (g: Grads, s: ManySaved<Attrs>, ops: Ops) => Grads
}

type Absent = null | undefined
/** The arguments that are not tensors. */
export type Attributes<P extends readonly unknown[]> =
  Required<P> extends readonly [infer Head, ...infer Rest]
    ? Tensor extends Exclude<Head, Absent>
      ? Attributes<Rest>
      : [Head, ...Attributes<Rest>]
    : []

type After1<P extends readonly unknown[]> = P extends readonly [unknown, ...infer R]
  ? R
  : P extends readonly [unknown?, ...infer R]
    ? R
    : never

/** The rows that an operation of these arguments may have: of one tensor and attributes, of a tensor and indices, of two tensors, of a list, of several. */
export type Row<P extends readonly unknown[]> =
  | Formula<After1<P>>
  | LookupRow<After1<After1<P>>>
  | BinaryRow
  | ListRow
  | ManyRow<Attributes<P>>
