/**
 * Derivatives that are operations themselves, since a kernel of their own is faster or safer than what they are made of. Formulas call them by the
 * `ops` that they are given: without createGraph these are kernels, under it compositions of recorded operations (`autograd/composed.ts`), which
 * can be differentiated again. Not public. g is the gradient of the result of the operation that the name begins with.
 */
export interface DerivativeOps<T> {
  /** x any, g as `prod` left it. */
  prodBackward(g: T, x: T, dim?: number): T
  cumprodBackward(g: T, x: T, dim: number): T
}
