/**
 * The operations that also exist in place, as `exp` does as `exp_`: one list, from which the types, the raw functions and autograd's are made. The few with
 * kernels of their own (`add_`, `copy_`, …) stand in `ops.ts`. A name that is added here is added to `Tensor` as a method.
 */
export const IN_PLACE_FORMS = [
  ...(['neg', 'exp', 'log', 'sqrt', 'sin', 'cos', 'tanh', 'sigmoid', 'relu', 'abs', 'sign', 'clamp', 'pow'] as const),
  ...(['floor', 'ceil', 'round', 'trunc', 'reciprocal', 'rsqrt', 'square', 'log1p', 'expm1', 'log2', 'log10', 'exp2'] as const),
  ...(['tan', 'sinh', 'cosh', 'asin', 'acos', 'atan', 'erf', 'leakyRelu', 'elu', 'hardtanh', 'nanToNum'] as const),
  ...(['remainder', 'fmod', 'floorDivide', 'atan2', 'lerp', 'addcmul', 'addcdiv', 'cumsum', 'cumprod', 'tril', 'triu'] as const),
  ...(['scatterAdd', 'scatter', 'indexAdd', 'indexFill', 'maskedFill'] as const),
] as const

type Form = (typeof IN_PLACE_FORMS)[number]
type After1<F> = F extends (x: never, ...rest: infer R) => unknown ? R : never

/**
 * Of the operations O on tensors T: as without the underscore, written into x, which is returned; x keeps its shape and its dtype.
 * @throws SHAPE_MISMATCH, INPLACE_DTYPE where x cannot hold the result (`exp_` of integers), INPLACE_OVERLAP
 */
export type InPlaceFormOps<O extends Record<Form, unknown>, T> = {
  [K in Form as `${K}_`]: (x: T, ...rest: After1<O[K]>) => T
}

/** Makes the in-place form of an operation: how, is what raw operations and autograd's differ in. */
export type MakeInPlace<T> = (op: `${Form}_`, compute: (x: T, ...rest: readonly unknown[]) => T) => (x: T, ...rest: readonly unknown[]) => T

export function inPlaceForms<O extends Record<Form, unknown>, T>(ops: O, make: MakeInPlace<T>): InPlaceFormOps<O, T> {
  const forms = IN_PLACE_FORMS.map((op) => [`${op}_`, make(`${op}_`, ops[op] as Parameters<MakeInPlace<T>>[1])])
  return Object.fromEntries(forms) as InPlaceFormOps<O, T>
}
