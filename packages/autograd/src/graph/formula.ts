/**
 * What a row of the table of derivatives is: formulas, what they may read of the forward pass, and the types that make the table total. Above:
 * `derivatives.ts` and the files beside it that hold the rows of one family each.
 */
import type { DType, Tensor } from '@postgrad/tensor'
import type { Ops } from '@postgrad/tensor/internal'

type Shape = readonly number[]
export type TensorOps = Ops<Tensor>

/** What a formula may read of the forward pass. a and b are null where the gradient does not need them, b a number if it was one. */
export interface Saved<Attrs> {
  readonly a: Tensor | number
  readonly b: Tensor | number
  /** The argument that has no gradient of its own: a condition, indices, targets. */
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
  readonly grad: (g: Tensor, s: Saved<Attrs>, ops: TensorOps) => Tensor
}

/** Within the table the compiler sees to it that a formula reads nothing but what it says. For one-tensor rows, a is a tensor. */
export function formula<R extends Readable, Attrs>(
  reads: readonly R[],
  grad: (g: Tensor, s: Pick<Saved<Attrs>, R | Free>, ops: TensorOps) => Tensor,
): Formula<Attrs> {
  return { reads, grad }
}

/** The same for rows whose a is always a tensor. */
export function ofTensor<R extends Readable, Attrs>(
  reads: readonly R[],
  grad: (g: Tensor, s: Pick<Saved<Attrs> & { readonly a: Tensor }, R | Free>, ops: TensorOps) => Tensor,
): Formula<Attrs> {
  return { reads, grad: grad as Formula<Attrs>['grad'] }
}

/** One tensor a, then attributes. */
export interface UnaryRow<Attrs> {
  readonly a: Formula<Attrs>
}
/** Two tensors (or numbers) a and b. `where` has its condition as index. */
export interface BinaryRow {
  readonly a: Formula<unknown>
  readonly b: Formula<unknown>
}
/** A list of tensors: the gradient of the i-th, from the shapes of all. */
export interface ListRow {
  readonly each: (g: Tensor, i: number, shapes: readonly Shape[], dim: number, ops: TensorOps) => Tensor
}

/** The arguments after the first one (two). */
type After1<F> = F extends (x: never, ...rest: infer R) => unknown ? R : never
type After2<F> = F extends (x: never, y: never, ...rest: infer R) => unknown ? R : never
export type UnaryRows<G> = { readonly [K in keyof G]: UnaryRow<After1<G[K]>> }
export type LookupRows<G> = { readonly [K in keyof G]: UnaryRow<After2<G[K]>> }
export type BinaryRows<G> = { readonly [K in keyof G]: BinaryRow }
export type ListRows<G> = { readonly [K in keyof G]: ListRow }
