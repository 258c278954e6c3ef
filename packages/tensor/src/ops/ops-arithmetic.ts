/** The names and argument lists of functions of two tensors beyond `ops.ts`'s first ones; once, as there. They broadcast and promote in the same way. */

export interface DivOptions {
  /** 'floor': towards −∞; 'trunc': towards 0; integers then stay integers. */
  readonly roundingMode?: 'floor' | 'trunc' | null
}

export interface PowOps<T> {
  /** aᵇ; int32 wraps around. */
  pow(a: T | number, b: T | number): T
}

export interface ArithmeticOps<T> {
  /** Of integers by 0: 0 (PyTorch throws); as remainder and fmod. */
  floorDivide(a: T | number, b: T | number): T
  /** Has the sign of b. */
  remainder(a: T | number, b: T | number): T
  /** Has the sign of a. */
  fmod(a: T | number, b: T | number): T
  /** The angle of the point (b, a); integers become float32. */
  atan2(a: T, b: T): T
}

/** int32 and bool alone; without a gradient. */
export interface BitOps<T> {
  bitwiseAnd(a: T | number, b: T | number): T
  bitwiseOr(a: T | number, b: T | number): T
  bitwiseXor(a: T | number, b: T | number): T
}

/** Of `addcmul` and `addcdiv`. */
export interface ValueOptions {
  /** A factor; default 1. */
  readonly value?: number
}

/** Of `isclose` and `allclose`. */
export interface IsCloseOptions {
  /** Allowed is atol + rtol |b|; defaults 1e-5 and 1e-8. */
  readonly rtol?: number
  /** Allowed beside `rtol` |b|; default 1e-8. */
  readonly atol?: number
  /** Whether NaN is close to NaN; default false. */
  readonly equalNan?: boolean
}

/** Ops written once over others. */
export interface ArithmeticCompositeOps<T> {
  /** a + weight (b − a) */
  lerp(a: T, b: T, weight: T | number): T
  /** x + value · a · b */
  addcmul(x: T, a: T, b: T, options?: ValueOptions): T
  /** x + value · a / b */
  addcdiv(x: T, a: T, b: T, options?: ValueOptions): T
  bitwiseNot(x: T): T
  /** bool, element by element. */
  isclose(a: T, b: T, options?: IsCloseOptions): T
  /** Whether all elements are close. Reads synchronously, as itemSync. */
  allclose(a: T, b: T, options?: IsCloseOptions): boolean
  /** Whether shapes and all elements are equal (NaN is not). Reads synchronously. */
  equal(a: T, b: T): boolean
}
