/**
 * Derivatives that are operations themselves, since a kernel of their own is faster or safer than what they are made of. Formulas call them by the
 * `ops` that they are given: without createGraph these are kernels, under it compositions of recorded operations (`autograd/derivatives/composed.ts`), which
 * can be differentiated again. Not public. g is the gradient of the result of the operation that the name begins with. (The options
 * of activations stand here because both lists of operations name them.)
 */

export interface GeluOptions {
  /** 'none' (the default): x Φ(x); 'tanh': the approximation by tanh. */
  readonly approximate?: 'none' | 'tanh'
}

/** Of `softplus`. */
export interface SoftplusOptions {
  /** Default 1. */
  readonly beta?: number
  /** Where x · beta is above it, the result is x. Default 20. */
  readonly threshold?: number
}

export interface DerivativeOps<T> {
  /** x any, g as `prod` left it. */
  prodBackward(g: T, x: T, dim?: number): T
  cumprodBackward(g: T, x: T, dim: number): T
  /** x the activation's argument, y its result. */
  reluBackward(g: T, y: T): T
  tanhBackward(g: T, y: T): T
  sigmoidBackward(g: T, y: T): T
  leakyReluBackward(g: T, x: T, slope: number): T
  eluBackward(g: T, x: T, alpha: number): T
  siluBackward(g: T, x: T): T
  geluBackward(g: T, x: T, options?: GeluOptions): T
  softplusBackward(g: T, x: T, options?: SoftplusOptions): T
  softmaxBackward(g: T, y: T, dim: number): T
  logSoftmaxBackward(g: T, y: T, dim: number): T
}
