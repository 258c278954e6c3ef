/** Refusals of settings, worded once for all optimizers. */
import type { PostgradError } from '@postgrad/base'
import { invalidArgument } from '@postgrad/tensor/internal'

export function refusal(op: string, expected: string, got: unknown): PostgradError {
  return invalidArgument(op, expected, typeof got === 'string' ? `'${got}'` : got, 'Check the settings of the optimizer and of its groups.')
}

/**
 * The defaults, with what the user has said in their place.
 * @throws INVALID_ARGUMENT for what is no object: the rate alone, which is PyTorch's second argument, would be left out in silence
 */
export function settingsOf<D extends object, O extends object>(op: string, defaults: D, options: O): D & O {
  // Left out, it is `check` that names the setting that must be given, behind the check of the parameters.
  if (options !== undefined && (typeof options !== 'object' || options === null))
    throw refusal(op, 'an object of settings, such as { lr: 0.01 }', options)
  return { ...defaults, ...options }
}

/** @throws INVALID_ARGUMENT for a named setting that is no number ≥ 0 (NaN is none) */
export function checkAtLeast0<Settings>(op: string, settings: Settings, ...names: readonly (keyof Settings & string)[]): void {
  for (const name of names) {
    const value: unknown = settings[name]
    if (!(typeof value === 'number' && value >= 0)) throw refusal(op, `${name} ≥ 0`, value)
  }
}

/** @throws INVALID_ARGUMENT unless both are in [0, 1) */
export function checkBetas(op: string, betas: readonly number[]): void {
  if (!(Array.isArray(betas) && betas.length === 2 && [...betas].every((beta) => beta >= 0 && beta < 1))) {
    throw refusal(op, 'betas: two numbers in [0, 1)', betas)
  }
}
