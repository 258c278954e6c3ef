/** Checks of settings that optimizers share. */
import type { PostgradError } from '@postgrad/base'
import { invalidArgument } from '@postgrad/tensor/internal'

export function refusal(op: string, expected: string, got: unknown): PostgradError {
  return invalidArgument(op, expected, typeof got === 'string' ? `'${got}'` : got, 'Check the settings of the optimizer and of its groups.')
}

/**
 * The defaults, overridden by the user's settings.
 * @throws INVALID_ARGUMENT for other values than an object: the rate alone, PyTorch's second argument, would be ignored silently
 */
export function settingsOf<D extends object, O extends object>(op: string, defaults: D, options: O): D & O {
  // If options are left out, `check` names the missing setting, after the check of the parameters.
  if (options !== undefined && (typeof options !== 'object' || options === null))
    throw refusal(op, 'an object of settings, such as { lr: 0.01 }', options)
  return { ...defaults, ...options }
}

/** @throws INVALID_ARGUMENT unless each named setting is a number ≥ 0, not NaN */
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
